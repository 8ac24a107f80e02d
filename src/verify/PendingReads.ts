/** The reads that the next sync still has to do: records after the cursor, and refetch requests. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import type { Table } from "../warehouse/Table.ts"
import * as Expected from "./Expected.ts"

export interface PendingReads {
  /** The cursor as an instant; null when the resource has none. */
  readonly cursor: string | null
  /** Values of refetch requests, by field. */
  readonly requests: ReadonlyMap<string, ReadonlySet<string>>
}

/** The maximum of refetch requests that are loaded; records of further ones count as wrong. */
const requestsMax = 10_000

const refetchRequests = control.selectFrom("tributary.refetch_requests").select(["field", "value"]).limit(requestsMax)

export const readPendingReads = Effect.fnUntraced(function* (companyId: bigint, resource: string) {
  const ofResource = { company_id: companyId, resource }
  const checkpoint = yield* Query.first(
    control
      .selectFrom("tributary.checkpoints")
      .select("cursor")
      .where((is) => is.and({ ...ofResource, lane: "live" }))
  )
  const requests = new Map<string, Set<string>>()
  for (const { field, value } of yield* Query.run(refetchRequests.where((is) => is.and(ofResource))))
    requests.set(field, (requests.get(field) ?? new Set()).add(value))
  const cursor = Expected.instantOf(checkpoint?.cursor ?? "")?.text ?? null
  return { cursor, requests } satisfies PendingReads
})

export const isRequestedById = ({ requests }: PendingReads, id: string): boolean => requests.get("id")?.has(id) === true

/** Whether a refetch request names a value that the record has. */
const isRequestedByValue = ({ requests }: PendingReads, { fields }: Table["resource"], row: Expected.ExpectedRow) =>
  [...requests].some(([field, values]) => {
    const position = fields.findIndex((one) => one.name === field)
    const sent = row.columns[position]
    const value = sent === undefined ? null : Expected.canonicalOf(fields[position]!, sent)
    return value !== null && values.has(value)
  })

/** Whether the next sync reads this version of a record. */
export const isPending = (
  pending: PendingReads,
  resource: Table["resource"],
  id: string,
  row: Expected.ExpectedRow
): boolean => {
  const { changedAt } = row
  const isNewer = pending.cursor !== null && changedAt !== null && changedAt > pending.cursor
  return (
    (resource.modifiedSince && isNewer) || isRequestedById(pending, id) || isRequestedByValue(pending, resource, row)
  )
}

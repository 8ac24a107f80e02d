/** The reads that the next sync still has to do: records after the cursor, and refetch requests. */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
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

export const cursorStatement = Statement.make({
  name: "read the cursor of live syncing",
  params: ["int8", "text"],
  columns: { cursor: "text?" },
  text: "select cursor from tributary.checkpoints where company_id = $1 and resource = $2 and lane = 'live'"
})
export const refetchValuesStatement = Statement.make({
  name: "read the values of refetch requests",
  params: ["int8", "text"],
  columns: { field: "text", value: "text" },
  text: `select field, value from tributary.refetch_requests where company_id = $1 and resource = $2 limit ${requestsMax}`
})

export const readPendingReads = Effect.fnUntraced(function* (companyId: bigint, resource: string) {
  const [checkpoint] = yield* Statement.run(cursorStatement, [companyId, resource])
  const requests = new Map<string, Set<string>>()
  for (const { field, value } of yield* Statement.run(refetchValuesStatement, [companyId, resource]))
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

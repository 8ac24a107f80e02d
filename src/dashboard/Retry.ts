/**
 * The retry of a record in quarantine.
 *
 * Promise: the record is read from the source and landed by the usual rules. It leaves quarantine only when it was landed
 * or is gone. Where it cannot be read alone, a full scan is requested. The answer is a sentence.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { childrenOf } from "../warehouse/Table.ts"
import type { Outcome } from "../sync/Outcome.ts"
import { fetchRecords } from "../sync/FetchRecords.ts"
import type { Database } from "../postgres/Database.ts"
import * as TaskQueue from "../tasks/TaskQueue.ts"
import { withPagePriority } from "./Params.ts"
import { requester, type ShownCompany } from "./Page.ts"
import * as Quarantine from "../status/Quarantine.ts"
import { truncated, visible } from "../web/Escape.ts"

/** Attempts while another run reads records of the resource; each waits for some seconds. */
const attemptsMax = 3
const reasonMax = 200

/** The configured company with this company id. Ids that are not stored are requested from the source. */
const companyOf = Effect.fnUntraced(function* (
  companies: ReadonlyArray<ShownCompany>,
  companyId: bigint
): Effect.fn.Return<ShownCompany | null, DatabaseError, SqlClient.SqlClient> {
  const ids = yield* TaskQueue.companyIds
  const known = companies.find(({ name }) => ids.get(name) === companyId)
  if (known !== undefined) return known
  for (const company of companies.filter(({ name }) => !ids.has(name))) {
    const identity = yield* Effect.option(company.connector.identify)
    if (identity._tag === "Some" && identity.value.companyId === companyId) return company
  }
  return null
})

const isBusy = ({ failure }: Outcome): boolean => failure?.kind === "AlreadyRunning"

/** The result as a sentence, from the state of the quarantine after the read. */
const describeResult = Effect.fnUntraced(function* (entry: Quarantine.ListedEntry, recordId: string, outcome: Outcome) {
  const { failure, totals } = outcome
  if (isBusy(outcome)) {
    return "It could not be read, since another run was reading records of this resource. Try again in a moment."
  }
  if (failure !== null) {
    return `It could not be read: ${truncated(failure.message, reasonMax)}. What to do: ${visible(failure.remedy)}.`
  }
  const open = yield* Quarantine.newestOpen(entry.companyId, entry.resource, recordId)
  if (open === null) {
    return totals.records === 0
      ? "It was read again: the source has no such record any more, and it has left quarantine."
      : "It was read again and landed; it has left quarantine."
  }
  const field = open.field === null ? "" : `${visible(open.field)}: `
  const elsewhere = open.id === entry.id ? "" : ` It has the number ${open.id} now, since its bytes have changed.`
  return `It was read again and is still refused: ${field}${truncated(open.reason, reasonMax)}.${elsewhere}`
})

/** Reads the record again, or requests a full scan where it cannot be read alone. */
export const retry = Effect.fn("Retry.retry")(function* (
  companies: ReadonlyArray<ShownCompany>,
  entry: Quarantine.ListedEntry
): Effect.fn.Return<string, DatabaseError, Database | SqlClient.SqlClient> {
  if (entry.resolvedAt !== null) return "It has left quarantine already; nothing was done."
  const company = yield* companyOf(companies, entry.companyId)
  if (company === null) {
    return (
      `No configured company is known to have the number ${entry.companyId}, so nothing was done. ` +
      "What to do: start tributary serve with the company that it belongs to."
    )
  }
  const tables = yield* company.tables
  const table = tables.get(entry.resource)
  if (table === undefined) {
    return (
      `${visible(entry.resource)} is not among the resources that are synced for company ${visible(company.name)}, so ` +
      "nothing was done. What to do: add it to the configuration."
    )
  }
  const { recordId } = entry
  if (recordId === null || !table.resource.operations.includes("R")) {
    yield* TaskQueue.requestSync({ company: company.name, resource: entry.resource, full: true, by: requester })
    const why =
      recordId === null ? "Its number cannot be read" : "The source does not offer single records of this resource"
    return (
      `${why}, so a full scan of ${visible(entry.resource)} was requested. ` +
      "After that scan it leaves quarantine, if it was landed or is gone."
    )
  }
  const outcome = yield* fetchRecords({
    companyId: entry.companyId,
    connector: company.connector,
    table,
    ids: [recordId],
    authority: "newer",
    children: childrenOf(tables, entry.resource)
  }).pipe(Effect.repeat({ until: (one) => !isBusy(one), times: attemptsMax - 1 }))
  return yield* describeResult(entry, recordId, outcome)
}, withPagePriority)

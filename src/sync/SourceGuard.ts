/**
 * The check that a company's rows come from its configured source.
 *
 * Promise: when the configured address or the company number differs from the stored one, `identify` fails before anything
 * is written. A person can accept the new source: then each resource is read in full, and the source wins.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import { SourceError, Unreachable } from "../connector/SourceError.ts"
import { forgetScanSql } from "../land/Checkpoint.ts"
import { otherAddress, sourceChanged } from "../land/CheckpointIdentity.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { retryTransient, transaction } from "../postgres/Transaction.ts"

interface StoredSource {
  readonly companyId: bigint | null
  readonly address: string | null
}

const readStoredSource = Effect.fnUntraced(function* (company: string, companyId: bigint) {
  const sql = yield* SqlClient.SqlClient
  const [known] = yield* sql.unsafe<StoredSource>(
    `select (select company_id from tributary.companies where company = $1) as "companyId",
            (select address from tributary.sources where company_id = $2) as address`,
    [company, companyId]
  )
  return known!
})

/** Stores the number of a company that has none yet. */
export const saveCompanyId = Effect.fnUntraced(function* (
  company: string,
  companyId: bigint
): Effect.fn.Return<void, SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into tributary.companies as c (company, company_id) values (${company}, ${companyId})
             on conflict (company) do update set seen_at = tributary.now() where c.company_id = excluded.company_id`
})

/** Pending rows of the outbox name records of the earlier source: pushes pause until a person confirms. */
const pauseOutbox = Effect.fnUntraced(function* (company: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update tributary.installation set pause_reason = ${`company ${company} has a new source, and its outbox was filled for the earlier one`}
              where exists (select 1 from tributary.outbox where company = ${company} and state in ('pending', 'in_flight'))`
})

const acceptSource = Effect.fnUntraced(function* (
  company: string,
  companyId: bigint,
  address: string | null,
  known: StoredSource
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into tributary.companies (company, company_id) values (${company}, ${companyId})
             on conflict (company) do update set company_id = excluded.company_id, seen_at = tributary.now()`
  yield* pauseOutbox(company)
  if (address === null || known.address === address) return
  yield* sql`insert into tributary.sources (company_id, address, since) values (${companyId}, ${address}, tributary.now())
             on conflict (company_id) do update set address = excluded.address, since = excluded.since`
  yield* sql`
    update tributary.checkpoints set adopts_source = lane = 'live', fence = fence + 1, identity_fence = identity_fence + 1,
      full_scan_reason = case when lane = 'live' then ${`its source is now ${address}`} else full_scan_reason end,
      ${sql.literal(forgetScanSql)}, updated_at = tributary.now()
    where company_id = ${companyId}`
  yield* sql`delete from tributary.scan_ids where company_id = ${companyId}`
})

const confirmCompany = Effect.fnUntraced(function* (
  company: string,
  { companyId }: Identity,
  address: string | null,
  acceptsNewSource: boolean
) {
  const known = yield* readStoredSource(company, companyId)
  const isOtherNumber = known.companyId !== null && known.companyId !== companyId
  const isOtherAddress = address !== null && known.address !== null && known.address !== address
  if (!isOtherNumber && !isOtherAddress) return
  if (acceptsNewSource) {
    yield* transaction(acceptSource(company, companyId, address, known))
    const rest = isOtherNumber ? `; rows of company ${known.companyId} stay as they are` : ""
    return yield* Effect.logInfo(
      `company ${company} has a new source, company ${companyId} of ${address ?? "it"}${rest}`
    )
  }
  return yield* isOtherAddress
    ? otherAddress(companyId, known.address, address)
    : sourceChanged(
        `company ${company} had the number ${known.companyId}, and its token is now of company ${companyId}`
      )
})

/** The connector of a company whose `identify` fails when the warehouse's rows come from another source. */
export const guarded = Effect.fnUntraced(function* (
  company: string,
  connector: ConnectorShape,
  acceptsNewSource = false
): Effect.fn.Return<ConnectorShape, never, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const identify = Effect.tap(connector.identify, (identity) =>
    retryTransient(confirmCompany(company, identity, connector.source?.address ?? null, acceptsNewSource)).pipe(
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.mapError((error) =>
        isSqlError(error)
          ? new SourceError({
              reason: new Unreachable({
                detail: `the warehouse cannot say which source its rows come from: ${DatabaseError.from("ask")(error).message}`
              }),
              request: { method: "GET", path: "/me", requestId: null, attempts: 0 }
            })
          : error
      )
    )
  )
  return { ...connector, identify }
})

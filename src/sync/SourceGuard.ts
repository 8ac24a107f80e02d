/**
 * The check that a company's rows come from its configured source.
 *
 * Promise: when the configured address or the company number differs from the stored one, `identify` fails before anything
 * is written. A person can accept the new source: then each resource is read in full, and the source wins.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import { SourceError, Unreachable } from "../connector/SourceError.ts"
import { otherAddress, sourceChanged } from "../land/CheckpointIdentity.ts"
import { adoptSource } from "../land/ConfirmIdentity.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { retryTransient, transaction } from "../postgres/Transaction.ts"

export const readStatement = Statement.make({
  name: "read the source of a company",
  params: ["text", "int8"],
  columns: { companyId: "int8?", address: "text?" },
  text: `select (select company_id from tributary.companies where company = $1) as "companyId",
            (select address from tributary.sources where company_id = $2) as address`
})

export const saveStatement = Statement.make({
  name: "store the number of a company",
  params: ["text", "int8"],
  text: `insert into tributary.companies as c (company, company_id) values ($1, $2)
             on conflict (company) do update set seen_at = tributary.now() where c.company_id = excluded.company_id`
})

/** Stores the number of a company that has none yet. */
export const saveCompanyId = (company: string, companyId: bigint): Sql.Query<void> =>
  Effect.asVoid(Statement.run(saveStatement, [company, companyId]))

export const replaceStatement = Statement.make({
  name: "replace the number of a company",
  params: ["text", "int8"],
  text: `insert into tributary.companies (company, company_id) values ($1, $2)
             on conflict (company) do update set company_id = excluded.company_id, seen_at = tributary.now()`
})

/** Pending rows of the outbox name records of the earlier source: pushes pause until a person confirms. */
export const pauseOutboxStatement = Statement.make({
  name: "pause pushes to a new source",
  params: ["text", "text"],
  text: `update tributary.installation set pause_reason = $2
              where exists (select 1 from tributary.outbox where company = $1 and state in ('pending', 'in_flight'))`
})

const acceptSource = Effect.fnUntraced(function* (
  company: string,
  companyId: bigint,
  address: string | null,
  knownAddress: string | null
) {
  yield* Statement.run(replaceStatement, [company, companyId])
  yield* Statement.run(pauseOutboxStatement, [
    company,
    `company ${company} has a new source, and its outbox was filled for the earlier one`
  ])
  if (address !== null && knownAddress !== address) yield* adoptSource(companyId, address)
})

const confirmCompany = Effect.fnUntraced(function* (
  company: string,
  { companyId }: Identity,
  address: string | null,
  acceptsNewSource: boolean
) {
  const [row] = yield* Statement.run(readStatement, [company, companyId])
  const known = row!
  const isOtherNumber = known.companyId !== null && known.companyId !== companyId
  const isOtherAddress = address !== null && known.address !== null && known.address !== address
  if (!isOtherNumber && !isOtherAddress) return
  if (acceptsNewSource) {
    yield* transaction(acceptSource(company, companyId, address, known.address))
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

/** Fails where the rows of the company come from another source than this one. */
export const confirmSource = (company: string, identity: Identity, address: string | null) =>
  confirmCompany(company, identity, address, false)

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
        error instanceof DatabaseError
          ? new SourceError({
              reason: new Unreachable({
                detail: `the source of the warehouse's rows could not be read: ${error.message}`
              }),
              request: { method: "GET", path: "/me", requestId: null, attempts: 0 }
            })
          : error
      )
    )
  )
  return { ...connector, identify }
})

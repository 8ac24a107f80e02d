/**
 * The number of a company in the warehouse, and the check that its rows come from its configured source.
 *
 * Promise: when the configured address or the number at the source differs from the stored one, `identify` fails before
 * anything is written. A person can accept the new source: then each resource is read in full, and the source wins. Two
 * companies never have the same number in one warehouse. A company under a new name keeps its rows and its work, unless
 * the earlier name is still configured: then it is refused.
 */
import * as Effect from "effect/Effect"
import { sql } from "kysely"
import * as SqlClient from "effect/sql/SqlClient"
import type { ConnectorShape, Identity } from "../connector/Connector.ts"
import { type SourceError, Unreachable } from "../connector/SourceError.ts"
import { otherAddress, sourceChanged, sourceErrorOf } from "../land/CheckpointIdentity.ts"
import { adoptSource } from "../land/ConfirmIdentity.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import * as Statement from "../postgres/Statement.ts"
import { retryTransient, transaction } from "../postgres/Transaction.ts"

/** A company as it is configured. */
interface Configured {
  readonly name: string
  /** The names of all companies of the configuration file. */
  readonly configured: ReadonlyArray<string>
  /** The number that the configuration gives it in the warehouse; null is the number at the source. */
  readonly warehouseNumber: bigint | null
}

/** A company with what its source answered. */
interface Identified extends Configured {
  readonly sourceNumber: bigint
  /** Null where the connector has no address. */
  readonly address: string | null
}

const numberAtSource = sql<bigint>`coalesce(source_number, company_id)`

/** The rows of the company's name, of its number at a source, and of its number in the warehouse. */
const readRows = ({ name, sourceNumber, warehouseNumber }: Identified) =>
  Query.run(
    control
      .selectFrom("tributary.companies")
      .select(["company_id as companyId", "company as name", "address", numberAtSource.as("sourceNumber")])
      .select((is) =>
        is
          .exists(
            is
              .selectFrom("tributary.company_settings as s")
              .whereRef("s.company", "=", "tributary.companies.company")
              .select("s.company")
          )
          .as("isStored")
      )
      .where((is) =>
        is.or([
          is("company", "=", name),
          is(numberAtSource, "=", sourceNumber),
          is("company_id", "=", warehouseNumber ?? sourceNumber)
        ])
      )
  )

type CompanyRow = Effect.Success<ReturnType<typeof readRows>>[number]

const isOf = (row: CompanyRow, { address, sourceNumber }: Identified) =>
  row.sourceNumber === sourceNumber && (row.address === null || address === null || row.address === address)

/** How the row of the company's name is of another source; null where it is not. */
const differenceOf = (named: CompanyRow | undefined, company: Identified): SourceError | null => {
  if (named === undefined || isOf(named, company)) return null
  const { address, name, sourceNumber } = company
  return named.sourceNumber === sourceNumber
    ? otherAddress(named.companyId, named.address ?? "", address ?? "")
    : sourceChanged(
        `company ${name} had the number ${named.sourceNumber}, and its token is now of company ${sourceNumber}`
      )
}

/** That the company is configured twice; null where it is not. */
const duplicateOf = (known: CompanyRow, { name, configured }: Identified): SourceError | null =>
  known.name !== name && (known.isStored || configured.includes(known.name))
    ? sourceChanged(
        `company ${name} is company ${known.sourceNumber} of ${known.address ?? "its source"}, as company ${known.name} is`,
        `leave one of them out, or check which token is the wrong one; to rename a company, configure its new name only`
      )
    : null

/** The least number that a message proposes. */
const proposedMin = 1_000_001n

/** The number that the company has, or gets; fails where another company has it. */
const numberOf = (rows: ReadonlyArray<CompanyRow>, company: Identified): Effect.Effect<bigint, SourceError> => {
  const { address, name, sourceNumber, warehouseNumber } = company
  const known = rows.find((row) => isOf(row, company))
  const duplicate = known === undefined ? null : duplicateOf(known, company)
  if (duplicate !== null) return Effect.fail(duplicate)
  const number = warehouseNumber ?? known?.companyId ?? sourceNumber
  if (known !== undefined && known.companyId !== number)
    return Effect.fail(
      sourceChanged(`the rows of company ${name} have the number ${known.companyId}, and warehouse_number is ${number}`)
    )
  const holder = rows.find(({ companyId }) => companyId === number)
  if (holder === known || holder === undefined) return Effect.succeed(number)
  const free = rows.reduce((most, { companyId }) => (companyId < most ? most : companyId + 1n), proposedMin)
  const detail =
    `company ${name} is company ${sourceNumber} of ${address ?? "its source"}, and the warehouse has a company ` +
    `${number} of ${holder.address ?? "another source"}, ${holder.name}`
  return Effect.fail(
    sourceChanged(
      detail,
      `give company ${name} a number of its own in this warehouse: warehouse_number: ${free} in the configuration file, ` +
        `or tributary company add --warehouse-number ${free}`
    )
  )
}

/** Stores the company with its number, or that its source has answered; fails where another company has got the number. */
export const save = Effect.fnUntraced(function* (
  name: string,
  { companyId, sourceNumber }: Pick<Identity, "companyId" | "sourceNumber">,
  address: string | null
): Effect.fn.Return<void, SourceError | DatabaseError, SqlClient.SqlClient> {
  const number = sourceNumber === companyId ? null : sourceNumber
  const saved = yield* Query.run(
    control
      .with("before", (before) =>
        before
          .selectFrom("tributary.companies")
          .select("company")
          .where("company_id", "=", companyId)
          .where("company", "<>", name)
      )
      .insertInto("tributary.companies")
      .values({
        company_id: companyId,
        company: name,
        source_number: number,
        address,
        address_since: address === null ? null : Query.now
      })
      .onConflict((conflict) =>
        conflict
          .column("company_id")
          .doUpdateSet({ company: name, seen_at: Query.now })
          .where("tributary.companies.source_number", "is not distinct from", number)
          .where(sql<boolean>`coalesce(tributary.companies.address = ${address}::text, true)`)
      )
      // In this statement: the work has the name that the company has.
      .returning((is) =>
        is
          .selectFrom("before")
          .select((of) => of.fn("tributary.rename_work", ["before.company", of.val(name)]).as("renamed"))
          .as("renamed")
      )
  )
  if (saved.length === 0)
    return yield* sourceChanged(`another company has just got the number ${companyId}; run this again`)
})

/** Pending rows of the outbox name records of the earlier source: pushes pause until a person confirms. */
export const pauseOutboxStatement = Statement.make({
  name: "pause pushes to a new source",
  params: ["text", "text"],
  text: `update tributary.warehouse set pause_reason = $2
              where exists (select 1 from tributary.outbox where company = $1 and state in ('pending', 'in_flight'))`
})

/** Makes the source the one of the company's rows. Another number at the source is another company, with rows of its own. */
const acceptSource = Effect.fnUntraced(function* (
  company: Identified,
  named: CompanyRow,
  rows: ReadonlyArray<CompanyRow>
) {
  const { address, name, sourceNumber } = company
  const isSameNumber = named.sourceNumber === sourceNumber
  const companyId = isSameNumber ? named.companyId : yield* numberOf(rows, company)
  if (!isSameNumber)
    yield* Query.run(
      control
        .updateTable("tributary.companies")
        .set({ company: `${name} (${named.companyId})` })
        .where("company_id", "=", named.companyId)
    )
  if (isSameNumber && address !== null) yield* adoptSource(companyId, address)
  yield* save(name, { companyId, sourceNumber }, address)
  yield* Statement.run(pauseOutboxStatement, [
    name,
    `company ${name} has a new source, and its outbox was filled for the earlier one`
  ])
  const rest = isSameNumber ? "" : `; rows of company ${named.companyId} stay as they are`
  yield* Effect.logInfo(`company ${name} has a new source, company ${sourceNumber} of ${address ?? "it"}${rest}`)
  return companyId
})

const confirmCompany = Effect.fnUntraced(function* (company: Identified, acceptsNewSource: boolean) {
  const rows = yield* readRows(company)
  const named = rows.find(({ name }) => name === company.name)
  const difference = differenceOf(named, company)
  if (difference === null || named === undefined) return yield* numberOf(rows, company)
  if (!acceptsNewSource) return yield* difference
  return yield* transaction(acceptSource(company, named, rows))
})

/** The number of the company in the warehouse. Fails where its rows come from another source than this one. */
export const confirmSource = (configured: Configured, { sourceNumber }: Identity, address: string | null) =>
  confirmCompany({ ...configured, sourceNumber, address }, false)

/**
 * The connector of a company whose `identify` answers its number in the warehouse, and fails when the warehouse's rows come
 * from another source.
 */
export const guarded = Effect.fnUntraced(function* (
  { name, configured, warehouseNumber }: Configured,
  connector: ConnectorShape,
  acceptsNewSource = false
): Effect.fn.Return<ConnectorShape, never, SqlClient.SqlClient> {
  const client = yield* SqlClient.SqlClient
  const address = connector.source?.address ?? null
  const identify = Effect.flatMap(connector.identify, (identity) =>
    retryTransient(
      confirmCompany(
        { name, configured, warehouseNumber, sourceNumber: identity.sourceNumber, address },
        acceptsNewSource
      )
    ).pipe(
      Effect.provideService(SqlClient.SqlClient, client),
      Effect.mapBoth({
        onSuccess: (companyId) => ({ ...identity, companyId }),
        onFailure: (error) =>
          error instanceof DatabaseError
            ? sourceErrorOf(
                new Unreachable({ detail: `the source of the warehouse's rows could not be read: ${error.message}` })
              )
            : error
      })
    )
  )
  return { ...connector, identify }
})

/** Identifies a guarded company, and stores its number. */
export const identify = ({ name, connector }: { readonly name: string; readonly connector: ConnectorShape }) =>
  Effect.tap(connector.identify, (identity) => retryTransient(save(name, identity, connector.source?.address ?? null)))

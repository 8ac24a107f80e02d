/**
 * The removal of the values of one record from everything that is kept of it.
 *
 * Promise: after {@link forget}, no earlier version of the record, and no quarantined copy, delivery or resolved row of the
 * outbox about it, has a value other than keys: its number, the external key, times, flags and the numbers of records that it
 * refers to. The current version follows the source: its values go where the source no longer has the record, or where
 * the company no longer reads the resource. One
 * transaction does it and writes the receipt; a crash leaves everything as it was. Records that refer to this one may repeat
 * its values: {@link referringTo} counts them.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import { needOf } from "../catalogue/Protection.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as Query from "../postgres/Query.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"
import { identifier, literal } from "../warehouse/Identifier.ts"
import { tablesStatement } from "../warehouse/RelationPlan.ts"
import { type Column, type Datasets, type Table, tableOf } from "../warehouse/Table.ts"

export const quarantineStatement = Statement.make({
  name: "forget the quarantine of a record",
  params: ["int8", "text", "text"],
  columns: { one: "int4" },
  text: `update tributary.quarantine set bytes = '{"forgotten":' || id || '}', reason = 'its values were forgotten'
          where company_id = $1 and resource = $2 and record_id = $3 returning 1 as one`
})

export const deliveriesStatement = Statement.make({
  name: "forget the deliveries about a record",
  params: ["text", "text", "text"],
  columns: { one: "int4" },
  // A pending event keeps its body until the record was read for it. A dead letter is given up.
  text: `update tributary.inbox
            set body = '{}', last_error = null, state = case state when 'dead_letter' then 'skipped' else state end,
                resolved_at = coalesce(resolved_at, tributary.now())
          where company = $1 and resource = $2 and record_id = $3 and state <> 'pending' returning 1 as one`
})

export const outboxStatement = Statement.make({
  name: "forget the pushed values of a record",
  params: ["text", "text", "text"],
  columns: { one: "int4" },
  // A message of the source may quote the record.
  text: `with rows as (
           update tributary.outbox set record = '{}', expected_values = null, problems = null, differences = null, reason = null
            where company = $1 and resource = $2 and record_id = $3 and state in ('done', 'rejected') returning request_id),
         requests as (
           update tributary.push_requests r set reason = null where company = $1 and resource = $2 and r.state <> 'open'
              and (record_id = $3 or id in (select request_id from rows)))
         select 1 as one from rows`
})

export const violationsStatement = Statement.make({
  name: "forget the details of a record's violations",
  params: ["int8", "text", "int8"],
  columns: { one: "int4" },
  text: `update tributary.violations set detail = 'the values of the record were forgotten'
          where company_id = $1 and resource = $2 and record_id = $3 returning 1 as one`
})

/** Whether a column of the record tells who or which it is among others, and nothing else. */
const isKept = (resource: Resource, { field }: Column): boolean =>
  resource.field.get(field)?.reference?.half === "id" || needOf(resource, field) !== null

export interface ForgottenRecord {
  /** The number of the receipt in `tributary.receipts`. */
  readonly receipt: bigint
  /** Changed rows by table. */
  readonly rows: Readonly<Record<string, number>>
  /** Whether the source has the record, so that its current version stays. */
  readonly isCurrentKept: boolean
}

const countOf = (table: string, set: string, where: string): Sql.Query<number> =>
  Effect.map(Sql.rows(`update ${table} set ${set} where ${where} returning 1`), (rows) => rows.length)

/**
 * Removes the values of the record of a company; `isRead` is whether the company reads the resource. Null where the warehouse
 * has no version of it.
 */
export const forget = Effect.fn("forget")(function* (
  table: Table,
  company: { readonly name: string; readonly id: bigint },
  recordId: bigint,
  { by, isRead }: { readonly by: string; readonly isRead: boolean }
): Effect.fn.Return<ForgottenRecord | null, DatabaseError, SqlClient.SqlClient> {
  const { resource } = table
  const emptied = table.columns.filter((column) => !isKept(resource, column)).map(({ sql }) => `${sql} = null`)
  const set = [...emptied, '"custom_fields" = null', '"_extra" = null'].join(", ")
  const record = `"_company_id" = ${company.id} and "id" = ${recordId}`
  return yield* transaction(
    Effect.gen(function* () {
      const found = yield* Sql.rows<{ readonly isGone: boolean }>(
        `select "_deleted_at" is not null as "isGone" from ${table.current} where ${record} for update`
      )
      const versions = yield* countOf(table.superseded, set, record)
      const isGone = !isRead || (found[0]?.isGone ?? true)
      const current = isGone ? yield* countOf(table.current, set, record) : 0
      if (found.length === 0 && versions === 0) return null
      const values = [resource.path, String(recordId)] as const
      const rows = {
        [`${table.datasets.history}.${table.supersededName}`]: versions,
        [`${table.datasets.current}.${table.name}`]: current,
        "tributary.quarantine": (yield* Statement.run(quarantineStatement, [company.id, ...values])).length,
        "tributary.inbox": (yield* Statement.run(deliveriesStatement, [company.name, ...values])).length,
        "tributary.outbox": (yield* Statement.run(outboxStatement, [company.name, ...values])).length,
        "tributary.violations": (yield* Statement.run(violationsStatement, [company.id, resource.path, recordId]))
          .length
      }
      const receipt = yield* Query.first(
        control
          .insertInto("tributary.receipts")
          .values({
            action: "forget",
            company: company.name,
            company_id: company.id,
            resource: resource.path,
            record_id: recordId,
            performed_by: by,
            row_counts: JSON.stringify(rows)
          })
          .returning("id")
      )
      return { receipt: receipt!.id, rows, isCurrentKept: !isGone }
    })
  )
})

/** Records of other resources that refer to the record, whose texts may repeat its values: `orders.customerid`. */
export const referringTo = Effect.fnUntraced(function* (
  { resources }: Pick<Catalogue, "resources">,
  datasets: Datasets,
  path: string,
  companyId: bigint,
  recordId: bigint
): Effect.fn.Return<
  ReadonlyArray<{ readonly field: string; readonly records: number }>,
  DatabaseError,
  SqlClient.SqlClient
> {
  const existing = new Set((yield* Statement.run(tablesStatement, [datasets.current])).map(({ name }) => name))
  const counts = [...resources.values()].flatMap((resource) => {
    const table = tableOf(resource, datasets)
    if (!existing.has(table.name)) return []
    return resource.fields
      .filter(({ reference }) => reference?.resource === path && reference.half === "id")
      .map(
        ({ name }) =>
          `select ${literal(`${resource.path}.${name}`)} as field, count(*)::int as records from ${table.current}
            where "_company_id" = ${companyId} and ${identifier(name)} = ${recordId}`
      )
  })
  if (counts.length === 0) return []
  const found = yield* Sql.rows<{ readonly field: string; readonly records: number }>(counts.join(" union all "))
  return found.filter(({ records }) => records > 0)
})

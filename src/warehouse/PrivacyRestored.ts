/**
 * Values that privacy rules took away or changed, and that a table has again, since it was restored from a backup.
 *
 * Promise: a column that a rule took away or made text is found at each look. Texts are compared with the form of kept ones
 * when the table has another identity than that which was last found to follow the rules, as after a restore. Values within
 * JSON alone are not found.
 */
import * as Effect from "effect/Effect"
import { customFieldsName, type FieldRule, type Protection } from "../catalogue/Protection.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { identifier, literal } from "./Identifier.ts"
import type { Table } from "./Table.ts"

export const restoredStatement = Statement.make({
  name: "look for columns that privacy rules took away",
  params: ["text[]", "text[]", "text[]", "text[]", "bool[]"],
  columns: { resource: "text" },
  text: `select distinct k.resource from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bool[]) as k (resource, dataset, name, field, is_excluded)
           join pg_namespace n on n.nspname = k.dataset join pg_class c on c.relnamespace = n.oid and c.relname = k.name and c.relkind = 'r'
           join pg_attribute a on a.attrelid = c.oid and a.attname = k.field and not a.attisdropped
          where k.is_excluded or a.atttypid <> 'text'::regtype`
})

export const otherTablesStatement = Statement.make({
  name: "look for tables that were restored under privacy rules",
  params: ["text[]", "text[]", "text[]"],
  columns: { resource: "text", columns: "text[]" },
  text: `select p.resource, array(
             select a.attname::text from pg_attribute a join pg_attribute s on s.attname = a.attname and s.attnum > 0 and not s.attisdropped
              where a.attrelid = to_regclass(k.current) and s.attrelid = to_regclass(k.superseded) and a.attnum > 0 and not a.attisdropped) as columns
           from unnest($1::text[], $2::text[], $3::text[]) as k (resource, current, superseded)
           join tributary.privacy_rules p on p.resource = k.resource
          where to_regclass(k.current) is not null and to_regclass(k.superseded) is not null
            and p.tables is distinct from tributary.table_identity(to_regclass(k.current), to_regclass(k.superseded))`
})

interface RuledColumn {
  readonly column: string
  /** The form of its kept texts; null where it is excluded. */
  readonly form: string | null
}

const ruledColumns = ({ resource: { protection } }: Table): ReadonlyArray<RuledColumn> =>
  (protection?.sent.fields ?? []).flatMap((field) => {
    const rule = protection?.ruleOf(field.name)
    return rule === undefined ? [] : [{ column: field.inferred?.column ?? field.name, form: rule.form }]
  })

/** Whether one of these columns of the table has a value that its rule does not keep. */
const hasOtherValues = (table: Table, existing: ReadonlyArray<string>) => {
  const isExcluded = table.resource.protection?.ruleOf(customFieldsName) !== undefined
  const custom: ReadonlyArray<RuledColumn> = isExcluded ? [{ column: customFieldsName, form: null }] : []
  const others = [...ruledColumns(table), ...custom]
    .flatMap(({ column, form }) => {
      if (!existing.includes(column)) return []
      return [form === null ? `${identifier(column)} is not null` : `${identifier(column)} !~ ${literal(form)}`]
    })
    .join(" or ")
  if (others === "") return Effect.succeed(false)
  return Effect.map(
    Sql.rows<{ found: boolean }>(
      `select exists (select from ${table.current} where ${others}) or exists (select from ${table.superseded} where ${others}) as found`
    ),
    ([row]) => row!.found
  )
}

/** The resources that have values again which their rules do not keep, and the restored tables that follow them. */
export const restored = Effect.fnUntraced(function* (tables: ReadonlyArray<Table>) {
  const ruled = tables.filter(({ resource }) => resource.protection !== null)
  if (ruled.length === 0) return { resources: new Set<string>(), confirmed: [] }
  const columns = ruled.flatMap((table) =>
    [[table.datasets.current, table.name] as const, [table.datasets.history, table.supersededName] as const].flatMap(
      ([dataset, name]) =>
        ruledColumns(table).map(
          ({ column, form }) => [table.resource.path, dataset, name, column, form === null] as const
        )
    )
  )
  const found = yield* Statement.run(restoredStatement, [
    columns.map((one) => one[0]),
    columns.map((one) => one[1]),
    columns.map((one) => one[2]),
    columns.map((one) => one[3]),
    columns.map((one) => one[4])
  ])
  const resources = new Set(found.map(({ resource }) => resource))
  const others = yield* Statement.run(otherTablesStatement, [
    ruled.map(({ resource }) => resource.path),
    ruled.map(({ current }) => current),
    ruled.map(({ superseded }) => superseded)
  ])
  const columnsOf = new Map(others.map(({ columns: existing, resource }) => [resource, existing]))
  const confirmed: Array<Table> = []
  for (const table of ruled) {
    const { path } = table.resource
    const existing = columnsOf.get(path)
    if (existing === undefined || resources.has(path)) continue
    if (yield* hasOtherValues(table, existing)) resources.add(path)
    else confirmed.push(table)
  }
  return { resources, confirmed }
})

/** The rule for values of a restored table, some of which may follow it already. */
export const ofRestored = (rule: FieldRule): FieldRule => {
  const form = rule.form === null ? null : new RegExp(rule.form, "su")
  return { ...rule, keep: (text, ...more) => (form?.test(text) === true ? text : rule.keep(text, ...more)) }
}

/** The protection of the values of a restored table. */
export const restoredRules = (protection: Protection): Protection => {
  const restored =
    (ruleOf: Protection["ruleOf"]): Protection["ruleOf"] =>
    (name) => {
      const rule = ruleOf(name)
      return rule === undefined ? undefined : ofRestored(rule)
    }
  return { ...protection, ruleOf: restored(protection.ruleOf), ruleWithin: restored(protection.ruleWithin) }
}

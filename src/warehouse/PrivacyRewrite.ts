/**
 * The application of changed privacy rules to what is stored.
 *
 * Promise: after {@link apply}, no row, version, quarantined record or delivery of the resource holds a value that its
 * rules leave out, hash or mask. One transaction per resource does it: a crash leaves the resource as it was, and the next
 * sync does it again. Values that were kept under an earlier rule stay as that rule left them, in versions; the next sync
 * reads every record. Own views of the changed columns are dropped; the plans of tables and views make them again. A text
 * column stays, with its indexes and the views over it. A change of other columns is refused while other views read them.
 * Which rules are the newer ones, RulesChanged.ts says.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import {
  customFieldsName,
  type FieldRule,
  type PatternRule,
  protect,
  type Protection
} from "../catalogue/Protection.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { keepColumn, protectText, protectValueText } from "../connector/ProtectedConnector.ts"
import { parse, print } from "../json/Json.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { fenceOff } from "./Altered.ts"
import * as Digest from "./Digest.ts"
import { identifier, literal } from "./Identifier.ts"
import { modelDatasetsOf } from "./Model.ts"
import { confirmStatement, pending, type PendingRules } from "./PendingRules.ts"
import { rewriteRecords } from "./PrivacyRecords.ts"
import { ofRestored, restoredRules } from "./PrivacyRestored.ts"
import { introspect } from "./RelationPlan.ts"
import { type Column, keys, sentValue, type Table, tableOf } from "./Table.ts"
import { type InferredColumn, withInferred } from "./WarehouseCatalogue.ts"

export const saveStatement = Statement.make({
  name: "store the applied privacy rules",
  params: ["text", "text", "text", "int8"],
  text: `insert into tributary.privacy_rules as p (resource, statement, fields, rewritten_rows, replaced, revision)
         values ($1, $2, $3, $4, array[''], (select coalesce(max(revision), 0) + 1 from tributary.privacy_rules))
         on conflict (resource) do update set statement = excluded.statement, fields = excluded.fields,
           rewritten_rows = excluded.rewritten_rows, applied_at = tributary.now(), revision = excluded.revision,
           tables = null, replaced = array_remove(array_remove(p.replaced, p.statement) || p.statement, excluded.statement)`
})

/** Waits for the writers of deliveries. Those of the transaction's time keep no body (`tributary.rules_revision()`). */
export const lockStatement = Statement.make({
  name: "wait for writers of deliveries",
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(7261003)"
})

export const findingsStatement = Statement.make({
  name: "read what was found about the fields of a resource",
  params: ["text"],
  columns: { field: "text", column: "text?", type: Statement.as<InferredColumn["type"] | null>("text?") },
  text: `select field, n.sql_name as column, n.inferred_type as type
           from (select field from tributary.unknown_fields where resource = $1
                 union select api_name from tributary.sql_names where scope = $1 and inferred_type is not null) found
           left join tributary.sql_names n on n.scope = $1 and n.api_name = field`
})

export const forgetFindingsStatement = Statement.make({
  name: "forget what was found in protected fields",
  params: ["text", "text[]"],
  text: `with inferred as (update tributary.sql_names set inferred_type = null, inferred_position = null
                            where scope = $1 and api_name = any($2)),
         unknown as (delete from tributary.unknown_fields where resource = $1 and field = any($2))
         update tributary.violations set detail = 'its text was left out when the privacy rules changed' where resource = $1`
})

export const viewsOverStatement = Statement.make({
  name: "look for the views over columns",
  params: ["text", "text[]"],
  columns: { dataset: "text", name: "text", comment: "text?" },
  text: `
    with recursive views (oid) as (
      select w.ev_class from pg_depend d
        join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid and a.attname::text = any($2)
        join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
       where d.refclassid = 'pg_class'::regclass and d.refobjid = $1::text::regclass
       union
      select w.ev_class from views v join pg_depend d on d.refclassid = 'pg_class'::regclass and d.refobjid = v.oid
        join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid and w.ev_class <> v.oid)
    select n.nspname::text as dataset, c.relname::text as name, obj_description(c.oid, 'pg_class') as comment
      from views v join pg_class c on c.oid = v.oid join pg_namespace n on n.oid = c.relnamespace order by 1, 2`
})

/** What happens to a column. */
interface Change {
  readonly name: string
  readonly action:
    | "drop"
    /** It becomes text. */
    | "text"
    /** It is text: its values are rewritten in place. */
    | "values"
    /** The members of its JSON are rewritten in place. */
    | "json"
  readonly keep: (text: string) => string | null
}

/** A rule as it is stored: what is needed to know which values follow it. */
type StoredRule = Pick<PatternRule, "pattern"> & Pick<FieldRule, "kind" | "statement">

type EarlierRules = Pick<Protection, "ruleOf" | "ruleWithin">

/** The rules of each name that the stored values follow. */
const earlierRules = (sent: Resource, stored: string): EarlierRules => {
  const rules = JSON.parse(stored) as ReadonlyArray<StoredRule>
  const asItIs = { keep: (text: string) => text, form: null }
  const { protection } = protect(
    sent,
    rules.map(({ pattern, ...rule }) => ({ pattern, rule: { ...rule, ...asItIs } }))
  ).resource
  return protection ?? { ruleOf: () => undefined, ruleWithin: () => undefined }
}

/** Whether a value that is kept under an earlier rule stays as it is. A hash of a kept value would tell nothing. */
const isKeptAlready = (earlier: FieldRule | undefined, { kind, statement }: FieldRule): boolean =>
  earlier !== undefined && earlier.kind !== "exclude" && (earlier.statement === statement || kind === "hash")

/** The protection of values that follow the earlier rules. */
const changedRules = (protection: Protection, earlier: EarlierRules): Protection => {
  const changed =
    (rules: "ruleOf" | "ruleWithin"): Protection["ruleOf"] =>
    (name) => {
      const [rule, before] = [protection[rules](name), earlier[rules](name)]
      return rule !== undefined && rule.kind !== "exclude" && isKeptAlready(before, rule) ? before : rule
    }
  return { ...protection, ruleOf: changed("ruleOf"), ruleWithin: changed("ruleWithin") }
}

/** JSON with the rules applied by `change`; the same text where they change nothing. */
const rewriteJson = (text: string, change: (text: string) => string): string => {
  const kept = change(text)
  return kept === print(parse(text)) ? text : kept
}

/** The inferred columns of fields that have a rule now: what is kept of an unknown field is in `_extra`. */
const inferredWithRule = (
  { datasets, resource: { protection } }: Table,
  findings: ReadonlyArray<Statement.RowOf<typeof findingsStatement>>
): ReadonlyArray<Column> => {
  if (protection === null) return []
  const inferred = findings.flatMap(({ column, field, type }): ReadonlyArray<InferredColumn> =>
    column === null || type === null || protection.ruleOf(field) === undefined ? [] : [{ name: field, column, type }]
  )
  const names = new Set(inferred.map(({ name }) => name))
  return tableOf(withInferred(protection.sent, inferred), datasets).columns.filter(({ field }) => names.has(field))
}

/** Moves values from columns into `_extra`, which has precedence: a column may hold a value only in part. */
const moveToExtra = (table: string, columns: ReadonlyArray<Column>): string => {
  const members = columns.map(
    (column) =>
      `case when t.${column.sql} is null then '{}' else jsonb_build_object(${literal(column.field)}, ${sentValue(column, "t")}) end`
  )
  return (
    `update ${table} t set "_extra" = ${members.join(" || ")} || coalesce(t."_extra", '{}') ` +
    `where ${columns.map(({ sql }) => `t.${sql} is not null`).join(" or ")}`
  )
}

/** The changes of the columns of a table, by their rules before and now. `protection` is that of the stored values. */
const changesOf = (
  table: Table,
  found: ReadonlyMap<string, { readonly type: string }>,
  earlierOf: Protection["ruleOf"],
  protection: Protection | null,
  isRestored: boolean
): ReadonlyArray<Change> => {
  const sent = protection === null ? table : tableOf(protection.sent, table.datasets)
  const ofFields = sent.columns.flatMap((column): ReadonlyArray<Change> => {
    if (!found.has(column.name)) return []
    const rule = table.resource.protection?.ruleOf(column.field)
    const earlier = earlierOf(column.field)
    const change = (action: Change["action"], keep: Change["keep"] = () => null) => [
      { name: column.name, action, keep }
    ]
    if (rule === undefined) {
      // A column of another type is made again, and filled by the next sync.
      if (earlier !== undefined && column.kind !== "string") return change("drop")
      if (protection === null || column.kind !== "list") return []
      return change("json", (text) =>
        rewriteJson(text, (sentText) => protectValueText(protection, sentText, sent.resource.field.get(column.field)))
      )
    }
    if (rule.kind === "exclude") return change("drop")
    const isText = found.get(column.name)?.type === "text"
    if (!isRestored && isKeptAlready(earlier, rule) && isText) return []
    const field = sent.resource.field.get(column.field)!
    const applied = isRestored ? ofRestored(rule) : rule
    return change(isText ? "values" : "text", (text) => keepColumn(field, applied, text))
  })
  if (protection === null) return ofFields
  const isWithoutCustomFields = protection.ruleOf(customFieldsName) !== undefined
  const json = (name: string, keep: Change["keep"]) =>
    found.has(name) ? [{ name, action: "json" as const, keep }] : []
  return [
    ...ofFields,
    ...json("_extra", (text) => {
      const kept = rewriteJson(text, (sentText) => protectText(protection, sentText))
      return kept === "{}" ? null : kept
    }),
    ...json(customFieldsName, (text) =>
      isWithoutCustomFields ? null : rewriteJson(text, (sentText) => protectValueText(protection, sentText))
    )
  ]
}

/** Whether the column goes, so that what reads it must go before. */
const isMadeAgain = ({ action }: Change): boolean => action === "drop" || action === "text"

const rowsAtOnce = 5_000

/** Rewrites the columns of one table. Returns the number of rows with another value. */
const rewriteTable = Effect.fnUntraced(function* (
  table: string,
  key: ReadonlyArray<string>,
  changes: ReadonlyArray<Change>
): Effect.fn.Return<number, DatabaseError, SqlClient.SqlClient> {
  const kept = changes.filter(({ action }) => action !== "drop")
  const draft = ({ action, name }: Change) => identifier(action === "text" ? `${name}__kept` : name)
  for (const change of kept)
    if (change.action === "text") yield* Sql.rows(`alter table ${table} add column ${draft(change)} text`)
  const keyColumns = key.map(identifier)
  const places = key.map((_, index) => `$${index + 1}::int8`).join(", ")
  let after: ReadonlyArray<string> | null = null
  let count = 0
  while (kept.length > 0) {
    const rows: ReadonlyArray<Readonly<Record<string, string | null>>> = yield* Sql.rows<
      Readonly<Record<string, string | null>>
    >(
      `select ${keyColumns.map((one, index) => `${one}::text as k${index}`).join(", ")},
              ${kept.map(({ name }, index) => `${identifier(name)}::text as v${index}`).join(", ")}
         from ${table} ${after === null ? "" : `where (${keyColumns.join(", ")}) > (${places})`}
        order by ${keyColumns.join(", ")} limit ${rowsAtOnce}`,
      after === null ? [] : [...after]
    )
    if (rows.length === 0) break
    const changed = rows.map((row) => ({
      ...row,
      ...Object.fromEntries(
        kept.map(({ keep }, index) => {
          const value = row[`v${index}`] ?? null
          return [`v${index}`, value === null ? null : keep(value)]
        })
      )
    }))
    const different = changed.filter((row, at) => JSON.stringify(row) !== JSON.stringify(rows[at]))
    count += different.length
    const types = [...key.map((_, index) => `k${index} int8`), ...kept.map((_, index) => `v${index} text`)]
    yield* Sql.rows(
      `update ${table} t
          set ${kept.map((one, index) => `${draft(one)} = n.v${index}${one.action === "json" ? "::jsonb" : ""}`).join(", ")}
         from jsonb_to_recordset($1::text::jsonb) as n (${types.join(", ")})
        where ${keyColumns.map((one, index) => `t.${one} = n.k${index}`).join(" and ")}`,
      [JSON.stringify(kept.some(({ action }) => action === "text") ? changed : different)]
    )
    const last = rows.at(-1)!
    after = key.map((_, index) => last[`k${index}`]!)
    if (rows.length < rowsAtOnce) break
  }
  const dropped = changes.filter(isMadeAgain).map(({ name }) => `drop column ${identifier(name)}`)
  const renamed = kept.flatMap((change) =>
    change.action === "text" ? [`rename column ${draft(change)} to ${identifier(change.name)}`] : []
  )
  for (const change of [...(dropped.length > 0 ? [dropped.join(", ")] : []), ...renamed])
    yield* Sql.rows(`alter table ${table} ${change}`)
  if (kept.length > 0 || dropped.length === 0) return count
  const [row] = yield* Sql.rows<{ readonly count: string }>(`select count(*)::text as count from ${table}`)
  return Number(row!.count)
})

/** Drops the views of the warehouse over these columns, and returns the names of others, which it leaves as they are. */
const dropViews = Effect.fnUntraced(function* (
  { datasets, name: tableName }: Table,
  table: string,
  changes: ReadonlyArray<Change>
) {
  const columns = changes.filter(isMadeAgain).map(({ name }) => name)
  if (columns.length === 0) return []
  const models = new Set(modelDatasetsOf(datasets).map((one) => one.models))
  const isOwn = ({ comment, dataset, name }: Statement.RowOf<typeof viewsOverStatement>) =>
    (name === tableName && (dataset === datasets.history || dataset === datasets.asOf)) ||
    (models.has(dataset) && Digest.find(comment) !== undefined)
  const views = yield* Statement.run(viewsOverStatement, [table, columns])
  const others = views.flatMap((one) => (isOwn(one) ? [] : [`${one.dataset}.${one.name}`]))
  if (others.length > 0 || views.length === 0) return others
  const names = views.map(({ dataset, name }) => `${identifier(dataset)}.${identifier(name)}`)
  yield* Sql.rows(`drop view ${names.join(", ")}`)
  return []
})

const rewriteResource = Effect.fnUntraced(function* <E>(
  table: Table,
  { isRestored, stored }: Pick<PendingRules, "isRestored" | "stored">,
  refuse: (detail: string, remedy: string) => E
) {
  const { datasets, resource } = table
  const { protection } = resource
  // A page that is landing is rewritten too: this waits for it. No run under the earlier rules writes after it.
  yield* fenceOff(resource.path)
  yield* Statement.run(lockStatement)
  const { relations } = yield* introspect(datasets, [table])
  const earlier = earlierRules(protection?.sent ?? resource, stored.fields)
  const changed =
    protection === null ? null : isRestored ? restoredRules(protection) : changedRules(protection, earlier)
  const findings = yield* Statement.run(findingsStatement, [resource.path])
  const inferred = inferredWithRule(table, findings)
  let rows = 0
  for (const [name, quoted, key] of [
    [`${datasets.current}.${table.name}`, table.current, keys.currentKey],
    [`${datasets.history}.${table.supersededName}`, table.superseded, keys.supersededKey]
  ] as const) {
    const found = relations.get(name)
    // A damaged table is not rewritten, and its repair comes first.
    if (found === undefined) continue
    if (found.kind !== "r") return rows
    const changes = changesOf(table, found.columns, earlier.ruleOf, changed, isRestored)
    const moved = inferred.filter((column) => found.columns.has(column.name))
    if (moved.length > 0) yield* Sql.rows(moveToExtra(quoted, moved))
    const dropped = moved.map(({ name: column }) => ({ name: column, action: "drop" as const, keep: () => null }))
    const all = [...changes.filter(({ name: column }) => !moved.some((one) => one.name === column)), ...dropped]
    if (all.length === 0) continue
    const views = yield* dropViews(table, quoted, all)
    if (views.length > 0)
      return yield* Effect.fail(
        refuse(
          `its privacy rules change columns that ${views.join(", ")} ${views.length === 1 ? "reads" : "read"}`,
          "Drop what reads them, run tributary schema apply, and create it again on the columns as they are then"
        )
      )
    rows += yield* rewriteTable(quoted, key, all)
  }
  if (protection !== null && changed !== null) {
    yield* rewriteRecords(resource.path, changed)
    const fields = findings.flatMap(({ field }) => (protection.ruleOf(field) === undefined ? [] : [field]))
    yield* Statement.run(forgetFindingsStatement, [resource.path, fields])
  }
  const rules = (protection?.rules ?? []).map(({ pattern, rule: { kind, statement } }): StoredRule => ({
    pattern,
    kind,
    statement
  }))
  yield* Statement.run(saveStatement, [resource.path, protection?.statement ?? "", JSON.stringify(rules), BigInt(rows)])
  yield* Statement.run(confirmStatement, [resource.path, table.current, table.superseded])
  return rows
})

/** Whether a process may go back to rules that others replaced: a person wants it. */
export interface ApplyOptions {
  readonly goesBack?: boolean
}

/** Applies newer rules to what is stored. `changing` runs the change of one resource in a transaction. */
export const apply = Effect.fnUntraced(function* <E>(
  tables: ReadonlyArray<Table>,
  { goesBack = false }: ApplyOptions,
  changing: (
    table: string,
    body: Effect.Effect<void, E | DatabaseError, SqlClient.SqlClient>
  ) => Effect.Effect<void, E | DatabaseError, SqlClient.SqlClient>,
  refuse: (table: string, detail: string, remedy: string) => E
) {
  const applicable = Effect.fnUntraced(function* (some: ReadonlyArray<Table>) {
    const { confirmed, rules } = yield* pending(some)
    for (const { current, resource, superseded } of confirmed)
      yield* Statement.run(confirmStatement, [resource.path, current, superseded])
    return rules.filter(({ reason }) => goesBack || !reason.isReplaced)
  })
  for (const { table } of yield* applicable(tables)) {
    const rewrite = Effect.gen(function* () {
      // Another process may have done it meanwhile.
      const [found] = yield* applicable([table])
      if (found === undefined) return
      const rows = yield* rewriteResource(table, found, (detail, remedy) => refuse(table.name, detail, remedy))
      if (rows > 0)
        yield* Effect.logInfo(`${table.name}: its privacy rules changed; ${rows} rows and versions were rewritten`)
    })
    yield* changing(table.name, rewrite)
  }
})

/**
 * The checks of what the warehouse stores: its tables against the catalogue, their versions, the privacy rules, and the last
 * comparison of each installation with the documentation.
 */
import * as Effect from "effect/Effect"
import * as Comparisons from "../../companies/Comparisons.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { type Installation, writtenAt } from "../../configuration/Installations.ts"
import * as Statement from "../../postgres/Statement.ts"
import { pending } from "../../warehouse/PendingRules.ts"
import type { Table } from "../../warehouse/Table.ts"
import * as TableDamage from "../../warehouse/TableDamage.ts"
import * as VersionOverlap from "../../warehouse/VersionOverlap.ts"
import * as Invariants from "../Invariants.ts"
import * as Models from "../Models.ts"
import * as Output from "../Output.ts"
import { damagedTables, warehouseTables } from "../schema/SchemaChanges.ts"
import type { Source } from "../Source.ts"
import { about, type About, type Check, type Finding } from "./Finding.ts"

/** Tables, resources and differences that are named. */
const namesMax = 5

/** Whether a query as of a moment could count a record twice. */
export const history = Effect.fnUntraced(function* ({ ok, failed }: About, tables: ReadonlyArray<Table>) {
  const overlaps = yield* VersionOverlap.find(tables)
  const [first] = overlaps
  if (first === undefined) return [ok("no two of the versions that were searched are valid at one moment")]
  const names = Output.firstOf(
    overlaps.map(({ table }) => `${table.datasets.history}.${table.supersededName}`),
    namesMax
  )
  return [
    failed(
      "configuration",
      `two versions of a record are valid at one moment in ${names}, as of record ${first.id}: answers as of that moment count it twice`,
      `${TableDamage.repairCommand} ends each version where the next one begins`
    )
  ]
})

/** Whether the tables agree with the catalogue; missing ones are created by the next sync. */
const agreement = ({ ok, failed }: About, settings: Configuration) =>
  Effect.map(damagedTables(settings), (damaged) => {
    if (damaged.length === 0) return [ok("none is damaged")]
    const names = Output.firstOf(
      damaged.map(({ table }) => table),
      namesMax
    )
    const [{ message }] = damaged as [TableDamage.TableDamaged]
    return [
      failed(
        "configuration",
        `${Output.plural(damaged.length, "table")} damaged (${names}), and nothing is landed there: ${message}`,
        TableDamage.remedy
      )
    ]
  })

/** Rows that a change of the rules does not reach, and slots for which Postgres keeps its log. */
export const earlierStatement = Statement.make({
  name: "look for what privacy rules do not reach",
  columns: { pushed: "int4", slots: "text[]?", rewrittenAt: "timestamptz?" },
  text: `select (select count(*)::int from tributary.outbox o
                  where state = 'in_flight' and exists (select from tributary.privacy_rules p where p.resource = o.resource and p.statement <> '')) as pushed,
                (select array_agg(slot_name::text order by slot_name) from pg_replication_slots) as slots,
                (select max(applied_at) from tributary.privacy_rules where rewritten_rows > 0) as "rewrittenAt"`
})

/** Models and invariants that are named. */
const leftOutMax = 10

/** No finding where there was never a rule and nothing is left out. */
const privacy = Effect.fnUntraced(function* (its: About, settings: Configuration) {
  const tables = yield* warehouseTables(settings)
  const { rules } = yield* pending(tables)
  const ruled = tables.filter(({ resource }) => resource.protection !== null).length
  const findings = [true, false].flatMap((isReplaced) => {
    const these = rules.flatMap(({ reason }) => (reason.isReplaced === isReplaced ? [reason] : []))
    if (these[0] === undefined) return []
    const { remedy } = these[0]
    const names = Output.list(these.map(({ resource }) => resource))
    return isReplaced
      ? [its.failed("configuration", `others have replaced the rules of this configuration for ${names}`, remedy)]
      : [its.warning(`what is stored of ${names} does not follow the rules of the configuration`, remedy)]
  })
  if (findings.length > 0) return findings
  const leftOut = [...(yield* Models.of(settings)).leftOut, ...(yield* Invariants.readable(settings)).leftOut].map(
    ({ name, reason }) => `${name}, since ${reason}`
  )
  const without =
    leftOut.length === 0
      ? "no model or invariant is left out"
      : `models and invariants that are left out: ${leftOut.slice(0, leftOutMax).join("; ")}${
          leftOut.length > leftOutMax ? `; and ${Output.count(leftOut.length - leftOutMax)} more` : ""
        }`
  if (ruled === 0) return leftOut.length === 0 ? [] : [its.ok(without)]
  const [earlier] = yield* Statement.run(earlierStatement)
  const kept = [
    ...(earlier!.pushed === 0
      ? []
      : [
          `${Output.plural(earlier!.pushed, "record")} of tributary.outbox that ${earlier!.pushed === 1 ? "is" : "are"} being sent`
        ]),
    ...(earlier!.slots === null ? [] : [`the log for the replication slots ${earlier!.slots.join(", ")}`]),
    ...(earlier!.rewrittenAt === null
      ? []
      : [`backups, exports and closes from before ${earlier!.rewrittenAt.toISOString()}`])
  ]
  return [
    its.ok(`the rules of ${Output.plural(ruled, "resource")} are applied; ${without}`),
    ...(kept.length === 0
      ? []
      : [its.warning(`values from before the rules are in ${Output.list(kept)}`, "delete what you do not need")])
  ]
})

/** ` 2 are new (a, b), 1 is gone (c)`; empty where the comparison before had the same. */
const changesOf = ({ before, differences }: Comparisons.Comparison): string => {
  if (before === null) return ""
  const added = differences.filter((one) => !before.includes(one))
  const gone = before.filter((one) => !differences.includes(one))
  const say = (names: ReadonlyArray<string>, what: string) =>
    names.length === 0 ? [] : [`${names.length} ${what} (${Output.firstOf(names, namesMax)})`]
  const changes = [...say(added, "new"), ...say(gone, "gone")]
  return changes.length === 0 ? ", as in the comparison before" : `; since the comparison before: ${changes.join(", ")}`
}

const findingOf = (installation: Installation, comparison: Comparisons.Comparison | undefined): Finding => {
  const { name } = installation
  const its = about("radar", name)
  const command = `tributary radar${name === null ? "" : ` --installation ${name}`}`
  if (comparison === undefined) return its.skipped(`it was never compared with the documentation: ${command}`)
  const { comparedAt, differences, recommended } = comparison
  const other = recommended.filter(({ path, value }) => writtenAt(installation, path) !== value)
  const compared =
    `compared ${comparedAt.toISOString().slice(0, 10)}: ` +
    `${Output.plural(differences.length, "difference")}${changesOf(comparison)}`
  return other.length === 0
    ? its.ok(compared)
    : its.warning(
        `${compared}; recommended and not configured: ${other.map(({ path, value }) => `${path}: ${value}`).join(", ")}`,
        `configure it, or compare again: ${command}`
      )
}

/** A finding for each installation that has a company. */
const comparisons = (_: About, { companies }: Configuration) =>
  Effect.map(Comparisons.read, (comparisons) =>
    [...new Map(companies.map(({ installation }) => [installation.name, installation])).values()].map((one) =>
      findingOf(one, comparisons.get(one.name))
    )
  )

export const tableChecks: ReadonlyArray<Check<Configuration, Source>> = [
  { name: "tables", tables: "omitted", run: agreement },
  {
    name: "history",
    tables: "omitted",
    run: (its, settings) => Effect.flatMap(warehouseTables(settings), (tables) => history(its, tables))
  },
  { name: "privacy", tables: "omitted", run: privacy },
  { name: "radar", tables: "omitted", run: comparisons }
]

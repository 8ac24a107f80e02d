/** The check of the privacy rules: whether what is stored follows them, and what still holds earlier values. */
import * as Effect from "effect/Effect"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as Statement from "../../postgres/Statement.ts"
import { pending } from "../../warehouse/PendingRules.ts"
import * as Invariants from "../Invariants.ts"
import * as Models from "../Models.ts"
import * as Output from "../Output.ts"
import { warehouseTables } from "../schema/SchemaChanges.ts"
import type { About } from "./Finding.ts"

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
export const privacy = Effect.fnUntraced(function* (its: About, settings: Configuration) {
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

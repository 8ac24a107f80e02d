/** The check of the privacy rules: whether what is stored follows them, and what still holds earlier values. */
import * as Effect from "effect/Effect"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as Statement from "../../postgres/Statement.ts"
import { pending } from "../../warehouse/PrivacyRewrite.ts"
import * as Models from "../Models.ts"
import * as Output from "../Output.ts"
import { warehouseTables } from "../schema/SchemaChanges.ts"
import { Source } from "../Source.ts"
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

/** No finding where there was never a rule. */
export const privacy = Effect.fnUntraced(function* (its: About, settings: Configuration) {
  const tables = yield* warehouseTables(settings)
  const behind = (yield* pending(tables)).map(([{ resource }]) => resource.path)
  const ruled = tables.filter(({ resource }) => resource.protection !== null).length
  if (behind.length > 0) {
    return [
      its.warning(
        `what is stored of ${Output.list(behind)} does not follow the rules of the configuration`,
        "tributary sync applies them before it reads"
      )
    ]
  }
  if (ruled === 0) return []
  const own = yield* (yield* Source).invariants
  const leftOut = [
    ...(yield* Models.of(settings)).leftOut,
    ...(yield* Models.readable(settings, [...own, ...settings.invariants])).leftOut
  ].map(({ name }) => name)
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
    its.ok(
      `the rules of ${Output.plural(ruled, "resource")} are applied; ` +
        (leftOut.length === 0
          ? "no model or invariant is left out"
          : `models and invariants that are left out: ${Output.firstOf(leftOut, 10)}`)
    ),
    ...(kept.length === 0
      ? []
      : [its.warning(`values from before the rules are in ${Output.list(kept)}`, "delete what you do not need")])
  ]
})

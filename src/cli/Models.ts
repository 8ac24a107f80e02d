/**
 * The models and the built-in invariants that the configuration of the resources leaves.
 *
 * Promise: a query that reads a field with a privacy rule, or a resource of which some records only are kept, is left out
 * as a whole. Over values or records that are absent it would give a number that looks right.
 */
import * as Effect from "effect/Effect"
import { customFieldsName } from "../catalogue/Protection.ts"
import { keptPart, type Resource } from "../catalogue/Resource.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { ConfiguredResource } from "../warehouse/WarehouseCatalogue.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { Source } from "./Source.ts"

/**
 * Why a query would give a wrong number: what it reads that a privacy rule changes, or of which some records only are
 * kept. Null where neither holds.
 */
export const unreadable = (
  { resources, sql }: { readonly resources: ReadonlyArray<string>; readonly sql: string },
  known: ReadonlyMap<string, Resource>
): string | null => {
  // Members of lists, of the install's own fields and of unknown fields are read by their name as a text.
  const members = [...sql.matchAll(/->>?\s*'([^']+)'|\?\s*'([^']+)'/g)].map(([, got, asked]) => got ?? asked ?? "")
  for (const path of resources) {
    const resource = known.get(path)
    const part = resource === undefined ? null : keptPart(resource)
    if (part !== null) return `it reads ${path}, of which only some records are kept: ${part}`
    const protection = resource?.protection ?? null
    const isRead = (name: string) => new RegExp(`\\b${name}\\b`, "i").test(sql)
    const fields = (protection?.sent.fields ?? []).flatMap(({ name, type }) =>
      type._tag === "list" && isRead(name) ? [name, ...type.of.map((one) => one.name)] : [name]
    )
    for (const name of [...[...fields, customFieldsName].filter(isRead), ...members]) {
      const rule = protection?.ruleOf(name)
      if (rule !== undefined) return `it reads ${path}.${name} (${rule.kind}), which has a privacy rule`
    }
  }
  return null
}

const remedy = "take the setting out of resources in the configuration, or write a view of your own over what is kept"

/** The queries that can be asked, and why each of the others is left out. */
export const readable = Effect.fnUntraced(function* <
  A extends { readonly name: string; readonly resources: ReadonlyArray<string>; readonly sql: string }
>(settings: Pick<Configuration, "resources">, queries: ReadonlyArray<A>) {
  const isWhole = ({ rules = [], since = null, where = {} }: ConfiguredResource) =>
    rules.length === 0 && since === null && Object.keys(where).length === 0
  if (settings.resources.every(isWhole)) return { kept: queries, leftOut: [] }
  const { resources } = yield* catalogueOf(settings)
  const kept: Array<A> = []
  const leftOut: Array<{ readonly name: string; readonly reason: string; readonly remedy: string }> = []
  for (const query of queries) {
    const reason = unreadable(query, resources)
    if (reason === null) kept.push(query)
    else leftOut.push({ name: query.name, reason, remedy })
  }
  return { kept, leftOut }
})

/** The models that can be made under these settings. */
export const of = Effect.fnUntraced(function* (settings: Pick<Configuration, "resources">) {
  const { kept, leftOut } = yield* readable(settings, yield* (yield* Source).models)
  return { models: kept, leftOut }
})

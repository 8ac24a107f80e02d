/**
 * What the privacy rules of a seed keep of a value.
 *
 * Promise: written from the documentation alone. It shares no code with the pipeline, so that a mistake of the pipeline
 * differs from what is expected here.
 */
import { createHmac } from "node:crypto"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { type DrawnRule, fits, isExcludeOnly, isNeeded, type RulesPeriod } from "../RulesPlan.ts"
import { type Keeping, type Lens, parseExactly } from "./Canonical.ts"

/** The rule of a member of a record, or of one within a value: of several, the strictest. */
const ruleOf = ({ rules }: RulesPeriod, resource: Resource, name: string, isWithin: boolean): DrawnRule | undefined => {
  if (!isWithin && isNeeded(resource, name)) return undefined
  const fitting = rules.filter(
    (rule) =>
      fits(rule.resource, resource.path) &&
      fits(rule.field, name) &&
      (rule.kind === "exclude" || isWithin || !isExcludeOnly(resource, name))
  )
  return (["exclude", "hash", "mask"] as const)
    .map((kind) => fitting.find((rule) => rule.kind === kind))
    .find((rule) => rule !== undefined)
}

/** The last characters are kept of a free text only: a number or a day has few possibilities. */
const keep = ({ keepLast, kind, shown }: DrawnRule, key: string, text: string, isFreeText: boolean): string => {
  if (kind === "hash") return createHmac("sha256", key).update(text, "utf8").digest("base64url")
  const characters = Array.from(text)
  return isFreeText && keepLast > 0 && characters.length > keepLast
    ? shown + characters.slice(characters.length - keepLast).join("")
    : shown
}

/** The last rules keep no whole value of a member that has one of these names, or is within such a member. */
export const isWithheld = (
  periods: ReadonlyArray<RulesPeriod>,
  resource: Resource,
  names: ReadonlyArray<string>
): boolean => names.some((name, depth) => ruleOf(periods.at(-1)!, resource, name, depth > 0) !== undefined)

/** Whether the filters keep a record. */
export const isSelected = (periods: ReadonlyArray<RulesPeriod>, path: string, text: string): boolean => {
  const where = periods.at(-1)?.where ?? null
  if (where === null || where.resource !== path) return true
  const value = (parseExactly(text) as Readonly<Record<string, unknown>>)[where.field]
  return typeof value === "string" && value.toLowerCase().includes(where.value.toLowerCase())
}

const leftOut: Keeping = { sent: null, isCompared: false }

const remembered = (
  lens: (resource: Resource, name: string, isWithin: boolean) => Keeping | undefined
): ((of: Resource) => Lens) => {
  const known = new Map<string, Keeping | undefined>()
  return (resource) => (name, isWithin) => {
    const key = `${resource.path} ${name} ${isWithin}`
    if (!known.has(key)) known.set(key, lens(resource, name, isWithin))
    return known.get(key)
  }
}

export interface Lenses {
  /** Compares the members that never have a rule. */
  readonly open: (resource: Resource) => Lens
  /** Compares everything, as the last rules keep it. */
  readonly kept: (resource: Resource) => Lens
}

/** Null where there are no rules. */
export const lensesOf = (periods: ReadonlyArray<RulesPeriod>): Lenses | null => {
  const last = periods.at(-1)
  if (last === undefined) return null
  return {
    open: remembered((resource, name, isWithin) =>
      periods.some((period) => ruleOf(period, resource, name, isWithin) !== undefined) ? leftOut : undefined
    ),
    kept: remembered((resource, name, isWithin) => {
      const rule = ruleOf(last, resource, name, isWithin)
      if (rule === undefined) return undefined
      const sent = (text: string, isFreeText: boolean) => keep(rule, last.key, text, isFreeText)
      return { sent: rule.kind === "exclude" ? null : sent, isCompared: true }
    })
  }
}

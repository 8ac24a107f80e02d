/**
 * The privacy rules of a seed: what a person configures, and when the processes have it.
 *
 * Promise: they are drawn from a stream of their own, and change no draw of seeds without rules. Rules are added, changed
 * and taken back, and the key of the hashes is rotated. The last rules are those of every process after healing.
 */
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Resource } from "../../src/catalogue/Resource.ts"
import { type Chance, chance } from "./kernel/Chance.ts"
import { family, type Plan } from "./Plan.ts"

/** A rule, as the configuration states it. */
export interface DrawnRule {
  /** The path of a resource, or a pattern of paths. */
  readonly resource: string
  /** The name of a field, or a pattern of names. */
  readonly field: string
  readonly kind: "exclude" | "hash" | "mask"
  /** The text of a mask, and how many characters follow it. */
  readonly shown: string
  readonly keepLast: number
}

/** Records whose field contains the value, in any case, are kept; the others do not exist for the warehouse. */
export interface Selection {
  readonly resource: string
  readonly field: string
  readonly value: string
}

/** The rules from a moment on. */
export interface RulesPeriod {
  /**
   * When a person changes them, as a share of the safety phase, and the delay of the processes that have the earlier
   * rules for a while.
   */
  readonly from: number
  readonly lag: number
  /** Whether running syncs are stopped when their configuration changes. Services always are. */
  readonly stopsSyncs: boolean
  /** The key of the hashes. */
  readonly key: string
  readonly rules: ReadonlyArray<DrawnRule>
  /** The same in all periods; null: every record is kept. */
  readonly where: Selection | null
}

/** Members of the drawn records that no catalogue states, at any depth. */
export const unstated = ["secret_1", "secret_2", "secret_3", "nest_1", "plain", "surprise_1", "a"] as const

const customFields = "custom_fields"
const patterns = ["*name*", "*NAME", "secret*", "*_1", "*date*", "n*", "*e*"] as const
const excludeOnly: ReadonlySet<string> = new Set(["boolean", "timestamp", "list"])

/** The fields that the engine needs as they are. A rule that names one is refused; a pattern leaves it out. */
export const isNeeded = ({ businessDate, parent }: Resource, name: string): boolean =>
  ["id", "lastchangedate", "cancel", "externalid"].includes(name) ||
  name === parent?.field ||
  (businessDate !== null && name === ("field" in businessDate ? businessDate.field : businessDate.through))

/** Whether a rule can only leave the member out. */
export const isExcludeOnly = (resource: Resource, name: string): boolean =>
  name === customFields || excludeOnly.has(resource.field.get(name)?.type._tag ?? "")

const drawRule = (own: Chance, resources: ReadonlyArray<Resource>): DrawnRule => {
  const resource = own.pick(resources)
  const kind = own.pick(["exclude", "hash", "mask"] as const)
  const mask = { shown: own.pick(["***", "#"]), keepLast: own.pick([0, 0, 1, 4]) }
  const [isPattern, isWide, isAll] = [own.chance(0.3), own.chance(0.3), own.chance(0.1)]
  const wide = own.pick(["*", `${resource.path.slice(0, 3)}*`])
  const pattern = own.pick(patterns)
  const stated = resource.fields.flatMap(({ name }) => (isNeeded(resource, name) ? [] : [name]))
  const name = own.pick(own.chance(0.6) ? stated : [...unstated, customFields])
  if (isPattern) return { resource: isWide ? wide : resource.path, field: isAll ? "*" : pattern, kind, ...mask }
  return { resource: resource.path, field: name, kind: isExcludeOnly(resource, name) ? "exclude" : kind, ...mask }
}

const periodsMax = 4

const drawSelection = (seed: number, resources: ReadonlyArray<Resource>): Selection | null => {
  const own = chance(seed, "selection")
  // A source filters by the values that it has. Not in a family: children of a parent that is not kept are not drawn.
  const filtered = resources.filter(
    ({ filters, path }) =>
      !family.includes(path) && filters.some(({ field, match }) => field === "name" && match === "partial")
  )
  const isDrawn = own.chance(0.4)
  if (!isDrawn || filtered.length === 0) return null
  return { resource: own.pick(filtered).path, field: "name", value: own.pick(["1", "5", "S", "77"]) }
}

/** Whether a rule concerns the values by which records are kept. The configuration refuses both together. */
const isOfSelection = ({ field, resource }: DrawnRule, where: Selection | null): boolean =>
  where !== null && fits(resource, where.resource) && fits(field, where.field)

/** Whether a name fits a pattern, in which `*` is any text. Case does not matter. */
export const fits = (pattern: string, name: string): boolean => {
  const [first = "", ...others] = pattern.toLowerCase().split("*")
  const text = name.toLowerCase()
  const last = others.pop()
  if (last === undefined) return text === first
  const end = text.length - last.length
  if (!text.startsWith(first) || !text.endsWith(last) || end < first.length) return false
  let at = first.length
  for (const piece of others) {
    const found = text.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return at <= end
}

const drawRules = (seed: number, resources: ReadonlyArray<Resource>): ReadonlyArray<RulesPeriod> => {
  const own = chance(seed, "rules")
  const where = drawSelection(seed, resources)
  const changes = own.integer(1, periodsMax - 1)
  let rules: ReadonlyArray<DrawnRule> = own.chance(0.5)
    ? []
    : Array.from({ length: own.integer(1, 3) }, () => drawRule(own, resources))
  let key = 1
  return Array.from({ length: changes + 1 }, (_, index): RulesPeriod => {
    const from = index === 0 ? 0 : (index - 1 + 0.15 + 0.7 * own.next()) / changes
    const lag = (own.next() * 0.5) / changes
    const stopsSyncs = own.chance(0.5)
    if (index > 0) {
      const change = own.pick(["add", "add", "take back", "replace", "rotate", "take all back"] as const)
      const added = Array.from({ length: own.integer(1, 2) }, () => drawRule(own, resources))
      const place = own.integer(0, Math.max(0, rules.length - 1))
      const others = rules.filter((_rule, at) => at !== place)
      if (change === "rotate") key += 1
      if (change === "take back") rules = others
      else if (change === "take all back") rules = []
      else if (change === "replace") rules = [...others, ...added]
      else rules = [...rules, ...added]
      if (index === changes && rules.length === 0) rules = added
    }
    // In the order of the configuration, which states the rules of each resource together.
    const ordered = rules
      .filter((rule) => !isOfSelection(rule, where))
      .toSorted((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : 0))
    return { from, lag, stopsSyncs, key: `the key of the hashes, number ${key}`, rules: ordered, where }
  })
}

/** The plan with the rules of its seed. */
export const withRules = (drawn: Plan): Plan => {
  if (!drawn.on.has("G3")) return drawn
  const resources = drawn.resources.map((path) => serviceV2.resources.get(path)!)
  return { ...drawn, later: { ...drawn.later, rules: drawRules(drawn.seed, resources) } }
}

/**
 * Privacy rules of a resource: fields whose values are left out, hashed or masked before anything is stored.
 *
 * Promise: a protected resource has the fields as they are kept. An excluded one is absent; a hashed or masked one is
 * text. What the engine needs as it was sent (the key, the time of change, the cancel flag, the external key, the parent,
 * the business date) has no rule. A rule by name also holds for a field that no catalogue states.
 */
import { type Field, type FieldType, text } from "./Field.ts"
import { type Resource, withFields } from "./Resource.ts"

/** How the values of a field are kept. */
export interface FieldRule {
  readonly kind: "exclude" | "hash" | "mask"
  /**
   * The kept text of a value in its canonical form; null where no value is kept. `isFreeText` is false, which is the default,
   * for a value of few possibilities (a number, a day, a flag, a word of a closed set): a part of it would show it.
   */
  readonly keep: (canonical: string, isFreeText?: boolean) => string | null
  /** A regular expression, of this program and of Postgres, that kept texts match; null where none is kept. */
  readonly form: string | null
  /** The rule and what it depends on, for comparisons: `hash 3f9a…`. */
  readonly statement: string
}

/** A rule for the fields that match. */
export interface PatternRule {
  /** A name, where `*` is any text: `*email*`. */
  readonly pattern: string
  readonly rule: FieldRule
}

/** What protects a resource. */
export interface Protection {
  /** The resource as its source sends it. */
  readonly sent: Resource
  /** The rule of a member of a record, in the catalogue or not; undefined: it is kept as it is. */
  readonly ruleOf: (name: string) => FieldRule | undefined
  /** The rule of a member inside of a value: the engine needs none of them as it was sent. */
  readonly ruleWithin: (name: string) => FieldRule | undefined
  readonly rules: ReadonlyArray<PatternRule>
  /** All rules: a change of it changes the kept values. */
  readonly statement: string
}

/** The member that carries the install's own fields. It can be excluded as a whole only. */
export const customFieldsName = "custom_fields"

const isPattern = (text: string): boolean => text.includes("*")

/** Whether the name matches a pattern, in which `*` is any text. */
export const matches = (pattern: string, name: string): boolean =>
  pattern === name ||
  (isPattern(pattern) &&
    new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`, "su").test(name))

/** Whether a rule is for the field. Case does not matter: a rule must not miss a field by it. */
const matchesField = (pattern: string, name: string): boolean => matches(pattern.toLowerCase(), name.toLowerCase())

/** Why a field is needed as it was sent; null where a rule may change it. */
export const needOf = ({ roles, parent, businessDate }: Resource, name: string): string | null => {
  switch (name) {
    case roles.id:
      return "it is the key of the record"
    case roles.modifiedAt:
      return "it tells which version is the newest"
    case roles.cancelled:
      return "it tells whether the record is cancelled"
    case roles.externalKey:
      return "it identifies records that are pushed"
    case parent?.field:
      return `records are read by it when their ${parent?.resource} changed`
    default:
      if (businessDate === null) return null
      return name === ("field" in businessDate ? businessDate.field : businessDate.through)
        ? "it decides to which period the record belongs"
        : null
  }
}

/** Types of values that have few or many equal meanings: a hash or a part of them would tell too much or nothing. */
const excludeOnly: ReadonlySet<FieldType["_tag"]> = new Set(["boolean", "timestamp", "list"])

/** Whether a text of the field may be any text; undefined is a field that no catalogue states. */
export const isFreeText = (field: Field | undefined): boolean =>
  field === undefined || (field.type._tag === "string" && field.values === null)

/** The field of a member of a list's items; undefined where no catalogue states it. */
export const memberOf = (list: Field | undefined, name: string): Field | undefined =>
  list?.type._tag === "list" ? list.type.of.find((one) => one.name === name) : undefined

/** The strictest of several rules for one field. */
const order: ReadonlyArray<FieldRule["kind"]> = ["exclude", "hash", "mask"]

const problemOf = (resource: Resource, name: string, { kind }: FieldRule): string | null => {
  const need = needOf(resource, name)
  if (need !== null) return `${name} has no rule, since ${need}`
  if (kind === "exclude") return null
  const type = resource.field.get(name)?.type._tag
  if (name === customFieldsName || (type !== undefined && excludeOnly.has(type)))
    return `${name} can only be excluded, since it is ${name === customFieldsName ? "a set of fields" : `a ${type}`}`
  return null
}

const protectedField = (field: Field, { kind }: FieldRule): Field =>
  text(field.name, { note: [field.note, kind === "hash" ? "hashed" : "masked"].filter((one) => one !== "").join("; ") })

/** The name as the catalogue has it. */
const nameOf = ({ fields }: Resource, name: string): string =>
  [...fields.map((field) => field.name), customFieldsName].find((one) => matchesField(name, one)) ?? name

/** The resource with its rules, and what is wrong with them. Rules by pattern leave out the fields that are needed. */
export const protect = (
  sent: Resource,
  rules: ReadonlyArray<PatternRule>
): { readonly resource: Resource; readonly problems: ReadonlyArray<string> } => {
  if (rules.length === 0) return { resource: sent, problems: [] }
  const problems = rules.flatMap(({ pattern, rule }) =>
    isPattern(pattern) ? [] : (problemOf(sent, nameOf(sent, pattern), rule) ?? [])
  )
  const ordered = rules.toSorted((one, other) => order.indexOf(one.rule.kind) - order.indexOf(other.rule.kind))
  const ruleFor = (mayHave: (name: string, rule: FieldRule) => boolean): Protection["ruleOf"] => {
    const known = new Map<string, FieldRule | undefined>()
    return (name) => {
      if (!known.has(name)) {
        const found = ordered.find(({ pattern, rule }) => matchesField(pattern, name) && mayHave(name, rule))
        known.set(name, found?.rule)
      }
      return known.get(name)
    }
  }
  const ruleOf = ruleFor((name, rule) => problemOf(sent, name, rule) === null)
  const ruleWithin = ruleFor(() => true)
  const fields = sent.fields.flatMap((field) => {
    const rule = ruleOf(field.name)
    return rule === undefined ? [field] : rule.kind === "exclude" ? [] : [protectedField(field, rule)]
  })
  // The source filters by values that the warehouse does not have.
  const filters = sent.filters.filter(({ field }) => ruleOf(field) === undefined)
  const statement = rules
    .map(({ pattern, rule }) => `${pattern} ${rule.statement}`)
    .sort()
    .join(", ")
  const protection = { sent, ruleOf, ruleWithin, rules, statement }
  const key = sent.key === null || ruleOf(sent.key.field) !== undefined ? null : sent.key
  return { resource: { ...withFields(sent, fields), filters, key, protection }, problems }
}

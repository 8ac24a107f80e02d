/**
 * The grounds of an answer: the rule that decided it, the facts of the documents behind the rule, and our decisions where
 * the documents leave the point open.
 *
 * Promise: derived from the journal's entry alone, when it is shown; a request costs nothing more. Every error code has
 * a fact. Where there is none, the rule is our choice.
 */
import type { FieldType } from "../../../../src/catalogue/Field.ts"
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { documents } from "../../catalogue/documents.ts"
import { serviceV2 } from "../../catalogue/index.ts"
import type { Entry } from "../http/journal.ts"
import { byAction, byParameter, fault, replayed } from "./actions.ts"
import type { Ids } from "./codes.ts"
import { byCode, byProblem, byType } from "./codes.ts"
import { places } from "./places.ts"
import type { Place } from "./places.ts"

export interface Grounds {
  /** One sentence. */
  readonly rule: string
  /** Ids of facts. */
  readonly facts: ReadonlyArray<string>
  /** Ids of our decisions. */
  readonly decisions: ReadonlyArray<string>
}

/** The target of a request. */
export interface Target {
  /** A path of the catalogue, `webhooks`, `me`, or null. */
  readonly name: string | null
  readonly resource: Resource | null
  /** `list create batch retrieve update cancel special`, or `none` where no route has the path. */
  readonly action: string
  /** The last part of the path of a special endpoint; empty for others. */
  readonly special: string
  /** Names of the query's parameters. */
  readonly parameters: ReadonlyArray<string>
}

const actionsOfOne: Readonly<Record<string, string>> = { GET: "retrieve", PATCH: "update", DELETE: "cancel" }

/** The target of a method and a path below the base address. */
export const targetOf = (method: string, address: string): Target => {
  const question = address.indexOf("?")
  const query = question < 0 ? "" : address.slice(question + 1)
  const [name = "", second, third] = (question < 0 ? address : address.slice(0, question)).slice(1).split("/")
  const resource = serviceV2.resources.get(name) ?? null
  const isKnown = resource !== null || name === "webhooks" || name === "me"
  const action = !isKnown
    ? "none"
    : name === "me"
      ? "retrieve"
      : second === undefined
        ? method === "POST"
          ? "create"
          : "list"
        : third !== undefined
          ? "special"
          : second === "batch"
            ? "batch"
            : (actionsOfOne[method] ?? "none")
  return {
    name: isKnown ? name : null,
    resource,
    action,
    special: action === "special" ? third! : "",
    parameters: [...new URLSearchParams(query).keys()]
  }
}

const has = (words: string | undefined, word: string | null): boolean =>
  words === undefined || (word !== null && words.split(" ").includes(word))

const matches = (place: Place, code: string, target: Target, field: string | null): boolean =>
  has(place.code, code) &&
  has(place.resource, target.name) &&
  has(place.action, target.action) &&
  (place.special === undefined || place.special === target.special) &&
  (place.field === undefined || (field !== null && place.field.test(field)))

/** The facts about fields, keys and write shapes, which the documents state for each resource. */
interface Index {
  /** By `resource field`. */
  readonly fields: ReadonlyMap<string, string>
  /** By resource. */
  readonly keys: ReadonlyMap<string, string>
  readonly filters: ReadonlyMap<string, string>
  readonly operations: ReadonlyMap<string, string>
  /** By `METHOD resource`: the shapes, the errors and the answers of a write. */
  readonly writes: ReadonlyMap<string, ReadonlyArray<{ readonly id: string; readonly text: string }>>
}

const makeIndex = (): Index => {
  const fields = new Map<string, string>()
  const keys = new Map<string, string>()
  const filters = new Map<string, string>()
  const operations = new Map<string, string>()
  const writes = new Map<string, Array<{ readonly id: string; readonly text: string }>>()
  for (const { id, text } of documents().facts) {
    const family = id.slice(0, id.lastIndexOf("-")).toLowerCase()
    if (serviceV2.resources.has(family)) {
      for (const [, one, other] of [/^`(\w+)`(?: \/ `(\w+)`)?/.exec(text) ?? []].map((match) => [...match])) {
        for (const name of [one, other]) if (name !== undefined) fields.set(`${family} ${name}`, id)
      }
      if (text.includes("is the key")) keys.set(family, id)
      if (text.startsWith("List filters")) filters.set(family, id)
    }
    const row = family === "epr" ? /^(\w+) \[/.exec(text)?.[1] : undefined
    if (row !== undefined) operations.set(row, id)
    const write = family === "write" ? /(POST|PATCH|DELETE) \/(\w+)/.exec(text) : null
    if (write !== null) {
      const place = `${write[1]} ${write[2]}`
      writes.set(place, [...(writes.get(place) ?? []), { id, text }])
    }
  }
  return { fields, keys, filters, operations, writes }
}

let index: Index | null = null

/** The name of a field without the places of lines: `quantity` of `lines[3].quantity`. */
const lastPart = (field: string): string =>
  field
    .replace(/\[\d+\]/g, "")
    .split(".")
    .at(-1) ?? field

const typeName = (type: FieldType): string => (type._tag === "decimal" ? type.kind : type._tag)

const typeOf = ({ resource }: Target, field: string): FieldType | undefined => {
  const name = lastPart(field)
  const written = [...(resource?.create ?? []), ...(resource?.update ?? [])].flatMap((one) => [
    one,
    ...(one.lines ?? [])
  ])
  return written.find((one) => one.name === name)?.type ?? resource?.field.get(name)?.type
}

/** What a field holds: `holds money with 4 decimals`; null where the catalogue does not have it. */
export const typeSentence = (target: Target, field: string): string | null => {
  const type = typeOf(target, field)
  if (type === undefined) return null
  switch (type._tag) {
    case "decimal":
      return `holds ${type.kind === "money" ? "money" : type.kind === "qty" ? "a quantity" : "a number"}: a decimal string with at most ${type.scale} decimals`
    case "string":
      return type.maxLength === null ? "holds a text" : `holds a text of at most ${type.maxLength} characters`
    case "date":
      return "holds a day, YYYY-MM-DD"
    case "timestamp":
      return "holds a time, RFC 3339 in UTC"
    case "list":
      return "holds lines, an array of objects"
    case "integer":
      return "holds a whole number"
    case "boolean":
      return "holds true or false"
  }
}

const ofField = (target: Target, field: string, code: string): ReadonlyArray<string> => {
  index ??= makeIndex()
  const { name, action } = target
  if (name === null) return []
  const own = index.fields.get(`${name} ${lastPart(field)}`)
  const key = code === "duplicate" ? index.keys.get(name) : undefined
  const row = action === "list" ? index.filters.get(name) : undefined
  return [own, key, row].filter((id) => id !== undefined)
}

const methods: Readonly<Record<string, string>> = { create: "POST", batch: "POST", update: "PATCH", cancel: "DELETE" }

/** The facts of a write shape that name the code or the field. */
const ofShape = ({ name, action }: Target, code: string | null, field: string | null): ReadonlyArray<string> => {
  index ??= makeIndex()
  const shapes = index.writes.get(`${methods[action] ?? ""} ${name ?? ""}`) ?? []
  const named = [code, field === null ? null : lastPart(field)].filter((word) => word !== null)
  // The answer of a success explains no refusal.
  const isMeant = (text: string) => {
    const words = new Set(text.match(/\w+/g))
    return !text.includes("201 body") && named.some((word) => words.has(word))
  }
  return shapes.filter(({ text }) => code === null || isMeant(text)).map(({ id }) => id)
}

const split = (all: ReadonlyArray<Ids | undefined>, half: 0 | 1): ReadonlyArray<string> => [
  ...new Set(all.flatMap((ids) => (ids === undefined || ids[half] === "" ? [] : ids[half].split(" "))))
]

/** The problem of one field. */
export interface FieldProblem {
  readonly field: string | null
  readonly code: string
}

const formCodes = new Set(["invalid_type", "invalid_precision"])

/** The grounds of an error code at a target; `problems` are those that an `invalid_request` lists. */
const groundsOfRefusal = (
  target: Target,
  { code, field }: FieldProblem,
  problems: ReadonlyArray<FieldProblem>
): Grounds => {
  const all = [{ code, field }, ...problems]
  const ids = [
    byCode[code],
    ...places.filter((place) => matches(place, code, target, field)).map((place) => place.ids),
    ...problems.map((problem) => byProblem[problem.code]),
    ...all.flatMap((problem) => {
      const type = problem.field === null || !formCodes.has(problem.code) ? undefined : typeOf(target, problem.field)
      return type === undefined || target.action === "list" ? [] : [byType[typeName(type)]]
    })
  ]
  const details = all.flatMap((problem) => [
    ...(problem.field === null ? [] : ofField(target, problem.field, problem.code)),
    ...ofShape(target, problem.code, problem.field)
  ])
  index ??= makeIndex()
  const row = code === "method_not_allowed" ? index.operations.get(target.name ?? "") : undefined
  const facts = [...split(ids, 0), ...details, ...(row === undefined ? [] : [row])]
  return {
    rule: conditions.get(code) ?? "an error code of the caller's fault",
    facts: [...new Set(facts)],
    decisions: split(ids, 1)
  }
}

const conditions = new Map(serviceV2.errorCodes.map(({ code, condition }) => [code, condition]))

const successes: Readonly<Record<string, string>> = {
  list: "a page of the records that match the filters",
  retrieve: "the record",
  create: "the new record, after all rules accepted it",
  batch: "one result for each item, each of them a write of its own",
  update: "the record with the fields that were sent",
  cancel: "the record, cancelled",
  special: "the answer of an operation below a record"
}

const groundsOfSuccess = (target: Target): Grounds => {
  const { name, action, special, parameters } = target
  index ??= makeIndex()
  const own = byAction[`${name ?? ""} ${special === "" ? action : special}`]
  const ids = [own ?? byAction[action], ...parameters.map((one) => byParameter[one])]
  const filters = target.resource?.filters.some(({ field }) => parameters.includes(field)) === true
  const row = filters ? index.filters.get(name ?? "") : undefined
  const details = [...ofShape(target, null, null), ...(row === undefined ? [] : [row])]
  return { rule: successes[action] ?? "the answer", facts: [...split(ids, 0), ...details], decisions: split(ids, 1) }
}

const made = new Map<string, Grounds>()
/** Fields come from callers, so that their number is not limited. */
const madeMax = 2_000

const remembered = (key: string, make: () => Grounds): Grounds => {
  const known = made.get(key)
  if (known !== undefined) return known
  if (made.size >= madeMax) made.clear()
  const grounds = make()
  made.set(key, grounds)
  return grounds
}

const withoutPlaces = (field: string | null): string => field?.replace(/\[\d+\]/g, "[]") ?? ""

/** The grounds of the answer to a request. */
export const groundsOf = ({ method, path, refusal, fault: kind, isReplay }: Entry): Grounds => {
  if (kind !== null && refusal === null && kind !== "delay") {
    return {
      rule: `a fault of the kind ${kind}, which the control plane armed`,
      facts: [],
      decisions: split([fault], 1)
    }
  }
  const target = targetOf(method, path)
  if (isReplay) {
    return {
      rule: "the stored answer to the first request with this Idempotency-Key",
      facts: split([replayed], 0),
      decisions: split([replayed], 1)
    }
  }
  const { name, action, special, parameters } = target
  const place = `${name ?? ""} ${action} ${special}`
  if (refusal === null) return remembered(`${place} ${parameters.join(",")}`, () => groundsOfSuccess(target))
  const problems = refusal.problems.map(({ field, code }) => `${code} ${withoutPlaces(field)}`).join(",")
  return remembered(`${place} ${refusal.code} ${withoutPlaces(refusal.field)} ${problems}`, () =>
    groundsOfRefusal(target, refusal, refusal.problems)
  )
}

/** The grounds of a refused item of a batch. */
export const groundsOfItem = (path: string, item: FieldProblem): Grounds =>
  groundsOfRefusal(targetOf("POST", path), item, [])

/** The error codes that a fact or a decision decides, somewhere. */
export const codesOf = (id: string): ReadonlyArray<string> => {
  const names = (ids: Ids) => ids.some((half) => half.split(" ").includes(id))
  const direct = Object.entries(byCode).flatMap(([code, ids]) => (names(ids) ? [code] : []))
  const placed = places.flatMap(({ code, ids }) => (names(ids) ? code.split(" ") : []))
  return [...new Set([...direct, ...placed])]
}

/** An entry as the control plane shows it. */
export const printEntry = (entry: Entry): Readonly<Record<string, unknown>> => {
  const { time, method, path, status, tokenid, requestid, fault: kind, refusal, items } = entry
  return {
    time,
    method,
    path,
    status,
    tokenid,
    requestid,
    fault: kind,
    refusal: refusal === null ? null : { code: refusal.code, field: refusal.field, ...groundsOf(entry) },
    items: items.map((item) => ({
      index: item.index,
      code: item.code,
      field: item.field,
      ...groundsOfItem(path, item)
    }))
  }
}

/**
 * The 832 facts of the API's documents, and the data of the 25 detailed resources, which their facts state in a fixed
 * notation: operations, area, filters, fields with type, length, decimals and values.
 *
 * `facts.json` is copied once from the documents. A fact of a resource that has another form than the notation stops
 * the tests. `refused.json` contains the facts that no wire test can name, each with the reason.
 */
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

const here = import.meta.dirname
const read = (name: string) => JSON.parse(readFileSync(path.join(here, name), "utf8")) as Record<string, string>

/** The text of each fact by its id, in the order of the documents. */
export const FACTS: Readonly<Record<string, string>> = read("facts.json")
export const REFUSED: Readonly<Record<string, string>> = read("refused.json")

export type Op = "L" | "C" | "B" | "R" | "U" | "D"
export type Kind = "int" | "bool" | "string" | "day" | "time" | { readonly decimals: number }

/** A field, or a reference pair under the name of its id. */
export interface Field {
  readonly fact: string
  readonly name: string
  readonly kind: Kind
  /** A value to store; undefined for a pair. */
  readonly sample: unknown
  /** A value sent is ignored. */
  readonly readOnly: boolean
  /** The server sets it, whatever is stored. */
  readonly maintained: boolean
  /** The maximum length, of the code for a pair. */
  readonly length?: number
  /** All values of an integer, each with a meaning. */
  readonly values?: readonly number[]
  /** For a reference pair: the name of the code half, the table, and the field that holds the code. */
  readonly pair?: { readonly code: string; readonly table: string; readonly key: string }
}

export interface Filter {
  readonly name: string
  readonly match: "exact" | "partial"
}

export interface Described {
  readonly path: string
  readonly area: string
  readonly ops: readonly Op[]
  readonly filters: readonly Filter[]
  readonly modifiedsince: boolean
  readonly cancel: boolean
  readonly fields: readonly Field[]
  /** The required field, unique in any case, and the fact that states it. */
  readonly key?: { readonly name: string; readonly fact: string }
  /** The facts that name a field or a filter that the resource does not have. */
  readonly absent: readonly string[]
  readonly facts: { readonly ops: string; readonly filters: string; readonly row: string; readonly since: string }
}

/** The table and the field that the code half of a pair names, by the end of its name (F-09). */
const CODE_HALVES: ReadonlyArray<readonly [ending: string, table: string, key: string]> = [
  ["glaccount", "glaccounts", "name"],
  ["bankfee_gl", "glaccounts", "name"],
  ["carrierservice", "carrierservices", "code"],
  ["location", "inventorylocations", "locationcode"],
  ["voucher", "vouchers", "voucher"],
  ["invoice", "invoices", "invoicenumber"],
  ["item", "items", "sku"],
  ["unitname", "qtyunits", "unitname"],
  ["glcategory", "glcategories", "code"],
  ["costcode", "costcodes", "code"],
  ["worktype", "worktypes", "name"],
  ["taxexemption", "taxexemptions", "exemptname"],
  ["taxclass", "taxclasses", "name"],
  ["user", "users", "login"],
  ["customer", "customers", "customercode"],
  ["checkaccount", "checkaccounts", "name"],
  ["checkacct", "checkaccounts", "name"],
  ["teamproject", "teamprojects", "code"],
  ["teamprojectstatus", "teamprojectstatuses", "name"],
  ["teamprojecttag", "teamprojecttags", "name"],
  ["teamprojecttemplate", "teamprojecttemplates", "name"],
  ["vendor", "vendors", "vendorcode"],
  ["carrier", "carriers", "name"],
  ["ccprocessor", "ccprocessors", "name"]
]

function pairOf(code: string): NonNullable<Field["pair"]> {
  if (code === "parentitem") return { code, table: "teamprojecttemplateitems", key: "title" }
  const half = CODE_HALVES.find(([ending]) => code.endsWith(ending))
  if (half === undefined) throw new Error(`no table for the code half ${code}`)
  return { code, table: half[1], key: half[2] }
}

function sampleOf(name: string, kind: Kind, length = 100, values: readonly number[] = [1]): unknown {
  if (kind === "int") return values.at(-1)
  if (kind === "bool") return true
  if (kind === "string") return `some ${name}`.slice(0, length)
  if (kind === "day") return "2026-01-15"
  if (kind === "time") return "2026-01-15T10:20:30.000001Z"
  // At the field's scale: a directly inserted value is shown unchanged.
  return kind.decimals === 0 ? "12" : `12.5${"0".repeat(kind.decimals - 1)}`
}

const FIELD = /^`(\w+)`(?: \/ `(\w+)`)?: (.*)$/

/** The field that a fact states; undefined for a fact about something else. */
function fieldOf(fact: string, text: string): Field | undefined {
  const [, name = "", code, stated = ""] = FIELD.exec(text) ?? []
  if (stated === "") return undefined
  const length = Number(/string\((\d+)\)/.exec(stated)?.[1] ?? Number.NaN)
  const more = {
    readOnly: /\(ro\b/.test(stated) || /id half ro/.test(stated),
    maintained: name === "lastchangedate" || stated.includes("values sent are discarded"),
    ...(Number.isNaN(length) ? {} : { length })
  }
  if (code !== undefined) return { fact, name, kind: "int", sample: undefined, ...more, pair: pairOf(code) }
  const decimals = /returned at (\d+)/.exec(stated)?.[1] ?? /^(?:money|qty|number) (\d+)dp/.exec(stated)?.[1]
  const kind: Kind | undefined =
    decimals !== undefined
      ? { decimals: Number(decimals) }
      : stated.startsWith("integer")
        ? "int"
        : stated.startsWith("boolean")
          ? "bool"
          : stated.startsWith("string (date form")
            ? "day"
            : stated.startsWith("string (timestamp form")
              ? "time"
              : /^(string|text)\b/.test(stated)
                ? "string"
                : undefined
  if (kind === undefined) throw new Error(`${fact} states no type: ${text}`)
  const listed = kind === "int" ? /values: ([^;]*)/.exec(stated)?.[1] : undefined
  const values = listed?.split(/, (?=\d)/).map((each) => Number.parseInt(each, 10))
  return { fact, name, kind, sample: sampleOf(name, kind, length || 100, values), ...more, ...(values && { values }) }
}

const ABSENT =
  /^No .*\b(cancel field|entrydate|lastchangedate|modifiedsince)\b|^Lastchangedate is|^\[!\] has lastchangedate/

function describe(family: string): Described {
  const resource = family.toLowerCase()
  const facts = Object.entries(FACTS).filter(([id]) => id.startsWith(`${family}-`))
  const one = (pattern: RegExp) => {
    for (const [fact, text] of facts) {
      const match = pattern.exec(text)
      if (match !== null) return { fact, match }
    }
    throw new Error(`no fact of ${resource} has the form ${String(pattern)}`)
  }
  const ops = one(/^Operations shown: ([LCBRUD ]+) in scope area `(\w+)`/)
  const filters = one(/^List filters besides cancel, externalid, include: (.*?)\. /)
  const since = one(/^modifiedsince offered: (yes|no); .*cancel field: (yes|none)/)
  const row = Object.entries(FACTS).find(([id, text]) => id.startsWith("EPR-") && text.startsWith(`${resource} [`))
  const key = facts.find(([, text]) => /^`\w+` is the key/.test(text))
  const fields = facts.flatMap(([fact, text]) => fieldOf(fact, text) ?? [])
  // One resource states the halves of a pair in two facts.
  const half = fields.findIndex(
    ({ name, kind }) => kind === "string" && fields.some((each) => each.name === `${name}id`)
  )
  if (half >= 0) {
    const [code] = fields.splice(half, 1)
    const at = fields.findIndex((each) => each.name === `${code?.name}id`)
    const { length = 0, name = "" } = code ?? {}
    fields[at] = { ...(fields[at] as Field), sample: undefined, length, pair: pairOf(name) }
  }
  // I-02 adds U: the lifecycle of a reminder needs it.
  const added = resource === "teamprojectreminders" ? ["U"] : []
  return {
    path: resource,
    area: String(ops.match[2]),
    ops: [...String(ops.match[1]).trim().split(" "), ...added] as Op[],
    filters: [...String(filters.match[1]).matchAll(/(\w+) \((exact|partial)\??\)/g)].map((match) => ({
      name: String(match[1]),
      match: match[2] as Filter["match"]
    })),
    modifiedsince: since.match[1] === "yes",
    cancel: since.match[2] === "yes",
    fields,
    absent: facts.flatMap(([fact, text]) => (ABSENT.test(text) ? [fact] : [])),
    ...(key && { key: { fact: key[0], name: String(/\w+/.exec(key[1])?.[0]) } }),
    facts: { ops: ops.fact, filters: filters.fact, since: since.fact, row: String(row?.[0]) }
  }
}

/** The 25 detailed resources. */
export const DESCRIBED: readonly Described[] = Object.entries(FACTS)
  .filter(([, text]) => text.startsWith("Operations shown: "))
  .map(([id]) => describe(id.replace(/-\d+$/, "")))

/** The documented error codes, each with its one status and the fact that states it. */
export const ERROR_CODES: ReadonlyMap<string, { readonly status: number; readonly fact: string }> = new Map(
  Object.entries(FACTS).flatMap(([fact, text]) => {
    const match = /^(\d{3}) `(\w+)`: /.exec(text)
    return match === null ? [] : [[String(match[2]), { status: Number(match[1]), fact }] as const]
  })
)

/** The ids that a title names. */
export function idsIn(title: string): string[] {
  return [...title.matchAll(/\[([A-Z]+-\d{2})\]/g)].map((match) => String(match[1]))
}

export interface Ledger {
  /** The facts that a wire test names in its title. */
  readonly named: ReadonlySet<string>
  readonly untested: readonly string[]
  /** Ids in titles that are neither facts nor decisions. */
  readonly unknown: readonly string[]
  /** Facts that are refused and named. */
  readonly both: readonly string[]
}

/** Which facts the titles of the tests name, read from their sources. The generic tests name the facts of DESCRIBED. */
export function readLedger(): Ledger {
  const named = new Set(
    DESCRIBED.flatMap(({ fields, absent, facts }) => [
      ...fields.map(({ fact }) => fact),
      ...absent,
      ...Object.values(facts)
    ])
  )
  for (const { fact } of ERROR_CODES.values()) named.add(fact)
  const unknown = new Set(Object.keys(REFUSED).filter((id) => FACTS[id] === undefined))
  for (const file of readdirSync(here)) {
    if (!file.endsWith(".test.ts") && file !== "harness.ts") continue
    for (const [, id = ""] of readFileSync(path.join(here, file), "utf8").matchAll(/[["]([A-Z]+-\d{2})(?=[\]"])/g)) {
      if (FACTS[id] !== undefined) named.add(id)
      // The families of decisions.md, which titles also name.
      else if (!/^([A-L]|X)-\d\d$/.test(id)) unknown.add(id)
    }
  }
  return {
    named,
    untested: Object.keys(FACTS).filter((id) => !named.has(id) && REFUSED[id] === undefined),
    unknown: [...unknown],
    both: Object.keys(REFUSED).filter((id) => named.has(id))
  }
}

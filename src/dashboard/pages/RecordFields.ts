/** The values of a record's fields as HTML: exact digits, the meaning of enumerated values, long texts cut. */
import { canonical, isList, isObject, type Json, type JsonObject, NumberToken, print } from "../../json/Json.ts"
import type { RecordLine } from "../../status/RecordTables.ts"
import type { Table } from "../../warehouse/Table.ts"
import { badge, none, table } from "../../web/Components.ts"
import { plural, truncated, visible, visibleLines } from "../../web/Escape.ts"
import { exactInstant, instant } from "../../web/Times.ts"
import { type Part, wordDiff } from "../../web/WordDiff.ts"
import { recordAddress } from "../Addresses.ts"
import { code, detail } from "../Links.ts"
import { html, type Html } from "../Page.ts"
import { pretty } from "../PrettyJson.ts"

type Field = Table["resource"]["fields"][number]

/** Characters of a value that are shown at once. */
const valueMax = 120

/** A list or an object behind its size. */
const nested = (value: Json): Html => {
  const text = print(value)
  const size = isList(value) ? plural(value.length, "line") : plural(isObject(value) ? value.size : 0, "member")
  return html`<details class="value">
    <summary>${size}</summary>
    <pre tabindex="0">${pretty(text) ?? visible(text)}</pre>
  </details>`
}

const longText = (text: string): Html =>
  html`<details class="value">
    <summary>${truncated(text, valueMax)}</summary>
    <pre class="bytes" tabindex="0">${visibleLines(text)}</pre>
  </details>`

/** A decimal with its thousands grouped and each of its digits. */
const grouped = (text: string): string => {
  const [, whole, rest] = /^(-?\d+)(\.\d+)?$/.exec(text) ?? []
  return whole === undefined ? text : `${whole.replace(/\B(?=(?:\d{3})+$)/g, ",")}${rest ?? ""}`
}

/** The same where a value is one of several in a line: without zeros after two digits of its fraction. */
const brief = (text: string): string => grouped(text).replace(/(\.\d\d\d*?)0+$/, "$1")

/** An instant of a value as RFC 3339; null where it is none. */
const instantIn = (text: string): string | null => {
  const [, day, time, offset] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d(?::\d\d)?)$/.exec(text) ?? []
  if (offset === undefined) return null
  const found = `${day}T${time}${/^[+-]00(:00)?$/.test(offset) ? "Z" : offset.length === 3 ? `${offset}:00` : offset}`
  return Number.isNaN(Date.parse(found)) ? null : found
}

/** The detail of a record's line: fields with their values. */
export const lineDetail = (detail: string): Html =>
  html`${detail.split(", ").map((part, index, { length }) => {
    const [, name, value] = /^(\w+) (.*)$/s.exec(part) ?? []
    const at = value === undefined ? null : instantIn(value)
    // The comma is inside, so that no line begins with it.
    return html`${index === 0 ? "" : " "}<span class="whole"
        >${value === undefined ? visible(part) : html`${visible(name!)} ${at === null ? visible(index === 0 ? value : brief(value)) : instant(at)}`}${index === length - 1 ? "" : ","}</span
      >`
  })}`

const shortMax = 40

/** A value of a change in one line. */
export const shortValue = (field: Field | undefined, value: Json | undefined): Html => {
  if (value === undefined || value === null) return none("none")
  if (value === "") return none("empty text")
  if (isList(value)) return html`${plural(value.length, "line")}`
  const text = typeof value === "string" ? value : print(value)
  return html`<span class="exact"
    >${field?.type._tag === "decimal" ? visible(brief(text)) : truncated(text, shortMax)}</span
  >`
}

/** A value as it was sent; undefined where the record has no such field. `isExact` false shows times to the second. */
export const valueHtml = (field: Field | undefined, value: Json | undefined, isExact = true): Html => {
  if (value === undefined || value === null) return none("none")
  if (value === "") return none("empty text")
  if (isList(value) || isObject(value)) return nested(value)
  const text = typeof value === "string" ? value : print(value)
  const at = field?.type._tag === "timestamp" ? instantIn(text) : null
  if (at !== null) return html`<span class="exact whole">${isExact ? exactInstant(at) : instant(at)}</span>`
  if (field?.type._tag === "decimal") return html`<span class="exact amount">${visible(grouped(text))}</span>`
  const meaning = field?.values?.find((one) => String(one.value) === text)?.meaning ?? ""
  return text.length > valueMax
    ? longText(text)
    : html`<span class="exact">${visible(text)}</span>${meaning === "" ? "" : html` ${detail(visible(meaning))}`}`
}

// ------------------------------------------------------------------------------------------------- changes of long texts

/** Texts of which none is longer are shown whole. */
const wordsMin = 60
/** Characters beside a change that are shown of an unchanged part. */
const contextMax = 40

/** The beginning and the end of an unchanged part beside a change, in whole words. */
const unchangedPart = (text: string, isFirst: boolean, isLast: boolean): string => {
  const start = isFirst ? "" : text.slice(0, contextMax).replace(/\s\S*$/, " ")
  const end = isLast ? "" : text.slice(-contextMax).replace(/^\S*\s/, " ")
  return text.length <= start.length + end.length + contextMax ? text : `${start}…${end}`
}

const textWithChanges = (parts: ReadonlyArray<Part>, kind: "del" | "ins", whole: string): Html => {
  const shown = parts.map(({ isChanged, text }, index) =>
    isChanged ? text : unchangedPart(text, index === 0, index === parts.length - 1)
  )
  const words = parts.map(({ isChanged }, index) => {
    const text = visibleLines(shown[index]!)
    if (!isChanged) return html`${text}`
    const inside = html`<span class="visually-hidden">${kind === "del" ? " [removed: " : " [inserted: "}</span
      >${text}<span class="visually-hidden">] </span>`
    return kind === "del" ? html`<del class="words">${inside}</del>` : html`<ins class="words">${inside}</ins>`
  })
  return html`<span class="exact">${words}</span>${
      shown.join("") === whole
        ? ""
        : html`<details class="value">
            <summary>Whole text</summary>
            <pre class="bytes" tabindex="0">${visibleLines(whole)}</pre>
          </details>`
    }`
}

/** A long text before and after its change, with the changed words marked; null where both are shown as values. */
export const changedWords = (before: Json | undefined, after: Json | undefined): readonly [Html, Html] | null => {
  if (typeof before !== "string" || typeof after !== "string") return null
  if (Math.max(before.length, after.length) <= wordsMin) return null
  const diff = wordDiff(before, after)
  return diff === null ? null : [textWithChanges(diff.before, "del", before), textWithChanges(diff.after, "ins", after)]
}

/** Cancelled and deleted records are marked; others are not. */
export const stateBadges = ({ isCancelled, isDeleted }: Pick<RecordLine, "isCancelled" | "isDeleted">): Html =>
  html`${isDeleted ? badge("bad", "deleted") : ""}${isDeleted && isCancelled ? " " : ""}${isCancelled ? badge("warn", "cancelled") : ""}`

/** A link to a record, with its key, its state and what else identifies it. */
export const recordLink = (company: string, line: RecordLine): Html =>
  html`<a href="${recordAddress(company, line.resource, line.id)}"
      >${visible(line.resource)} ${line.id}${line.key === null ? "" : html` · ${visible(line.key)}`}</a
    >
    ${stateBadges(line)} ${line.detail === "" ? "" : detail(lineDetail(line.detail))}`

// ---------------------------------------------------------------------------------------------------- the current values

const groups = ["Identity", "Amounts and quantities", "Dates and times", "Texts and flags", "Lines"] as const
type Group = (typeof groups)[number]

/** The group of a field; null for a part of a reference, which is shown by itself. */
const groupOf = (field: Field, { resource: { key, roles } }: Table): Group | null => {
  const own: ReadonlyArray<string | null> = [
    roles.id,
    roles.externalKey,
    roles.cancelled,
    roles.modifiedAt,
    key?.field ?? null
  ]
  if (own.includes(field.name)) return "Identity"
  if (field.reference !== null) return null
  switch (field.type._tag) {
    case "decimal":
      return "Amounts and quantities"
    case "date":
    case "timestamp":
      return "Dates and times"
    case "list":
      return "Lines"
    default:
      return "Texts and flags"
  }
}

const isEmpty = (value: Json | undefined): boolean => value === undefined || value === null || value === ""

/** A field with what the catalogue says about it. */
export const fieldName = (name: string, note: string): Html =>
  html`${code(name)}${note === "" ? "" : detail(visible(note))}`

const emptyFields = (names: ReadonlyArray<string>): Html =>
  names.length === 0
    ? html``
    : html`<details id="empty-fields">
        <summary>${plural(names.length, "field")} without a value</summary>
        <p>${names.map((name, index) => html`${index === 0 ? "" : ", "}${code(name)}`)}</p>
      </details>`

/** The values of the newest version, in groups, with the notes of the catalogue. */
export const currentValues = (record: JsonObject, of: Table | undefined): Html => {
  const fields = of?.resource.fields ?? []
  const known = new Set(fields.map(({ name }) => name))
  const unstated = [...record].filter(([name]) => !known.has(name))
  const unknown = unstated.filter(([, value]) => !isEmpty(value))
  const empty = [...fields.map(({ name }) => name), ...unstated.map(([name]) => name)].filter((name) =>
    isEmpty(record.get(name))
  )
  const grouped = Map.groupBy(
    fields.filter(({ name }) => !isEmpty(record.get(name))),
    (field) => groupOf(field, of!)
  )
  return html`${groups.map((group) => {
    const members = grouped.get(group) ?? []
    return members.length === 0
      ? ""
      : table(
          group,
          "Field, Value",
          members.map((field) => [fieldName(field.name, field.note), valueHtml(field, record.get(field.name), false)])
        )
  })}
  ${
    unknown.length === 0
      ? ""
      : table(
          of === undefined ? "Fields" : "Fields that the catalogue does not state",
          "Field, Value",
          unknown.map(([name, value]) => [fieldName(name, ""), valueHtml(undefined, value)])
        )
  }
  ${emptyFields(empty)}`
}

// --------------------------------------------------------------------------------------------------------- its references

export interface NamedBy {
  readonly field: Field
  readonly resource: string
  readonly id: string
  /** The other half of the pair. */
  readonly code: string | null
}

/** The records that the record names by number. Zero and less are no numbers of records. */
export const namedRecords = (record: JsonObject, { resource }: Table): ReadonlyArray<NamedBy> =>
  resource.fields.flatMap((field): ReadonlyArray<NamedBy> => {
    const { reference } = field
    const value = record.get(field.name)
    if (reference === null || reference.half !== "id" || !(value instanceof NumberToken)) return []
    const id = canonical(value)
    if (!/^\d{1,18}$/.test(id) || id === "0") return []
    const code = reference.pairedWith === null ? null : record.get(reference.pairedWith)
    return [{ field, resource: reference.resource, id, code: typeof code === "string" && code !== "" ? code : null }]
  })

/** Lines that a document embeds. */
import type { Resource } from "../../../../src/catalogue/Resource.ts"
import { format } from "../decimal.ts"
import { Raw, print } from "../json.ts"
import type { Version } from "../store/Table.ts"
import { violation } from "./records.ts"

/** The lines as the document's `lines` field shows them. */
export const embedLines = (document: Resource, lines: ReadonlyArray<Pick<Version, "values">>): Raw => {
  const type = document.field.get("lines")?.type
  if (type?._tag !== "list") throw new Error(`${document.path} shows no lines`)
  const shown = lines.map(({ values }) => {
    const members = type.of.map(({ name }) => `${JSON.stringify(name)}:${print(values[name] ?? null)}`)
    return `{${members.join(",")}}`
  })
  return new Raw(`[${shown.join(",")}]`)
}

export const byLineNumber = (lines: ReadonlyArray<Version>): ReadonlyArray<Version> =>
  lines.toSorted((a, b) => Number(a.values["linenumber"] ?? 0) - Number(b.values["linenumber"] ?? 0) || a.id - b.id)

/** The limit of a money column: digits before the point. */
const wholeMoneyMax = 10n ** 20n

/** A total as money; a total larger than its field is refused. */
export const money = (units: bigint, what: string, scale = 4): string => {
  if (units >= wholeMoneyMax || units <= -wholeMoneyMax) throw violation(`${what} is larger than a field can hold`)
  return format(units, scale)
}

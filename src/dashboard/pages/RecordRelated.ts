/** Links of a record to related ones, in both directions. */
import type { Referring, ReferringRecords } from "../../status/RecordRelations.ts"
import { countMax, listMax } from "../../status/RecordRelations.ts"
import type { RecordLine } from "../../status/RecordTables.ts"
import { count, none, table } from "../../web/Components.ts"
import { plural, visible } from "../../web/Escape.ts"
import { code, detail } from "../Links.ts"
import { html, type Html } from "../Page.ts"
import { fieldName, lineDetail, type NamedBy, recordLink } from "./RecordFields.ts"

const namedRow = (company: string, { field, resource, id, code }: NamedBy, line: RecordLine | undefined) => [
  fieldName(field.name, field.note),
  line === undefined
    ? html`${visible(resource)} ${id}${code === null ? "" : html` · ${visible(code)}`} ${none("not synced")}`
    : recordLink(company, line.key === null && code !== null ? { ...line, key: code } : line)
]

const allWords = ({ resource, count: found }: ReferringRecords): string =>
  found > listMax
    ? `The newest ${count(listMax)} of ${found > countMax ? `more than ${count(countMax)}` : count(found)} ${visible(resource)}`
    : `All ${count(found)} ${visible(resource)}`

/** The link to all of them, of those that refer to the record itself. */
const furtherPart = (list: ReferringRecords, addressOfList: (by: string) => string): Html => {
  const { resource, field, through, count: found, records } = list
  if (found <= records.length) return html``
  return through === null
    ? html`<li><a href="${addressOfList(`${resource}.${field}`)}">${allWords(list)}</a></li>`
    : html`<li class="hint">
        and ${found > countMax ? "more" : count(found - records.length)}: those with lower numbers
      </li>`
}

/** All records that refer to a record by one field. */
export const referringList = (company: string, list: ReferringRecords): Html =>
  table(
    allWords(list),
    "Record, -Details",
    list.records.map((line) => [
      recordLink(company, { ...line, detail: "" }),
      line.detail === "" ? none("") : lineDetail(line.detail)
    ])
  )

const referringRow = (company: string, list: ReferringRecords, addressOfList: (by: string) => string) => {
  const { resource, field, through, count: found, records } = list
  return [
    html`${visible(resource)}${detail(html`by ${code(field)}${through === null ? "" : ` of the ${visible(through)} above`}`)}`,
    found > countMax ? `more than ${count(countMax)}` : count(found),
    html`<ul class="plain">
      ${records.map((line) => html`<li>${recordLink(company, line)}</li>`)} ${furtherPart(list, addressOfList)}
    </ul>`
  ]
}

const unsearchedNote = ({ unsearched }: Referring): Html =>
  unsearched.length === 0
    ? html``
    : html`<details id="not-looked-up">
        <summary>${plural(unsearched.length, "reference")} not looked up</summary>
        <p>
          These tables are large and have no index of the field:
          ${unsearched.map(({ resource, field }, index) => html`${index === 0 ? "" : ", "}${code(`${resource}.${field}`)}`)}.
        </p>
      </details>`

/** The records that it names, and those that name it. */
export const related = (
  company: string,
  named: ReadonlyArray<NamedBy>,
  lines: ReadonlyMap<string, RecordLine>,
  referring: Referring,
  addressOfList: (by: string) => string
): Html => html`
  ${
    named.length === 0
      ? html`<p>It refers to no other record.</p>`
      : table(
          "It refers to",
          "Field, Record",
          named.map((one) => namedRow(company, one, lines.get(`${one.resource} ${one.id}`)))
        )
  }
  ${
    referring.lists.length === 0
      ? html`<p>No record that was looked up refers to it.</p>`
      : table(
          "Records that refer to it",
          "Resource, #Records, Newest numbers",
          referring.lists.map((one) => referringRow(company, one, addressOfList))
        )
  }
  ${unsearchedNote(referring)}
`

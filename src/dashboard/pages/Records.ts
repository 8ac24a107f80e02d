/** `/records`: finds records by number, key or external id, and shows one of them (`Record.ts`). */
import * as Effect from "effect/Effect"
import { isPlainText } from "../../json/Json.ts"
import { companiesMax, type FoundRecord, isNumber, type Match, search } from "../../status/RecordSearch.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { findHistory } from "../../verify/Explain.ts"
import { type Table, tableOf } from "../../warehouse/Table.ts"
import { badge, select, table } from "../../web/Components.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { recordAddress } from "../Addresses.ts"
import { detail, recordOrResourceLink } from "../Links.ts"
import { type Answer, html, type Html, page, pageRoute, type PageRequest, redirect, type Route } from "../Page.ts"
import { ofQuery, positionOf } from "../Params.ts"
import { loadRecord, recordView } from "./Record.ts"
import { lineDetail, stateBadges } from "./RecordFields.ts"

const path = "/records"
const textMax = 200

/** A company of the dashboard that the source has answered. */
interface KnownCompany {
  readonly name: string
  readonly id: bigint
}

type Names = ReadonlyMap<bigint, string>

const problem = (sentence: string) => ({ _tag: "Problem" as const, sentence })

// --------------------------------------------------------------------------------------------------------------- the model

/** The tables of the dashboard's companies by resource, as their catalogue and the warehouse state them. */
const tablesOf = Effect.fnUntraced(function* ({ companies, datasets }: PageRequest) {
  const tables = new Map<string, Table>()
  for (const catalogue of new Set(companies.map(({ connector }) => connector.catalogue)))
    for (const resource of catalogue.resources.values()) tables.set(resource.path, tableOf(resource, datasets))
  for (const read of new Set(companies.map((company) => company.tables)))
    for (const [resource, one] of yield* read) tables.set(resource, one)
  return [...tables.values()]
})

/** The companies of the dashboard that have a number, by name. No other company's records are shown. */
const knownCompanies = ({ companies }: PageRequest) =>
  Effect.map(TaskQueue.companyIdsOf(companies.map(({ name }) => name)), (rows) =>
    rows.map(({ company, id }): KnownCompany => ({ name: company, id }))
  )

/** The chosen company by its name or number, all companies without a choice, or why there is none. */
const chosenCompanies = (
  { companies }: PageRequest,
  known: ReadonlyArray<KnownCompany>,
  name: string | null
): ReadonlyArray<KnownCompany> | string => {
  if (name === null) return known.length === 0 ? "No record was landed yet." : known
  const chosen = known.find((one) => one.name === name) ?? known.find(({ id }) => String(id) === name)
  if (chosen !== undefined) return [chosen]
  return companies.some((one) => one.name === name)
    ? `No record of company ${visible(name)} was landed yet.`
    : `No company “${truncated(name, 40)}” is known.`
}

/** The resource that begins the text, and what follows: `orders 1003`. */
const scopeOf = (text: string, tables: ReadonlyArray<Table>) => {
  const [, name, rest] = /^(\w+)[\s/#:]+(\S.*)$/s.exec(text) ?? []
  const scoped = tables.filter(({ resource }) => resource.path.toLowerCase() === name?.toLowerCase())
  return rest === undefined || scoped.length === 0 ? null : { tables: scoped, text: rest }
}

const namesOf = (companies: ReadonlyArray<KnownCompany>): Names => new Map(companies.map(({ id, name }) => [id, name]))

const searchFor = Effect.fnUntraced(function* (request: PageRequest, text: string, company: string | null) {
  if (text.length > textMax) return problem(`A text of more than ${textMax} characters is not searched.`)
  if (!isPlainText(text)) return problem("The text has a character that no record can have.")
  const chosen = chosenCompanies(request, yield* knownCompanies(request), company)
  if (typeof chosen === "string") return problem(chosen)
  if (chosen.length > companiesMax) {
    return problem(`A search covers at most ${companiesMax} companies, and there are ${chosen.length}: choose one.`)
  }
  const tables = yield* tablesOf(request)
  const isPrefix = ofQuery(request, "match") === "beginning"
  const companies = chosen.map(({ id }) => id)
  const scope = scopeOf(text, tables)
  const scoped = scope === null ? null : yield* search({ ...scope, companies, isPrefix })
  const result =
    scoped !== null && scoped.records.length > 0 ? scoped : yield* search({ tables, text, companies, isPrefix })
  return { _tag: "Search" as const, text, result, names: namesOf(chosen), isPrefix }
})

const findRecord = Effect.fnUntraced(function* (
  request: PageRequest,
  company: string | null,
  resource: string,
  id: string
) {
  if (!isNumber(id)) return problem(`“${truncated(id, 40)}” is not the number of a record: digits are expected.`)
  const known = chosenCompanies(request, yield* knownCompanies(request), company)
  if (typeof known === "string") return problem(known)
  const history = yield* findHistory(request.datasets, resource)
  if (history === null) return problem(`The warehouse has no history of “${truncated(resource, 60)}”.`)
  const below = yield* positionOf(request, "below", "a version")
  const tables = yield* tablesOf(request)
  const shown = known.slice(0, companiesMax)
  const [only] = shown
  if (only !== undefined && shown.length === 1) {
    const place = { history, id, tables, below, list: ofQuery(request, "list") }
    const record = yield* loadRecord(request, { ...place, company: only.name, companyId: only.id })
    if (record !== null) return { _tag: "Record" as const, record }
  } else {
    const { records } = yield* search({
      tables: tables.filter((one) => one.resource.path === history.path),
      companies: shown.map((one) => one.id),
      text: id,
      isPrefix: false
    })
    const numbered = records.filter((one) => one.id === id)
    if (numbered.length > 0) {
      return { _tag: "Numbered" as const, text: `${history.path} ${id}`, records: numbered, names: namesOf(shown) }
    }
  }
  return problem(
    `The warehouse has nothing about ${visible(history.path)} ${id}${company === null ? "" : ` in company ${visible(company)}`}: ` +
      "it was never landed, in quarantine, or requested."
  )
})

const load = Effect.fn("page.records")(function* (request: PageRequest) {
  const company = ofQuery(request, "company")
  const resource = ofQuery(request, "resource")
  const id = ofQuery(request, "id")
  const text = ofQuery(request, "q")
  const found =
    resource !== null && id !== null
      ? yield* findRecord(request, company, resource, id)
      : text === null
        ? { _tag: "Nothing" as const }
        : yield* searchFor(request, text, company)
  return { text, company, companies: request.companies.map(({ name }) => name), found }
})

/** What was asked for, and what was found; `Numbered` are records of several companies with one number. */
export type Model = Effect.Success<ReturnType<typeof load>>
type Found = Model["found"]

// ---------------------------------------------------------------------------------------------------------------- the view

const form = (text: string | null, company: string | null, companies: ReadonlyArray<string>): Html => html`
  <form method="get" action="${path}" class="ask" role="search" aria-label="Search the records">
    <p>
      <label for="q">Number, code or external id</label>
      <input
        type="search"
        id="q"
        name="q"
        value="${text ?? ""}"
        required
        maxlength="${textMax}"
        autocomplete="off"
        autocapitalize="none"
        spellcheck="false"
      />
    </p>
    ${companies.length < 2 ? "" : select("company", "Company", "every company", companies, company)}
    <p class="buttons"><button type="submit" class="primary">Find</button></p>
  </form>
`

const matchWords: Readonly<Record<Match, string>> = {
  number: "number",
  text: "code or external id",
  beginning: "beginning",
  quarantine: "number, in quarantine"
}

/** A code that is the text comes before a number. */
const ranks: Readonly<Record<Match, number>> = { text: 0, number: 1, beginning: 2, quarantine: 3 }

const nameOf = (names: Names, id: bigint): string => names.get(id) ?? String(id)

const resultTable = (text: string, records: ReadonlyArray<FoundRecord>, names: Names): Html => {
  const sorted = records.toSorted(
    (a, b) =>
      ranks[a.match] - ranks[b.match] ||
      a.resource.localeCompare(b.resource) ||
      Number(a.company - b.company) ||
      Number(a.id) - Number(b.id)
  )
  return table(
    `Records found for “${truncated(text, 60)}”`,
    "Record, Key, Company, State, Found by",
    sorted.map((one) => [
      recordOrResourceLink(nameOf(names, one.company), one.resource, one.id),
      html`${one.key === null ? "" : visible(one.key)}${one.detail === "" ? "" : detail(lineDetail(one.detail))}`,
      visible(nameOf(names, one.company)),
      one.match === "quarantine"
        ? badge("warn", "never landed")
        : one.isDeleted || one.isCancelled
          ? stateBadges(one)
          : badge("good", "exists"),
      matchWords[one.match]
    ])
  )
}

const unsearchedNote = (unsearched: ReadonlyArray<string>): Html =>
  unsearched.length === 0
    ? html``
    : html`<p class="hint">
        Only numbers were searched in these large resources, whose codes have no index yet:
        ${unsearched.map((one) => visible(one)).join(", ")}. The next sync makes the indexes.
      </p>`

const results = (
  { text, result, names }: Extract<Found, { readonly _tag: "Search" }>,
  company: string | null
): Html => {
  const { records, isCut, unsearched } = result
  const isExact = records.some(({ match }) => match !== "beginning")
  return html`
    ${
      records.length === 0
        ? html`<p role="status">
            No record has the number, the code or the external id “${truncated(text, 60)}”, or a code that begins with
            it.
          </p>`
        : html`<p role="status">
              ${isExact ? "" : `No record has exactly “${truncated(text, 60)}”. Codes or external ids begin with it: `}${
                isCut ? "the first " : ""
              }${plural(records.length, "record")}.
            </p>
            ${resultTable(text, records, names)}`
    }
    ${
      isExact
        ? html`<p>
            <a href="${address(path, { q: text, company, match: "beginning" })}">Search for codes that begin with it</a>
          </p>`
        : ""
    }
    ${unsearchedNote(unsearched)}
  `
}

const partOf = ({ found, company }: Model): Html | string => {
  switch (found._tag) {
    case "Problem":
      return html`<p class="problem" role="alert">${found.sentence}</p>`
    case "Search":
      return results(found, company)
    case "Numbered":
      return resultTable(found.text, found.records, found.names)
    default:
      return ""
  }
}

/** The record that was found alone by its whole number or code. */
const onlyOf = (found: Found): string | null => {
  const records =
    found._tag === "Search" && !found.isPrefix ? found.result.records : found._tag === "Numbered" ? found.records : []
  const [first] = records
  return first === undefined || records.length > 1 || !("names" in found)
    ? null
    : recordAddress(nameOf(found.names, first.company), first.resource, first.id)
}

export const view = (model: Model): Answer => {
  const { text, company, companies, found } = model
  if (found._tag === "Record") {
    const { record } = found
    const title = `${visible(record.resource)} ${record.id}`
    return page({ title, section: "records", isLive: false, body: recordView(record) })
  }
  const only = onlyOf(found)
  if (only !== null) return redirect(only)
  return page({
    title: text === null ? "Records" : `Find ${truncated(text, 60)}`,
    section: "records",
    isLive: false,
    body: html`<h1>Find a record</h1>
      <p>
        By its number, its code or its external id, in every resource. The name of a resource before it narrows the
        search. A single result is shown at once, with its values, related records and history.
      </p>
      ${form(text, company, companies)} ${partOf(model)}`
  })
}

export const routes: ReadonlyArray<Route> = [pageRoute({ path, load, view })]

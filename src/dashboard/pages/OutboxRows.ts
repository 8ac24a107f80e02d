/** `/outbox/rows`: the rows of the outbox by state, company and resource; a rejected row says why. */
import * as Effect from "effect/Effect"
import * as OutboxRowFlow from "../../status/OutboxRowFlow.ts"
import { ago, badge, count, duration, none, pager, partOf, table } from "../../web/Components.ts"
import { address, truncated, visible } from "../../web/Escape.ts"
import { outboxRowAddress, pushAddress, recordAddress } from "../Addresses.ts"
import { actionLink } from "../Format.ts"
import { choiceLinks, companyChoice, hiddenFields } from "../ListControls.ts"
import { html, type Html, page, type PageRequest, type Route } from "../Page.ts"
import { choiceOf, ofQuery, positionOf } from "../Params.ts"
import { rowTones } from "./OutboxRow.ts"

type Row = OutboxRowFlow.ListedRow

export const rowsPath = "/outbox/rows"
const rowsShown = 50
/** Characters of a reason in a table. */
const reasonMax = 200
const states = ["rejected", "pending", "in_flight", "done"] as const

const recordOf = ({ company, resource, recordId, externalid, operation }: Row): Html =>
  html`${operation} ${visible(resource)}
  ${
    recordId === null
      ? externalid === null
        ? ""
        : html`<code>${visible(externalid)}</code>`
      : html`<a href="${recordAddress(company, resource, recordId)}">${visible(recordId)}</a>`
  }`

/** The state; of a rejected row also the code, the field and the message. */
const stateOf = ({ state, outcome, code, field, reason }: Row): Html => {
  const [tone, word] = rowTones[state]
  return html`${badge(tone, outcome ?? word)}
  ${code === null ? "" : html`<code>${visible(code)}</code>`}${
    reason === null || state !== "rejected"
      ? ""
      : html`<span class="detail"
          >${field === null ? "" : html`<code>${visible(field)}</code>: `}${truncated(reason, reasonMax)}</span
        >`
  }`
}

const actionOf = ({ state, push, company, resource }: Row): Html | string =>
  state !== "rejected"
    ? ""
    : push === null
      ? actionLink("push-retry", { company, resource }, "Retry", `the rejected rows of ${visible(resource)}`)
      : actionLink("push-retry", { push: String(push) }, "Retry", `the rejected rows of push ${push}`)

/** Rows with a link to the page of each. */
export const rowTable = (caption: string, rows: ReadonlyArray<Row>, hasCompanies: boolean, now: Date): Html =>
  table(
    caption,
    `Row, Record, ${hasCompanies ? "Company, " : ""}State, Inserted, -By, -#Took, Action`,
    rows.map((one) => [
      html`<a href="${outboxRowAddress(one.id)}">${one.id}</a>`,
      recordOf(one),
      ...(hasCompanies ? [visible(one.company)] : []),
      stateOf(one),
      ago(one.createdAt, now),
      one.push === null ? "SQL" : html`<a href="${pushAddress(one.push)}">push ${one.push}</a>`,
      one.resolvedMs === null ? none("") : duration(one.resolvedMs),
      actionOf(one)
    ])
  )

/** Links to the rows in each state. */
export const stateChoice = (query: Readonly<Record<string, string | null>>, label = "State"): Html =>
  choiceLinks(label, rowsPath, query, "state", [
    [null, "All rows"],
    ...states.map((one) => [one, rowTones[one][1].replace(/^./, (first) => first.toUpperCase())] as const)
  ])

const rowsPage = Effect.fn("page.outboxRows")(function* (request: PageRequest) {
  const [company, resource] = [ofQuery(request, "company"), ofQuery(request, "resource")]
  const state = yield* choiceOf(request, "state", states)
  const before = yield* positionOf(request, "before", "a row")
  const read = yield* OutboxRowFlow.newest({ company, resource, state }, before, rowsShown + 1)
  const { shown, next } = partOf(read, rowsShown)
  const query = { state, company, resource }
  const isSearched = (state === null || state === "done") && (company ?? resource ?? state) !== null
  return page({
    title: "Rows of the outbox",
    section: "outbox",
    body: html`<h1>Rows of the outbox</h1>
      ${isSearched ? html`<p class="hint">The newest ${count(OutboxRowFlow.searchLimit)} rows are searched.</p>` : ""}
      <div class="controls lists">
        ${stateChoice(query)} ${companyChoice(request, rowsPath, query)}
        <form method="get" action="${rowsPath}" role="search" aria-label="Resource">
          <label for="resource">Resource</label>
          <input type="search" id="resource" name="resource" value="${resource ?? ""}" maxlength="200" />
          ${hiddenFields(query, "resource")} <button type="submit">Show</button>
        </form>
      </div>
      ${
        shown.length === 0
          ? html`<p>No ${before === null ? "" : "further "}row matches.</p>`
          : rowTable("Rows, newest first", shown, request.companies.length > 1 && company === null, request.now)
      }
      ${pager("Further rows", ["Newest", "Older"], { after: before, next }, (place) =>
        address(rowsPath, { ...query, before: place === null ? null : String(place) })
      )}`
  })
})

export const routes: ReadonlyArray<Route> = [{ method: "GET", path: rowsPath, handle: rowsPage }]

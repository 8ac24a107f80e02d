/** `/outbox/rows`: the newest rows of the outbox, by company and state. */
import * as Effect from "effect/Effect"
import * as OutboxRowFlow from "../../status/OutboxRowFlow.ts"
import { ago, badge, count, duration, filterLinks, none, select, table } from "../../web/Components.ts"
import { address, visible } from "../../web/Escape.ts"
import { outboxRowAddress, pushAddress, recordAddress } from "../Addresses.ts"
import { html, type Html, page, type PageRequest, type Route } from "../Page.ts"
import { choiceOf, ofQuery } from "../Params.ts"
import { rowTones } from "./OutboxRow.ts"

const path = "/outbox/rows"
const rowsShown = 100
const states = ["pending", "in_flight", "done", "rejected"] as const

const recordOf = ({ company, resource, recordId, externalid, operation }: OutboxRowFlow.ListedRow): Html =>
  html`${operation} ${visible(resource)}
  ${recordId === null ? "" : html`<a href="${recordAddress(company, resource, recordId)}">${visible(recordId)}</a>`}
  ${externalid === null ? "" : html`<span class="detail">${visible(externalid)}</span>`}`

const stateOf = ({ state, outcome, code }: OutboxRowFlow.ListedRow): Html => {
  const [tone, word] = rowTones[state]
  return html`${badge(tone, outcome ?? word)} ${code === null ? "" : html`<code>${visible(code)}</code>`}`
}

const rowsTable = (rows: ReadonlyArray<OutboxRowFlow.ListedRow>, now: Date): Html =>
  table(
    `The newest rows of the outbox, at most ${rowsShown}`,
    "Row, Record, Company, State, Inserted, By, #Resolved after",
    rows.map((one) => [
      html`<a href="${outboxRowAddress(one.id)}">${one.id}</a>`,
      recordOf(one),
      visible(one.company),
      stateOf(one),
      ago(one.createdAt, now),
      one.push === null ? "SQL" : html`<a href="${pushAddress(one.push)}">push ${one.push}</a>`,
      one.resolvedMs === null ? none("") : duration(Math.max(0, one.resolvedMs))
    ])
  )

const rowsPage = Effect.fn("page.outboxRows")(function* (request: PageRequest) {
  const company = ofQuery(request, "company")
  const state = yield* choiceOf(request, "state", states)
  const rows = yield* OutboxRowFlow.newest(company, state, rowsShown)
  return page({
    title: "Rows of the outbox",
    section: "outbox",
    body: html`<p><a href="/outbox">Outbox</a></p>
      <h1>Rows of the outbox</h1>
      <p class="hint">The last ${count(OutboxRowFlow.searchLimit)} inserted rows are searched, newest first.</p>
      <div class="controls">
        ${filterLinks("State", [
          { to: address(path, { company }), text: "All rows", isCurrent: state === null },
          ...states.map((one) => ({
            to: address(path, { company, state: one }),
            text: rowTones[one][1],
            isCurrent: one === state
          }))
        ])}
        <form method="get" action="${path}" role="search" aria-label="Rows of a company">
          ${select(
            "company",
            "Company",
            "any",
            request.companies.map(({ name }) => name),
            company
          )}
          ${state === null ? "" : html`<input type="hidden" name="state" value="${state}" />`}
          <p><button type="submit">Show</button></p>
        </form>
      </div>
      ${rows.length === 0 ? html`<p>No row matches.</p>` : rowsTable(rows, request.now)}`
  })
})

export const routes: ReadonlyArray<Route> = [{ method: "GET", path, handle: rowsPage }]

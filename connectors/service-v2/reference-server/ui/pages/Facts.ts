/** `/facts`: every fact of the documents and every decision of ours, with its state. */
import { badge, count, filterLinks, none, pager, select, table } from "../../../../../src/web/Components.ts"
import { facts as terms } from "../../../../../src/web/Components.ts"
import { address, plural, visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { documents, familyOf } from "../../../catalogue/documents.ts"
import { codesOf } from "../../grounds/Grounds.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { numberOf, ofQuery, page, PageError, root } from "../Page.ts"
import { factLink, prose } from "../Parts.ts"

const rowsMax = 100

type State = "implemented" | "refused" | "our choice"

/** A fact or a decision. */
interface Statement {
  readonly id: string
  readonly text: string
  readonly source: string
  readonly section: string
  readonly state: State
  /** Why it is refused, or the open point that is decided. */
  readonly note: string | null
}

const makeStatements = (): ReadonlyArray<Statement> => {
  const { facts, decisions, sections, topics } = documents()
  return [
    ...facts.map(({ id, text, source, refused }): Statement => ({
      id,
      text,
      source,
      section: sections[familyOf(id)] ?? familyOf(id),
      state: refused === null ? "implemented" : "refused",
      note: refused
    })),
    ...decisions.map(({ id, point, decision }): Statement => ({
      id,
      text: decision,
      source: "our choice",
      section: `our choices: ${topics[familyOf(id)] ?? familyOf(id)}`,
      state: "our choice",
      note: point
    }))
  ]
}

let made: ReadonlyArray<Statement> | null = null
const statements = (): ReadonlyArray<Statement> => (made ??= makeStatements())

const stateBadge = (state: State): Html =>
  badge(state === "implemented" ? "good" : state === "refused" ? "warn" : "quiet", state)

const noteOf = ({ state, note }: Statement): Html =>
  note === null
    ? html``
    : html`<span class="detail">${state === "refused" ? "Refused: " : "Open point: "}${prose(note)}</span>`

const row = (one: Statement): ReadonlyArray<Html | string> => [
  factLink(one.id),
  html`${prose(one.text)}${noteOf(one)}`,
  visible(one.source),
  stateBadge(one.state)
]

const list = (request: PageRequest): Page => {
  const search = ofQuery(request, "search")
  const chosen = ofQuery(request, "section")
  const state = ofQuery(request, "state")
  const after = numberOf(ofQuery(request, "after"), "The position in the list")
  const all = statements()
  const words = (search ?? "").toLowerCase().split(/\s+/)
  const isFound = ({ id, text, note }: Statement) => {
    const whole = `${id} ${text} ${note ?? ""}`.toLowerCase()
    return words.every((word) => whole.includes(word))
  }
  const inSection = all.filter((one) => isFound(one) && (chosen === null || one.section === chosen))
  const found = inSection.filter((one) => state === null || one.state === state)
  const shown = found.slice(after ?? 0, (after ?? 0) + rowsMax)
  const next = (after ?? 0) + shown.length < found.length ? (after ?? 0) + shown.length : null
  const addressOf = (more: Readonly<Record<string, string | null>>) =>
    address(`${root}/facts`, { search, section: chosen, state, ...more })
  const states: ReadonlyArray<State> = ["implemented", "refused", "our choice"]
  return page({
    title: "Facts",
    section: "facts",
    body: html`<h1>Facts</h1>
      <p>
        The documents state ${count(all.filter(({ state: one }) => one !== "our choice").length)} facts. A wire test
        names each implemented one; a refused one has its reason. Our choices fill what the documents leave open.
      </p>
      <form method="get" action="${root}/facts" class="ask" role="search" aria-label="Search the facts">
        <p>
          <label for="search">Words or number</label>
          <input id="search" name="search" type="search" value="${search ?? ""}" maxlength="200" />
        </p>
        ${select("section", "Section", "all", [...new Set(all.map((one) => one.section))], chosen)}
        ${state === null ? "" : html`<input type="hidden" name="state" value="${state}" />`}
        <p class="buttons"><button type="submit" class="primary">Search</button></p>
      </form>
      ${filterLinks("State", [
        { to: addressOf({ state: null }), text: `all ${count(inSection.length)}`, isCurrent: state === null },
        ...states.map((one) => ({
          to: addressOf({ state: one }),
          text: `${one} ${count(inSection.filter((other) => other.state === one).length)}`,
          isCurrent: state === one
        }))
      ])}
      ${
        shown.length === 0
          ? html`<p class="note">No fact matches.</p>`
          : table(
              after === null
                ? plural(found.length, "statement")
                : `${plural(found.length, "statement")}, from number ${after + 1}`,
              "Number, Statement, Source, State",
              shown.map(row)
            )
      }
      ${pager("Parts of the list", ["First", "Further"], { after, next }, (place) => addressOf({ after: place === null ? null : String(place) }))}`
  })
}

const one = ({ path }: PageRequest): Page => {
  const statement = statements().find(({ id }) => id === path["id"])
  if (statement === undefined) throw new PageError(404, "There is no fact and no decision of this number.")
  const codes = codesOf(statement.id)
  return page({
    title: statement.id,
    section: "facts",
    body: html`<p>
        <a href="${root}/facts?section=${encodeURIComponent(statement.section)}">${visible(statement.section)}</a>
      </p>
      <h1>${statement.id} ${stateBadge(statement.state)}</h1>
      <p class="summary">${prose(statement.text)}</p>
      ${terms([
        ["Source", visible(statement.source)],
        ...(statement.note === null
          ? []
          : [[statement.state === "refused" ? "Why it is refused" : "Open point", prose(statement.note)] as const]),
        [
          "Error codes that rest on it",
          codes.length === 0
            ? none("none")
            : html`${codes.map((code) => html`<a class="line" href="${root}/requests?code=${code}"><code>${code}</code></a>`)}`
        ]
      ])}`
  })
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/facts", handle: list },
  { method: "GET", path: "/facts/:id", handle: one }
]

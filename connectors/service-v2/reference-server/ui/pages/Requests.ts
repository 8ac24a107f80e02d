/** `/requests`: the journal of requests, newest first, and the grounds of each answer. */
import { badge, count, facts, none, pager, section, select, table } from "../../../../../src/web/Components.ts"
import { address, truncated, visible } from "../../../../../src/web/Escape.ts"
import { html, type Html } from "../../../../../src/web/Html.ts"
import { documents } from "../../../catalogue/documents.ts"
import { serviceV2 } from "../../../catalogue/index.ts"
import type { Grounds } from "../../grounds/Grounds.ts"
import { groundsOf, groundsOfItem, targetOf, typeSentence } from "../../grounds/Grounds.ts"
import type { Entry } from "../../http/journal.ts"
import type { Page, PageRequest, Route } from "../Page.ts"
import { numberOf, ofQuery, page, PageError, root } from "../Page.ts"
import { body, factLink, headerLines, moment, prose, reason, sources, statusBadge } from "../Parts.ts"

const rowsMax = 100
const pathMax = 90

const statuses = ["refused", "failed", "2xx", "4xx", "5xx", "no answer", "with a fault"]

interface Filter {
  readonly status: string | null
  readonly path: string | null
  readonly token: number | null
  readonly code: string | null
}

const filterOf = (request: PageRequest): Filter => ({
  status: ofQuery(request, "status"),
  path: ofQuery(request, "path")?.toLowerCase() ?? null,
  token: numberOf(ofQuery(request, "token"), "The number of a token"),
  code: ofQuery(request, "code")
})

const hasStatus = ({ status, refusal, items, fault }: Entry, wanted: string): boolean => {
  if (wanted === "no answer") return status === null
  if (wanted === "with a fault") return fault !== null
  if (wanted === "refused") return refusal !== null || items.length > 0
  if (wanted === "failed") return status === null || status >= 500
  if (/^[1-5]xx$/.test(wanted)) return status !== null && String(status)[0] === wanted[0]
  return String(status) === wanted
}

const matches = (entry: Entry, { status, path, token, code }: Filter): boolean =>
  (status === null || hasStatus(entry, status)) &&
  (path === null || `${entry.method} ${entry.path}`.toLowerCase().includes(path)) &&
  (token === null || entry.tokenid === token) &&
  (code === null || entry.refusal?.code === code || entry.items.some((item) => item.code === code))

/** The newest matching entries before a position, and one more. */
const find = (entries: ReadonlyArray<Entry>, filter: Filter, before: number | null): ReadonlyArray<Entry> => {
  const found: Array<Entry> = []
  for (let index = entries.length - 1; index >= 0 && found.length <= rowsMax; index--) {
    const entry = entries[index]!
    if ((before === null || entry.seq < before) && matches(entry, filter)) found.push(entry)
  }
  return found
}

const filterForm = (filter: Filter): Html => html`
  <form method="get" action="${root}/requests" class="ask" role="search" aria-label="Filter the requests">
    ${select("status", "Answer", "any", statuses, filter.status)}
    ${select(
      "code",
      "Error code",
      "any",
      serviceV2.errorCodes.map(({ code }) => code),
      filter.code
    )}
    <p>
      <label for="path">Method and path</label>
      <input id="path" name="path" type="search" value="${filter.path ?? ""}" maxlength="200" autocomplete="off" />
    </p>
    <p>
      <label for="token">Token number</label>
      <input id="token" name="token" inputmode="numeric" size="6" value="${filter.token ?? ""}" autocomplete="off" />
    </p>
    <p class="buttons"><button type="submit" class="primary">Filter</button></p>
  </form>
`

/** The rule of a refusal, and what is behind it. */
const grounds = (entry: Entry): Html => {
  const found = groundsOf(entry)
  return html`${entry.refusal === null ? "" : html`<span class="line">${found.rule}</span>`}${sources(found)}`
}

const row = (entry: Entry, now: Date): ReadonlyArray<Html | string> => [
  html`<a href="${root}/requests/${entry.seq}"><code>${entry.method} ${truncated(entry.path, pathMax)}</code></a>`,
  html`${statusBadge(entry.status)} ${reason(entry)}`,
  grounds(entry),
  entry.tokenid === null ? none("none") : html`<a href="${root}/tokens#token-${entry.tokenid}">${entry.tokenid}</a>`,
  moment(entry.time, now)
]

const list = (request: PageRequest): Page => {
  const { world, now } = request
  const filter = filterOf(request)
  const before = numberOf(ofQuery(request, "before"), "The position in the list")
  const entries = world.journal.all()
  const found = find(entries, filter, before)
  const shown = found.slice(0, rowsMax)
  const next = found.length > rowsMax ? shown.at(-1)!.seq : null
  const addressAfter = (place: number | null) =>
    address(`${root}/requests`, {
      status: filter.status,
      code: filter.code,
      path: filter.path,
      token: filter.token === null ? null : String(filter.token),
      before: place === null ? null : String(place)
    })
  return page({
    title: "Requests",
    section: "requests",
    isLive: true,
    body: html`<h1>Requests</h1>
      <p>
        ${count(entries.length)} ${entries.length === 1 ? "request" : "requests"} in the journal, newest first. Each
        answer has its grounds: the facts of the documents, and our decisions where they leave a point open.
      </p>
      ${filterForm(filter)}
      ${
        shown.length === 0
          ? html`<p class="note">
              ${entries.length === 0 ? "No request to the API was received yet." : "No request matches this filter."}
            </p>`
          : table(
              "Requests to the API",
              "Request, Answer, Grounds, Token, Time",
              shown.map((entry) => row(entry, now))
            )
      }
      ${pager("Parts of the journal", ["Newest", "Older"], { after: before, next }, addressAfter)}`
  })
}

// ------------------------------------------------------------------------------------------------------- one request

const statement = (id: string): ReadonlyArray<Html | string> => {
  const { facts: all, decisions } = documents()
  const fact = all.find((one) => one.id === id)
  if (fact !== undefined) return [factLink(id), prose(fact.text), visible(fact.source)]
  const decision = decisions.find((one) => one.id === id)
  return [
    factLink(id),
    html`${prose(decision?.decision ?? "")}<span class="detail">Open point: ${prose(decision?.point ?? "")}</span>`,
    "our choice"
  ]
}

const groundsTable = (grounds: Grounds): Html => html`
  ${
    grounds.facts.length === 0
      ? html`<p>The documents state no fact about this: it is our choice.</p>`
      : table("Facts of the documents", "Fact, Statement, Source", grounds.facts.map(statement))
  }
  ${
    grounds.decisions.length === 0
      ? ""
      : table(
          "Our decisions where the documents leave a point open",
          "Decision, Choice, Source",
          grounds.decisions.map(statement)
        )
  }
`

const basis: Readonly<Record<string, string>> = {
  documented: "The documents describe this resource in full.",
  named: "The documents name this resource without its fields: its fields are our choice (decisions, section L).",
  inferred:
    "The documents do not name this resource; it follows from what refers to it, and its fields are our choice (decisions, section L)."
}

const decisionSection = (entry: Entry): Html => {
  const grounds = groundsOf(entry)
  const { refusal } = entry
  const target = targetOf(entry.method, entry.path)
  const fields = refusal === null ? [] : [...(refusal.field === null ? [] : [refusal]), ...refusal.problems]
  const rules = fields.flatMap(({ field }) => {
    const sentence = field === null ? null : typeSentence(target, field)
    return sentence === null ? [] : [html`<span class="line"><code>${visible(field!)}</code> ${sentence}</span>`]
  })
  return section(
    "decision",
    "Decision",
    html`${facts([
      ["Answer", html`${statusBadge(entry.status)} ${reason(entry)}`],
      ["Rule", grounds.rule],
      ...(refusal === null ? [] : [["Message", visible(refusal.message)] as const]),
      ...(rules.length === 0 ? [] : [["Fields", html`${rules}`] as const])
    ])}
    ${target.resource === null ? "" : html`<p class="hint">${basis[target.resource.basis] ?? ""}</p>`}
    ${groundsTable(grounds)}`
  )
}

const itemsSection = ({ items, path }: Entry): Html =>
  items.length === 0
    ? html``
    : section(
        "items",
        "Refused items of the batch",
        table(
          "The first refused items",
          "#Index, Code, Field, Message, Grounds",
          items.map((item) => [
            String(item.index),
            html`<code>${item.code}</code>`,
            item.field === null ? none("none") : html`<code>${visible(item.field)}</code>`,
            visible(item.message),
            sources(groundsOfItem(path, item))
          ])
        )
      )

const exchangeSection = (request: PageRequest, seq: number): Html => {
  const exchange = request.world.journal.exchange(seq)
  if (exchange === undefined) {
    return section(
      "bytes",
      "As sent",
      html`<p>Only the newest requests keep their bytes; this one has none any more.</p>`
    )
  }
  const { asked, answered } = exchange
  const text = asked.body === null ? "" : Buffer.from(asked.body).toString("utf8")
  return html`<div class="beside">
    ${section("asked", "Request", html`${headerLines(asked.headers)} ${body(text, "Body of the request")}`)}
    ${section("answered", "Answer", html`${headerLines(answered.headers)} ${body(answered.body, "Body of the answer")}`)}
  </div>`
}

const one = (request: PageRequest): Page => {
  const seq = numberOf(request.path["seq"] ?? null, "The number of a request") ?? 0
  const entry = request.world.journal.find(seq)
  if (entry === undefined) throw new PageError(404, `The journal has no request ${seq}.`)
  const title = `${entry.method} ${truncated(entry.path, pathMax)}`
  return page({
    title,
    section: "requests",
    body: html`<p><a href="${root}/requests">All requests</a></p>
      <h1><code>${title}</code></h1>
      ${facts([
        ["Time", moment(entry.time, request.now)],
        [
          "Token",
          entry.tokenid === null
            ? none("none")
            : html`<a href="${root}/tokens#token-${entry.tokenid}">${entry.tokenid}</a>`
        ],
        ["Request id", html`<code>${visible(entry.requestid)}</code>`],
        ["Fault", entry.fault === null ? none("none") : badge("busy", entry.fault)]
      ])}
      ${decisionSection(entry)} ${itemsSection(entry)} ${exchangeSection(request, seq)}`
  })
}

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/", handle: list },
  { method: "GET", path: "/requests", handle: list },
  { method: "GET", path: "/requests/:seq", handle: one }
]

/** `/invariants`: the rules about the records, their states, and the records that violate one of them. */
import * as Effect from "effect/Effect"
import * as Invariants from "../../status/Invariants.ts"
import * as Trends from "../../status/Trends.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { ago, badge, count, none, pager, partOf, section, table } from "../../web/Components.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import { address, plural, visible, visibleLines } from "../../web/Escape.ts"
import { recordAddress } from "../Addresses.ts"
import { choiceLinks, companyChoice } from "../ListControls.ts"
import { html, type Html, page, PageError, type PageRequest, type Route } from "../Page.ts"
import { choiceOf, companyIdNamed, ofQuery, positionOf } from "../Params.ts"

const path = "/invariants"
const shownMost = 50

const stateOf = ({
  open,
  failed,
  evaluated,
  waiting,
  unconfirmed,
  error,
  resources
}: Invariants.InvariantSummary): Html => html`
  ${
    open > 0
      ? badge("bad", "violated")
      : failed > 0
        ? ""
        : unconfirmed > 0
          ? badge("busy", "unconfirmed")
          : evaluated > waiting
            ? badge("good", "holds")
            : badge("quiet", "not evaluated")
  }
  ${failed === 0 ? "" : badge("warn", `failed for ${plural(failed, "company", "companies")}`)}
  ${unconfirmed === 0 ? "" : html`<span class="detail">confirmed after the next scan of ${resources.map(visible).join(", ")}</span>`}
  ${error === null ? "" : html`<span class="detail">${visible(error)}</span>`}
`

/** How many rules are in each state, and what the others wait for. */
const sentenceOf = (
  rules: ReadonlyArray<Invariants.InvariantSummary>,
  { violated, failed, holding, missing }: Readonly<Record<"violated" | "failed" | "holding" | "missing", number>>
): string => {
  const sum = (of: (rule: Invariants.InvariantSummary) => number) => rules.reduce((all, rule) => all + of(rule), 0)
  const unconfirmed = rules.filter((one) => one.unconfirmed > 0)
  const parts = [
    violated === 0
      ? ""
      : `${count(violated)} violated by ${plural(
          sum(({ open }) => open),
          "open violation"
        )}`,
    failed === 0 ? "" : `${count(failed)} failed to be evaluated`,
    unconfirmed.length === 0
      ? ""
      : `${count(unconfirmed.length)} with ${plural(
          sum((one) => one.unconfirmed),
          "unconfirmed violation"
        )}`,
    holding === 0 ? "" : plural(holding, "holds", "hold"),
    missing === 0 ? "" : `${count(missing)} not evaluated`
  ].filter((part) => part !== "")
  return [
    `${plural(rules.length, "invariant")}${parts.length === 0 ? "" : `: ${parts.join(", ")}`}.`,
    unconfirmed.length === 0
      ? ""
      : "An unconfirmed violation opens, or ends by itself, when every resource of its rule was read again.",
    missing === 0 ? "" : "A rule is evaluated when all resources that it reads were read to their end."
  ].join(" ")
}

const head = (rules: ReadonlyArray<Invariants.InvariantSummary>, seen: Trends.Trend): Html => {
  const violated = rules.filter(({ open }) => open > 0)
  const failed = rules.filter((one) => one.failed > 0)
  const sound = rules.filter((one) => one.open === 0 && one.failed === 0)
  const unconfirmed = sound.filter((one) => one.unconfirmed > 0).length
  const holding = sound.filter((one) => one.unconfirmed === 0 && one.evaluated > one.waiting).length
  const missing = sound.length - unconfirmed - holding
  const [worst] = violated.length > 0 ? violated : failed
  return stateHead({
    title: "Invariants",
    about:
      "Rules about the records as SQL, evaluated after the tables that they read changed. Each row of a rule’s query is a record that violates it.",
    tone:
      violated.length > 0
        ? "bad"
        : failed.length > 0
          ? "warn"
          : unconfirmed > 0
            ? "busy"
            : missing > 0 || rules.length === 0
              ? "quiet"
              : "good",
    word:
      violated.length > 0
        ? "violated"
        : failed.length > 0
          ? "not all evaluated"
          : unconfirmed > 0
            ? "not all confirmed yet"
            : missing > 0 || rules.length === 0
              ? "not all evaluated yet"
              : "all hold",
    sentence: html`${sentenceOf(rules, { violated: violated.length, failed: failed.length, holding, missing })}
    ${
      worst === undefined
        ? ""
        : html`The worst:
            <a href="${address(path, { invariant: worst.name })}">${visible(worst.name)}</a> (${worst.severity}).`
    }`,
    actions: null,
    trend: trend(seen, {
      id: "trend",
      title: "Violations first seen",
      kinds: [
        ["ended", "ended", "good"],
        ["unconfirmed", "unconfirmed", "busy"],
        ["open", "open", "bad"]
      ]
    })
  })
}

const rulesTable = (rules: ReadonlyArray<Invariants.InvariantSummary>, now: Date): Html =>
  table(
    "Invariants, the worst first",
    "Invariant, State, -Severity, #Open, #Unconfirmed, -#Companies, Evaluated",
    rules.map((one) => [
      html`<a href="${address(path, { invariant: one.name })}">${visible(one.name)}</a
        ><span class="detail">${visible(one.statement)}</span>`,
      stateOf(one),
      one.severity,
      count(one.open),
      count(one.unconfirmed),
      count(one.evaluated),
      ago(one.evaluatedAt, now)
    ])
  )

const violationState = ({ openedAt, endedAt }: Invariants.ListedViolation, now: Date): Html =>
  endedAt !== null
    ? html`${badge("good", "ended")} ${ago(endedAt, now)}`
    : openedAt !== null
      ? html`${badge("bad", "open")} ${ago(openedAt, now)}`
      : badge("busy", "unconfirmed")

const violationsTable = (
  rows: ReadonlyArray<Invariants.ListedViolation>,
  names: ReadonlyMap<bigint, string>,
  now: Date
): Html =>
  table(
    "Violations, newest first",
    "Record, Company, State, First seen, Why",
    rows.map((one) => {
      const company = names.get(one.companyId)
      const record = `${one.resource} ${one.recordId}`
      return [
        company === undefined
          ? visible(record)
          : html`<a href="${recordAddress(company, one.resource, String(one.recordId))}">${visible(record)}</a>`,
        visible(company ?? String(one.companyId)),
        violationState(one, now),
        ago(one.firstSeenAt, now),
        visible(one.detail)
      ]
    })
  )

const details = Effect.fnUntraced(function* (request: PageRequest, rule: Invariants.InvariantSummary) {
  const { now } = request
  const invariant = rule.name
  const company = ofQuery(request, "company")
  const companyId = yield* companyIdNamed(request, company)
  const state = (yield* choiceOf(request, "state", Invariants.violationStates)) ?? "current"
  const before = yield* positionOf(request, "before", "a violation")
  const read = yield* Invariants.violations({ invariant, companyId, state }, before, shownMost + 1)
  const { shown, next } = partOf(read, shownMost)
  const names = yield* TaskQueue.companyNames(shown.map((one) => one.companyId))
  const query = { invariant, company, state: state === "current" ? null : state }
  return section(
    "violations",
    visible(invariant),
    html`${rule.comment === "" ? "" : html`<pre>${visibleLines(rule.comment)}</pre>`}
      <p>
        Reads ${rule.resources.map((resource) => visible(resource)).join(", ")}. A violation opens when all of them were
        read again and it is still there; it ends by itself when the records agree.
      </p>
      <div class="controls lists">
        ${choiceLinks(
          "State",
          path,
          query,
          "state",
          Invariants.violationStates.map((one) => [
            one === "current" ? null : one,
            one.replace(/^./, (first) => first.toUpperCase())
          ])
        )}
        ${companyChoice(request, path, query)}
      </div>
      ${
        shown.length === 0
          ? html`<p>There is ${before === null ? "nothing here" : "nothing further"}.</p>`
          : violationsTable(shown, names, now)
      }
      ${pager("Violations", ["Newest", "Older"], { after: before, next }, (place) =>
        address(path, { ...query, before: place === null ? null : String(place) })
      )}`
  )
})

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path,
    handle: Effect.fn("page.invariants")(function* (request) {
      const rules = yield* Invariants.summary(null)
      const only = ofQuery(request, "invariant")
      const rule = rules.find(({ name }) => name === only)
      if (only !== null && rule === undefined) {
        return yield* new PageError({ status: 404, message: `There is no invariant ${visible(only)}.` })
      }
      const seen = yield* Trends.read(Trends.violationsStatement, request.now)
      return page({
        title: "Invariants",
        section: "invariants",
        body: html`${head(rules, seen)}
        ${
          rules.length === 0
            ? html`<p>${none("None was evaluated yet.")} A sync evaluates them, and so does serve.</p>`
            : rulesTable(rules, request.now)
        }
        ${rule === undefined ? "" : yield* details(request, rule)}`
      })
    })
  }
]

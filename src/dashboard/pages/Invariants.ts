/** `/invariants`: the rules about the records, their states, and the records that violate one of them. */
import * as Effect from "effect/Effect"
import * as Invariants from "../../status/Invariants.ts"
import * as Trends from "../../status/Trends.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { ago, badge, count, none, pager, partOf, section, table } from "../../web/Components.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import { address, plural, visible, visibleLines } from "../../web/Escape.ts"
import { detail, recordOrResourceLink } from "../Links.ts"
import { choiceLinks, companyChoice } from "../ListControls.ts"
import { html, type Html, page, PageError, pageRoute, type PageRequest, type Route } from "../Page.ts"
import { choiceOf, companyIdNamed, ofQuery, positionOf } from "../Params.ts"

const path = "/invariants"
const shownMost = 50

type Rules = ReadonlyArray<Invariants.InvariantSummary>

/** The violations of one rule. */
const loadRule = Effect.fnUntraced(function* (request: PageRequest, rule: Invariants.InvariantSummary) {
  const company = ofQuery(request, "company")
  const companyId = yield* companyIdNamed(request, company)
  const state = (yield* choiceOf(request, "state", Invariants.violationStates)) ?? "current"
  const before = yield* positionOf(request, "before", "a violation")
  const read = yield* Invariants.violations({ invariant: rule.name, companyId, state }, before, shownMost + 1)
  const names = yield* TaskQueue.companyNames(read.map((one) => one.companyId))
  return { rule, company, state, before, names, ...partOf(read, shownMost) }
})

export type Model = Effect.Success<ReturnType<typeof load>>

const load = Effect.fn("page.invariants")(function* (request: PageRequest) {
  const { companies, now } = request
  const rules = yield* Invariants.summary(null)
  const only = ofQuery(request, "invariant")
  const rule = rules.find(({ name }) => name === only)
  if (only !== null && rule === undefined) {
    return yield* new PageError({ status: 404, message: `There is no invariant ${visible(only)}.` })
  }
  const seen = yield* Trends.read(Trends.violationsStatement, now)
  return { rules, seen, one: rule === undefined ? null : yield* loadRule(request, rule), companies, now }
})

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
  ${unconfirmed === 0 ? "" : detail(`confirmed after the next scan of ${resources.map(visible).join(", ")}`)}
  ${error === null ? "" : detail(visible(error))}
`

/** The numbers of rules by state; a violated or failed one counts in no other. */
const statesOf = (rules: Rules) => {
  const violated = rules.filter(({ open }) => open > 0)
  const failed = rules.filter((one) => one.failed > 0)
  const sound = rules.filter((one) => one.open === 0 && one.failed === 0)
  const unconfirmed = sound.filter((one) => one.unconfirmed > 0).length
  const holding = sound.filter((one) => one.unconfirmed === 0 && one.evaluated > one.waiting).length
  return { violated, failed, unconfirmed, holding, missing: sound.length - unconfirmed - holding }
}

const sum = (rules: Rules, of: "open" | "unconfirmed"): number => rules.reduce((all, rule) => all + rule[of], 0)

/** How many rules are in each state, and what the others wait for. */
const sentenceOf = (rules: Rules, { violated, failed, holding, missing }: ReturnType<typeof statesOf>): string => {
  const unconfirmed = rules.filter((one) => one.unconfirmed > 0)
  const parts = [
    violated.length > 0 && `${count(violated.length)} violated by ${plural(sum(rules, "open"), "open violation")}`,
    failed.length > 0 && `${count(failed.length)} failed to be evaluated`,
    unconfirmed.length > 0 &&
      `${count(unconfirmed.length)} with ${plural(sum(unconfirmed, "unconfirmed"), "unconfirmed violation")}`,
    holding > 0 && plural(holding, "holds", "hold"),
    missing > 0 && `${count(missing)} not evaluated`
  ].filter((part) => part !== false)
  return [
    `${plural(rules.length, "invariant")}${parts.length === 0 ? "" : `: ${parts.join(", ")}`}.`,
    unconfirmed.length === 0
      ? ""
      : "An unconfirmed violation opens, or ends by itself, when every resource of its rule was read again.",
    missing === 0 ? "" : "A rule is evaluated when all resources that it reads were read to their end."
  ].join(" ")
}

const wordOf = (rules: Rules, { violated, failed, unconfirmed, missing }: ReturnType<typeof statesOf>) => {
  if (violated.length > 0) return ["bad", "violated"] as const
  if (failed.length > 0) return ["warn", "not all evaluated"] as const
  if (unconfirmed > 0) return ["busy", "not all confirmed yet"] as const
  return missing > 0 || rules.length === 0
    ? (["quiet", "not all evaluated yet"] as const)
    : (["good", "all hold"] as const)
}

const ruleLink = ({ name }: Invariants.InvariantSummary): Html =>
  html`<a href="${address(path, { invariant: name })}">${visible(name)}</a>`

const head = ({ rules, seen }: Model): Html => {
  const states = statesOf(rules)
  const [worst] = states.violated.length > 0 ? states.violated : states.failed
  const [tone, word] = wordOf(rules, states)
  return stateHead({
    title: "Invariants",
    about:
      "Rules about the records as SQL, evaluated after the tables that they read changed. Each row of a rule’s query is a record that violates it.",
    tone,
    word,
    sentence: html`${sentenceOf(rules, states)}
    ${worst === undefined ? "" : html`The worst: ${ruleLink(worst)} (${worst.severity}).`}`,
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

const rulesTable = (rules: Rules, now: Date): Html =>
  table(
    "Invariants, the worst first",
    "Invariant, State, -Severity, #Open, #Unconfirmed, -#Companies, Evaluated",
    rules.map((one) => [
      html`${ruleLink(one)}${detail(visible(one.statement))}`,
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
      return [
        company === undefined
          ? visible(`${one.resource} ${one.recordId}`)
          : recordOrResourceLink(company, one.resource, String(one.recordId)),
        visible(company ?? String(one.companyId)),
        violationState(one, now),
        ago(one.firstSeenAt, now),
        visible(one.detail)
      ]
    })
  )

const rulePart = (
  { rule, company, state, before, shown, next, names }: NonNullable<Model["one"]>,
  { companies, now }: Model
): Html => {
  const query = { invariant: rule.name, company, state: state === "current" ? null : state }
  return section(
    "violations",
    visible(rule.name),
    html`${rule.comment === "" ? "" : html`<pre>${visibleLines(rule.comment)}</pre>`}
      <p>
        Reads ${rule.resources.map((resource) => visible(resource)).join(", ")}. A violation opens when all of them were
        read again and it is still there; it ends by itself when the records agree.
      </p>
      <div class="controls lists">
        ${choiceLinks("State", path, query, "state", [
          [null, "Current"],
          ["ended", "Ended"],
          ["all", "All"]
        ])}
        ${companyChoice({ companies }, path, query)}
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
}

export const view = (model: Model) =>
  page({
    title: "Invariants",
    section: "invariants",
    body: html`${head(model)}
    ${
      model.rules.length === 0
        ? html`<p>${none("None was evaluated yet.")} A sync evaluates them, and so does serve.</p>`
        : rulesTable(model.rules, model.now)
    }
    ${model.one === null ? "" : rulePart(model.one, model)}`
  })

export const routes: ReadonlyArray<Route> = [pageRoute({ path, load, view })]

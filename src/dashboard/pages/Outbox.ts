/** `/outbox`: pushes, rows inserted by SQL, and open push requests. */
import * as Effect from "effect/Effect"
import { outcomes, pushStateOf } from "../../outbox/Push.ts"
import * as PushPause from "../../outbox/PushPause.ts"
import { detailedMax } from "../../status/CompanyStates.ts"
import * as Outbox from "../../status/Outbox.ts"
import * as OutboxRowFlow from "../../status/OutboxRowFlow.ts"
import * as Trends from "../../status/Trends.ts"
import * as Problems from "../../status/Problems.ts"
import { numberOf, ofPath, ofQuery } from "../Params.ts"
import { html, type Html, page, PageError, pageRoute, type PageRequest, type Route } from "../Page.ts"
import { ago, badge, count, duration, facts, fold, none, section, table } from "../../web/Components.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import { actionLink } from "../Format.ts"
import { code, resourceLink } from "../Links.ts"
import { companyChoice } from "../ListControls.ts"
import { stepPart } from "../NeedsList.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { pushAddress } from "../Addresses.ts"
import * as OutboxRow from "./OutboxRow.ts"
import * as OutboxRows from "./OutboxRows.ts"
import * as RejectedRows from "./RejectedRows.ts"

const pushesShown = 50
const requestsShown = 50
const insertedShown = 20
const rejectedShown = 10
/** Characters of foreign text, in a table. */
const textMax = 240

const retryLink = ({ company, resource, rejected }: Outbox.InsertedSummary): Html =>
  rejected === 0
    ? html``
    : actionLink(
        "push-retry",
        { company, resource },
        "Retry",
        `the rejected rows of ${visible(resource)}, company ${visible(company)}`
      )

// ------------------------------------------------------------------------------------------------------- the overview

const outcomesOf = (one: Outbox.InsertedSummary): string =>
  outcomes
    .filter((outcome) => one[outcome] > 0)
    .map((outcome) => `${count(one[outcome])} ${outcome}`)
    .join(", ")

const insertedTable = (rows: ReadonlyArray<Outbox.InsertedSummary>, now: Date): Html =>
  rows.length === 0
    ? html`<p>
        No row that was inserted by SQL waits or is rejected, and none was resolved within a day. tributary serve pushes
        rows that are inserted into <code>tributary.outbox</code>.
      </p>`
    : table(
        `Rows that were inserted by SQL, by company and resource${rows.length > insertedShown ? `, the ${insertedShown} with the most rejected and waiting ones` : ""}`,
        "Resource, Company, #Waiting, -#Being sent, -Oldest, Done within a day, Rejected, Action",
        rows
          .slice(0, insertedShown)
          .map((one) => [
            resourceLink(one.company, one.resource),
            visible(one.company),
            count(one.waiting),
            count(one.sending),
            ago(one.oldestAt, now, "none"),
            outcomesOf(one) === "" ? none("none") : outcomesOf(one),
            RejectedRows.rejectedLink(
              one.rejected,
              { company: one.company, resource: one.resource },
              `of ${visible(one.resource)}`
            ),
            retryLink(one)
          ])
      )

const pushBadge = (isFinished: boolean, rejected: number): Html =>
  badge(rejected > 0 ? "bad" : isFinished ? "good" : "busy", pushStateOf(isFinished, rejected))

const pushState = ({ finishedAt, waiting, sending, rejected }: Outbox.PushSummary, now: Date): Html =>
  finishedAt !== null
    ? html`${pushBadge(true, rejected)} ${ago(finishedAt, now)}`
    : html`${pushBadge(false, rejected)} ${count(waiting)} waiting, ${count(sending)} being sent`

const pushTable = (all: ReadonlyArray<Outbox.PushSummary>, now: Date): Html =>
  all.length === 0
    ? html`<p>Nothing was pushed yet. See <code>tributary push --help</code>.</p>`
    : fold(
        "push-list",
        plural(all.length, "push", "pushes"),
        table(
          `Pushes, newest first${all.length === pushesShown ? `, at most ${pushesShown}` : ""}`,
          "Push, What, Company, -From, Began, #Records, State, Rejected",
          all.map((one) => [
            html`<a href="${pushAddress(one.push)}">${one.push}</a>`,
            html`${one.operation} ${resourceLink(one.company, one.resource)}`,
            visible(one.company),
            html`<code>${truncated(one.source, 80)}</code>`,
            ago(one.createdAt, now),
            count(one.records),
            pushState(one, now),
            RejectedRows.rejectedLink(one.rejected, { push: String(one.push) }, `of push ${one.push}`)
          ])
        )
      )

type Unresolved = ReadonlyArray<Problems.Problem>

/** The step of a person; none where a process sends the request again. */
const nextOf = (
  { company, resource }: Outbox.OpenRequest,
  unresolved: Unresolved,
  pause: string | null
): Html | string => {
  const found = unresolved.find((one) => one.company === company && one.subject === resource)
  return found === undefined ? none(pause === null ? "nothing to do" : "end the pause of pushes") : stepPart(found)
}

const requestTable = (
  requests: ReadonlyArray<Outbox.OpenRequest>,
  unresolved: Unresolved,
  pause: string | null,
  now: Date
): Html =>
  requests.length === 0
    ? html`<p>There is none: every request was answered.</p>`
    : html`<p>
          These requests may have arrived or not. A push sends each again with the same idempotency key and bytes until
          an answer resolves it, so that nothing is applied twice. tributary serve pushes rows that were inserted by
          SQL; a push whose command has ended is continued by a person.
        </p>
        ${table(
          `Requests without a known outcome, oldest first${requests.length === requestsShown ? `, at most ${requestsShown}` : ""}`,
          "Request, Company, #Records, Open since, #Failures, Why, What to do",
          requests.map((one) => [
            html`${visible(one.operation)} ${visible(one.resource)}`,
            visible(one.company),
            count(one.items),
            ago(new Date(now.getTime() - one.ageMs), now),
            count(one.failures),
            one.reason === null ? "" : truncated(one.reason, textMax),
            nextOf(one, unresolved, pause)
          ])
        )}`

export type Model = Effect.Success<ReturnType<typeof load>>

const load = Effect.fn("page.outbox")(function* (request: PageRequest) {
  const { companies, now } = request
  const company = ofQuery(request, "company")
  const { waiting, rejected } = yield* Outbox.total
  return {
    company,
    companies,
    waiting,
    rejected,
    inserted: yield* Outbox.inserted(company, insertedShown + 1),
    pushes: yield* Outbox.summaries(pushesShown),
    requests: yield* Outbox.openRequests(requestsShown),
    pause: yield* PushPause.read,
    unknown: yield* Outbox.countRequests,
    unresolved: (yield* Problems.readBesideResources).filter(({ kind }) => kind === "unresolved"),
    rejectedRows:
      rejected === 0
        ? []
        : yield* OutboxRowFlow.newest({ company: null, resource: null, state: "rejected" }, null, rejectedShown),
    trend: yield* Trends.read(Trends.outboxStatement, now),
    now
  }
})

const stateOf = ({ waiting, rejected, unknown, unresolved, pause }: Model) => {
  if (pause !== null) return ["bad", "paused"] as const
  if (rejected > 0) return ["bad", "rejected rows"] as const
  if (unknown > 0) return ["warn", unresolved.length > 0 ? "unresolved" : waiting > 0 ? "sending" : "all sent"] as const
  return waiting > 0 ? (["busy", "sending"] as const) : (["good", "all sent"] as const)
}

const head = (model: Model): Html => {
  const { waiting, rejected, unknown, pause } = model
  const [tone, word] = stateOf(model)
  return stateHead({
    title: "Outbox",
    about: "Records to be written to the source, and their outcomes.",
    tone,
    word,
    sentence: html`${pause === null ? "" : html`${visible(PushPause.sentence(pause))}. What to do: compare the waiting rows with the source, then run <code>${PushPause.releaseCommand}</code>.`}
    ${plural(waiting, "row")} to be sent, ${count(rejected)} rejected, ${plural(unknown, "request")} without a known
    outcome.`,
    actions: null,
    trend: html`${trend(model.trend, {
        id: "trend",
        title: "Rows inserted",
        kinds: [
          ["done", "done", "good"],
          ["in_flight", "in flight", "busy"],
          ["pending", "pending", "quiet"],
          ["rejected", "rejected", "bad"]
        ]
      })}
      <div class="controls lists">${OutboxRows.stateChoice({ state: "" }, "Rows")}</div>`
  })
}

const rejectedPart = ({ rejected, rejectedRows, companies, now }: Model): Html | string =>
  rejectedRows.length === 0
    ? ""
    : section(
        "rejected",
        "Rejected rows",
        html`<p class="hint">
            The source, or the validation before it, rejected them. Each waits for a person and blocks nothing else.
          </p>
          ${OutboxRows.rowTable(`The newest ${rejectedRows.length} of ${count(rejected)}`, rejectedRows, companies.length > 1, now)}
          ${rejected > rejectedRows.length ? html`<p><a href="${address(OutboxRows.rowsPath, { state: "rejected" })}">All rejected rows</a></p>` : ""}`
      )

export const view = (model: Model) => {
  const { companies, company, requests, unresolved, pause, now } = model
  return page({
    title: "Outbox",
    section: "outbox",
    body: html`${head(model)} ${rejectedPart(model)}
    ${section("calls", "Requests without a known outcome", requestTable(requests, unresolved, pause, now))}
    ${section(
      "inserted",
      "Inserted by SQL",
      html`${companies.length <= detailedMax ? "" : html`<div class="controls lists">${companyChoice(model, "/outbox", { company })}</div>`}
      ${insertedTable(model.inserted, now)}`
    )}
    ${section("pushes", "Pushes", pushTable(model.pushes, now))}`
  })
}

// -------------------------------------------------------------------------------------------------------------- a push

const countsTable = ({ counts }: Outbox.OutboxState): Html =>
  table(
    "Records by outcome",
    "Outcome, #Records",
    [
      ["waiting", counts.waiting] as const,
      ["being sent", counts.sending] as const,
      ...outcomes.map((outcome) => [outcome, counts[outcome]] as const),
      ["rejected", counts.rejected] as const
    ]
      .filter(([, records]) => records > 0)
      .map(([outcome, records]) => [outcome, count(records)])
  )

export type PushModel = Effect.Success<ReturnType<typeof loadPush>>

const loadPush = Effect.fn("page.push")(function* (request: PageRequest) {
  const id = yield* numberOf(ofPath(request, "id"), "a push")
  const [push] = yield* Outbox.pushes([id])
  if (push === undefined)
    return yield* new PageError({ status: 404, message: `There is no push ${id}, or it was removed.` })
  const rejected = push.counts.rejected === 0 ? [] : yield* Outbox.rejectedRows({ push: id }, 0n, rejectedShown)
  return { push, rejected, now: request.now }
})

const rejectedOfPush = ({ push, rejected }: PushModel): Html | string => {
  const { push: id, counts } = push
  const isCut = counts.rejected > rejected.length
  return counts.rejected === 0
    ? ""
    : section(
        "rejected",
        "Rejected rows",
        html`${RejectedRows.rejectedTable(`Rejected rows in the order of the input${isCut ? `, the first ${rejected.length} of ${count(counts.rejected)}` : ""}`, rejected, push)}
        ${isCut ? html`<p><a href="${RejectedRows.rejectedAddress({ push: String(id) })}">All rejected rows of push ${id}</a></p>` : ""}`
      )
}

export const viewPush = (model: PushModel) => {
  const { push, now } = model
  const { push: id, counts } = push
  const isOpen = push.finishedAt === null
  return page({
    title: `Push ${id}`,
    section: "outbox",
    // A finished push does not change.
    isLive: isOpen,
    body: html`<h1>
        Push ${id}: ${push.operation} ${resourceLink(push.company, push.resource)} of ${visible(push.company)}
      </h1>
      ${counts.rejected === 0 ? "" : RejectedRows.whatToDo({ push: id }, { push: String(id) }, push.rejectedBy)}
      ${facts([
        ["State", pushBadge(!isOpen, counts.rejected)],
        ["From", code(push.source)],
        ["Began", ago(new Date(now.getTime() - push.ageMs), now)],
        ["Finished", ago(push.finishedAt === null ? null : new Date(push.finishedAt), now, "not yet")],
        [
          "Records given",
          `${count(push.records)}${push.known === 0 ? "" : `, ${count(push.known)} of them pushed before`}`
        ],
        push.oldestMs === null ? null : ["Oldest that waits", `for ${duration(push.oldestMs)}`]
      ])}
      ${countsTable(push)}
      ${
        counts.different === 0
          ? ""
          : html`<p>
              ${plural(counts.different, "record")} with other values at the source than were given:
              <code>tributary push status ${id}</code> shows them.
            </p>`
      }
      ${
        counts.waiting + counts.sending === 0
          ? ""
          : html`<p>To send the waiting rows: <code>tributary push retry ${id}</code></p>`
      }
      ${rejectedOfPush(model)}`
  })
}

export const routes: ReadonlyArray<Route> = [
  pageRoute({ path: "/outbox", load, view }),
  pageRoute({ path: "/outbox/pushes/:id", load: loadPush, view: viewPush }),
  ...OutboxRows.routes,
  ...OutboxRow.routes,
  ...RejectedRows.routes
]

/** `/outbox`: what is to be written to the source, what became of it, and what was refused. */
import * as Effect from "effect/Effect"
import * as PushPause from "../../outbox/PushPause.ts"
import { retryRejected } from "../../outbox/RetryRejected.ts"
import * as Outbox from "../../status/Outbox.ts"
import { companyNamed, numberOf, ofForm, ofPath, ofQuery } from "../Params.ts"
import {
  aboutOf,
  type RequestSummary,
  inserted,
  type InsertedSummary,
  openRequests,
  pushes,
  type PushSummary
} from "../../status/OutboxDetails.ts"
import { html, type Html, page, PageError, type PageRequest, redirect, type Route } from "../Page.ts"
import { ago, badge, confirmation, count, duration, table } from "../Components.ts"
import { actionLink, facts } from "../Format.ts"
import { address, truncated, plural, recordAddress, resourceAddress, visible, visibleLines } from "../Escape.ts"

const pushesShown = 50
const callsShown = 50
const refusedShown = 50
/** Characters of what others have written, in a table. */
const textMax = 240

const back = "/outbox"
const refusedPath = "/outbox/refused"
const pushAddress = (push: bigint): string => `/outbox/pushes/${push}`

const empty = (value: number): string => (value === 0 ? "" : count(value))

const refusedLink = (refused: number, query: Readonly<Record<string, string>>, about: string): Html =>
  refused === 0
    ? html``
    : html`<a href="${address(refusedPath, query)}"
        >${badge("bad", `${count(refused)} refused`)}<span class="visually-hidden"> ${about}</span></a
      >`

const retryLink = ({ company, resource, refused }: InsertedSummary): Html =>
  refused === 0
    ? html``
    : actionLink(
        "push-retry",
        { company, resource },
        "Try again",
        `the refused rows of ${visible(resource)}, company ${visible(company)}`
      )

// ------------------------------------------------------------------------------------------------------- the overview

const outcomesOf = (one: InsertedSummary): string =>
  Outbox.outcomes
    .filter((outcome) => one[outcome] > 0)
    .map((outcome) => `${count(one[outcome])} ${outcome}`)
    .join(", ")

const insertedTable = (rows: ReadonlyArray<InsertedSummary>, now: Date): Html =>
  rows.length === 0
    ? html`<p>
        Nothing that was inserted by SQL waits or was refused, and nothing was settled within a day. Whoever may insert
        into
        <code>tributary.outbox</code> has it written by tributary serve.
      </p>`
    : table(
        "Rows that were inserted by SQL, by company and resource",
        [
          { heading: "Resource" },
          { heading: "Company" },
          { heading: "Waiting", isNumber: true },
          { heading: "Being sent", isNumber: true },
          { heading: "Oldest" },
          { heading: "Done within a day" },
          { heading: "Refused" },
          { heading: "Action" }
        ],
        rows.map((one) => [
          html`<a href="${resourceAddress(one.company, one.resource)}">${visible(one.resource)}</a>`,
          visible(one.company),
          empty(one.waiting),
          empty(one.sending),
          ago(one.oldestAt, now, ""),
          outcomesOf(one),
          refusedLink(one.refused, { company: one.company, resource: one.resource }, `of ${visible(one.resource)}`),
          retryLink(one)
        ])
      )

const pushState = ({ finishedAt, waiting, sending }: PushSummary, now: Date): Html =>
  finishedAt !== null
    ? html`${badge("good", "finished")} ${ago(finishedAt, now)}`
    : html`${badge("busy", "unfinished")} ${count(waiting)} waiting, ${count(sending)} being sent`

const pushTable = (all: ReadonlyArray<PushSummary>, now: Date): Html =>
  all.length === 0
    ? html`<p>Nothing was pushed yet. See <code>npx tributary push --help</code>.</p>`
    : table(
        `Pushes, newest first${all.length === pushesShown ? `, at most ${pushesShown}` : ""}`,
        [
          { heading: "Push" },
          { heading: "What" },
          { heading: "Company" },
          { heading: "From" },
          { heading: "Begun" },
          { heading: "Records", isNumber: true },
          { heading: "State" },
          { heading: "Refused" }
        ],
        all.map((one) => [
          html`<a href="${pushAddress(one.push)}">${one.push}</a>`,
          html`${one.operation} <a href="${resourceAddress(one.company, one.resource)}">${visible(one.resource)}</a>`,
          visible(one.company),
          html`<code>${truncated(one.source, 80)}</code>`,
          ago(one.createdAt, now),
          count(one.records),
          pushState(one, now),
          refusedLink(one.refused, { push: String(one.push) }, `of push ${one.push}`)
        ])
      )

const callTable = (calls: ReadonlyArray<RequestSummary>, now: Date): Html =>
  calls.length === 0
    ? html`<p>There is none: what was sent was answered.</p>`
    : html`<p>
          They may have arrived or not. Each is sent again with the same key and the same bytes until an answer settles
          it, so that nothing is done twice.
        </p>
        ${table(
          `Requests of which the outcome is not known, oldest first${calls.length === callsShown ? `, at most ${callsShown}` : ""}`,
          [
            { heading: "Request" },
            { heading: "Company" },
            { heading: "Records", isNumber: true },
            { heading: "Open since" },
            { heading: "Failures", isNumber: true },
            { heading: "Why" }
          ],
          calls.map((one) => [
            html`${visible(one.operation)} ${visible(one.resource)}`,
            visible(one.company),
            count(one.items),
            ago(one.formedAt, now),
            count(one.failures),
            one.reason === null ? "" : truncated(one.reason, textMax)
          ])
        )}`

const overview = Effect.fn("page.outbox")(function* ({ now }: PageRequest) {
  const rows = yield* inserted
  const all = yield* pushes(pushesShown)
  const calls = yield* openRequests(callsShown)
  const held = yield* PushPause.read
  return page({
    title: "Outbox",
    section: "outbox",
    body: html`<h1>Outbox</h1>
      <p>Records that are to be written to the source, and what became of them.</p>
      ${
        held === null
          ? html``
          : html`<p role="status">
              ${badge("bad", "held")} ${visible(PushPause.sentence(held))}. What to do: compare what waits with the
              source, then run <code>${PushPause.releaseCommand}</code>.
            </p>`
      }
      <section aria-labelledby="calls">
        <h2 id="calls">Requests without a known outcome</h2>
        ${callTable(calls, now)}
      </section>
      <section aria-labelledby="inserted">
        <h2 id="inserted">Inserted by SQL</h2>
        ${insertedTable(rows, now)}
      </section>
      <section aria-labelledby="pushes">
        <h2 id="pushes">Pushes</h2>
        ${pushTable(all, now)}
      </section>`
  })
})

// -------------------------------------------------------------------------------------------------------------- a push

const countsTable = ({ counts }: Outbox.OutboxState): Html =>
  table(
    "What became of its records",
    [{ heading: "Outcome" }, { heading: "Records", isNumber: true }],
    [
      ["waiting", counts.waiting] as const,
      ["being sent", counts.sending] as const,
      ...Outbox.outcomes.map((outcome) => [outcome, counts[outcome]] as const),
      ["refused", counts.refused] as const
    ]
      .filter(([, records]) => records > 0)
      .map(([outcome, records]) => [outcome, count(records)])
  )

const onePush = Effect.fn("page.push")(function* (request: PageRequest) {
  const id = yield* numberOf(ofPath(request, "id"), "a push")
  const [push] = yield* Outbox.pushes([id])
  if (push === undefined)
    return yield* new PageError({ status: 404, message: `There is no push ${id}, or it was removed.` })
  const { now } = request
  const { counts } = push
  const isOpen = push.state === "unfinished"
  return page({
    title: `Push ${id}`,
    section: "outbox",
    // What is finished does not change, and counting all of it again and again would cost for nothing.
    isLive: isOpen,
    body: html`<p><a href="${back}">Outbox</a></p>
      <h1>Push ${id}: ${push.operation} ${visible(push.resource)} of ${visible(push.company)}</h1>
      ${facts([
        ["State", badge(isOpen ? "busy" : "good", push.state)],
        ["From", html`<code>${visible(push.source)}</code>`],
        ["Begun", ago(new Date(now.getTime() - push.ageMs), now)],
        ["Finished", ago(push.finishedAt === null ? null : new Date(push.finishedAt), now, "not yet")],
        [
          "Records given",
          `${count(push.records)}${push.known === 0 ? "" : `, ${count(push.known)} of them pushed before`}`
        ],
        ...(push.oldestMs === null ? [] : [["Oldest that waits", `for ${duration(push.oldestMs)}`] as const])
      ])}
      ${countsTable(push)}
      ${
        counts.different === 0
          ? ""
          : html`<p>
              Of ${plural(counts.different, "record")} the source holds other values than were given:
              <code>npx tributary push status ${id}</code> shows them.
            </p>`
      }
      ${
        counts.waiting + counts.sending === 0
          ? ""
          : html`<p>What waits goes on with <code>npx tributary push retry ${id}</code>.</p>`
      }
      ${
        counts.refused === 0
          ? ""
          : html`<h2>Refused</h2>
              ${table(
                "Refused records by code",
                [{ heading: "Code" }, { heading: "Records", isNumber: true }],
                push.refusedBy.map(({ code, records }) => [html`<code>${visible(code)}</code>`, count(records)])
              )}
              <p>${refusedLink(counts.refused, { push: String(id) }, `of push ${id}`)}</p>`
      }`
  })
})

// ------------------------------------------------------------------------------------------------------------- refused

/** Why, in one sentence. */
const why = ({ reason, problems }: Outbox.RejectedRow): string =>
  [
    ...(reason === "" ? [] : [reason]),
    ...problems
      .filter(({ message }) => !reason.includes(message))
      .map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  ].join("; ")

interface Meant {
  readonly rows: Outbox.Rows
  readonly query: Readonly<Record<string, string>>
  readonly told: string
}

/** Whose refused rows: a push's, or those of a company and resource that belong to none. */
const meantOf = Effect.fnUntraced(function* (request: PageRequest): Effect.fn.Return<Meant, PageError> {
  const push = ofQuery(request, "push")
  if (push !== null) {
    const id = yield* numberOf(push, "a push")
    return { rows: { push: id }, query: { push }, told: `push ${id}` }
  }
  const [company, resource] = [ofQuery(request, "company"), ofQuery(request, "resource")]
  if (company === null || resource === null) {
    return yield* new PageError({ status: 400, message: "Name a push, or a company and a resource." })
  }
  return {
    rows: { company, resource },
    query: { company, resource },
    told: `what was inserted by SQL into ${visible(resource)} of company ${visible(company)}`
  }
})

const refusedPage = Effect.fn("page.refused")(function* (request: PageRequest) {
  const { rows, query, told } = yield* meantOf(request)
  const after = ofQuery(request, "after")
  const from = after === null ? 0n : yield* numberOf(after, "a row")
  const found = yield* Outbox.rejectedRows(rows, from, refusedShown + 1)
  const shown = found.slice(0, refusedShown)
  const last = shown.at(-1)
  const whose = "company" in rows ? rows : yield* aboutOf(rows.push)
  return page({
    title: "Refused",
    section: "outbox",
    body: html`<p><a href="${back}">Outbox</a></p>
      <h1>Refused records of ${told}</h1>
      <p>The source, or the check before it, refused them. Each waits for a person and holds up nothing else.</p>
      ${
        shown.length === 0
          ? html`<p>There is ${after === null ? "none" : "no further one"}.</p>`
          : table(
              "Refused records in the order in which they were given",
              [
                { heading: "Row" },
                { heading: "Record" },
                { heading: "Code" },
                { heading: "Field" },
                { heading: "Why" },
                { heading: "As it was given" }
              ],
              shown.map((one) => [
                html`${one.id}${one.line === null ? "" : html`<span class="detail">line ${count(one.line)}</span>`}`,
                html`${one.operation} ${one.externalid === null ? "" : visible(one.externalid)}
                ${
                  one.recordId === null
                    ? ""
                    : whose === null
                      ? visible(one.recordId)
                      : html`<a href="${recordAddress(whose.company, whose.resource, one.recordId)}"
                          >${visible(one.recordId)}</a
                        >`
                }`,
                html`<code>${visible(one.code)}</code>`,
                one.field === null ? "" : html`<code>${visible(one.field)}</code>`,
                truncated(why(one), textMax),
                html`<details id="row-${one.id}">
                  <summary>Show</summary>
                  <pre>${visibleLines(one.record)}</pre>
                </details>`
              ])
            )
      }
      <nav class="pages" aria-label="Further records">
        ${after === null ? "" : html`<a href="${address(refusedPath, query)}">First</a>`}
        ${
          found.length > shown.length && last !== undefined
            ? html`<a href="${address(refusedPath, { ...query, after: String(last.id) })}" rel="next">Next</a>`
            : ""
        }
      </nav>
      <h2>What to do</h2>
      ${
        "push" in rows
          ? html`<ul>
              <li>
                Write them to a file with their reasons, correct it and push it:
                <code>npx tributary push export-refused ${rows.push} --to refused.ndjson</code>
              </li>
              <li>
                Where the cause was mended at the source, send them again as they are:
                <code>npx tributary push retry ${rows.push} --refused</code>
              </li>
            </ul>`
          : html`<ul>
              <li>
                Correct a record where it stands:
                <code>update tributary.outbox set record = '…' where id = …</code>
              </li>
              <li>
                Once they are corrected, or what they were refused for was mended at the source, send them again:
                ${actionLink("push-retry", query, "Try again", "all refused rows of this resource")}
              </li>
            </ul>`
      }`
  })
})

// ------------------------------------------------------------------------------------------------------------- actions

const named = Effect.fnUntraced(function* (request: PageRequest, of: typeof ofQuery) {
  const company = yield* companyNamed(request, of(request, "company"))
  const resource = of(request, "resource")
  if (resource === null) return yield* new PageError({ status: 400, message: "No resource was named." })
  return { company: company.name, resource }
})

const confirmRetry = Effect.fn("page.confirm.push-retry")(function* (request: PageRequest) {
  const { company, resource } = yield* named(request, ofQuery)
  return page({
    title: "Try again",
    section: "outbox",
    isLive: false,
    body: confirmation(request.permit, {
      title: `Send the refused rows of ${visible(resource)}, company ${visible(company)}, again?`,
      consequences: [
        "Every row of this resource that was inserted by SQL and refused is checked again and sent as it stands now.",
        "This helps where the row was corrected, or the cause was mended at the source; what is still wrong is refused again.",
        "A record that the source has meanwhile is found there, and not created twice."
      ],
      action: "/do/push-retry",
      fields: { company, resource },
      button: "Send again",
      back
    })
  })
})

const doRetry = Effect.fn("page.do.push-retry")(function* (request: PageRequest) {
  const { company, resource } = yield* named(request, ofForm)
  const rows = yield* retryRejected({ company, resource }).pipe(
    Effect.catchTag("PushSuperseded", (error) => Effect.fail(new PageError({ status: 409, message: error.message })))
  )
  return redirect(
    back,
    rows === 0
      ? `No row of ${visible(resource)} is refused any more.`
      : `${plural(rows, "row")} of ${visible(resource)} ${rows === 1 ? "waits" : "wait"} to be sent again.`
  )
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path: "/outbox", handle: overview },
  { method: "GET", path: refusedPath, handle: refusedPage },
  { method: "GET", path: "/outbox/pushes/:id", handle: onePush },
  { method: "GET", path: "/confirm/push-retry", handle: confirmRetry },
  { method: "POST", path: "/do/push-retry", handle: doRetry }
]

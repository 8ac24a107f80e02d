/** `/outbox/rows/:id`: one row of the outbox from its insert to the answer of the source and the landed version. */
import * as Effect from "effect/Effect"
import * as PushPause from "../../outbox/PushPause.ts"
import { correctSql } from "../../outbox/RetryRejected.ts"
import * as OutboxRowFlow from "../../status/OutboxRowFlow.ts"
import { badge, count, type Fact, facts, none, problem, table, type Tone } from "../../web/Components.ts"
import { plural, visible, visibleLines } from "../../web/Escape.ts"
import { flow, type Step } from "../../web/Flow.ts"
import { pushAddress } from "../Addresses.ts"
import { actionLink } from "../Format.ts"
import { code, pushLink, recordOrResourceLink } from "../Links.ts"
import { html, type Html, page, PageError, pageRoute, type PageRequest, type Route } from "../Page.ts"
import { numberOf, ofPath } from "../Params.ts"
import { pretty } from "../PrettyJson.ts"
import { landedStep, readLanding } from "./LandedVersions.ts"

type Row = OutboxRowFlow.OutboxRowFlow

/** A row with the versions that it brought; the pause of pushes where it waits for its end. */
export type Model = Effect.Success<ReturnType<typeof load>>

const load = Effect.fn("page.outboxRow")(function* (request: PageRequest) {
  const id = yield* numberOf(ofPath(request, "id"), "a row")
  const row = yield* OutboxRowFlow.read(id)
  if (row === null) return yield* new PageError({ status: 404, message: `There is no row ${id}, or it was removed.` })
  const pause = isWaiting(row) ? yield* PushPause.read : null
  const versions = yield* readLanding(request, row, { runId: null, origin: "push" })
  return { row, pause, versions, now: request.now }
})

export const rowTones: Readonly<Record<OutboxRowFlow.RowState, readonly [Tone, word: string]>> = {
  pending: ["busy", "pending"],
  in_flight: ["busy", "in flight"],
  done: ["good", "done"],
  rejected: ["bad", "rejected"]
}

const isWaiting = ({ state }: Row): boolean => state === "pending" || state === "in_flight"

const recordAsGiven = ({ record, recordCharacters }: Row): Html => {
  const isCut = recordCharacters > record.length
  return html`<details id="record">
    <summary>The record as given</summary>
    <pre tabindex="0">${isCut ? visibleLines(record) : (pretty(record) ?? visibleLines(record))}</pre>
    ${isCut ? html`<p class="hint">Cut after ${count(record.length)} characters.</p>` : ""}
  </details>`
}

const originOf = ({ push, line, pushSource }: Row): Html | string =>
  push === null
    ? "a row that was inserted by SQL"
    : html`${pushLink(push)}${line === null ? "" : `, line ${count(line)}`}${pushSource === null ? "" : html` of ${code(pushSource)}`}`

const codeOr = (text: string | null | undefined, absent = "none"): Html =>
  text === null || text === undefined ? none(absent) : code(text)

const insertedStep = (row: Row): Step => ({
  title: "Inserted",
  tone: "good",
  word: row.push === null ? "by SQL" : "by a push",
  at: row.createdAt,
  body: html`${facts([
    ["Origin", originOf(row)],
    ["Operation", row.operation],
    ["Own key (externalid)", codeOr(row.externalid)]
  ])}
  ${recordAsGiven(row)}`
})

const problemsTable = (problems: NonNullable<Row["problems"]>): Html =>
  table(
    "Problems of the record",
    "Field, Problem",
    problems.map(({ field, message }) => [codeOr(field, "the record"), visible(message)])
  )

/** Whether the validation rejected the row, before any request to the source. */
const isRejectedByValidation = ({ state, validated, requestId }: Row): boolean =>
  state === "rejected" && !validated && requestId === null

const validatedStep = (row: Row): Step => {
  const isRejected = isRejectedByValidation(row)
  return {
    title: "Validated",
    tone: isRejected ? "bad" : row.validated ? "good" : "quiet",
    word: isRejected ? "rejected" : row.validated ? "valid" : isWaiting(row) ? "not yet" : "not stored",
    at: null,
    body: html`<p>
        ${
          isRejected
            ? "The record does not fit the write shape of the resource, so that nothing was sent."
            : row.validated
              ? "The record fits the write shape of the resource."
              : "The record is compared with the write shape before it is sent."
        }
      </p>
      ${row.problems === null || row.problems.length === 0 ? "" : problemsTable(row.problems)}`
  }
}

const lookedUpStep = (row: Row): Step => {
  const [tone, word, sentence] = ((): readonly [Tone, string, string] => {
    if (row.outcome === "adopted") return ["good", "found", "The source had a record with this key; none was created."]
    if (row.absenceConfirmedAt !== null)
      return ["good", "absent", "The source had no record with this key at that time."]
    if (row.isRead) return ["good", "read", "The record was read before the change, to find changes by others."]
    if (isRejectedByValidation(row)) return ["quiet", "not needed", "The row was rejected before."]
    if (row.requestId !== null || !isWaiting(row)) return ["quiet", "not needed", "No look-up was stored for this row."]
    return ["quiet", "not yet", "The source is searched for the record before a request."]
  })()
  return { title: "Looked up", tone, word, at: row.absenceConfirmedAt, body: html`<p>${sentence}</p>` }
}

const requestTones: Readonly<Record<NonNullable<Row["requestState"]>, Tone>> = {
  open: "busy",
  completed: "good",
  rejected: "bad",
  abandoned: "warn"
}

/** A count as a fact; null where it is zero. */
const counted = (term: string, value: number | null): Fact | null =>
  value === null || value === 0 ? null : [term, count(value)]

const requestStep = (row: Row): Step => {
  if (row.requestId === null) {
    return {
      title: "Sent",
      tone: "quiet",
      word: isWaiting(row) ? "not yet" : "no request",
      at: null,
      body: html`<p>
        ${isWaiting(row) ? "The row is in no request." : "No request for this row is stored."}
        ${row.attempts === 0 ? "" : `Failed attempts: ${count(row.attempts)}.`}
      </p>`
    }
  }
  return {
    title: "Sent",
    tone: row.requestState === null ? "quiet" : requestTones[row.requestState],
    word: row.requestState ?? "removed",
    at: row.requestCreatedAt,
    body: html`${facts([
      [
        "Request",
        `${row.requestId}${row.requestOperation === null ? "" : `, ${row.requestOperation}`}${
          row.requestRecords === null ? "" : ` of ${plural(row.requestRecords, "record")}`
        }`
      ],
      ["Place in the request", row.requestIndex === null ? none("none") : count(row.requestIndex + 1)],
      counted("Rounds without an outcome", row.requestFailures),
      counted("Attempts of this row that failed", row.attempts),
      counted("Sends after a conflict", row.conflictRetries)
    ])}
    ${
      row.requestState === "open"
        ? html`<p>
            It may have arrived or not. It is sent again with the same key and bytes until an answer resolves it.
          </p>`
        : html`<details id="request-note">
            <summary>What is stored of it</summary>
            <p class="hint">
              The last request of the row. Its idempotency key is a secret, which the pages cannot read.
            </p>
          </details>`
    }`
  }
}

const answerStep = (row: Row): Step => ({
  title: "Answered by the source",
  tone: row.status === null ? "quiet" : row.status < 300 ? "good" : "bad",
  word: row.status !== null ? `HTTP ${row.status}` : row.requestState === "open" ? "no answer yet" : "no answer stored",
  at: row.status === null ? null : row.resolvedAt,
  body: row.answerReason === null ? html`` : html`<p>${visible(row.answerReason)}</p>`
})

const differencesTable = (differences: NonNullable<Row["differences"]>): Html =>
  table(
    "Fields with another value at the source",
    "Field, Given, At the source",
    differences.map(({ field, given, current }) => [code(field), codeOr(given), codeOr(current)])
  )

/** A rejected row with its reason and what a person does. */
const rejected = ({ id, push, code: reasonCode, reason, company, resource }: Row): Html => {
  const [remedy, target, about] =
    push === null
      ? ([
          html`correct the record: ${code(correctSql.replace(/…$/, String(id)))}. Then send the rejected rows of the
          resource again.`,
          { company, resource },
          `the rejected rows of ${visible(resource)}, company ${visible(company)}`
        ] as const)
      : ([
          html`export the rejected rows, correct and push them:
          ${code(`tributary push export-rejected ${push} --to rejected.ndjson`)}. If the cause was fixed at the source,
          send the rejected rows of the push again as they are.`,
          { push: String(push) },
          `the rejected rows of push ${push}`
        ] as const)
  return problem(
    html`${reasonCode === null ? "" : code(reasonCode)}
    ${reason === null ? "It was rejected; no reason is stored." : visible(reason)}`,
    remedy,
    actionLink("push-retry", target, "Retry", about)
  )
}

/** What happens to a waiting row, and what a person does about it. */
const waiting = ({ push }: Row, pause: string | null): Html => {
  if (pause !== null) {
    return html`<p>
      ${badge("bad", "paused")} ${visible(PushPause.sentence(pause))}. <code>${PushPause.releaseCommand}</code>
    </p>`
  }
  return push === null
    ? html`<p>tributary serve sends it. No action is needed.</p>`
    : html`<p>To send the waiting rows of the push: <code>tributary push retry ${push}</code></p>`
}

const outcomeStep = (row: Row): Step => {
  const [tone, word] = rowTones[row.state]
  return {
    title: "Outcome",
    tone,
    word: row.outcome ?? word,
    at: row.resolvedAt,
    body: html`${row.reason === null || row.state === "rejected" ? "" : html`<p>${visible(row.reason)}</p>`}
    ${row.code === null && row.field === null ? "" : facts([row.code === null ? null : ["Code", code(row.code)], row.field === null ? null : ["Field", code(row.field)]])}
    ${row.differences === null || row.differences.length === 0 ? "" : differencesTable(row.differences)}`
  }
}

const absenceOf = (row: Row) => ({
  tone: "quiet" as const,
  word: isWaiting(row) ? "not yet" : "no version",
  sentence:
    row.state === "rejected"
      ? "A rejected row changes no record."
      : isWaiting(row)
        ? "The answer of the source is landed with the outcome."
        : "The warehouse has no version of that time. The next run reads the record."
})

export const view = ({ row, pause, versions, now }: Model) => {
  const { id, company, resource, recordId, state, push } = row
  const [tone, word] = rowTones[state]
  return page({
    title: `Outbox row ${id}`,
    section: "outbox",
    ...(push === null ? {} : { level: { text: `Row ${id}`, above: pushAddress(push) } }),
    isLive: isWaiting(row),
    body: html`<h1>Row ${id}: ${row.operation} ${visible(resource)}</h1>
      <p class="summary">
        ${badge(tone, row.outcome ?? word)} ${recordOrResourceLink(company, resource, recordId)} of company
        ${visible(company)}.
      </p>
      ${state === "rejected" ? rejected(row) : isWaiting(row) ? waiting(row, pause) : ""}
      ${flow("From the insert to the answer of the source", [
        insertedStep(row),
        validatedStep(row),
        lookedUpStep(row),
        requestStep(row),
        answerStep(row),
        outcomeStep(row),
        landedStep(row, versions, absenceOf(row), now)
      ])}`
  })
}

export const routes: ReadonlyArray<Route> = [pageRoute({ path: "/outbox/rows/:id", load, view })]

/** `/outbox/rows/:id`: one row of the outbox from its insert to the answer of the source and the landed version. */
import * as Effect from "effect/Effect"
import * as PushPause from "../../outbox/PushPause.ts"
import { correctSql } from "../../outbox/RetryRejected.ts"
import * as OutboxRowFlow from "../../status/OutboxRowFlow.ts"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { type LandedVersion, readLandedVersions } from "../../verify/LandedVersions.ts"
import { badge, count, facts, none, table, type Tone } from "../../web/Components.ts"
import { plural, visible, visibleLines } from "../../web/Escape.ts"
import { flow, type Step } from "../../web/Flow.ts"
import { pushAddress, recordAddress, resourceAddress } from "../Addresses.ts"
import { actionLink } from "../Format.ts"
import { html, type Html, page, PageError, type PageRequest, type Route } from "../Page.ts"
import { numberOf, ofPath } from "../Params.ts"
import { pretty } from "../PrettyJson.ts"
import { versionTable } from "./LandedVersions.ts"

type Row = OutboxRowFlow.OutboxRowFlow

const path = "/outbox/rows/:id"

export const rowTones: Readonly<Record<OutboxRowFlow.RowState, readonly [Tone, word: string]>> = {
  pending: ["busy", "pending"],
  in_flight: ["busy", "in flight"],
  done: ["good", "done"],
  rejected: ["bad", "rejected"]
}

const isWaiting = ({ state }: Row): boolean => state === "pending" || state === "in_flight"

const insertedStep = (row: Row): Step => ({
  title: "Inserted",
  tone: "good",
  word: row.push === null ? "by SQL" : "by a push",
  at: row.createdAt,
  body: html`${facts([
      [
        "Origin",
        row.push === null
          ? html`a row that was inserted by SQL`
          : html`<a href="${pushAddress(row.push)}">push ${row.push}</a>${
                row.line === null ? "" : `, line ${count(row.line)}`
              }${row.pushSource === null ? "" : html` of <code>${visible(row.pushSource)}</code>`}`
      ],
      ["Operation", row.operation],
      ["Own key (externalid)", row.externalid === null ? none("none") : html`<code>${visible(row.externalid)}</code>`]
    ])}
    <details id="record">
      <summary>The record as given</summary>
      <pre tabindex="0">
${row.recordCharacters > row.record.length ? visibleLines(row.record) : (pretty(row.record) ?? visibleLines(row.record))}</pre>
      ${row.recordCharacters > row.record.length ? html`<p class="hint">Cut after ${count(row.record.length)} characters.</p>` : ""}
    </details>`
})

const problemsTable = (problems: NonNullable<Row["problems"]>): Html =>
  table(
    "Problems of the record",
    "Field, Problem",
    problems.map(({ field, message }) => [
      field === null ? none("the record") : html`<code>${visible(field)}</code>`,
      visible(message)
    ])
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

/** A count as a fact; nothing where it is zero. */
const counted = (term: string, value: number): ReadonlyArray<readonly [string, string]> =>
  value === 0 ? [] : [[term, count(value)]]

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
        html`${row.requestId}${row.requestOperation === null ? "" : `, ${row.requestOperation}`}${
          row.requestRecords === null ? "" : ` of ${plural(row.requestRecords, "record")}`
        }`
      ],
      ["Place in the request", row.requestIndex === null ? none("none") : count(row.requestIndex + 1)],
      ...counted("Rounds without an outcome", row.requestFailures ?? 0),
      ...counted("Attempts of this row that failed", row.attempts),
      ...counted("Sends after a conflict", row.conflictRetries)
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
    differences.map(({ field, given, current }) => [
      html`<code>${visible(field)}</code>`,
      given === null ? none("none") : html`<code>${visible(given)}</code>`,
      current === null || current === undefined ? none("none") : html`<code>${visible(current)}</code>`
    ])
  )

/** What a person does with a rejected row, or what happens to a waiting one. */
const nextStepOf = (row: Row, pause: string | null): Html => {
  if (row.state === "rejected") {
    return row.push === null
      ? html`<p>
            <strong>What to do:</strong> correct the record: <code>${correctSql.replace(/…$/, String(row.id))}</code>.
            Then send the rejected rows of the resource again:
          </p>
          <p class="buttons">
            ${actionLink(
              "push-retry",
              { company: row.company, resource: row.resource },
              "Retry",
              `the rejected rows of ${visible(row.resource)}, company ${visible(row.company)}`
            )}
          </p>`
      : html`<p>
            <strong>What to do:</strong> export the rejected rows, correct and push them:
            <code>tributary push export-rejected ${row.push} --to rejected.ndjson</code>. If the cause was fixed at the
            source, send the rejected rows of the push again as they are:
          </p>
          <p class="buttons">
            ${actionLink("push-retry", { push: String(row.push) }, "Retry", `the rejected rows of push ${row.push}`)}
          </p>`
  }
  if (!isWaiting(row)) return html``
  if (pause !== null) {
    return html`<p>
      ${badge("bad", "paused")} ${visible(PushPause.sentence(pause))}. <code>${PushPause.releaseCommand}</code>
    </p>`
  }
  return row.push === null
    ? html`<p>tributary serve sends it. No action is needed.</p>`
    : html`<p>To send the waiting rows of the push: <code>tributary push retry ${row.push}</code></p>`
}

const outcomeStep = (row: Row): Step => {
  const [tone, word] = rowTones[row.state]
  return {
    title: "Outcome",
    tone,
    word: row.outcome ?? word,
    at: row.resolvedAt,
    body: html`${row.reason === null || row.state === "rejected" ? "" : html`<p>${visible(row.reason)}</p>`}
    ${
      row.code === null && row.field === null
        ? ""
        : facts([
            ...(row.code === null ? [] : [["Code", html`<code>${visible(row.code)}</code>`] as const]),
            ...(row.field === null ? [] : [["Field", html`<code>${visible(row.field)}</code>`] as const])
          ])
    }
    ${row.differences === null || row.differences.length === 0 ? "" : differencesTable(row.differences)}`
  }
}

const landedStep = (row: Row, versions: ReadonlyArray<LandedVersion>, now: Date): Step => {
  const [newest] = versions
  const { recordId } = row
  if (newest === undefined || recordId === null) {
    return {
      title: "Landed in the warehouse",
      tone: "quiet",
      word: isWaiting(row) ? "not yet" : "no version",
      at: null,
      body: html`<p>
        ${
          row.state === "rejected"
            ? "A rejected row changes no record."
            : isWaiting(row)
              ? "The answer of the source is landed with the outcome."
              : "The warehouse has no version of that time. The next run reads the record."
        }
      </p>`
    }
  }
  return {
    title: "Landed in the warehouse",
    tone: "good",
    word: `version ${newest.version}`,
    at: row.resolvedAt,
    body: versionTable(versions, row.company, { resource: row.resource, recordId }, now)
  }
}

const rowPage = Effect.fn("page.outboxRow")(function* (request: PageRequest) {
  const id = yield* numberOf(ofPath(request, "id"), "a row")
  const row = yield* OutboxRowFlow.read(id)
  if (row === null) return yield* new PageError({ status: 404, message: `There is no row ${id}, or it was removed.` })
  const { company, resource, recordId, resolvedAt, state } = row
  const pause = isWaiting(row) ? yield* PushPause.read : null
  const companyId = yield* TaskQueue.companyIdOf(company)
  const versions =
    companyId === null || recordId === null || resolvedAt === null || state !== "done"
      ? []
      : yield* readLandedVersions(request.datasets, {
          companyId,
          resource,
          recordId,
          runId: null,
          origin: "push",
          at: resolvedAt
        })
  const [tone, word] = rowTones[state]
  return page({
    title: `Outbox row ${id}`,
    section: "outbox",
    ...(row.push === null ? {} : { level: { text: `Row ${id}`, above: pushAddress(row.push) } }),
    isLive: isWaiting(row),
    body: html`<h1>Row ${id}: ${row.operation} ${visible(resource)}</h1>
      <p class="summary">
        ${badge(tone, row.outcome ?? word)}
        ${
          recordId === null
            ? html`<a href="${resourceAddress(company, resource)}">${visible(resource)}</a>`
            : html`<a href="${recordAddress(company, resource, recordId)}"
                >${visible(resource)} ${visible(recordId)}</a
              >`
        }
        of company ${visible(company)}.
      </p>
      ${
        state === "rejected"
          ? html`<div class="problem">
              <p>
                ${row.code === null ? "" : html`<code>${visible(row.code)}</code> `}${row.reason === null ? "It was rejected; no reason is stored." : visible(row.reason)}
              </p>
              ${nextStepOf(row, pause)}
            </div>`
          : nextStepOf(row, pause)
      }
      ${flow("From the insert to the answer of the source", [
        insertedStep(row),
        validatedStep(row),
        lookedUpStep(row),
        requestStep(row),
        answerStep(row),
        outcomeStep(row),
        landedStep(row, versions, request.now)
      ])}`
  })
})

export const routes: ReadonlyArray<Route> = [{ method: "GET", path, handle: rowPage }]

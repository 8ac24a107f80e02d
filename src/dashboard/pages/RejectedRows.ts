/** `/outbox/refused`: rows that the source, or the validation before it, rejected, and their retry. */
import * as Effect from "effect/Effect"
import type { RejectedRow, Rows } from "../../outbox/Push.ts"
import { correctSql, retryRejected } from "../../outbox/RetryRejected.ts"
import * as Outbox from "../../status/Outbox.ts"
import { routesOf } from "../Action.ts"
import { companyNamed, numberOf, ofQuery, positionOf } from "../Params.ts"
import { html, type Html, page, PageError, type PageRequest, type Route } from "../Page.ts"
import { badge, count, pager, partOf, table } from "../../web/Components.ts"
import { actionLink } from "../Format.ts"
import { address, plural, truncated, visible, visibleLines } from "../../web/Escape.ts"
import { outboxRowAddress, recordAddress, resourceAddress } from "../Addresses.ts"

const rowsShown = 50
/** Characters of a reason in a table. */
const reasonMax = 240
const path = "/outbox/refused"
const back = "/outbox"

/** A link to rejected rows, where there are some. */
export const rejectedLink = (refused: number, query: Readonly<Record<string, string>>, about: string): Html =>
  refused === 0
    ? html``
    : html`<a href="${address(path, query)}"
        >${badge("bad", `${count(refused)} refused`)}<span class="visually-hidden"> ${about}</span></a
      >`

// ------------------------------------------------------------------------------------------------------------ the page

/** Why, in one sentence. */
const reasonOf = ({ reason, problems }: RejectedRow): string =>
  [
    ...(reason === "" ? [] : [reason]),
    ...problems
      .filter(({ message }) => !reason.includes(message))
      .map(({ field, message }) => (field === null ? message : `${field}: ${message}`))
  ].join("; ")

/** The rows that a page is about. */
interface RowSelection {
  readonly rows: Rows
  readonly query: Readonly<Record<string, string>>
  readonly description: string
}

/** The selected rows: of a push, or those of a company and resource that belong to no push. */
const selectionOf = Effect.fnUntraced(function* (request: PageRequest): Effect.fn.Return<RowSelection, PageError> {
  const push = ofQuery(request, "push")
  if (push !== null) {
    const id = yield* numberOf(push, "a push")
    return { rows: { push: id }, query: { push }, description: `push ${id}` }
  }
  const [company, resource] = [ofQuery(request, "company"), ofQuery(request, "resource")]
  if (company === null || resource === null) {
    return yield* new PageError({ status: 400, message: "Name a push, or a company and a resource." })
  }
  return {
    rows: { company, resource },
    query: { company, resource },
    description: `rows inserted by SQL into ${visible(resource)} of company ${visible(company)}`
  }
})

const whatToDo = (rows: Rows, query: RowSelection["query"]): Html =>
  html`<div class="problem warn">
    <p><strong>What to do:</strong></p>
    ${
      "push" in rows
        ? html`<ul>
            <li>
              If a record is wrong: write the refused ones to a file with their reasons, correct it and push it:
              <code>npx tributary push export-refused ${rows.push} --to refused.ndjson</code>
            </li>
            <li>
              If the cause was fixed at the source: send them again as they are:
              <code>npx tributary push retry ${rows.push} --refused</code>
            </li>
          </ul>`
        : html`<ul>
              <li>If a record is wrong: correct it in the outbox: <code>${correctSql}</code></li>
              <li>When it is correct, or the cause was fixed at the source: send all of them again.</li>
            </ul>
            <p class="buttons">${actionLink("push-retry", query, "Retry", "all refused rows of this resource")}</p>`
    }
  </div>`

const rejectedPage = Effect.fn("page.refused")(function* (request: PageRequest) {
  const { rows, query, description } = yield* selectionOf(request)
  const after = yield* positionOf(request, "after", "a row")
  const { shown, next } = partOf(yield* Outbox.rejectedRows(rows, after ?? 0n, rowsShown + 1), rowsShown)
  const origin = "company" in rows ? rows : yield* Outbox.targetOf(rows.push)
  return page({
    title: "Refused",
    section: "outbox",
    body: html`<h1>
        Refused records of
        ${description}${origin === null || "company" in rows ? "" : `: ${visible(origin.resource)} of company ${visible(origin.company)}`}
      </h1>
      <p>The source, or the validation before it, refused them. Each waits for a person and blocks nothing else.</p>
      ${shown.length === 0 ? "" : whatToDo(rows, query)}
      ${
        origin === null
          ? ""
          : html`<p>
              <a href="${address("/records", { ...origin })}">Records of ${visible(origin.resource)}</a>,
              <a href="${resourceAddress(origin.company, origin.resource)}"
                >resource ${visible(origin.resource)} of ${visible(origin.company)}</a
              >
            </p>`
      }
      ${
        shown.length === 0
          ? html`<p>There is ${after === null ? "none" : "no further one"}.</p>`
          : table(
              "Refused records in the order of the input",
              "Row, Record, Code, Field, Why, As given",
              shown.map((one) => [
                html`<a href="${outboxRowAddress(one.id)}">${one.id}</a
                  >${one.line === null ? "" : html`<span class="detail">line ${count(one.line)}</span>`}`,
                html`${one.operation} ${one.externalid === null ? "" : visible(one.externalid)}
                ${
                  one.recordId === null
                    ? ""
                    : origin === null
                      ? visible(one.recordId)
                      : html`<a href="${recordAddress(origin.company, origin.resource, one.recordId)}"
                          >${visible(one.recordId)}</a
                        >`
                }`,
                html`<code>${visible(one.code)}</code>`,
                one.field === null ? "" : html`<code>${visible(one.field)}</code>`,
                truncated(reasonOf(one), reasonMax),
                html`<details id="row-${one.id}">
                  <summary>Show</summary>
                  <pre>${visibleLines(one.record)}</pre>
                </details>`
              ])
            )
      }
      ${pager("Further records", ["First", "Next"], { after, next }, (id) =>
        address(path, { ...query, after: id === null ? null : String(id) })
      )}`
  })
})

// --------------------------------------------------------------------------------------------------------------- retry

const retryAction = routesOf<{ readonly company: string; readonly resource: string }>({
  name: "push-retry",
  section: "outbox",
  target: Effect.fnUntraced(function* (request, field) {
    const company = yield* companyNamed(request, field("company"))
    const resource = field("resource")
    if (resource === null) return yield* new PageError({ status: 400, message: "No resource was named." })
    return { company: company.name, resource }
  }),
  fields: (target) => ({ ...target }),
  title: "Retry",
  heading: ({ company, resource }) =>
    `Send the refused rows of ${visible(resource)}, company ${visible(company)}, again?`,
  consequences: () => [
    "Every row of this resource that was inserted by SQL and refused is checked again and sent with its current values.",
    "This helps if the row was corrected, or the cause was fixed at the source. A row that is still wrong is refused again.",
    "A record that the source has by now is found there, and not created twice."
  ],
  button: "Retry",
  back: () => back,
  act: (target) =>
    retryRejected(target).pipe(
      Effect.mapBoth({
        onSuccess: (rows) =>
          rows === 0
            ? `No row of ${visible(target.resource)} is refused any more.`
            : `${plural(rows, "row")} of ${visible(target.resource)} ${rows === 1 ? "waits" : "wait"} to be sent again.`,
        onFailure: (error) =>
          error._tag === "PushSuperseded" ? new PageError({ status: 409, message: error.message }) : error
      })
    )
})

export const routes: ReadonlyArray<Route> = [{ method: "GET", path, handle: rejectedPage }, ...retryAction]

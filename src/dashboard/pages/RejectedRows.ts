/** `/outbox/rejected`: rows that the source, or the validation before it, rejected, and their retry. */
import * as Effect from "effect/Effect"
import type { RejectedRow, Rows } from "../../outbox/Push.ts"
import * as OutboxWorker from "../../outbox/OutboxWorker.ts"
import { correctSql, retryRejected } from "../../outbox/RetryRejected.ts"
import * as Outbox from "../../status/Outbox.ts"
import { routesOf } from "../Action.ts"
import { companyNamed, numberOf, ofQuery, positionOf, sourceTimeout, withPagePriority } from "../Params.ts"
import { html, type Html, page, PageError, type PageRequest, type Route, type ShownCompany } from "../Page.ts"
import { badge, count, pager, partOf, table } from "../../web/Components.ts"
import { actionLink } from "../Format.ts"
import { address, plural, truncated, visible, visibleLines } from "../../web/Escape.ts"
import { outboxRowAddress, pushAddress, recordAddress, resourceAddress } from "../Addresses.ts"
import { childrenOf } from "../../warehouse/Table.ts"

const rowsShown = 50
/** Characters of a reason in a table. */
const reasonMax = 240
const path = "/outbox/rejected"
const back = "/outbox"

/** The address of the rejected rows of a push, or of a company and resource. */
export const rejectedAddress = (query: Readonly<Record<string, string>>): string => address(path, query)

/** A link to rejected rows, where there are some. */
export const rejectedLink = (rejected: number, query: Readonly<Record<string, string>>, about: string): Html =>
  rejected === 0
    ? html``
    : html`<a href="${rejectedAddress(query)}"
        >${badge("bad", `${count(rejected)} rejected`)}<span class="visually-hidden"> ${about}</span></a
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

/** How many rows were rejected, by code, and what a person does about them. */
export const whatToDo = (
  rows: Rows,
  query: RowSelection["query"],
  rejectedBy: ReadonlyArray<Outbox.RejectedBy>
): Html => {
  const rejected = rejectedBy.reduce((sum, { records }) => sum + records, 0)
  return html`<div class="problem">
    ${
      rejected === 0
        ? ""
        : html`<p>
            ${plural(rejected, "record")} ${rejected === 1 ? "was" : "were"} rejected:
            ${rejectedBy.map(
              ({ code, records }, index) =>
                html`${index === 0 ? "" : ", "}<code>${visible(code)}</code>${rejectedBy.length === 1 ? "" : ` (${count(records)})`}`
            )}.
            Each waits for a person and blocks nothing else.
          </p>`
    }
    <p><strong>What to do:</strong></p>
    ${
      "push" in rows
        ? html`<ul>
            <li>
              If a record is wrong: write the rejected ones to a file with their reasons, correct it and push it:
              <code>tributary push export-rejected ${rows.push} --to rejected.ndjson</code>
            </li>
            <li>
              If the cause was fixed at the source: send them again as they are, here or with
              <code>tributary push retry ${rows.push} --rejected</code>
            </li>
          </ul>`
        : html`<ul>
            <li>If a record is wrong: correct it in the outbox: <code>${correctSql}</code></li>
            <li>When it is correct, or the cause was fixed at the source: send all of them again.</li>
          </ul>`
    }
    <p class="buttons">
      ${actionLink("push-retry", query, "Retry", "push" in rows ? `all rejected rows of push ${rows.push}` : "all rejected rows of this resource")}
    </p>
  </div>`
}

/** Where the records of rejected rows are. */
type Origin = Readonly<Record<"company" | "resource", string>> | null

/** Rejected rows with the reason of each, and a link to its page. */
export const rejectedTable = (caption: string, rows: ReadonlyArray<RejectedRow>, origin: Origin): Html =>
  table(
    caption,
    "Row, Record, Code, Field, Why, As given",
    rows.map((one) => [
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

const rejectedPage = Effect.fn("page.rejected")(function* (request: PageRequest) {
  const { rows, query, description } = yield* selectionOf(request)
  const after = yield* positionOf(request, "after", "a row")
  const { shown, next } = partOf(yield* Outbox.rejectedRows(rows, after ?? 0n, rowsShown + 1), rowsShown)
  const origin = "company" in rows ? rows : yield* Outbox.targetOf(rows.push)
  return page({
    title: "Rejected",
    section: "outbox",
    body: html`<h1>
        Rejected records of
        ${description}${origin === null || "company" in rows ? "" : `: ${visible(origin.resource)} of company ${visible(origin.company)}`}
      </h1>
      <p>The source, or the validation before it, rejected them.</p>
      ${shown.length === 0 ? "" : whatToDo(rows, query, yield* Outbox.rejectedBy(rows))}
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
          : rejectedTable("Rejected records in the order of the input", shown, origin)
      }
      ${pager("Further records", ["First", "Next"], { after, next }, (id) =>
        address(path, { ...query, after: id === null ? null : String(id) })
      )}`
  })
})

// --------------------------------------------------------------------------------------------------------------- retry

/** The rows that a retry is about, with their resource. */
interface RetryTarget {
  readonly rows: Rows
  readonly company: ShownCompany
  readonly resource: string
}

const retryTarget = Effect.fnUntraced(function* (request: PageRequest, field: (name: string) => string | null) {
  const push = field("push")
  if (push !== null) {
    const id = yield* numberOf(push, "a push")
    const target = yield* Outbox.targetOf(id)
    if (target === null)
      return yield* new PageError({ status: 404, message: `There is no push ${id}, or it was removed.` })
    const company = yield* companyNamed(request, target.company)
    return { rows: { push: id }, company, resource: target.resource } satisfies RetryTarget
  }
  const company = yield* companyNamed(request, field("company"))
  const resource = field("resource")
  if (resource === null) return yield* new PageError({ status: 400, message: "No resource was named." })
  return { rows: { company: company.name, resource }, company, resource } satisfies RetryTarget
})

const conflict = (message: string) => new PageError({ status: 409, message })

const putBack = (rows: Rows) =>
  Effect.catchTag(retryRejected(rows), "PushSuperseded", ({ message }) => Effect.fail(conflict(message)))

/** The number of the company at the source, and the tables of its resources; fails before anything is changed. */
const readSource = Effect.fnUntraced(function* (company: ShownCompany, resource: string) {
  const tables = yield* company.tables
  const table = tables.get(resource)
  if (table === undefined) {
    return yield* conflict(
      `${visible(resource)} is not among the resources that are synced for company ${visible(company.name)}, so nothing was done. What to do: add it to the configuration.`
    )
  }
  const identity = yield* company.connector.identify.pipe(
    withPagePriority,
    Effect.timeoutOption(sourceTimeout),
    Effect.mapError((error) =>
      conflict(`The source did not say which company this is: ${visible(error.message)}. Nothing was done.`)
    )
  )
  if (identity._tag === "None") return yield* conflict("The source did not answer in time. Nothing was done.")
  return { table, children: childrenOf(tables, resource), companyId: identity.value.companyId }
})

/** Sends the rejected rows of a push again; a process that ends meanwhile leaves them waiting, as a command does. */
const retryPush = Effect.fnUntraced(function* (
  { company, resource }: RetryTarget,
  push: bigint,
  { background }: PageRequest
) {
  const source = yield* readSource(company, resource)
  const rows = yield* putBack({ push })
  if (rows === 0) return `No row of push ${push} is rejected any more.`
  yield* background(
    Effect.flatMap(OutboxWorker.push({ ...source, company, settings: company.push, scope: { push } }), ({ failure }) =>
      failure === null
        ? Effect.void
        : Effect.logWarning(`push ${push} of company ${company.name}: ${failure.message}; ${failure.remedy}`)
    )
  )
  return `${plural(rows, "row")} of push ${push} ${rows === 1 ? "is" : "are"} sent again; the outcome stands here.`
})

const retryAction = routesOf<RetryTarget>({
  name: "push-retry",
  section: "outbox",
  target: retryTarget,
  fields: ({ rows }) => ("push" in rows ? { push: String(rows.push) } : { ...rows }),
  title: "Retry",
  heading: ({ rows, company, resource }) =>
    "push" in rows
      ? `Send the rejected rows of push ${rows.push} again?`
      : `Send the rejected rows of ${visible(resource)}, company ${visible(company.name)}, again?`,
  consequences: ({ rows, company, resource }) => [
    "push" in rows
      ? `Every rejected row of this push to ${visible(resource)} of company ${visible(company.name)} is checked again and sent as it was given.`
      : "Every row of this resource that was inserted by SQL and rejected is checked again and sent with its current values.",
    `This helps if ${"push" in rows ? "" : "the row was corrected, or "}the cause was fixed at the source. A row that is still wrong is rejected again.`,
    "A record that the source has by now is found there, and not created twice."
  ],
  button: "Retry",
  back: ({ rows }) => ("push" in rows ? pushAddress(rows.push) : back),
  act: Effect.fnUntraced(function* (target, request) {
    if ("push" in target.rows) return yield* retryPush(target, target.rows.push, request)
    const rows = yield* putBack(target.rows)
    return rows === 0
      ? `No row of ${visible(target.resource)} is rejected any more.`
      : `${plural(rows, "row")} of ${visible(target.resource)} ${rows === 1 ? "waits" : "wait"} to be sent again.`
  })
})

export const routes: ReadonlyArray<Route> = [{ method: "GET", path, handle: rejectedPage }, ...retryAction]

/** `/records`: the history of one record, with the origin of each version. */
import * as Effect from "effect/Effect"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { explain, findHistory, listHistories } from "../../verify/Explain.ts"
import type { Explanation, FieldChange, RunSummary, Version } from "../../verify/Explanation.ts"
import { ofQuery } from "../Params.ts"
import { pretty } from "../PrettyJson.ts"
import { html, type Html, page, type PageRequest, type Route } from "../Page.ts"
import { ago, badge, count, none, section, select, table, type Tone, facts } from "../../web/Components.ts"
import { address, truncated, plural, visible } from "../../web/Escape.ts"
import { resourceAddress, runAddress } from "../Addresses.ts"

const path = "/records"
/** Characters of a value in a table. */
const valueMax = 120
/** Versions that are shown. */
const versionsShown = 100

// ------------------------------------------------------------------------------------------------------------ the form

interface RecordQuery {
  readonly company: string | null
  readonly resource: string | null
  readonly id: string | null
}

interface Choices {
  readonly resources: ReadonlyArray<string>
  readonly companies: ReadonlyArray<string>
}

const form = ({ company, resource, id }: RecordQuery, { resources, companies }: Choices): Html => html`
  <form method="get" action="${path}" class="ask" role="search" aria-label="Find a record">
    ${select("company", "Company", "every company", companies, company)}
    <p>
      <label for="resource">Resource</label>
      <input
        id="resource"
        name="resource"
        list="resources"
        value="${resource ?? ""}"
        required
        autocomplete="off"
        autocapitalize="none"
        spellcheck="false"
      />
      <datalist id="resources">${resources.map((name) => html`<option value="${name}"></option>`)}</datalist>
    </p>
    <p>
      <label for="id">Number</label>
      <input id="id" name="id" inputmode="numeric" value="${id ?? ""}" required autocomplete="off" />
    </p>
    <p class="buttons"><button type="submit" class="primary">Show its history</button></p>
  </form>
`

// --------------------------------------------------------------------------------------------------------- the history

const runLink = (run: RunSummary): Html =>
  html`<a href="${runAddress(run.id)}">run ${run.id}</a> (${run.kind}${run.lane === "live" ? "" : `, ${run.lane}`},
    ${run.status})`

const brought = ({ run, runId, origin, source }: Version): Html => html`
  ${origin}${
    run !== null ? html`, ${runLink(run)}` : runId === null ? "" : html`, run ${runId}, which is no longer stored`
  }
  ${source === null ? "" : html`<span class="detail"><code>${visible(source)}</code></span>`}
`

const valueOf = (value: string | null): Html =>
  value === null ? none("none") : html`<code>${truncated(value, valueMax)}</code>`

const changes = (all: ReadonlyArray<FieldChange>, version: bigint): Html =>
  table(
    `What version ${version} changed`,
    "Field, Before, After",
    all.map(({ field, from, to }) => [html`<code>${visible(field)}</code>`, valueOf(from), valueOf(to)])
  )

const tones: Readonly<Record<string, Tone>> = { insert: "good", update: "busy", delete: "bad" }

const versionCard = (version: Version, key: string, now: Date): Html => html`
  <article class="card">
    <h4>Version ${version.version} ${badge(tones[version.op] ?? "quiet", version.op)}</h4>
    ${facts([
      ["Valid from", ago(version.validFrom, now, "unknown")],
      ["Valid until", version.validTo === null ? "now" : ago(version.validTo, now)],
      ["Origin", brought(version)]
    ])}
    ${version.changes.length === 0 ? "" : changes(version.changes, version.version)}
    <details id="${key}-version-${version.version}">
      <summary>The whole record in this version</summary>
      <pre class="laid-out" tabindex="0">${pretty(version.record) ?? visible(version.record)}</pre>
    </details>
  </article>
`

const states: Readonly<Record<Explanation["state"], readonly [Tone, string]>> = {
  exists: ["good", "exists"],
  deleted: ["bad", "deleted"],
  unknown: ["warn", "never landed"]
}

const lastScan = ({ fullScan, state }: Explanation, now: Date): Html =>
  fullScan === null
    ? html`none was completed yet`
    : html`${runLink(fullScan)}, ended
      ${ago(fullScan.endedAt, now)}${
        state === "unknown"
          ? ""
          : fullScan.confirmed
            ? "; it confirmed this version"
            : "; it ended before this version was landed"
      }`

const refetches = (rereads: Explanation["rereads"], now: Date): Html =>
  html`${rereads.map(
    ({ field, value, askedAt }) =>
      html`<span class="line"
        >because of <code>${visible(field)} ${visible(value)}</code>, requested ${ago(askedAt, now)}</span
      >`
  )}`

const quarantine = (one: Explanation, company: string, now: Date): Html =>
  one.quarantine.length === 0
    ? html`<p>No quarantine entry is stored for it.</p>`
    : html`${table(
          "In quarantine",
          "Why, State, #Seen, First, Last, As sent",
          one.quarantine.map((entry) => [
            html`${entry.field === null ? "" : html`<code>${visible(entry.field)}</code> `}${truncated(entry.reason, valueMax)}`,
            entry.resolvedAt === null
              ? badge("bad", "open")
              : html`${badge("good", "resolved")} ${ago(entry.resolvedAt, now)}`,
            count(entry.times),
            ago(entry.firstSeenAt, now),
            ago(entry.lastSeenAt, now),
            html`<code>${truncated(entry.bytes, valueMax)}</code>`
          ])
        )}
        <p>
          <a href="${address("/quarantine", { company, resource: one.resource, state: "all" })}"
            >Quarantine of this resource</a
          >
        </p>`

const history = (one: Explanation, company: string, index: number, now: Date): Html => {
  const { versions, checkpoints, rereads, state, resource, id } = one
  const [tone, text] = states[state]
  const newest = versions.toReversed().slice(0, versionsShown)
  const key = `record-${index}`
  return section(
    key,
    `${visible(resource)} ${id} in company ${visible(company)}`,
    html`${facts([
        ["State", html`${badge(tone, text)}${versions.length === 0 ? "" : `, ${plural(versions.length, "version")}`}`],
        ["Last full scan", lastScan(one, now)],
        ["Refetch requests", rereads.length === 0 ? "no" : refetches(rereads, now)],
        ["Resource", html`<a href="${resourceAddress(company, resource)}">${visible(resource)}</a>`]
      ])}
      <h3>Quarantine</h3>
      ${quarantine(one, company, now)}
      <h3>Versions, newest first</h3>
      ${newest.length === 0 ? html`<p>The warehouse has none.</p>` : newest.map((version) => versionCard(version, key, now))}
      ${
        versions.length > newest.length
          ? html`<p>
              The first ${count(versions.length - newest.length)} are not shown:
              <code>npx tributary explain ${visible(resource)} ${id}</code> lists all of them.
            </p>`
          : ""
      }
      <h3>Checkpoints of the resource</h3>
      ${
        checkpoints.length === 0
          ? html`<p>There is none.</p>`
          : table(
              "Checkpoints by lane",
              "Lane, Cursor, Last full scan, Scan in progress, Changed",
              checkpoints.map((checkpoint) => [
                checkpoint.lane,
                checkpoint.cursor === null ? none("none") : html`<code>${visible(checkpoint.cursor)}</code>`,
                ago(checkpoint.fullScanAt, now),
                checkpoint.scan ?? "none",
                ago(checkpoint.updatedAt, now)
              ])
            )
      }`
  )
}

// ------------------------------------------------------------------------------------------------------------ the page

const maxBigint = 9_223_372_036_854_775_807n

/** Whether it can be the number of a record. */
const isNumber = (text: string): boolean => {
  if (!/^-?\d{1,19}$/.test(text)) return false
  const number = BigInt(text)
  return number <= maxBigint && number >= -maxBigint
}

const problem = (sentence: string): Html => html`<p class="problem" role="alert">${sentence}</p>`

const look = Effect.fnUntraced(function* (
  request: PageRequest,
  { company, resource, id }: RecordQuery,
  { resources }: Choices
) {
  if (resource === null && id === null) return html``
  if (resource === null) return problem("Choose a resource that has a history in the warehouse.")
  if (id === null) return problem("Enter the number of the record.")
  if (!isNumber(id)) return problem(`“${truncated(id, 40)}” is not the number of a record: digits are expected.`)
  const companyId =
    company === null
      ? null
      : ((yield* TaskQueue.companyIdOf(company)) ?? (isNumber(company) ? BigInt(company) : undefined))
  if (companyId === undefined) {
    return problem(
      request.companies.some(({ name }) => name === company)
        ? `No record of company ${visible(company ?? "")} was landed yet.`
        : `No company “${truncated(company ?? "", 40)}” is known.`
    )
  }
  const named = yield* findHistory(request.datasets, resource)
  if (named === null) {
    return problem(
      `The warehouse has no history of “${truncated(resource, 60)}”.` +
        (resources.length === 0 ? " Nothing was landed yet." : " Choose a resource from the list.")
    )
  }
  const found = yield* explain(request.datasets, named, id, companyId)
  if (found.length === 0) {
    return problem(
      `The warehouse has nothing about ${visible(named.path)} ${id}${company === null ? "" : ` in company ${visible(company)}`}: ` +
        "it was never landed, in quarantine, or requested."
    )
  }
  const names = yield* TaskQueue.companyNames(found.map((one) => one.companyId))
  return html`${found.map((one, index) =>
    history(one, names.get(one.companyId) ?? String(one.companyId), index, request.now)
  )}`
})

export const routes: ReadonlyArray<Route> = [
  {
    method: "GET",
    path,
    handle: Effect.fn("page.records")(function* (request) {
      const wanted: RecordQuery = {
        company: ofQuery(request, "company"),
        resource: ofQuery(request, "resource"),
        id: ofQuery(request, "id")
      }
      const choices: Choices = {
        resources: yield* listHistories(request.datasets),
        companies: request.companies.map(({ name }) => name)
      }
      return page({
        title:
          wanted.id === null || wanted.resource === null
            ? "Records"
            : `${visible(wanted.resource)} ${visible(wanted.id)}`,
        section: "records",
        isLive: false,
        body: html`<h1>History of a record</h1>
          <p>Every version in the warehouse, its origin and its changes.</p>
          ${form(wanted, choices)} ${yield* look(request, wanted, choices)}`
      })
    })
  }
]

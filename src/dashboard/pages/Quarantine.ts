/** `/quarantine`: records that could not be landed, with their reasons, and the retry of one. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { routesOf } from "../Action.ts"
import { companyIdNamed, numberOf, ofPath, ofQuery, positionOf, sourceTimeout } from "../Params.ts"
import { memberOf, pretty } from "../PrettyJson.ts"
import { html, type Html, page, PageError, type PageRequest, type Route } from "../Page.ts"
import { ago, badge, count, none, pager, partOf, section, table, facts } from "../../web/Components.ts"
import { actionLink } from "../Format.ts"
import { choiceLinks, companyChoice } from "../ListControls.ts"
import { address, truncated, plural, visible, visibleLines } from "../../web/Escape.ts"
import { recordAddress, resourceAddress, runAddress } from "../Addresses.ts"
import * as Quarantine from "../../status/Quarantine.ts"
import { stateHead } from "../../web/StateHead.ts"
import { trend } from "../../web/Trend.ts"
import * as Trends from "../../status/Trends.ts"
import { retry } from "../Retry.ts"

const shownMost = 50
const groupsShown = 10
/** Resources that are offered as a choice. */
const resourcesShown = 12
const reasonMax = 200
/** Characters of a record that are shown at first. */
const bytesShown = 20_000
const bytesMost = 2_147_483_647
/** A longer record is not indented. */
const prettyMost = 200_000

const path = "/quarantine"
const entryAddress = (id: bigint): string => `${path}/${id}`

/** The configured name of a company by its number, where it is known; else the number. */
type NameOf = (companyId: bigint) => string

const namesOf = (ids: Iterable<bigint>) =>
  Effect.map(
    TaskQueue.companyNames(ids),
    (names): NameOf =>
      (companyId) =>
        names.get(companyId) ?? String(companyId)
  )

// ------------------------------------------------------------------------------------------------------------ the list

interface ListFilter {
  readonly company: string | null
  readonly resource: string | null
  readonly state: Quarantine.EntryState
}

const states: ReadonlyArray<readonly [Quarantine.EntryState, string]> = [
  ["open", "Open"],
  ["resolved", "Resolved"],
  ["all", "All"]
]

const listAddress = ({ company, resource, state }: ListFilter, before: bigint | null = null): string =>
  address(path, {
    company,
    resource,
    state: state === "open" ? null : state,
    before: before === null ? null : String(before)
  })

/** A company of the filter: by its name, or by its number where no name is known. */
const companyIdOf = (request: PageRequest, company: string | null) =>
  company !== null && /^\d{1,18}$/.test(company)
    ? Effect.map(TaskQueue.companyIdOf(company), (known) => known ?? BigInt(company))
    : companyIdNamed(request, company)

const state = ({ resolvedAt }: Quarantine.ListedEntry, now: Date): Html =>
  resolvedAt === null ? badge("warn", "open") : html`${badge("good", "resolved")} ${ago(resolvedAt, now)}`

const retryLink = (id: bigint): Html => actionLink("retry", { id: String(id) }, "Retry", `entry ${id}`)

const head = (open: ReadonlyArray<Quarantine.OpenEntries>, nameOf: NameOf, seen: Trends.Trend): Html => {
  const [worst] = open
  const total = open.reduce((sum, one) => sum + one.open, 0)
  return stateHead({
    title: "Quarantine",
    about:
      "Records that could not be landed, with the reason and the bytes as they were sent. All other records are landed.",
    tone: worst === undefined ? "good" : "warn",
    word: worst === undefined ? "empty" : "open",
    sentence:
      worst === undefined
        ? "Every record that was read has been landed."
        : html`${open.length > shownMost ? "More than " : ""}${plural(total, "open entry", "open entries")}${
              open.length === 1 ? " of" : `. The most: ${count(worst.open)} of`
            }
            <a href="${listAddress({ company: nameOf(worst.companyId), resource: worst.resource, state: "open" })}"
              >${visible(worst.resource)}</a
            >, company ${visible(nameOf(worst.companyId))}.`,
    actions: null,
    trend: trend(seen, {
      id: "trend",
      title: "Entries first seen",
      kinds: [
        ["resolved", "resolved", "good"],
        ["open", "open", "warn"]
      ]
    })
  })
}

/** Open entries by company and resource, where there are several. */
const openTable = (open: ReadonlyArray<Quarantine.OpenEntries>, nameOf: NameOf): Html =>
  open.length < 2
    ? html``
    : section(
        "groups",
        "Open entries by company and resource",
        table(
          open.length > groupsShown ? `The ${groupsShown} with the most` : "The most first",
          "Resource, Company, #Open",
          open.slice(0, groupsShown).map((one) => {
            const company = nameOf(one.companyId)
            return [
              html`<a href="${listAddress({ company, resource: one.resource, state: "open" })}"
                >${visible(one.resource)}</a
              >`,
              html`<a href="${listAddress({ company, resource: null, state: "open" })}">${visible(company)}</a>`,
              count(one.open)
            ]
          })
        )
      )

/** The resources with the most open entries, and the chosen one. */
const resourceChoice = (
  open: ReadonlyArray<Quarantine.OpenEntries>,
  query: Readonly<Record<"company" | "resource" | "state", string | null>>
): Html => {
  const { resource } = query
  const names = [
    ...new Set([...open.slice(0, resourcesShown).map((one) => one.resource), ...(resource === null ? [] : [resource])])
  ]
  return names.length === 0
    ? html``
    : choiceLinks("Resource", path, query, "resource", [
        [null, "All resources"],
        ...names.map((name) => [name, visible(name)] as const)
      ])
}

const list = Effect.fn("page.quarantine")(function* (request: PageRequest) {
  const { now } = request
  const wanted = ofQuery(request, "state") ?? "open"
  const filter: ListFilter = {
    company: ofQuery(request, "company"),
    resource: ofQuery(request, "resource"),
    state: states.find(([one]) => one === wanted)?.[0] ?? "open"
  }
  const companyId = yield* companyIdOf(request, filter.company)
  const before = yield* positionOf(request, "before", "an entry")
  const open = yield* Quarantine.open(shownMost + 1)
  const { shown, next } = partOf(yield* Quarantine.list({ ...filter, companyId }, before, shownMost + 1), shownMost)
  const nameOf = yield* namesOf([...open, ...shown].map((one) => one.companyId))
  const seen = yield* Trends.read(Trends.quarantineStatement, now)
  const hasCompanies = request.companies.length > 1 && filter.company === null
  const query = { ...filter, state: filter.state === "open" ? null : filter.state }
  return page({
    title: "Quarantine",
    section: "quarantine",
    body: html`${head(open, nameOf, seen)}
      <div class="controls lists">
        ${choiceLinks(
          "State",
          path,
          query,
          "state",
          states.map(([one, text]) => [one === "open" ? null : one, text] as const)
        )}
        ${resourceChoice(open, query)} ${companyChoice(request, path, query)}
      </div>
      ${
        shown.length === 0
          ? html`<p>There is ${before === null ? "nothing here" : "nothing further"}.</p>`
          : table(
              "Records in quarantine, newest first",
              `Record, Why, ${hasCompanies ? "Company, " : ""}-#Seen, Last seen, -State, Action`,
              shown.map((one) => [
                html`<a href="${entryAddress(one.id)}"
                  >${visible(one.resource)} ${one.recordId === null ? "without a number" : visible(one.recordId)}</a
                >`,
                html`${one.field === null ? "" : html`<code>${visible(one.field)}</code> `}${truncated(one.reason, reasonMax)}`,
                ...(hasCompanies ? [visible(nameOf(one.companyId))] : []),
                count(one.times),
                ago(one.lastSeenAt, now),
                state(one, now),
                one.resolvedAt === null ? retryLink(one.id) : ""
              ])
            )
      }
      ${pager("Further records", ["First", "Next"], { after: before, next }, (id) => listAddress(filter, id))}
      ${openTable(open, nameOf)}`
  })
})

// ------------------------------------------------------------------------------------------------------------ one entry

const noEntry = (id: bigint) =>
  new PageError({
    status: 404,
    message: `There is no entry ${id} in quarantine, or it was removed since it was resolved.`
  })

/** The indented record; the lines of the field at fault are marked. */
const marked = (laidOut: string, field: string | null): Html => {
  if (field === null) return html`${laidOut}`
  const lines = laidOut.split("\n")
  const start = lines.findIndex((line) => line.startsWith(`  ${visible(JSON.stringify(field))}: `))
  if (start === -1) return html`${laidOut}`
  // The next line of the same depth belongs to the next field.
  const length = lines.slice(start + 1).findIndex((line) => /^(?: {2})?[^\s\]}]/.test(line) || line === "}")
  const end = length === -1 ? lines.length : start + 1 + length
  const part = (from: number, to: number) => lines.slice(from, to).join("\n")
  return html`${part(0, start)}${start === 0 ? "" : "\n"}<mark>${part(start, end)}</mark>${end === lines.length ? "" : "\n"}${part(end, lines.length)}`
}

const bytes = (entry: Quarantine.Entry, wholeAddress: string): Html => {
  const { isCut } = entry
  const laidOut = isCut || entry.characters > prettyMost ? null : pretty(entry.bytes)
  const sent = html`<pre class="bytes" tabindex="0" aria-label="The record as it was sent">
${visibleLines(entry.bytes)}</pre>
    <p class="detail">
      ${plural(entry.characters, "character")}${
        isCut ? html`, of which the first ${count(bytesShown)} are shown. <a href="${wholeAddress}">Show all</a>` : ""
      }
    </p>`
  return laidOut === null
    ? section("sent", "The record as it was sent", sent)
    : html`${section("laid-out", "The record", html`<pre class="laid-out bytes" tabindex="0" aria-labelledby="laid-out">${marked(laidOut, entry.field)}</pre>`)}
        <details id="sent">
          <summary>As it was sent, byte for byte</summary>
          ${sent}
        </details>`
}

const entryPage = Effect.fn("page.quarantine.entry")(function* (request: PageRequest) {
  const { now } = request
  const id = yield* numberOf(ofPath(request, "id"), "an entry")
  const isWhole = ofQuery(request, "whole") !== null
  const entry = yield* Quarantine.one(id, isWhole ? bytesMost : bytesShown)
  if (entry === null) return yield* noEntry(id)
  const company = (yield* namesOf([entry.companyId]))(entry.companyId)
  const { recordId, resource, field } = entry
  const value = field === null || entry.isCut ? null : memberOf(entry.bytes, field)
  return page({
    title: `Quarantine ${id}`,
    section: "quarantine",
    // The bytes of an entry never change.
    isLive: !isWhole,
    body: html`<h1>${visible(resource)} ${recordId === null ? "without a number" : visible(recordId)} in quarantine</h1>
      <p class="${entry.resolvedAt === null ? "problem warn" : "solved"}">
        ${field === null ? "" : html`<code>${visible(field)}</code>: `}${visible(entry.reason)}
      </p>
      ${
        entry.resolvedAt === null
          ? html`<p>
                <strong>What to do:</strong> correct
                ${field === null ? "the record" : html`<code>${visible(field)}</code>`} at the source, then read the
                record again.
              </p>
              <p class="buttons">${retryLink(id)}</p>`
          : ""
      }
      ${facts([
        ["State", state(entry, now)],
        ["Company", visible(company)],
        ["Resource", html`<a href="${resourceAddress(company, resource)}">${visible(resource)}</a>`],
        [
          "Record",
          recordId === null
            ? none("its number cannot be read")
            : html`<a href="${recordAddress(company, resource, recordId)}">${visible(recordId)}: its history</a>`
        ],
        ...(field === null || value === null
          ? []
          : [[`Value of ${visible(field)}`, html`<code>${truncated(value, reasonMax)}</code>`] as const]),
        ["First seen", ago(entry.firstSeenAt, now)],
        ["Last seen", html`${ago(entry.lastSeenAt, now)}, ${plural(entry.times, "time")} in all`],
        ["Last seen by", html`<a href="${runAddress(entry.runId)}">run ${entry.runId}</a>`],
        ["Source", html`<code>${visible(entry.source)}</code>`]
      ])}
      ${bytes(entry, address(entryAddress(id), { whole: "1" }))}`
  })
})

// -------------------------------------------------------------------------------------------------------------- action

const stillReading =
  "It is still being read, which continues in the background; this page shows when it has left quarantine."

const retryRoutes = routesOf<Quarantine.Entry>({
  name: "retry",
  section: "quarantine",
  target: Effect.fnUntraced(function* (_, field) {
    const id = yield* numberOf(field("id"), "an entry")
    return (yield* Quarantine.one(id, bytesShown)) ?? (yield* noEntry(id))
  }),
  fields: ({ id }) => ({ id: String(id) }),
  title: "Retry",
  heading: ({ resource, recordId }) =>
    `Read ${visible(resource)} ${recordId === null ? "without a number" : visible(recordId)} again?`,
  consequences: ({ recordId }) => [
    recordId === null
      ? "Its number cannot be read, so that every record of the resource is read again as soon as a process is free."
      : "It is requested from the source now, before everything else that waits for the rate budget. If the source offers no single records, every record of the resource is read again.",
    "If it is valid now, it is landed and leaves quarantine. Otherwise only the time when it was last seen changes.",
    "This helps after the record was fixed at the source."
  ],
  button: "Read it again",
  back: ({ id }) => entryAddress(id),
  act: Effect.fnUntraced(function* (entry, { companies, background }) {
    const result = yield* Deferred.make<string, Effect.Error<ReturnType<typeof retry>>>()
    // The record is read to the end, even if the browser leaves.
    yield* background(Effect.onExit(retry(companies, entry), (exit) => Deferred.done(result, exit)).pipe(Effect.ignore))
    const sentence = yield* Effect.timeoutOption(Deferred.await(result), sourceTimeout)
    return Option.getOrElse(sentence, () => stillReading)
  })
})

export const routes: ReadonlyArray<Route> = [
  { method: "GET", path, handle: list },
  { method: "GET", path: `${path}/:id`, handle: entryPage },
  ...retryRoutes
]

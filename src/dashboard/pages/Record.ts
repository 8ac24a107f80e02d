/** The page of one record: its state, its values, related records, and its history. */
import * as Effect from "effect/Effect"
import { isObject, type JsonObject, parse } from "../../json/Json.ts"
import { readOrigins, type VersionKey } from "../../status/RecordOrigins.ts"
import { readLines, readReferring, readReferringBy } from "../../status/RecordRelations.ts"
import { findTables, type RecordLine } from "../../status/RecordTables.ts"
import { explain, type HistoryView } from "../../verify/Explain.ts"
import type { Explanation, Version } from "../../verify/Explanation.ts"
import type { Table } from "../../warehouse/Table.ts"
import { ago, badge, count, facts, none, section, table, type Tone } from "../../web/Components.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { companyAddress, resourceAddress } from "../Addresses.ts"
import { html, type Html, type PageRequest } from "../Page.ts"
import { currentValues, namedRecords } from "./RecordFields.ts"
import { changeWords, runLink, timeline, versionsShown } from "./RecordHistory.ts"
import { referringList, related } from "./RecordRelated.ts"

/** Characters of a value in a table. */
const valueMax = 120

export interface RecordPlace {
  readonly company: string
  readonly companyId: bigint
  readonly history: HistoryView
  readonly id: string
  readonly tables: ReadonlyArray<Table>
  /** Only versions below this one; null: from the newest. */
  readonly below: bigint | null
  /** `<resource>.<field>`: only the records that refer to it by this field; null: the whole page. */
  readonly list: string | null
}

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

const checkpoints = (one: Explanation, now: Date): Html =>
  one.checkpoints.length === 0
    ? html`<p>There is none.</p>`
    : table(
        "Checkpoints by lane",
        "Lane, Cursor, Last full scan, Scan in progress, Changed",
        one.checkpoints.map((checkpoint) => [
          checkpoint.lane,
          checkpoint.cursor === null ? none("none") : html`<code>${visible(checkpoint.cursor)}</code>`,
          ago(checkpoint.fullScanAt, now),
          checkpoint.scan ?? "none",
          ago(checkpoint.updatedAt, now)
        ])
      )

const membersOf = (version: Version | undefined): JsonObject => {
  const value = version === undefined ? null : parse(version.record)
  return isObject(value) ? value : new Map()
}

/** The versions of an origin, as their events and rows are looked up. */
const keysOf = ({ versions }: Explanation, origin: string): ReadonlyArray<VersionKey> =>
  versions.flatMap(({ origin: own, version, validFrom, run }) =>
    own === origin && validFrom !== null ? [{ version, validFrom, endedAt: run?.endedAt ?? null }] : []
  )

const addressOf = ({ company, history, id }: RecordPlace, below: bigint | null): string =>
  address("/records", { company, resource: history.path, id, below: below === null ? null : String(below) })

const addressOfList =
  ({ company, history, id }: RecordPlace) =>
  (list: string): string =>
    address("/records", { company, resource: history.path, id, list })

const heading = ({ company, history, id, tables }: RecordPlace, line: RecordLine | undefined): Html => {
  const purpose = tables.find(({ resource }) => resource.path === history.path)?.resource.purpose ?? ""
  const key = line?.key ?? null
  return html`<h1>
      ${key === null ? "" : html`<span class="key">${visible(key)}</span> `}${visible(history.path)} ${id} in company
      ${visible(company)}
    </h1>
    ${purpose === "" ? "" : html`<p class="hint">${visible(purpose)}</p>`}`
}

const stateFact = (one: Explanation, line: RecordLine | undefined): Html => {
  const [tone, text] = states[one.state]
  const newest = one.versions.at(-1)
  return html`${line?.isCancelled === true && one.state === "exists" ? badge("warn", "cancelled") : badge(tone, text)}${
    newest === undefined ? "" : html`<span class="detail">${plural(Number(newest.version), "version")}</span>`
  }`
}

const fieldsMax = 4

/** When, by what and in which fields the record changed last. */
const lastChange = (
  { versions }: Explanation,
  isCancelled: boolean,
  now: Date
): ReadonlyArray<readonly [string, Html]> => {
  const newest = versions.at(-1)
  if (newest === undefined) return []
  const changed = versions.findLast((version) => version.op !== "update" || version.changes.length > 0) ?? newest
  const names = changed.changes.map(({ field }) => field)
  const further = names.length - fieldsMax
  const what =
    changed.op === "update" && names.length > 0
      ? `${names.slice(0, fieldsMax).map(visible).join(", ")}${further > 0 ? ` and ${count(further)} more` : ""}`
      : changeWords(changed, versions[versions.indexOf(changed) - 1])[1]
  return [
    [
      "Last change",
      html`${ago(changed.validFrom, now)}: ${what}${changed.op === "insert" && isCancelled ? ", cancelled" : ""}<span
          class="detail"
          >by ${changed.origin}${changed.run === null ? "" : html`, ${runLink(changed.run)}`}</span
        >`
    ]
  ]
}

/** The part below the newest versions: only older ones. */
const olderPart = (place: RecordPlace, one: Explanation, of: Table | undefined, now: Date) =>
  Effect.map(readHistory(place, one, of, now), (body) =>
    section("history", `Versions before version ${place.below}`, body)
  )

const readHistory = Effect.fnUntraced(function* (
  place: RecordPlace,
  one: Explanation,
  of: Table | undefined,
  now: Date
) {
  if (one.versions.length === 0) return html`<p>The warehouse has no version of it.</p>`
  const origins = yield* readOrigins(
    { company: place.company, resource: place.history.path, id: place.id },
    keysOf(one, "webhook"),
    keysOf(one, "push")
  )
  return timeline(one, { company: place.company, origins, table: of, now }, (version) => addressOf(place, version))
})

/** The page; null where the warehouse has nothing about the record. */
export const recordPage = Effect.fn("page.record")(function* ({ datasets, now }: PageRequest, place: RecordPlace) {
  const { company, companyId, history, id, tables } = place
  const found = yield* explain(datasets, history, id, companyId, { newest: versionsShown + 1, below: place.below })
  const one = found.find((each) => each.companyId === companyId)
  if (one === undefined) return null
  const of = tables.find(({ resource }) => resource.path === history.path)
  const existing = yield* findTables(tables)
  const own = { resource: history.path, id }
  if (place.below !== null) {
    const line = (yield* readLines(existing, companyId, [own])).get(`${own.resource} ${own.id}`)
    return html`${heading(place, line)} ${yield* olderPart(place, one, of, now)}`
  }
  if (place.list !== null) {
    const line = (yield* readLines(existing, companyId, [own])).get(`${own.resource} ${own.id}`)
    const list = yield* readReferringBy(existing, companyId, own, place.list)
    return html`${heading(place, line)}
    ${list === null ? html`<p>No record refers to it by this field.</p>` : referringList(company, list)}`
  }
  const record = membersOf(one.versions.at(-1))
  const named = of === undefined ? [] : namedRecords(record, of)
  const lines = yield* readLines(existing, companyId, [own, ...named])
  const line = lines.get(`${own.resource} ${own.id}`)
  const referring = yield* readReferring(existing, companyId, own)
  const hasRecord = one.versions.length > 0
  return html`${heading(place, line)}
    <nav class="filters" aria-label="Parts of this page">
      <a href="#history">History</a>
      ${hasRecord ? html`<a href="#related">Related records</a> <a href="#values">Values</a>` : ""}
      <a href="#quarantine">Quarantine</a>
    </nav>
    ${facts([
      ["State", stateFact(one, line)],
      ...lastChange(one, line?.isCancelled === true, now),
      ["Last full scan", lastScan(one, now)],
      ...(one.rereads.length === 0 ? [] : [["Refetch requests", refetches(one.rereads, now)] as const]),
      [
        "Resource",
        html`<a href="${resourceAddress(company, history.path)}">${visible(history.path)}</a>
          <span class="detail">company <a href="${companyAddress(company)}">${visible(company)}</a></span>`
      ]
    ])}
    <div class="${one.versions.length > 1 ? "record" : "record short"}">
      ${section("history", "History, newest first", yield* readHistory(place, one, of, now))}
      ${
        hasRecord
          ? html`<div class="pairs">
              ${section("related", "Related records", related(company, named, lines, referring, addressOfList(place)))}
              ${section("values", one.state === "deleted" ? "Last values" : "Current values", currentValues(record, of))}
            </div>`
          : ""
      }
    </div>
    ${section("quarantine", "Quarantine", quarantine(one, company, now))}
    <details id="checkpoints">
      <summary>Checkpoints of the resource</summary>
      ${checkpoints(one, now)}
    </details>`
})

/** The page of one record: its state, its values, related records, and its history. */
import * as Effect from "effect/Effect"
import { isObject, type JsonObject, parse } from "../../json/Json.ts"
import { type Origins, readOrigins, type VersionKey } from "../../status/RecordOrigins.ts"
import { readLines, readReferring, readReferringBy } from "../../status/RecordRelations.ts"
import { findTables, type RecordLine } from "../../status/RecordTables.ts"
import { explain, type HistoryView } from "../../verify/Explain.ts"
import type { Explanation, Version } from "../../verify/Explanation.ts"
import type { Table } from "../../warehouse/Table.ts"
import { ago, badge, count, type Fact, facts, none, section, table, type Tone } from "../../web/Components.ts"
import { address, plural, truncated, visible } from "../../web/Escape.ts"
import { code, companyLink, detail, resourceLink } from "../Links.ts"
import { html, type Html, type PageRequest } from "../Page.ts"
import { currentValues, namedRecords } from "./RecordFields.ts"
import { changeWords, timeline, versionRun, versionsShown } from "./RecordHistory.ts"
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

// --------------------------------------------------------------------------------------------------------------- the model

const membersOf = (version: Version | undefined): JsonObject => {
  const value = version === undefined ? null : parse(version.record)
  return isObject(value) ? value : new Map()
}

/** The versions of an origin, as their events and rows are looked up. */
const keysOf = ({ versions }: Explanation, origin: string): ReadonlyArray<VersionKey> =>
  versions.flatMap(({ origin: own, version, validFrom, run }) =>
    own === origin && validFrom !== null ? [{ version, validFrom, endedAt: run?.endedAt ?? null }] : []
  )

/** The whole record, only its older versions, or only the records that refer to it by a field. */
const loadPart = Effect.fnUntraced(function* (
  { company, companyId, history, id, tables, below, list }: RecordPlace,
  one: Explanation,
  of: Table | undefined
) {
  const own = { resource: history.path, id }
  const existing = yield* findTables(tables)
  if (list !== null) {
    const lines = yield* readLines(existing, companyId, [own])
    return { _tag: "List" as const, lines, list: yield* readReferringBy(existing, companyId, own, list) }
  }
  const origins = yield* readOrigins({ company, ...own }, keysOf(one, "webhook"), keysOf(one, "push"))
  if (below !== null) {
    return { _tag: "Older" as const, lines: yield* readLines(existing, companyId, [own]), origins, below }
  }
  const record = membersOf(one.versions.at(-1))
  const named = of === undefined ? [] : namedRecords(record, of)
  const lines = yield* readLines(existing, companyId, [own, ...named])
  const referring = yield* readReferring(existing, companyId, own)
  return { _tag: "Whole" as const, lines, origins, record, named, referring }
})

/** A record, as far as the page shows it. */
export interface RecordModel {
  readonly company: string
  readonly resource: string
  readonly id: string
  readonly one: Explanation
  /** As the catalogue states it. */
  readonly table: Table | undefined
  readonly part: Effect.Success<ReturnType<typeof loadPart>>
  readonly now: Date
}

/** Null where the warehouse has nothing about the record. */
export const loadRecord = Effect.fn("page.record")(function* ({ datasets, now }: PageRequest, place: RecordPlace) {
  const { company, companyId, history, id, tables, below } = place
  const found = yield* explain(datasets, history, id, companyId, { newest: versionsShown + 1, below })
  const one = found.find((each) => each.companyId === companyId)
  if (one === undefined) return null
  const of = tables.find(({ resource }) => resource.path === history.path)
  const part = yield* loadPart(place, one, of)
  return { company, resource: history.path, id, one, table: of, part, now } satisfies RecordModel
})

// ---------------------------------------------------------------------------------------------------------------- the view

const states: Readonly<Record<Explanation["state"], readonly [Tone, string]>> = {
  exists: ["good", "exists"],
  deleted: ["bad", "deleted"],
  unknown: ["warn", "never landed"]
}

const lastScan = ({ fullScan, state }: Explanation, now: Date): Html =>
  fullScan === null
    ? html`none was completed yet`
    : html`${versionRun(fullScan)}, ended
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
      html`<span class="line">because of ${code(`${field} ${value}`)}, requested ${ago(askedAt, now)}</span>`
  )}`

const quarantine = (one: Explanation, company: string, now: Date): Html =>
  one.quarantine.length === 0
    ? html`<p>No quarantine entry is stored for it.</p>`
    : html`${table(
          "In quarantine",
          "Why, State, #Seen, First, Last, As sent",
          one.quarantine.map((entry) => [
            html`${entry.field === null ? "" : code(entry.field)} ${truncated(entry.reason, valueMax)}`,
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
          checkpoint.cursor === null ? none("none") : code(checkpoint.cursor),
          ago(checkpoint.fullScanAt, now),
          checkpoint.scan ?? "none",
          ago(checkpoint.updatedAt, now)
        ])
      )

const heading = ({ company, resource, id, table: of }: RecordModel, line: RecordLine | undefined): Html => {
  const purpose = of?.resource.purpose ?? ""
  const key = line?.key ?? null
  return html`<h1>
      ${key === null ? "" : html`<span class="key">${visible(key)}</span> `}${visible(resource)} ${id} in company
      ${visible(company)}
    </h1>
    ${purpose === "" ? "" : html`<p class="hint">${visible(purpose)}</p>`}`
}

const stateOf = (one: Explanation, isCancelled: boolean): Html => {
  const [tone, text] = states[one.state]
  const newest = one.versions.at(-1)
  return html`${isCancelled && one.state === "exists" ? badge("warn", "cancelled") : badge(tone, text)}${
    newest === undefined ? "" : detail(plural(Number(newest.version), "version"))
  }`
}

const fieldsMax = 4

/** When, by what and in which fields the record changed last. */
const lastChange = ({ versions }: Explanation, isCancelled: boolean, now: Date): Fact | null => {
  const newest = versions.at(-1)
  if (newest === undefined) return null
  const changed = versions.findLast((version) => version.op !== "update" || version.changes.length > 0) ?? newest
  const names = changed.changes.map(({ field }) => field)
  const further = names.length - fieldsMax
  const what =
    changed.op === "update" && names.length > 0
      ? `${names.slice(0, fieldsMax).map(visible).join(", ")}${further > 0 ? ` and ${count(further)} more` : ""}`
      : changeWords(changed, versions[versions.indexOf(changed) - 1])[1]
  return [
    "Last change",
    html`${ago(changed.validFrom, now)}:
    ${what}${changed.op === "insert" && isCancelled ? ", cancelled" : ""}${detail(
      html`by ${changed.origin}${changed.run === null ? "" : html`, ${versionRun(changed.run)}`}`
    )}`
  ]
}

/** The history, and a link to the versions below one. */
const historyOf = ({ company, resource, id, one, table: of, now }: RecordModel, origins: Origins): Html =>
  one.versions.length === 0
    ? html`<p>The warehouse has no version of it.</p>`
    : timeline(one, { company, origins, table: of, now }, (below) =>
        address("/records", { company, resource, id, below: String(below) })
      )

/** The history first, and beside it what the record is. */
const wholeRecord = (
  model: RecordModel,
  part: Extract<RecordModel["part"], { readonly _tag: "Whole" }>,
  line: RecordLine | undefined
): Html => {
  const { company, resource, id, one, table: of, now } = model
  const isCancelled = line?.isCancelled === true
  const hasRecord = one.versions.length > 0
  const addressOfList = (list: string) => address("/records", { company, resource, id, list })
  return html`<nav class="filters" aria-label="Parts of this page">
      <a href="#history">History</a>
      ${hasRecord ? html`<a href="#related">Related records</a> <a href="#values">Values</a>` : ""}
      <a href="#quarantine">Quarantine</a>
    </nav>
    ${facts([
      ["State", stateOf(one, isCancelled)],
      lastChange(one, isCancelled, now),
      ["Last full scan", lastScan(one, now)],
      one.rereads.length === 0 ? null : ["Refetch requests", refetches(one.rereads, now)],
      ["Resource", html`${resourceLink(company, resource)} ${detail(html`company ${companyLink(company)}`)}`]
    ])}
    <div class="${one.versions.length > 1 ? "record" : "record short"}">
      ${section("history", "History, newest first", historyOf(model, part.origins))}
      ${
        hasRecord
          ? html`<div class="pairs">
              ${section("related", "Related records", related(company, part.named, part.lines, part.referring, addressOfList))}
              ${section("values", one.state === "deleted" ? "Last values" : "Current values", currentValues(part.record, of))}
            </div>`
          : ""
      }
    </div>
    ${section("quarantine", "Quarantine", quarantine(one, company, now))}
    <details id="checkpoints">
      <summary>Checkpoints of the resource</summary>
      ${checkpoints(one, now)}
    </details>`
}

const partOf = (model: RecordModel, line: RecordLine | undefined): Html => {
  const { part, company } = model
  switch (part._tag) {
    case "Whole":
      return wholeRecord(model, part, line)
    case "Older":
      return section("history", `Versions before version ${part.below}`, historyOf(model, part.origins))
    case "List":
      return part.list === null ? html`<p>No record refers to it by this field.</p>` : referringList(company, part.list)
  }
}

export const recordView = (model: RecordModel): Html => {
  const line = model.part.lines.get(`${model.resource} ${model.id}`)
  return html`${heading(model, line)} ${partOf(model, line)}`
}

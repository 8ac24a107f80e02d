/** The history of a record as a timeline, newest first: when, by what, and which fields changed. */
import { type Json, parse } from "../../json/Json.ts"
import type { Origins } from "../../status/RecordOrigins.ts"
import type { Explanation, FieldChange, RunSummary, Version } from "../../verify/Explanation.ts"
import type { Table } from "../../warehouse/Table.ts"
import { ago, badge, table, type Tone } from "../../web/Components.ts"
import { plural, visible } from "../../web/Escape.ts"
import { eventAddress, outboxRowAddress } from "../Addresses.ts"
import { instant, runKind } from "../Format.ts"
import { code, pushLink, runLink } from "../Links.ts"
import { html, type Html } from "../Page.ts"
import { pretty } from "../PrettyJson.ts"
import { changedWords, valueHtml } from "./RecordFields.ts"

/** A run that is named with a version: its kind, and its state where it did not end well. */
export const versionRun = (run: RunSummary): Html =>
  html`${runLink(run.id)} (${runKind(run)}${run.status === "done" ? "" : `, ${run.status}`})`

interface Context {
  readonly company: string
  readonly origins: Origins
  readonly table: Table | undefined
  readonly now: Date
}

const eventsOf = ({ version }: Version, { company, origins, now }: Context): ReadonlyArray<Html> =>
  origins.events
    .filter((one) => one.version === version)
    .map(
      ({ eventId, eventType, receivedAt }) =>
        html`<span class="line"
          ><a href="${eventAddress(company, eventId)}">${visible(eventType)} ${code(eventId)}</a>, received
          ${ago(receivedAt, now)}</span
        >`
    )

const pushedOf = ({ version }: Version, { origins }: Context): ReadonlyArray<Html> =>
  origins.pushed
    .filter((one) => one.version === version)
    .map(
      ({ row, push, line, operation, outcome }) =>
        html`<span class="line"
          >${operation}${outcome === null ? "" : `, ${outcome}`}:
          <a href="${outboxRowAddress(row)}">outbox row ${String(row)}</a>${line === null ? "" : `, line ${line}`}${
            push === null ? ", inserted by SQL" : html` of ${pushLink(push)}`
          }</span
        >`
    )

const originOf = (version: Version, context: Context): Html => html`
  <p class="origin">
    By
    ${version.origin}${
      version.run !== null
        ? html`, ${versionRun(version.run)}`
        : version.runId === null
          ? ""
          : html`, run ${version.runId}, which is no longer stored`
    }
    ${version.source === null ? "" : html`<span class="line">${code(version.source)}</span>`}
    ${eventsOf(version, context)} ${pushedOf(version, context)}
  </p>
`

const jsonOf = (text: string | null): Json | undefined => (text === null ? undefined : parse(text))

const changesTable = (version: Version, fields: ReadonlyArray<FieldChange>, { table: of }: Context): Html => {
  const modifiedAt = of?.resource.roles.modifiedAt ?? null
  // The time of the change itself comes last.
  const sorted = fields.toSorted((a, b) => Number(a.field === modifiedAt) - Number(b.field === modifiedAt))
  return table(
    `Version ${version.version}: ${plural(fields.length, "changed field")}`,
    "Field, Before, After",
    sorted.map(({ field, from, to }) => {
      const known = of?.resource.field.get(field)
      const [before, after] = [jsonOf(from), jsonOf(to)]
      return [
        code(field),
        ...(changedWords(before, after) ?? [
          html`<del>${valueHtml(known, before)}</del>`,
          html`<ins>${valueHtml(known, after)}</ins>`
        ])
      ]
    })
  )
}

/** Versions that follow one another and have the same fields; newest first. */
type Entry = readonly [Version, ...ReadonlyArray<Version>]

/** Whether the version has the fields of the one before, and neither deleted nor re-created the record. */
const repeats = (version: Version, before: Version | undefined): boolean =>
  before !== undefined && version.op === "update" && before.op !== "delete" && version.changes.length === 0

/** The versions, newest first, in which equal neighbours are one entry. */
export const entriesOf = (versions: ReadonlyArray<Version>): ReadonlyArray<Entry> => {
  const entries: Array<[Version, ...Array<Version>]> = []
  for (const [index, version] of versions.entries()) {
    const last = entries.at(-1)
    if (
      last !== undefined &&
      repeats(version, versions[index - 1]) &&
      repeats(last[0], versions[index - last.length - 1])
    )
      last.unshift(version)
    else entries.push([version])
  }
  return entries.toReversed()
}

export const changeWords = (version: Version, before: Version | undefined): readonly [Tone, string] => {
  if (version.op === "delete") return ["bad", "deleted"]
  if (before?.op === "delete") return ["good", "created again"]
  if (repeats(version, before)) return ["quiet", "the same values"]
  return version.op === "insert" ? ["good", "created"] : ["busy", "changed"]
}

const wholeRecord = (version: Version): Html =>
  html`<details id="version-${version.version}">
    <summary>The whole record in version ${version.version}</summary>
    <pre class="laid-out" tabindex="0">${pretty(version.record) ?? visible(version.record)}</pre>
  </details>`

const unchanged = (versions: Entry, context: Context): Html => {
  const [newest] = versions
  const oldest = versions.at(-1)!
  return html`<li class="card">
    <h3>Versions ${oldest.version} to ${newest.version} ${badge("quiet", "the same values")}</h3>
    <p>Read from ${instant(oldest.validFrom, context.now)} until ${instant(newest.validFrom, context.now)}.</p>
    <details id="same-${newest.version}">
      <summary>${plural(versions.length, "version")} with the same values</summary>
      ${versions.map(
        (version) =>
          html`<p>Version ${version.version}, ${instant(version.validFrom, context.now)}</p>
            ${originOf(version, context)}`
      )}
    </details>
  </li>`
}

const changed = (version: Version, before: Version | undefined, context: Context, isCrowded: boolean): Html => {
  const [tone, text] = changeWords(version, before)
  return html`<li class="card ${tone}">
    <h3>
      ${instant(version.validFrom, context.now, isCrowded)} ${badge(tone, text)}
      <span class="order">version ${version.version}</span>
    </h3>
    ${originOf(version, context)}
    ${version.op === "delete" ? html`<p>The source does not have the record any more. Its last values stay readable here.</p>` : ""}
    ${version.changes.length > 0 ? changesTable(version, version.changes, context) : ""}
    ${
      before === undefined && version.version > 1n
        ? html`<p class="hint">The version before it is no longer stored, so that its changes are not known.</p>`
        : ""
    }
    ${wholeRecord(version)}
  </li>`
}

/** The versions that are shown of one more, which shows what the oldest of them changed. */
export const versionsShown = 50

/** The timeline; the address of older versions where there are more. */
export const timeline = (
  { versions }: Pick<Explanation, "versions">,
  context: Context,
  addressBelow: (version: bigint) => string
): Html => {
  const hasMore = versions.length > versionsShown
  const shown = entriesOf(versions)
    .map((entry) => entry.filter((version) => !hasMore || version !== versions[0]))
    .filter((entry): entry is [Version, ...Array<Version>] => entry.length > 0)
  const beforeOf = (version: Version) => versions[versions.indexOf(version) - 1]
  const perSecond = Map.groupBy(versions, ({ validFrom }) => validFrom?.slice(0, 19))
  const isCrowded = ({ validFrom }: Version) => perSecond.get(validFrom?.slice(0, 19))!.length > 1
  return html`<ol class="timeline" reversed>
      ${shown.map((entry) =>
        entry.length > 1
          ? unchanged(entry, context)
          : changed(entry[0], beforeOf(entry[0]), context, isCrowded(entry[0]))
      )}
    </ol>
    ${
      hasMore
        ? html`<nav class="pages" aria-label="Older versions">
            <a href="${addressBelow(versions[1]!.version)}" rel="next">Older versions</a>
          </nav>`
        : ""
    }`
}

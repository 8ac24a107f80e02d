/** The last step of an event and of a row of the outbox: the version of the record that the warehouse has. */
import * as Effect from "effect/Effect"
import * as TaskQueue from "../../tasks/TaskQueue.ts"
import { type Landing, type LandedVersion, readLandedVersions } from "../../verify/LandedVersions.ts"
import { ago, badge, none, table, type Tone } from "../../web/Components.ts"
import { truncated, visible } from "../../web/Escape.ts"
import type { Step } from "../../web/Flow.ts"
import { recordAddress } from "../Addresses.ts"
import { detail, runLink } from "../Links.ts"
import { html, type Html, type PageRequest } from "../Page.ts"

const sourceMax = 240
const tones: Readonly<Record<string, Tone>> = { insert: "good", update: "busy", delete: "bad" }

/** An event or a row of the outbox, with the record that it names. */
interface Origin {
  readonly company: string
  readonly resource: string | null
  readonly recordId: string | null
  readonly resolvedAt: Date | null
  readonly state: string
}

/** The versions that it brought; none while it is not done, or names no record. */
export const readLanding = Effect.fnUntraced(function* (
  { datasets }: PageRequest,
  { company, resource, recordId, resolvedAt, state }: Origin,
  by: Pick<Landing, "runId" | "origin">
) {
  const companyId = yield* TaskQueue.companyIdOf(company)
  return companyId === null || resource === null || recordId === null || resolvedAt === null || state !== "done"
    ? []
    : yield* readLandedVersions(datasets, { ...by, companyId, resource, recordId, at: resolvedAt })
})

/** The versions as a table, with a link to the history of the record. */
const versionTable = (
  versions: ReadonlyArray<LandedVersion>,
  company: string,
  { resource, recordId }: Pick<Landing, "resource" | "recordId">,
  now: Date
): Html =>
  html`${table(
      `Versions of ${visible(resource)} ${visible(recordId)}`,
      "Version, Change, Origin, Request, Run, Read",
      versions.map((one) => [
        html`<a href="${recordAddress(company, resource, recordId)}">Version ${one.version}</a>`,
        badge(tones[one.op] ?? "quiet", one.op),
        html`${one.origin}${one.isBrought ? "" : detail("the version at that time")}`,
        one.source === null ? none("not stored") : html`<code>${truncated(one.source, sourceMax)}</code>`,
        one.runId === null ? none("none") : runLink(one.runId),
        ago(one.validFrom, now)
      ])
    )}
    <p><a href="${recordAddress(company, resource, recordId)}">History of the record</a></p>`

/** Why there is no version. */
interface Absence {
  readonly tone: Tone
  readonly word: string
  readonly sentence: string
}

/** The step with the versions, or with the reason why there is none. */
export const landedStep = (
  { company, resource, recordId, resolvedAt }: Origin,
  versions: ReadonlyArray<LandedVersion>,
  absence: Absence,
  now: Date
): Step => {
  const [newest] = versions
  const title = "Landed in the warehouse"
  if (newest === undefined || resource === null || recordId === null) {
    return { title, tone: absence.tone, word: absence.word, at: null, body: html`<p>${absence.sentence}</p>` }
  }
  const isBrought = versions.some((one) => one.isBrought)
  return {
    title,
    tone: "good",
    word: isBrought ? `version ${newest.version}` : "nothing new",
    at: isBrought ? resolvedAt : newest.validFrom,
    body: html`${isBrought ? "" : html`<p>The warehouse had this version already: another run or event brought it.</p>`}
    ${versionTable(versions, company, { resource, recordId }, now)}`
  }
}

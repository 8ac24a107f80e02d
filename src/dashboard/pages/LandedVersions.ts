/** The last step of an event and of a row of the outbox: the version of the record that the warehouse has. */
import type { Landing, LandedVersion } from "../../verify/LandedVersions.ts"
import { ago, badge, none, table, type Tone } from "../../web/Components.ts"
import { truncated, visible } from "../../web/Escape.ts"
import { recordAddress, runAddress } from "../Addresses.ts"
import { html, type Html } from "../Page.ts"

const sourceMax = 240
const tones: Readonly<Record<string, Tone>> = { insert: "good", update: "busy", delete: "bad" }

/** The versions as a table, with a link to the history of the record. */
export const versionTable = (
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
        html`${one.origin}${one.isBrought ? "" : html`<span class="detail">the version at that time</span>`}`,
        one.source === null ? none("not stored") : html`<code>${truncated(one.source, sourceMax)}</code>`,
        one.runId === null ? none("none") : html`<a href="${runAddress(one.runId)}">run ${one.runId}</a>`,
        ago(one.validFrom, now)
      ])
    )}
    <p><a href="${recordAddress(company, resource, recordId)}">History of the record</a></p>`

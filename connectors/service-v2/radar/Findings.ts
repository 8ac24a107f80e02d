/**
 * What a comparison has found so far.
 *
 * Promise: a difference is reported once for each check and subject, with the first request that shows it. What could not
 * be compared is kept with its reason.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { CataloguePatch, RadarCoverage, RadarDifference } from "../../../src/connector/Radar.ts"
import { checkOf, checks } from "./checks.ts"
import type { Seen, SeenList, Session } from "./Session.ts"

/** Records with a difference that are kept for the recording, of one resource. */
const offendersMax = 20

/** What a probe says about a difference; the rest is data of the check. */
export interface Observed {
  readonly subject?: string
  readonly seen: string
  readonly answer: Pick<Seen, "shown" | "requestId">
  /** The recommended value of the check's setting; absent where none is needed. */
  readonly value?: string | number | undefined
  readonly variant?: RadarDifference["variant"]
}

/** How lists continue. */
export type Style = "cursor" | "link" | "page" | "offset"

/** The first records of a resource. */
export interface Sample {
  readonly resource: Resource
  readonly seen: Seen
  readonly list: SeenList
  readonly hasMore: boolean
}

/** What later probes need of earlier ones. */
export interface Learned {
  companyId: bigint | null
  scopes: ReadonlyArray<string> | null
  features: ReadonlyArray<string> | null
  /** Whether the treatment of a limit was found out. */
  isSized: boolean
  /** Whether a limit is applied; assumed until that is found out. */
  limit: "applied" | "ignored" | "unknown"
  /** The largest limit that was accepted. */
  limitMax: number | null
  style: Style | null
  readonly samples: Map<string, Sample>
  readonly refused: Map<string, Array<string>>
}

export interface Context {
  readonly session: Session
  readonly catalogue: Catalogue
  readonly findings: Findings
  readonly learned: Learned
}

export class Findings {
  readonly differences = new Map<string, RadarDifference>()
  readonly patch = new Map<string, CataloguePatch>()
  /** Records that show a difference of their values, by resource and id. */
  readonly offenders = new Map<string, Map<string, string>>()
  readonly notReproduced = new Set<string>()
  private readonly counts = new Map<string, number>()
  private readonly gaps = new Map<string, Set<string>>()

  differ(check: string, { subject = "", seen, answer, value, variant = null }: Observed): void {
    const stated = checkOf.get(check)
    if (stated === undefined) throw new Error(`there is no check ${check}`)
    this.checked(check)
    const key = `${check} ${subject}`
    if (this.differences.has(key)) return
    this.differences.set(key, {
      check,
      subject,
      seen,
      request: `GET ${answer.shown}`,
      requestId: answer.requestId,
      setting: stated.setting === null || value === undefined ? null : { path: stated.setting, value },
      advice: stated.advice,
      variant
    })
  }

  checked(check: string, times = 1): void {
    this.counts.set(check, (this.counts.get(check) ?? 0) + times)
  }

  unchecked(check: string, reason: string): void {
    const reasons = this.gaps.get(check) ?? new Set()
    this.gaps.set(check, reasons.add(reason))
  }

  change(patch: CataloguePatch): void {
    this.patch.set(`${patch.resource} ${patch.field ?? ""} ${patch.change}`, patch)
  }

  keep(resource: string, id: string, text: string): void {
    const kept = this.offenders.get(resource) ?? new Map<string, string>()
    this.offenders.set(resource, kept)
    if (kept.size < offendersMax) kept.set(id, text)
    else if (!kept.has(id)) this.notReproduced.add(`more than ${offendersMax} records of ${resource} with differences`)
  }

  coverage(): ReadonlyArray<RadarCoverage> {
    return checks.map(({ id }) => {
      const checked = this.counts.get(id) ?? 0
      const unchecked = [...(this.gaps.get(id) ?? [])]
      if (checked === 0 && unchecked.length === 0) unchecked.push("no answer showed it")
      return { check: id, checked, unchecked }
    })
  }
}

/**
 * What a comparison has found so far.
 *
 * Promise: a difference is reported once for each check and subject, with the first request that shows it. What could not
 * be compared is kept with its reason.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { CataloguePatch, RadarCoverage, RadarDifference } from "../../../src/connector/Radar.ts"
import { plural } from "../../../src/text/Count.ts"
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

/** Fewer values of another type than this share, or a single one, are odd values and propose no other type. */
const typeShareMin = 0.05

/** The proposals for one change, by what they change it to, each with the number of values that show it. */
type Proposals = Map<string, { readonly patch: CataloguePatch; values: number }>

export class Findings {
  readonly differences = new Map<string, RadarDifference>()
  private readonly proposals = new Map<string, Proposals>()
  /** The values of each field that were compared. */
  private readonly values = new Map<string, number>()
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

  value(subject: string): void {
    this.values.set(subject, (this.values.get(subject) ?? 0) + 1)
  }

  change(patch: CataloguePatch): void {
    const key = `${patch.resource} ${patch.field ?? ""} ${patch.change}`
    const own: Proposals = this.proposals.get(key) ?? new Map()
    this.proposals.set(key, own)
    const seen = own.get(patch.to)
    if (seen === undefined) own.set(patch.to, { patch, values: 1 })
    else seen.values++
  }

  /** The values of another type than the field's, of all that were compared; null where there is none. */
  private strangeOf(resource: string, field: string): { readonly strange: number; readonly compared: number } | null {
    const own = this.proposals.get(`${resource} ${field} type`)
    if (own === undefined) return null
    const strange = [...own.values()].reduce((sum, { values }) => sum + values, 0)
    return { strange, compared: this.values.get(`${resource}.${field}`) ?? strange }
  }

  private isOdd(resource: string, field: string): boolean {
    const found = this.strangeOf(resource, field)
    return found !== null && (found.strange < 2 || found.strange < found.compared * typeShareMin)
  }

  /** The changes of the catalogue: of several forms of one change that of most values. */
  patch(): ReadonlyArray<CataloguePatch> {
    return [...this.proposals.values()]
      .map((own) => [...own.values()].reduce((most, one) => (one.values > most.values ? one : most)).patch)
      .filter(({ change, field, resource }) => change !== "type" || field === null || !this.isOdd(resource, field))
  }

  /** The differences; one of types says how many values show it. */
  reported(): ReadonlyArray<RadarDifference> {
    return [...this.differences.values()].map((one) => {
      const [resource = "", ...path] = one.subject.split(".")
      const found = one.check === "field.type" ? this.strangeOf(resource, path.join(".")) : null
      if (found === null) return one
      const odd = this.isOdd(resource, path.join(".")) ? ": an odd value" : ""
      return { ...one, seen: `${one.seen}; ${found.strange} of ${plural(found.compared, "value")}${odd}` }
    })
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

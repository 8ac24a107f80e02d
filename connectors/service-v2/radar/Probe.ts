/** Parts that the probes share. */
import * as Effect from "effect/Effect"
import { isCancellable, type Resource } from "../../../src/catalogue/Resource.ts"
import type { SourceError } from "../../../src/connector/SourceError.ts"
import { type JsonObject, member } from "../client/Envelope.ts"
import type { Parameter } from "../client/Listing.ts"
import type { Context, Sample } from "./Findings.ts"
import { Gap, listOf, type Seen, type SeenList } from "./Session.ts"

/** A probe: it sends requests and reports to the findings. Only a failure that ends the comparison leaves it. */
export type Probe = (context: Context) => Effect.Effect<void, SourceError>

/** A list that was answered. */
export interface Listed {
  readonly seen: Seen
  readonly list: SeenList
}

/** Requests a list; a gap when it was refused or has no list. */
export const getList = ({ session }: Context, resource: Resource, parameters: ReadonlyArray<Parameter>) =>
  Effect.flatMap(session.get(`/${resource.path}`, parameters), (seen): Effect.Effect<Listed, Gap> => {
    const list = seen.status === 200 ? listOf(seen, resource.path) : null
    return list === null ? Effect.fail(gapOf(seen)) : Effect.succeed({ seen, list })
  })

export const gapOf = ({ shown, status, code }: Seen): Gap =>
  new Gap({ reason: `GET ${shown} was answered ${status}${code === null ? "" : ` ${code}`}` })

/** Marks the checks as not compared where an answer is missing. */
export const covering =
  ({ findings }: Context, ...checks: ReadonlyArray<string>) =>
  <E>(probe: Effect.Effect<void, E | Gap>): Effect.Effect<void, Exclude<E, Gap>> =>
    probe.pipe(
      Effect.catch((error) => {
        if (!(error instanceof Gap)) return Effect.fail(error as Exclude<E, Gap>)
        for (const check of checks) findings.unchecked(check, error.reason)
        return Effect.void
      })
    )

/** The parameter that includes cancelled records. */
export const everything = (resource: Resource): ReadonlyArray<Parameter> =>
  isCancellable(resource) ? [["cancel", "any"]] : []

export const limited = ({ learned }: Context, size: number): ReadonlyArray<Parameter> =>
  learned.limit === "applied" ? [["limit", String(Math.min(size, learned.limitMax ?? size))]] : []

export const idOf = (record: JsonObject): string | null => {
  const id = member(record, "id")
  return typeof id === "number" && Number.isSafeInteger(id) ? String(id) : null
}

export const textIn = (record: JsonObject, name: string): string | null => {
  const value = member(record, name)
  return typeof value === "string" ? value : null
}

/** Samples with records, the ones of documented resources first, then those with more records. */
export const samplesOf = ({ learned }: Context, fits: (sample: Sample) => boolean): ReadonlyArray<Sample> =>
  [...learned.samples.values()]
    .filter(fits)
    .toSorted(
      (a, b) =>
        Number(b.resource.basis === "documented") - Number(a.resource.basis === "documented") ||
        b.list.records.length - a.list.records.length
    )

/** Lists with `modifiedsince`: what they include, their order, and the position that they return. */
import * as Effect from "effect/Effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import * as Instant from "../../../src/connector/Instant.ts"
import { member } from "../client/Envelope.ts"
import { sampleSize } from "./Access.ts"
import type { Context, Sample } from "./Findings.ts"
import { covering, gapOf, getList, idOf, type Listed, limited, type Probe, samplesOf, textIn } from "./Probe.ts"
import { listOf, type Seen, type SeenList } from "./Session.ts"

/** Resources whose changes are read; the others are compared together with their filters. */
export const changesMax = 30
/** The time that the documents name for a first list. */
export const epoch = "1970-01-01T00:00:00Z"

const changed = (record: Readonly<Record<string, unknown>>): string | null => textIn(record, "lastchangedate")

/** RFC 3339 in UTC. */
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/

const isEarlier = (a: string, b: string): boolean => Instant.isAfter(b, a) === true

/** The earliest time of change of a sample. */
const earliest = ({ list }: Sample): string | null =>
  list.records
    .map(changed)
    .filter((one) => one !== null && instant.test(one))
    .reduce<string | null>((least, one) => (least === null || isEarlier(one!, least) ? one : least), null)

/** The position in an answer of a list that offers modifiedsince. */
export const checkPosition = ({ findings }: Context, seen: Seen, list: SeenList, path: string): void => {
  if (list.meta === null) return findings.unchecked("synced_through", "list answers have no _meta")
  findings.checked("synced_through")
  const position = member(list.meta, "synced_through")
  if (typeof position === "string" && instant.test(position)) return
  const isAbsent = position === undefined || position === null
  findings.differ("synced_through", {
    subject: isAbsent ? "" : path,
    seen: isAbsent ? "answers have no synced_through" : "synced_through is no time in UTC",
    answer: seen,
    ...(isAbsent ? { variant: { name: "syncedThrough", value: false } } : {})
  })
}

/** Whether the record that changed at exactly `since` is included. */
const checkInclusive = (context: Context, { resource, list: sampled }: Sample, since: string, listed: Listed) =>
  Effect.gen(function* () {
    const { findings } = context
    const expected = sampled.records.find((one) => changed(one) === since)
    const id = expected === undefined ? null : idOf(expected)
    if (id === null || !since.includes(".")) {
      return findings.unchecked("modifiedsince.inclusive", "times of whole seconds do not show it")
    }
    if (listed.list.records.some((one) => idOf(one) === id)) return findings.checked("modifiedsince.inclusive")
    if (findings.differences.has("modifiedsince.inclusive ")) return
    // It is exclusive when the record comes with a time that is only a little earlier.
    const again = yield* getList(context, resource, [
      ["modifiedsince", Instant.before(since, 1)],
      ...limited(context, sampleSize)
    ])
    if (!again.list.records.some((one) => idOf(one) === id && changed(one) === since)) {
      return findings.unchecked("modifiedsince.inclusive", "records changed meanwhile")
    }
    findings.differ("modifiedsince.inclusive", {
      seen: "a record that changed at exactly that time is left out, and comes with a millisecond less",
      answer: listed.seen,
      value: 300,
      variant: { name: "modifiedSince", value: "exclusive" }
    })
  })

/** The order of changes; equal times are ordered by id. */
const checkOrder = ({ findings }: Context, resource: Resource, { list, seen }: Listed) => {
  const { records } = list
  for (let at = 1; at < records.length; at++) {
    const [one, other] = [records[at - 1]!, records[at]!]
    const [a, b] = [changed(one), changed(other)]
    // Times of whole seconds are not the times of the order.
    if (a === null || b === null || !a.includes(".") || !b.includes(".")) continue
    findings.checked("order.changes")
    const isTie = Instant.isAfter(a, b) === false && Instant.isAfter(b, a) === false
    if (isTie ? Number(idOf(one)) < Number(idOf(other)) : isEarlier(a, b)) continue
    findings.differ("order.changes", {
      subject: isTie ? "" : resource.path,
      seen: isTie
        ? "records of the same time come in another order than by id"
        : "records come in another order than by lastchangedate",
      answer: seen,
      variant: isTie ? { name: "tieOrder", value: 1 } : null
    })
    if (!isTie) findings.notReproduced.add("changes in another order than by lastchangedate")
    return
  }
}

export const checkRefusal = ({ findings }: Context, resource: Resource, seen: Seen) => {
  findings.differ("modifiedsince.offered", {
    subject: resource.path,
    seen: `${seen.status} ${seen.code ?? ""}`.trim(),
    answer: seen
  })
  findings.notReproduced.add("modifiedsince that is refused where the documents offer it")
  findings.change({
    resource: resource.path,
    field: null,
    change: "modifiedSince",
    from: "true",
    to: "false",
    command: null
  })
}

const compareChanges = (context: Context, sample: Sample, since: string) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const { resource } = sample
    const seen = yield* session.get(`/${resource.path}`, [["modifiedsince", since], ...limited(context, sampleSize)])
    if (seen.status === 400) return checkRefusal(context, resource, seen)
    const list = seen.status === 200 ? listOf(seen, resource.path) : null
    if (list === null) return yield* gapOf(seen)
    const listed = { seen, list }
    findings.checked("modifiedsince.offered")
    checkPosition(context, seen, list, resource.path)
    findings.checked("modifiedsince.filters", list.records.length)
    const early = list.records.some((one) => {
      const time = changed(one)
      // A time of whole seconds may be cut.
      return time !== null && time.includes(".") && isEarlier(time, since)
    })
    if (early) {
      findings.differ("modifiedsince.filters", {
        subject: resource.path,
        seen: "records that changed before come too",
        answer: seen
      })
      findings.notReproduced.add("a modifiedsince that does not filter")
    }
    checkOrder(context, resource, listed)
    yield* checkInclusive(context, sample, since, listed)
  })

/** The resources whose changes are read. */
export const changesOf = (context: Context): ReadonlyArray<Sample> =>
  samplesOf(context, (sample) => sample.resource.modifiedSince && earliest(sample) !== null).slice(0, changesMax)

export const probeChanges: Probe = (context) =>
  Effect.gen(function* () {
    const { findings } = context
    const samples = changesOf(context)
    if (samples.length === 0) {
      for (const check of ["modifiedsince.inclusive", "modifiedsince.filters", "order.changes"]) {
        findings.unchecked(check, "no list with modifiedsince has records")
      }
    }
    for (const sample of samples) {
      yield* compareChanges(context, sample, earliest(sample)!).pipe(
        covering(context, "modifiedsince.offered", "modifiedsince.inclusive", "order.changes")
      )
    }
  })

/** The resources with a time of change whose lists do not offer modifiedsince. */
export const probeOthers: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, learned, session } = context
    const others = [...learned.samples.values()].filter(
      ({ resource }) =>
        !resource.modifiedSince && resource.basis !== "configured" && resource.field.has("lastchangedate")
    )
    if (others.length === 0) findings.unchecked("modifiedsince.others", "none of these resources can be read")
    for (const { resource } of others) {
      const seen = yield* session.get(`/${resource.path}`, [["modifiedsince", epoch], ...limited(context, 1)])
      findings.checked("modifiedsince.others")
      if (seen.status !== 200) continue
      findings.differ("modifiedsince.others", {
        subject: resource.path,
        seen: "modifiedsince is accepted",
        answer: seen,
        variant: { name: "modifiedSinceOnFour", value: true }
      })
      findings.change({
        resource: resource.path,
        field: null,
        change: "modifiedSince",
        from: "false",
        to: "true",
        command: null
      })
    }
  }).pipe(covering(context, "modifiedsince.others"))

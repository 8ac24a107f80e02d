/** The key of the records of a list, the size of a page, and what becomes of a limit. */
import * as Effect from "effect/Effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { SourceError } from "../../../src/connector/SourceError.ts"
import { limits } from "../catalogue/limits.ts"
import { member } from "../client/Envelope.ts"
import { hasMore } from "./Access.ts"
import type { Context } from "./Findings.ts"
import { checkStyle } from "./Lists.ts"
import { covering, everything, gapOf, getList, type Listed, type Probe, samplesOf } from "./Probe.ts"
import { type Gap, isAboutLimit, listOf, type Seen } from "./Session.ts"
import { plural } from "../../../src/text/Count.ts"

/** A limit that no service returns whole. */
const hugeLimit = 100_000
/** Resources that are tried until one can show how a limit is treated. */
const candidatesMax = 6
/** The sizes that the connector tries by itself. */
const sizesTried: ReadonlySet<number> = new Set([100, 250, 500, 1_000, 2_500])

const statedLimit = ({ list }: Listed): number | null => {
  const limit = list.meta === null ? undefined : member(list.meta, "limit")
  return typeof limit === "number" && Number.isSafeInteger(limit) ? limit : null
}

/** The key of the records. */
const checkKey = ({ findings }: Context, { list: { key }, seen }: Listed, { path }: Resource) => {
  findings.checked("list.key")
  if (key === "data") return
  const isOwn = key === path
  findings.differ("list.key", {
    seen: key === "bare" ? "a bare array" : isOwn ? "records under the resource's own name" : `records under ${key}`,
    answer: seen,
    value: isOwn || key === "bare" ? undefined : key,
    variant: { name: "itemsKey", value: isOwn ? "resource" : key }
  })
}

/** Resources that the token may read: samples with records, else those that every installation has, first. */
const candidatesOf = ({ catalogue, learned }: Context): ReadonlyArray<Resource> => {
  const sampled = [...learned.samples.values()].filter(({ list }) => list.records.length > 0)
  if (sampled.length > 0) return sampled.map(({ resource }) => resource).slice(0, candidatesMax)
  const all = [...catalogue.resources.values()].filter(
    ({ area, feature, traits }) =>
      (learned.scopes === null || traits.missingScope(learned.scopes, area, "read") === null) &&
      (feature === null || learned.features === null || learned.features.includes(feature))
  )
  const fixed = all.filter(({ area }) => area === "reference")
  return [...fixed, ...all.filter((one) => !fixed.includes(one))].slice(0, candidatesMax)
}

/** How `limit=1` is treated; returns the resource that shows it. */
const probeLimit = (context: Context) =>
  Effect.gen(function* () {
    const { findings, learned, session } = context
    learned.limit = "applied"
    for (const resource of candidatesOf(context)) {
      const seen = yield* session.get(`/${resource.path}`, [["limit", "1"], ...everything(resource)])
      if (isAboutLimit(seen)) {
        learned.limit = "unknown"
        findings.differ("page.limit", {
          seen: `limit is refused: ${seen.status} ${seen.code ?? ""}`.trim(),
          answer: seen,
          variant: { name: "limit", value: "unknown" }
        })
        return { resource, seen }
      }
      const list = seen.status === 200 ? listOf(seen, resource.path) : null
      if (list === null || list.records.length === 0) continue
      if (list.records.length === 1) return { resource, seen }
      learned.limit = "ignored"
      findings.differ("page.limit", {
        seen: `limit=1 is answered with ${plural(list.records.length, "record")}`,
        answer: seen,
        variant: { name: "limit", value: "ignored" }
      })
      return { resource, seen }
    }
    return null
  })

/** Whether the limit is accepted, and the one that the answer states; a gap for an answer about something else. */
const tryLimit = (context: Context, resource: Resource, limit: number) =>
  Effect.flatMap(
    context.session.get(`/${resource.path}`, [["limit", String(limit)], ...everything(resource)]),
    (seen): Effect.Effect<{ readonly seen: Seen; readonly listed: Listed | null }, Gap> => {
      const list = seen.status === 200 ? listOf(seen, resource.path) : null
      if (list !== null) return Effect.succeed({ seen, listed: { seen, list } })
      return isAboutLimit(seen) ? Effect.succeed({ seen, listed: null }) : Effect.fail(gapOf(seen))
    }
  )

/** The largest accepted limit between an accepted and a refused one. */
const bisect = (
  context: Context,
  resource: Resource,
  accepted: number,
  refused: number
): Effect.Effect<number, Gap | SourceError> =>
  Effect.gen(function* () {
    let [low, high] = [accepted, refused]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((yield* tryLimit(context, resource, middle)).listed === null) high = middle
      else low = middle
    }
    return low
  })

const checkMaximum = ({ findings, learned }: Context, seen: Seen, maximum: number) => {
  learned.limitMax = maximum
  findings.checked("page.maximum")
  if (maximum === limits.pageRecordsMax) return
  const isFound = maximum >= hugeLimit
  findings.differ("page.maximum", {
    seen: isFound ? `limit=${hugeLimit} is accepted` : `the largest page has ${maximum} records`,
    answer: seen,
    value: isFound || sizesTried.has(maximum) ? undefined : maximum,
    variant: { name: "pageMax", value: maximum }
  })
}

const checkClamped = ({ findings }: Context, seen: Seen, limit: number, maximum: number) =>
  findings.differ("page.limit", {
    seen: `limit=${limit} is accepted, and ${maximum} records are the most that come`,
    answer: seen,
    variant: { name: "limit", value: "clamped" }
  })

/** The maximum of a page, and what becomes of a larger limit. */
const probeMaximum = (context: Context, resource: Resource) =>
  Effect.gen(function* () {
    const { findings, learned } = context
    const above = limits.pageRecordsMax + 1
    const first = yield* tryLimit(context, resource, above)
    if (first.listed === null) {
      findings.checked("page.limit")
      const exact = yield* tryLimit(context, resource, limits.pageRecordsMax)
      const maximum =
        exact.listed !== null ? limits.pageRecordsMax : yield* bisect(context, resource, 1, limits.pageRecordsMax)
      return checkMaximum(context, exact.seen, maximum)
    }
    const stated = statedLimit(first.listed)
    if (stated !== null && stated < above) {
      checkClamped(context, first.seen, above, stated)
      return checkMaximum(context, first.seen, stated)
    }
    if (stated === null) {
      learned.limitMax = above
      return findings.unchecked(
        "page.maximum",
        "answers do not state their limit; only a list of more than 250 records shows it"
      )
    }
    const huge = yield* tryLimit(context, resource, hugeLimit)
    if (huge.listed === null) {
      findings.checked("page.limit")
      return checkMaximum(context, huge.seen, yield* bisect(context, resource, above, hugeLimit))
    }
    const most = statedLimit(huge.listed) ?? hugeLimit
    if (most < hugeLimit) checkClamped(context, huge.seen, hugeLimit, most)
    checkMaximum(context, huge.seen, most)
  })

/** The number of records where no limit is sent. */
const checkDefault = ({ findings }: Context, seen: Seen, size: number) => {
  findings.checked("page.default")
  if (size === limits.pageRecordsDefault) return
  findings.differ("page.default", {
    seen: `a page has ${plural(size, "record")} where no limit is sent`,
    answer: seen,
    variant: { name: "pageDefault", value: size }
  })
}

/** How a limit is treated, before any sample is read. */
export const probeSizes: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, learned } = context
    if (learned.isSized) return
    const shown = yield* probeLimit(context)
    if (shown === null) {
      if (learned.samples.size > 0) findings.unchecked("page.limit", "the lists that can be read have no records")
      return
    }
    learned.isSized = true
    const { resource } = shown
    if (learned.limit === "applied") yield* probeMaximum(context, resource)
    const plain = yield* getList(context, resource, everything(resource))
    checkKey(context, plain, resource)
    const stated = statedLimit(plain)
    if (stated !== null) checkDefault(context, plain.seen, stated)
  }).pipe(covering(context, "page.maximum", "page.default", "list.key"))

/** The sizes of pages by their number of records, where answers do not state them: it takes a long list. */
export const probeLongPages: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, learned } = context
    const long = samplesOf(context, ({ hasMore: isPart }) => isPart).at(-1)
    const isStated = [...learned.samples.values()].some((sample) => statedLimit(sample) !== null)
    if (isStated) return
    if (long === undefined) return findings.unchecked("page.default", "no list is longer than a page")
    const plain = yield* getList(context, long.resource, everything(long.resource))
    checkStyle(context, plain)
    if (hasMore(plain.seen, plain.list.meta)) checkDefault(context, plain.seen, plain.list.records.length)
    if (learned.limit !== "applied" || learned.limitMax !== limits.pageRecordsMax + 1) return
    const above = limits.pageRecordsMax + 1
    const longest = samplesOf(context, ({ hasMore: isPart }) => isPart)
    for (const { resource } of longest.slice(0, 3)) {
      const listed = yield* getList(context, resource, [["limit", String(above)], ...everything(resource)])
      const count = listed.list.records.length
      if (!hasMore(listed.seen, listed.list.meta)) continue
      if (count < above) checkClamped(context, listed.seen, above, count)
      return checkMaximum(context, listed.seen, count)
    }
  }).pipe(covering(context, "page.default", "page.maximum"))

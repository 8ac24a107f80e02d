/** The pages of lists, the cancel filter, and the order of records. */
import * as Effect from "effect/Effect"
import { isCancellable } from "../../../src/catalogue/Resource.ts"
import { limits } from "../catalogue/limits.ts"
import { member } from "../client/Envelope.ts"
import type { Parameter } from "../client/Listing.ts"
import { hasMore } from "./Access.ts"
import type { Context, Sample, Style } from "./Findings.ts"
import { covering, everything, gapOf, getList, idOf, type Listed, limited, type Probe, samplesOf } from "./Probe.ts"
import { listOf } from "./Session.ts"
import { plural } from "../../../src/text/Count.ts"

/** The style of a page that has a next one, or that names its position. */
const styleOf = ({ list: { meta }, seen }: Listed): Style | null => {
  if (meta !== null && "next_cursor" in meta) return "cursor"
  const link = /<([^>]*)>[^,]*rel="?next/.exec(seen.headers["link"] ?? "")?.[1]
  if (link !== undefined) {
    const parameters = new URLSearchParams(link.split("?")[1] ?? "")
    // Without metadata every style continues by links, and only the parameter tells them apart.
    return meta === null && parameters.has("page")
      ? "page"
      : meta === null && parameters.has("offset")
        ? "offset"
        : "link"
  }
  if (meta !== null && "page" in meta) return "page"
  return meta !== null && "offset" in meta ? "offset" : null
}

/** How lists continue, by the first answer that shows it. */
export const checkStyle = ({ findings, learned }: Context, listed: Listed) => {
  const style = styleOf(listed)
  if (style === null || learned.style !== null) return
  learned.style = style
  findings.checked("list.paging")
  const isBare = listed.list.meta === null
  if (style === "cursor" || (isBare && style === "link")) return
  findings.differ("list.paging", {
    seen:
      style === "link"
        ? 'a list continues by the header Link with rel="next"'
        : `a list continues by the parameter ${style}`,
    answer: listed.seen,
    value: isBare ? undefined : style,
    variant: { name: "paging", value: style }
  })
}

/** Path and parameters of the next page; null after the last one. */
const nextOf = (
  { learned, session }: Context,
  { list, seen }: Listed,
  path: string,
  parameters: ReadonlyArray<Parameter>,
  at: { readonly page: number; readonly offset: number }
): readonly [path: string, parameters: ReadonlyArray<Parameter>] | null => {
  if (!hasMore(seen, list.meta)) return null
  const link = /<([^>]*)>[^,]*rel="?next/.exec(seen.headers["link"] ?? "")?.[1]
  const below = link === undefined ? null : session.base.below(link, seen.path)
  if (below !== null) return [below, []]
  const cursor = list.meta === null ? undefined : member(list.meta, "next_cursor")
  if (typeof cursor === "string") return [path, [...parameters, ["cursor", cursor]]]
  if (learned.style === "page") return [path, [...parameters, ["page", String(at.page + 1)]]]
  if (learned.style === "offset") return [path, [...parameters, ["offset", String(at.offset)]]]
  return null
}

const pagesMax = 8

/** Reads a list in pages of two or three records, and compares it with the list in one page. */
const walk = (context: Context, { resource, list: whole, hasMore: isPart }: Sample, size: number) =>
  Effect.gen(function* () {
    const { findings, session } = context
    const parameters = [...limited(context, size), ...everything(resource)]
    const ids: Array<string | null> = []
    const synced = new Set<unknown>()
    let page: Listed = yield* getList(context, resource, parameters)
    const first = page.seen
    for (let count = 1; ; count++) {
      ids.push(...page.list.records.map(idOf))
      checkStyle(context, page)
      const position = page.list.meta === null ? undefined : member(page.list.meta, "synced_through")
      if (typeof position === "string") synced.add(position)
      const next = nextOf(context, page, `/${resource.path}`, parameters, { page: count, offset: ids.length })
      if (next !== null) {
        findings.checked("page.full")
        if (page.list.records.length < size) {
          findings.differ("page.full", {
            seen: `${page.list.records.length} of ${size} records, although more follow`,
            answer: page.seen,
            variant: { name: "pageSizes", value: 1 }
          })
        }
      }
      if (next === null || count === pagesMax) break
      const seen = yield* session.get(...next)
      const list = seen.status === 200 ? listOf(seen, resource.path) : null
      if (list === null) return yield* gapOf(seen)
      page = { seen, list }
    }
    findings.checked("page.complete")
    const expected = whole.records.map(idOf).slice(0, ids.length)
    const isWhole = ids.length >= whole.records.length || hasMore(page.seen, page.list.meta) || isPart
    if (new Set(ids).size < ids.length || !isWhole || expected.some((id) => !ids.includes(id))) {
      findings.differ("page.complete", {
        subject: resource.path,
        seen: `pages of ${size} have ${new Set(ids).size} records, and one page has ${expected.length}`,
        answer: first
      })
      findings.notReproduced.add("pages that lose or repeat records")
    }
    if (context.learned.style === "page" || context.learned.style === "offset") {
      return findings.unchecked("synced_through.stable", "pages that are counted carry no position")
    }
    if (synced.size > 0) findings.checked("synced_through.stable")
    if (synced.size > 1) {
      findings.differ("synced_through.stable", {
        subject: resource.path,
        seen: plural(synced.size, "value"),
        answer: first
      })
      findings.notReproduced.add("a synced_through that differs between the pages of a list")
    }
  })

/** Pages of small lists, after the samples. */
export const probePages: Probe = (context) =>
  Effect.gen(function* () {
    const { findings, learned } = context
    for (const sample of learned.samples.values()) checkStyle(context, sample)
    const full = samplesOf(context, ({ hasMore: isPart }) => isPart)
    for (const { list, seen } of full) {
      const size =
        learned.limit === "applied"
          ? Math.min(limits.pageRecordsDefault, learned.limitMax ?? limits.pageRecordsDefault)
          : null
      findings.checked("page.full")
      if (size !== null && list.records.length < size) {
        findings.differ("page.full", {
          seen: `${list.records.length} of ${size} records, although more follow`,
          answer: seen,
          variant: { name: "pageSizes", value: 1 }
        })
      }
    }
    const small = samplesOf(context, ({ list, hasMore: isPart }) => !isPart && list.records.length >= 3)
    const [one, other] = small.toSorted(
      (a, b) => Math.abs(a.list.records.length - 7) - Math.abs(b.list.records.length - 7)
    )
    if (learned.limit !== "applied") {
      for (const check of ["page.full", "page.complete"])
        findings.unchecked(check, "no limit is applied, so that small lists have one page")
    } else if (one === undefined) {
      for (const check of ["page.full", "page.complete"]) findings.unchecked(check, "no list has three records")
    } else {
      yield* walk(context, one, 2)
      yield* walk(context, other ?? one, 3)
    }
  }).pipe(covering(context, "page.full", "page.complete", "synced_through.stable"))

const isCancelled = (record: Readonly<Record<string, unknown>>): boolean => member(record, "cancel") === true

/** The meaning of the cancel filter, on lists that one page holds. */
export const probeCancel: Probe = (context) =>
  Effect.gen(function* () {
    const { findings } = context
    const whole = samplesOf(
      context,
      ({ resource, list, hasMore: isPart }) =>
        isCancellable(resource) && !isPart && list.records.some((one) => !isCancelled(one))
    )
    const mixed = whole.filter(({ list }) => list.records.some(isCancelled))
    const only = whole.find(({ resource }) => resource.cancelFilter === "only")
    const includes =
      mixed.find(({ resource }) => resource.cancelFilter === "includes") ??
      whole.find(({ resource }) => resource.cancelFilter === "includes")
    if (only === undefined)
      findings.unchecked("cancel.true", "no list of a resource whose cancel=true means cancelled only has records")
    if (includes === undefined)
      findings.unchecked("cancel.true", "no list of other resources has records that are not cancelled")
    for (const sample of [only, includes]) {
      if (sample === undefined) continue
      const { resource } = sample
      const { list, seen } = yield* getList(context, resource, [
        ["cancel", "true"],
        ...limited(context, limits.pageRecordsDefault)
      ])
      findings.checked("cancel.true")
      const meaning = list.records.some((one) => !isCancelled(one)) ? "includes" : "only"
      if (meaning === resource.cancelFilter) continue
      findings.differ("cancel.true", {
        subject: resource.cancelFilter === "only" ? resource.path : "",
        seen: `${resource.path}: ${meaning === "only" ? "only cancelled records come" : "records that are not cancelled come too"}`,
        answer: seen,
        variant: { name: "cancelTrue", value: meaning }
      })
    }
    const [hidden] = mixed
    if (hidden === undefined) return findings.unchecked("cancel.default", "no list has cancelled records beside others")
    const { list, seen } = yield* getList(context, hidden.resource, limited(context, limits.pageRecordsDefault))
    findings.checked("cancel.default")
    if (!list.records.some(isCancelled)) return
    findings.differ("cancel.default", {
      subject: hidden.resource.path,
      seen: "cancelled records come too",
      answer: seen
    })
    findings.notReproduced.add("cancelled records in lists without cancel")
  }).pipe(covering(context, "cancel.true", "cancel.default"))

/** The order of ids in all samples. */
export const compareOrder = ({ findings, learned }: Context): void => {
  for (const { list, resource, seen } of learned.samples.values()) {
    if (list.records.length < 2) continue
    findings.checked("order.ids")
    const ids = list.records.map((one) => Number(idOf(one)))
    if (ids.every((id, at) => at === 0 || id > ids[at - 1]!)) continue
    findings.differ("order.ids", { subject: resource.path, seen: "records in another order", answer: seen })
    findings.notReproduced.add("lists in another order than by id")
  }
}

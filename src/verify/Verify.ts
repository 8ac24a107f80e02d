/**
 * Verifying one resource of one company: does the warehouse hold what the source says, row by row, value by value?
 *
 * Promise: nothing is called equal that is not. The source is read as bytes and parsed here, never by what loads
 * records (a sample read record by record is the exception, and says so). The source moves while it is compared, so a
 * difference is believed only when a second look, at both sides, still finds it. A record whose own stamp is later than
 * what the last sync has read through, or which waits to be read again, is told apart as not yet synced; it is a
 * difference all the same. Memory holds a page, eight bytes for each record, and the differences.
 */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { ConnectorShape, PageRequest, RawPage, Where } from "../connector/Connector.ts"
import { emptyPagesMax, makeNews } from "../connector/Repeats.ts"
import { PagingBroken, SourceError } from "../connector/SourceError.ts"
import type { Table } from "../warehouse/Table.ts"
import * as Compare from "./Compare.ts"
import * as Expected from "./Expected.ts"
import * as WarehouseRows from "./WarehouseRows.ts"
import * as Sample from "./Sample.ts"

/** A record that is not the same on both sides, after the second look. */
export interface Mismatch {
  readonly id: string
  readonly kind: "missing" | "surplus" | "different"
  /** The source's version is newer than the last sync, or asked for already: the next sync brings it. */
  readonly notYetSynced: boolean
  /** The warehouse has the record, as deleted. */
  readonly isDeleted: boolean
  /** Why it could not be landed, when it stands in quarantine. */
  readonly quarantined: string | null
  readonly fields: ReadonlyArray<Compare.FieldDifference>
}

export interface RepairReport {
  readonly asked: number
  readonly mended: number
  /** What still differs. */
  readonly left: number
  /** Why the records could not be read again; null when they were. */
  readonly failure: string | null
}

export interface SampleReport {
  readonly seed: number
  /** Rows drawn from the warehouse, deleted ones among them. */
  readonly rows: number
  /** Numbers tried that the warehouse has no row for. */
  readonly gaps: number
  /** Records of the source that were looked at. */
  readonly records: number
  /** The chance that this sample meets a fault in one of a hundred rows. */
  readonly chance: number
}

export interface ResourceReport {
  readonly companyId: bigint
  readonly resource: string
  /** `waiting`: what differs is not yet synced, and nothing else. `failed`: could not be compared to the end. */
  readonly status: "equal" | "waiting" | "unequal" | "failed" | "skipped"
  /** Null when everything was compared. */
  readonly sample: SampleReport | null
  /** Different records at the source; in a sample those that were looked at. */
  readonly source: number
  /** Rows in the warehouse that are not deleted. */
  readonly warehouse: number
  /** Records of the resource that stand in quarantine. */
  readonly quarantined: number
  readonly missing: number
  readonly surplus: number
  readonly different: number
  /** How many of the three are not yet synced. */
  readonly notYetSynced: number
  /** Records of the source without a number that a row could have. */
  readonly unreadable: number
  /** Records that the source showed more than once. */
  readonly repeated: number
  /** Differences that the second look did not find again: the source or the warehouse had moved. */
  readonly moved: number
  readonly requests: number
  readonly findings: ReadonlyArray<Mismatch>
  /** Differences beyond those in `findings`; counted after the first look only. */
  readonly more: number
  readonly repair: RepairReport | null
  readonly remarks: ReadonlyArray<string>
  readonly failure: VerifyFailure | null
}

export interface VerifyFailure {
  readonly message: string
  readonly remedy: string
  /** Whether the source said no, so that only a person can help. */
  readonly refused: boolean
}

/** Brings records over again by their numbers; answers why it could not, or null. */
export type Repair<R> = (ids: ReadonlyArray<string>) => Effect.Effect<string | null, never, R>

export interface VerifyOptions<R> {
  readonly companyId: bigint
  readonly connector: ConnectorShape
  readonly table: Table
  /** How many records to draw; null compares everything. */
  readonly sample: number | null
  readonly seed: number
  /** Null leaves the differences as they are. */
  readonly repair: Repair<R> | null
  /** Whether a person named the resource; then one that may not be read is a failure even when nothing of it is held. */
  readonly named?: boolean
  /** Differences that are kept with their fields; more are counted. */
  readonly findingsMax?: number
}

export const findingsMaxDefault = 100_000
/** Findings that keep both values of their fields; the rest keep the names, so that memory stays bounded. */
const valuedMax = 1_000
/** Characters of a value that are kept. */
const shownMax = 300
/** Beyond this many, looking for absent records one by one costs more than reading everything. */
const lookUpsMax = 250
/** A scan whose pages moved or whose token expired begins again this often. */
const restartsMax = 2
/** Records of a sample that are read at the same time. */
const concurrency = 4
/** Records whose re-reading is asked for; more are not told apart. */
const asksMax = 10_000

/** A record to look at again, and the page of the scan that showed it; null when none did. */
interface Suspect {
  readonly id: string
  readonly page: number | null
}

/** Long values from where they differ. */
const cut = (difference: Compare.FieldDifference): Compare.FieldDifference => {
  const { field, source, warehouse } = difference
  if ((source?.length ?? 0) <= shownMax && (warehouse?.length ?? 0) <= shownMax) return difference
  let same = 0
  if (source !== null && warehouse !== null) {
    while (same < source.length && source[same] === warehouse[same]) same++
  }
  const from = Math.max(0, same - 40)
  const shorter = (value: string | null) =>
    value === null
      ? null
      : `${from > 0 ? "…" : ""}${value.slice(from, from + shownMax)}${value.length > from + shownMax ? `… (${value.length} characters)` : ""}`
  return { field, source: shorter(source), warehouse: shorter(warehouse) }
}

const pagingBroken = (path: string, detail: string) =>
  new SourceError({
    reason: new PagingBroken({ detail }),
    request: { method: "GET", path: `/${path}`, requestId: null }
  })

const beginsAgain = (error: SourceError): boolean =>
  error.reason._tag === "PageDrift" || error.reason._tag === "PageTokenRefused"

const failureOf = (error: SourceError): VerifyFailure => ({
  message: error.message,
  remedy: error.remedy,
  refused: error.reason._tag === "Unauthorized" || error.reason._tag === "Forbidden"
})

/** What the pipeline knows that it has not read yet. */
interface Pending {
  /** The cursor as an instant; null when the resource has none. */
  readonly cursor: string | null
  /** Values of fields whose records are to be read again. */
  readonly asks: ReadonlyMap<string, ReadonlySet<string>>
}

const readPending = Effect.fnUntraced(function* (companyId: bigint, resource: string) {
  const sql = yield* SqlClient.SqlClient
  const [checkpoint] = yield* sql<{ cursor: string | null }>`
    select cursor from tributary.checkpoints where company_id = ${companyId} and resource = ${resource} and lane = 'live'`
  const rereads = yield* sql<{ field: string; value: string }>`
    select field, value from tributary.rereads where company_id = ${companyId} and resource = ${resource} limit ${asksMax}`
  const asks = new Map<string, Set<string>>()
  for (const { field, value } of rereads) asks.set(field, (asks.get(field) ?? new Set()).add(value))
  const cursor = checkpoint?.cursor ?? null
  return { cursor: cursor === null ? null : (Expected.instantOf(cursor)?.text ?? null), asks } satisfies Pending
})

const quarantineOf = Effect.fnUntraced(function* (companyId: bigint, resource: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ count: number }>`
    select count(*)::int as count from tributary.quarantine
     where company_id = ${companyId} and resource = ${resource} and resolved_at is null`
  return row?.count ?? 0
})

const quarantineReasons = Effect.fnUntraced(function* (companyId: bigint, resource: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; reason: string }>`
    select record_id as id, max(coalesce(field || ' ', '') || reason) as reason from tributary.quarantine
     where company_id = ${companyId} and resource = ${resource} and resolved_at is null and record_id is not null
     group by record_id`
  return new Map(rows.map(({ id, reason }) => [id, reason]))
})

/** One resource under verification: both sides, and what is known so far. */
const verifyWith = Effect.fnUntraced(function* <R>(options: VerifyOptions<R>, count: { requests: number }) {
  const { companyId, connector, table } = options
  const { resource } = table
  const findingsMax = options.findingsMax ?? findingsMaxDefault
  // Of a resource that only the configuration names nobody knows whether it answers by number: absent may mean refused.
  const canRetrieve = resource.operations.includes("R") && resource.basis !== "configured"
  const rows = yield* WarehouseRows.make(table, companyId)
  const reader = Expected.reader(table)
  const remarks: Array<string> = []

  // -- the source ------------------------------------------------------------------------------------------------------

  const rawPage = (token: string | null, where: Where | null): Effect.Effect<RawPage, SourceError> => {
    const request: PageRequest = { resource, since: null, token, where }
    return Effect.tap(connector.rawPage(request), (page) =>
      Effect.sync(() => {
        count.requests += page.attempts
      })
    )
  }

  /** Every page of a list, in order; the next one is on its way while one is compared. */
  const eachPage = Effect.fnUntraced(function* <E>(
    where: Where | null,
    visit: (page: RawPage, token: string | null) => Effect.Effect<void, E>
  ): Effect.fn.Return<void, SourceError | E> {
    const tokens = new Set<string>()
    const isNews = makeNews()
    let token: string | null = null
    let without = 0
    let page = yield* rawPage(null, where)
    for (;;) {
      const next: string | null = page.next
      if (next === null) return yield* visit(page, token)
      without = isNews(page.records) ? 0 : without + 1
      if (without >= emptyPagesMax) {
        return yield* pagingBroken(resource.path, `${without} pages in a row had no new record and named a next page`)
      }
      if (tokens.has(next)) return yield* pagingBroken(resource.path, "a page leads back to one already read")
      tokens.add(next)
      const [, following] = yield* Effect.all([visit(page, token), rawPage(next, where)], { concurrency: 2 })
      token = next
      page = following
    }
  })

  /** A record by its number; null when the source has none. */
  const retrieve = (id: string): Effect.Effect<Expected.Expected | null, SourceError> =>
    Effect.map(connector.get(resource, id), ({ record, rejected }) => {
      count.requests += 1
      if (rejected !== null) return reader.raw(rejected.bytes)
      return record === null ? null : reader.record(record)
    })

  // -- the second look -------------------------------------------------------------------------------------------------

  const findingOf = (
    verdict: Compare.Verdict & { readonly id: string },
    pending: Pending,
    asked: Expected.Expected
  ) => {
    const isNewer = pending.cursor !== null && verdict.changedAt !== null && verdict.changedAt > pending.cursor
    const isAsked =
      pending.asks.get("id")?.has(verdict.id) === true ||
      [...pending.asks].some(([field, values]) => {
        const place = resource.fields.findIndex((one) => one.name === field)
        const sent = asked.columns[place]
        const value = sent === undefined ? null : Expected.canonicalOf(resource.fields[place]!, sent)
        return value !== null && values.has(value)
      })
    return {
      id: verdict.id,
      kind: verdict.kind === "equal" ? "different" : verdict.kind,
      notYetSynced: resource.modifiedSince && isNewer ? true : isAsked,
      isDeleted: verdict.isDeleted,
      quarantined: null,
      fields: verdict.fields
    } satisfies Mismatch
  }

  /** Looks at both sides again. Answers what still differs. */
  const lookAgain = Effect.fnUntraced(function* (
    suspects: ReadonlyArray<Suspect>,
    tokens: ReadonlyArray<string | null>,
    byNumber: boolean
  ): Effect.fn.Return<ReadonlyArray<Mismatch>, SourceError | SqlError, SqlClient.SqlClient> {
    if (suspects.length === 0) return []
    // Read before the rows are: what it covers has been landed when they are looked at.
    const pending = yield* readPending(companyId, resource.path)
    const findings = new Map<string, Mismatch>()
    const left = new Map(suspects.map((suspect) => [suspect.id, suspect]))

    const judge = Effect.fnUntraced(function* (expected: ReadonlyArray<Expected.Expected>) {
      const verdicts = yield* Compare.judgeAll(table, rows, expected)
      for (const [at, verdict] of verdicts.entries()) {
        const { id } = verdict
        if (id === null) continue
        left.delete(id)
        if (verdict.kind === "equal") continue
        const finding = findingOf({ ...verdict, id }, pending, expected[at]!)
        const fields =
          findings.size < valuedMax
            ? finding.fields.map(cut)
            : finding.fields.map(({ field }) => ({ field, source: null, warehouse: null }))
        findings.set(id, { ...finding, fields })
      }
    })
    const judgePage = (page: RawPage) =>
      judge(page.records.map(reader.raw).filter(({ id }) => id !== null && (left.has(id) || findings.has(id))))
    /** The source has no such record: the warehouse must not have it either. */
    const judgeAbsent = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const held = yield* rows.byIds(ids)
      for (const id of ids) {
        left.delete(id)
        const row = held.get(id)
        if (row === undefined || row.isDeleted) continue
        const notYetSynced = pending.asks.get("id")?.has(id) === true
        findings.set(id, { id, kind: "surplus", notYetSynced, isDeleted: false, quarantined: null, fields: [] })
      }
    })

    const lookUp = Effect.fnUntraced(function* (ids: ReadonlyArray<string>, judgePresent: boolean) {
      const answers = yield* Effect.forEach(ids, (id) => Effect.map(retrieve(id), (found) => ({ id, found })), {
        concurrency
      })
      yield* judgeAbsent(answers.filter(({ found }) => found === null).map(({ id }) => id))
      if (judgePresent) yield* judge(answers.flatMap(({ found }) => (found === null ? [] : [found])))
    })

    if (byNumber) {
      yield* lookUp([...left.keys()], true)
    } else {
      // Rows that no page showed: those that are deleted by now are settled, the rest may be asked for one by one. Only
      // that a record is absent is believed of such an answer; what is there is compared from its bytes.
      const unseen = [...left.values()].filter(({ page }) => page === null).map(({ id }) => id)
      for (const [id, row] of yield* rows.byIds(unseen)) if (row.isDeleted) left.delete(id)
      const asked = unseen.filter((id) => left.has(id))
      if (canRetrieve && asked.length <= lookUpsMax) yield* lookUp(asked, false)
      // The pages that showed the others.
      const pages = new Set([...left.values()].flatMap(({ page }) => (page === null ? [] : [page])))
      if (pages.size < tokens.length) {
        yield* Effect.forEach(pages, (page) => Effect.flatMap(rawPage(tokens[page] ?? null, null), judgePage)).pipe(
          // The whole list is read below.
          Effect.catch((error) =>
            error._tag === "SourceError" && beginsAgain(error) ? Effect.void : Effect.fail(error)
          )
        )
      }
    }
    const told = () => [...findings.values()].toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1))
    if (left.size === 0) return told()
    for (let restarts = 0; ; restarts += 1) {
      const scanned = yield* Effect.result(eachPage(null, judgePage))
      if (scanned._tag === "Success") break
      const error = scanned.failure
      if (error._tag !== "SourceError" || !beginsAgain(error) || restarts >= restartsMax) return yield* error
    }
    yield* judgeAbsent([...left.keys()])
    return told()
  })

  // -- the first look --------------------------------------------------------------------------------------------------

  interface Look {
    readonly suspects: Map<string, Suspect>
    readonly counts: { missing: number; surplus: number; different: number }
    /** Suspects beyond what is kept, by kind. */
    readonly beyond: { missing: number; surplus: number; different: number }
    readonly met: Compare.MetIds
    unreadable: number
    readonly tokens: Array<string | null>
    warehouse: number
    sample: SampleReport | null
    byNumber: boolean
  }
  const newLook = (): Look => ({
    suspects: new Map(),
    counts: { missing: 0, surplus: 0, different: 0 },
    beyond: { missing: 0, surplus: 0, different: 0 },
    met: new Compare.MetIds(),
    unreadable: 0,
    tokens: [],
    warehouse: 0,
    sample: null,
    byNumber: false
  })
  const suspect = (look: Look, id: string, kind: Mismatch["kind"], page: number | null) => {
    if (look.suspects.has(id)) return
    if (look.suspects.size < findingsMax) look.suspects.set(id, { id, page })
    else look.beyond[kind] += 1
  }
  const take = Effect.fnUntraced(function* (
    look: Look,
    expected: ReadonlyArray<Expected.Expected>,
    page: number | null
  ) {
    for (const verdict of yield* Compare.judgeAll(table, rows, expected)) {
      if (verdict.id === null) {
        look.unreadable += 1
        continue
      }
      look.met.add(verdict.id)
      if (verdict.kind !== "equal") suspect(look, verdict.id, verdict.kind, page)
    }
  })

  const wholeLook = Effect.gen(function* () {
    for (let restarts = 0; ; restarts += 1) {
      const look = newLook()
      const scanned = yield* Effect.result(
        eachPage(null, (page, token) => {
          look.tokens.push(token)
          return take(look, page.records.map(reader.raw), look.tokens.length - 1)
        })
      )
      if (scanned._tag === "Failure") {
        const error = scanned.failure
        if (error._tag !== "SourceError" || !beginsAgain(error) || restarts >= restartsMax) return yield* error
        continue
      }
      look.warehouse = yield* Compare.eachSurplus(rows, look.met, (id) => suspect(look, id, "surplus", null))
      return look
    }
  })

  /** Record by record, where the source answers one by its number. */
  const sampleByNumber = Effect.fnUntraced(function* (size: number) {
    const look = newLook()
    look.byNumber = true
    const extent = yield* rows.extent
    look.warehouse = extent.live
    const drawn = (yield* rows.draw(size, options.seed, [])).map(({ id }) => id)
    // A record that was never landed has no row to be drawn: numbers without a row are tried too, also above the last.
    const tries = Math.ceil(size / 5)
    const numbers = Sample.numbersBetween(
      options.seed,
      tries,
      extent.min < 1n ? extent.min : 1n,
      extent.max + BigInt(tries)
    )
    const known = yield* rows.byIds([...drawn, ...numbers])
    const gaps = numbers.filter((id) => !known.has(id))
    const answers = yield* Effect.forEach(
      [...new Set([...drawn, ...gaps])],
      (id) => Effect.map(retrieve(id), (found) => ({ id, found })),
      { concurrency }
    )
    yield* take(
      look,
      answers.flatMap(({ found }) => (found === null ? [] : [found])),
      null
    )
    for (const { id, found } of answers) {
      const row = known.get(id)
      if (found === null && row !== undefined && !row.isDeleted) suspect(look, id, "surplus", null)
    }
    look.sample = {
      seed: options.seed,
      rows: drawn.length,
      gaps: gaps.length,
      records: answers.filter(({ found }) => found !== null).length,
      chance: 0
    }
    return look
  })

  /** With their neighbours, where the source lists the records that have a value. */
  const sampleByFilter = Effect.fnUntraced(function* (size: number) {
    const offered = [
      ...(resource.parent === null ? [] : [resource.parent.field]),
      ...(resource.field.has("externalid") ? ["externalid"] : []),
      ...resource.filters.filter(({ match }) => match === "exact").map(({ field }) => field)
    ]
    const places = [...new Set(offered)].map((name) => resource.fields.findIndex((field) => field.name === name))
    const distinct = yield* rows.distinct(places)
    const ranked = places
      .map((place, at) => ({ place, distinct: distinct[at] ?? 0 }))
      .toSorted((a, b) => b.distinct - a.distinct)
      .map(({ place }) => place)
    const drawn = yield* rows.draw(size, options.seed, ranked)
    const groups = new Map<string, { readonly place: number; readonly value: string }>()
    for (const { values } of drawn) {
      const at = values.findIndex((value) => value !== null && value !== "")
      if (at < 0) return null
      groups.set(`${ranked[at]}:${values[at]}`, { place: ranked[at]!, value: values[at]! })
    }
    const look = newLook()
    look.warehouse = (yield* rows.extent).live
    let records = 0
    for (const { place, value } of groups.values()) {
      const met = new Set<string>()
      yield* eachPage({ field: resource.fields[place]!.name, value }, (page) => {
        const expected = page.records.map(reader.raw)
        for (const { id } of expected) if (id !== null) met.add(id)
        return take(look, expected, null)
      })
      records += met.size
      for (const id of yield* rows.liveIdsWhere(place, value)) if (!met.has(id)) suspect(look, id, "surplus", null)
    }
    look.sample = { seed: options.seed, rows: drawn.length, gaps: 0, records, chance: 0 }
    return look
  })

  const firstLook = Effect.gen(function* () {
    const size = options.sample
    if (size === null) return yield* wholeLook
    const { live, deleted } = yield* rows.extent
    if (live + deleted === 0) {
      remarks.push("the warehouse has no row to draw: everything was compared")
      return yield* wholeLook
    }
    const look = canRetrieve ? yield* sampleByNumber(size) : yield* sampleByFilter(size)
    if (look === null) {
      remarks.push("it cannot be sampled (no record by number, no filter that finds one): everything was compared")
      return yield* wholeLook
    }
    const total = live + deleted
    const chance = Sample.chanceOfFinding(size, total, Math.ceil(total / 100))
    return { ...look, sample: look.sample === null ? null : { ...look.sample, chance } }
  })

  // -- the whole -------------------------------------------------------------------------------------------------------

  const look = yield* firstLook
  let findings = yield* lookAgain([...look.suspects.values()], look.tokens, look.byNumber)
  const moved = look.suspects.size - findings.length
  const { distinct, repeated } = look.met.counts()

  let repair: RepairReport | null = null
  if (options.repair !== null && findings.length > 0) {
    const asked = findings.length
    const failure = yield* options.repair(findings.map(({ id }) => id))
    const suspects = findings.map(({ id }) => ({ id, page: look.suspects.get(id)?.page ?? null }))
    findings = yield* lookAgain(suspects, look.tokens, look.byNumber)
    repair = { asked, mended: asked - findings.length, left: findings.length, failure }
    if (!canRetrieve) remarks.push("records of this resource cannot be read by number: the repair read its list")
  }

  const reasons = findings.length === 0 ? new Map<string, string>() : yield* quarantineReasons(companyId, resource.path)
  findings = findings.map((finding) => ({ ...finding, quarantined: reasons.get(finding.id) ?? null }))
  const counted = (kind: Mismatch["kind"]) =>
    findings.filter((finding) => finding.kind === kind).length + look.beyond[kind]
  const more = look.beyond.missing + look.beyond.surplus + look.beyond.different
  const notYetSynced = findings.filter((finding) => finding.notYetSynced).length
  const wrong = findings.length - notYetSynced + more + look.unreadable
  if (repeated > 0 && look.sample === null) {
    remarks.push(`the source showed ${repeated} records more than once; each time was compared`)
  }
  if (look.unreadable > 0) {
    remarks.push(`${look.unreadable} records of the source have no number that a row could have`)
  }
  if (more > 0) remarks.push(`${more} differences beyond the first ${findingsMax} were counted after one look only`)
  if (wrong > 0 && !resource.modifiedSince) {
    remarks.push(
      "its records carry no stamp to ask by, so a change after the last sync looks like a fault: sync, then verify again"
    )
  }
  return {
    companyId,
    resource: resource.path,
    status: wrong > 0 ? "unequal" : notYetSynced > 0 ? "waiting" : "equal",
    sample: look.sample,
    source: distinct + look.unreadable,
    warehouse: look.warehouse,
    quarantined: yield* quarantineOf(companyId, resource.path),
    missing: counted("missing"),
    surplus: counted("surplus"),
    different: counted("different"),
    notYetSynced,
    unreadable: look.unreadable,
    repeated: look.sample === null ? repeated : 0,
    moved,
    requests: count.requests,
    findings,
    more,
    repair,
    remarks,
    failure: null
  } satisfies ResourceReport
})

/** Whether the source does not offer the resource to this token, while the rest goes on. */
const isWithheld = (error: SourceError): boolean =>
  error.stops === "resource" && (error.reason._tag === "Forbidden" || error.reason._tag === "NotImplemented")

/** Verifies one resource of one company. A source that fails is told in the report. */
export const verifyResource = Effect.fn("verifyResource")(function* <R = never>(
  options: VerifyOptions<R>
): Effect.fn.Return<ResourceReport, SqlError, SqlClient.SqlClient | R> {
  const count = { requests: 0 }
  const result = yield* Effect.result(verifyWith(options, count))
  if (result._tag === "Success") return result.success
  const error = result.failure
  if (error._tag !== "SourceError") return yield* error
  const { companyId, table } = options
  const { live } = yield* (yield* WarehouseRows.make(table, companyId)).extent
  // What is withheld and of which nothing stands in the warehouse needs no comparing.
  const isNothing = isWithheld(error) && live === 0 && options.named !== true
  return {
    companyId,
    resource: table.resource.path,
    status: isNothing ? "skipped" : "failed",
    sample: null,
    source: 0,
    warehouse: live,
    quarantined: yield* quarantineOf(companyId, table.resource.path),
    missing: 0,
    surplus: 0,
    different: 0,
    notYetSynced: 0,
    unreadable: 0,
    repeated: 0,
    moved: 0,
    requests: count.requests,
    findings: [],
    more: 0,
    repair: null,
    remarks: isNothing ? [`not compared: ${error.message}`] : [],
    failure: isNothing ? null : failureOf(error)
  }
})

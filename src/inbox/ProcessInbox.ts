/**
 * Acting on events: reading what they hint at.
 *
 * Promise: every event that waits is answered by a read that began after it had come, or by a row that shows that it needs
 * none, and is settled with a reason where that is not plain; nothing of its body is ever loaded. Whatever fails is tried
 * again, the others meanwhile go on, and what is given up stays for a person. Several processes may work on one inbox,
 * and any of them may end at any point: no event is lost, and acting on one twice does no harm.
 *
 * How a record is read: by its number, as long as that is cheap. Where more than {@link scanMinEvents} records of a resource
 * wait, and there are more of them than {@link fetchesPerPage} times the pages that a scan from the cursor would have (it
 * reads again what changed within its overlap), one scan answers them together.
 *
 * Resources have their turns (see Turns.ts). What may read every record of a resource, and the children of changed
 * parents, are read beside the work on events.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Latch from "effect/Latch"
import * as EffectQueue from "effect/Queue"
import * as Random from "effect/Random"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import { type DeliveryReader, isEvent } from "../connector/Delivery.ts"
import type { LandingResult } from "../land/WriteSession.ts"
import type { Table } from "../warehouse/Table.ts"
import type { Failure } from "../sync/Outcome.ts"
import { failureOf } from "../sync/Outcome.ts"
import { parentsMax } from "../sync/SyncResource.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { childrenOf, type Company } from "../sync/Company.ts"
import * as CircuitBreaker from "./CircuitBreaker.ts"
import { retryOrDeadLetter, type FetchRequest, fetchRecords, sliceMs, visibilityDelay } from "./RecordFetcher.ts"
import * as InboxStore from "./InboxStore.ts"
import { isComplete, refresh, type RefreshOptions } from "./Refresh.ts"
import * as FairShare from "./FairShare.ts"

export interface WorkerOptions {
  readonly company: Company
  readonly reader: DeliveryReader
  /** Whose `arrived` wakes the worker; without one it looks about once a second. */
  readonly inbox?: { readonly arrived: Latch.Latch } | undefined
  /** How often {@link run} looks for events that nothing announced; default: each second. */
  readonly lookEveryMs?: number
}

/** What a worker did. */
export interface WorkerStats {
  readonly done: number
  readonly dead: number
  readonly ignored: number
  /** Times that an event was put off: its record is not visible yet, or its read failed. */
  readonly putOff: number
  /** Why the rest still waits; null when nothing that is due does. */
  readonly stopped: string | null
}

/** Events looked at together. */
const takenMax = 500
const lookEveryMs = 1_000
/** How soon after a look the next one may follow: what comes meanwhile is found by it together. */
const lookAgainMs = 100
const renewEveryMs = 3_000
const lingerMs = 2_000
/** A resource that somebody else holds is left alone for so long… */
const restMs = 2_000
/** … and one on which the work failed for so long. */
const failedRestMs = 5_000
/** Between two long turns on a resource, so that somebody else who wants it (a repair, a new column) gets it. */
const handOverMs = 300
/** Every record of a resource is read at most so often on behalf of events, where it was read in full before. */
const sweepEveryMs = 60_000
/**
 * Reading the whole of a resource on behalf of events takes at most this share of the time, and of the request budget;
 * meanwhile they gather: each scan reads again what changed within its overlap.
 */
const wholeShare = 1 / 3
/** Children of changed parents are read at most so often, and what others ask for of them is looked up as often. */
const childrenEveryMs = 5_000
/** A scan that did not go well, or answered few, is not tried again for many for so long. */
const scanAgainMs = 60_000
/** A drain waits so long for what another process has claimed before it looks again. */
const claimedWaitMs = 250
const drainFailuresMax = 3

/** More records than this wait before a scan is thought of. */
export const scanMinEvents = 25
/** A page of a scan costs about as much as so many records read side by side. */
export const fetchesPerPage = 10
const pageRecordsDefault = 100

/** Records that were read one by one: a scan from the cursor would meet them again. */
interface Met {
  readonly at: number
  records: number
}

/** What is known of a resource while the process lives. */
interface Known {
  restUntil: number
  /** No scan is thought of for many before this. */
  scanUntil: number
  /** When the whole of it may be read again. */
  wholeAt: number
  /** When its records may be read again because parents changed. */
  childrenAt: number
  pageRecords: number
  /** How far before its cursor a scan begins. */
  overlapMs: number
  readonly met: Array<Met>
}

const nothing: ReadonlySet<string> = new Set()

const isRetrievable = ({ resource }: Table) => resource.operations.includes("R")

const urgent: Priority = { class: "urgent", dueAt: 0 }

/** For what nobody waits for by itself, among the scheduled runs that are due now. */
const live = Effect.map(Clock.currentTimeMillis, (dueAt): Priority => ({ class: "live", dueAt }))

const make = Effect.fnUntraced(function* (options: WorkerOptions, isDrain: boolean) {
  const { company, reader } = options
  const { name, connector } = company
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  const health = yield* CircuitBreaker.make(name, connector)
  const drawn = [yield* Random.nextInt, yield* Random.nextInt]
  const owner = drawn.map((part) => Math.abs(part).toString(36)).join("-")
  const totals = { done: 0, dead: 0, ignored: 0, putOff: 0 }
  /** How often something new was stored by this process. */
  let arrivals = 0
  let identified: bigint | null = null
  /** Child resources whose parents have changed. */
  const kin = new Set<string>()
  /** When what others ask for of children was last looked up. */
  let kinKnownAt = Number.NEGATIVE_INFINITY
  const isKinDue = (path: string) => isDrain || now() >= known(path).childrenAt
  const isKinKnown = () => now() - kinKnownAt < (isDrain ? Number.POSITIVE_INFINITY : childrenEveryMs)
  /** Resources of which events want every record. */
  const wholes = new Set<string>()
  const turns = FairShare.make(now)
  const resources = new Map<string, Known>()
  const known = (path: string): Known => {
    const one = resources.get(path) ?? {
      restUntil: 0,
      scanUntil: 0,
      wholeAt: 0,
      childrenAt: Number.NEGATIVE_INFINITY,
      pageRecords: pageRecordsDefault,
      overlapMs: company.engine.overlapMs,
      met: []
    }
    resources.set(path, one)
    return one
  }

  const told = (verdicts: ReadonlyArray<InboxStore.Resolution>) => {
    for (const { state } of verdicts) totals[state === "waiting" ? "putOff" : state] += 1
  }
  const judge = (verdicts: ReadonlyArray<InboxStore.Resolution>, runId: bigint | null = null) =>
    Effect.andThen(
      InboxStore.resolve(verdicts, runId),
      Effect.sync(() => told(verdicts))
    )

  const identify = Effect.suspend(() => {
    if (identified !== null) return Effect.succeed(identified)
    const askedAt = now()
    return connector.identify.pipe(
      Effect.matchEffect({
        onSuccess: ({ companyId }) => {
          identified = companyId
          return Effect.as(health.answered, companyId)
        },
        // A source that does not answer this either is away, whatever it says.
        onFailure: (error) => Effect.as(health.blame({ ...failureOf(error), stops: "company" }, askedAt), null)
      })
    )
  })

  const rest = (path: string, ms: number) => {
    known(path).restUntil = now() + ms
  }

  /** One resource of a company that is being worked on. */
  interface Place {
    readonly companyId: bigint
    readonly tables: ReadonlyMap<string, Table>
    readonly table: Table
    readonly path: string
    /** Whether the claim is still ours. */
    readonly isOurs: () => boolean
  }

  const changed = ({ tables, path }: Pick<Place, "tables" | "path">, written: number) => {
    if (written > 0) for (const child of childrenOf(tables, path)) kin.add(child.resource)
  }

  /** Notes records that a scan from the cursor would meet again, to a hundredth of the time in which it would. */
  const meet = (path: string, records: number) => {
    if (records === 0) return
    const { met, overlapMs } = known(path)
    const last = met.at(-1)
    if (last !== undefined && now() - last.at < overlapMs / 100) last.records += records
    else met.push({ at: now(), records })
    while (met.length > 1 && now() - met[0]!.at > overlapMs) met.shift()
  }

  /** Due events, without those that need no read: they are settled here. */
  const look = Effect.fnUntraced(function* (place: Place, inHand: ReadonlySet<string>) {
    const { path, companyId, table } = place
    const asked = yield* InboxStore.fetchDue({ company: name, resource: path, inHand, atMost: takenMax })
    const foreign: Array<InboxStore.Resolution> = []
    const own = asked.filter(({ id, body }) => {
      const event = reader.read(body)
      if (!isEvent(event) || event.companyId === null || event.companyId === companyId) return true
      const reason =
        `the event is of company ${event.companyId}, and the token of company ${companyId}: ` +
        `the subscription that sends here belongs to another token; delete it, or give its address to the right company`
      foreign.push({ id, state: "dead", reason })
      return false
    })
    const rows = yield* InboxStore.compareWithRow(table, companyId, own)
    const settled: Array<InboxStore.Resolution> = own.flatMap(({ id, recordId }) => {
      const row = rows.get(id)
      if (row === undefined) return []
      if (recordId === null) {
        return row.isCovered
          ? [{ id, state: "done", reason: "a scan that began after the event had come has read the resource" }]
          : []
      }
      return row.satisfied === null ? [] : [{ id, state: "done", reason: row.satisfied }]
    })
    yield* judge([...foreign, ...settled])
    const gone = new Set(settled.map(({ id }) => id))
    const left = own.filter(({ id }) => !gone.has(id))
    return { left, rows, count: asked.length }
  })

  const items = (events: ReadonlyArray<InboxStore.ClaimedEvent>): ReadonlyArray<FetchRequest> => {
    const byRecord = new Map<string, Array<InboxStore.PendingEvent>>()
    for (const event of events) {
      if (event.recordId === null) continue
      const others = byRecord.get(event.recordId)
      const one = InboxStore.withoutBody(event)
      if (others === undefined) byRecord.set(event.recordId, [one])
      else others.push(one)
    }
    return [...byRecord].map(([recordId, asked]) => ({ recordId, events: asked }))
  }

  /** Whether one scan is worth more than so many reads. */
  const isScanWorth = ({ path, table, companyId }: Place, records: number) =>
    Effect.gen(function* () {
      const one = known(path)
      if (records <= scanMinEvents || !table.resource.modifiedSince || now() < one.scanUntil) return false
      const isWorth = (met: number) => records > fetchesPerPage * (1 + (records + met) / one.pageRecords)
      if (!isWorth(0)) return false
      const { byCursor, overlapMs, lastScan } = yield* InboxStore.syncPositionOf(companyId, path)
      one.overlapMs = Math.max(company.engine.overlapMs, overlapMs)
      // What the last scan listed is listed again for as long as the overlap reaches back, and what was read since.
      const last = lastScan !== null && lastScan.msAgo <= one.overlapMs ? lastScan : null
      const since = now() - (last?.msAgo ?? one.overlapMs)
      const met = one.met.reduce((sum, { at, records: each }) => (at >= since ? sum + each : sum), last?.records ?? 0)
      if (byCursor && isWorth(met)) return true
      one.scanUntil = now() + lookEveryMs
      return false
    })

  /** Reads what changed; where somebody else is at it, the run fails at once. */
  const read = ({ companyId, tables, table, path }: Place, reads: RefreshOptions["reads"], as: Priority = urgent) =>
    Effect.gen(function* () {
      const beganAt = now()
      const outcome = yield* refresh({ company, companyId, tables, table, reads, waits: false }).pipe(
        Effect.provideService(Priority, as)
      )
      const { kind, totals: did } = outcome
      const one = known(path)
      if (did.pages > 0) one.pageRecords = Math.max(one.pageRecords, Math.ceil(did.records / did.pages))
      changed({ tables, path }, did.inserted + did.updated + did.deleted)
      if (kind !== null && kind !== "children") {
        const requestsMs = (did.requests * 60_000) / (company.requestsPerMinute ?? Number.POSITIVE_INFINITY)
        one.wholeAt = beganAt + Math.max(requestsMs, now() - beganAt) / wholeShare
      }
      return { outcome, beganAt }
    })

  /** Writes down what the failure of a scan means for the events that asked for it. */
  const scanFailed = Effect.fnUntraced(function* (
    events: ReadonlyArray<InboxStore.PendingEvent>,
    failure: Failure,
    beganAt: number
  ) {
    if (failure.kind === "DatabaseError") return yield* databaseFailed(failure)
    const blame = yield* health.blame(failure, beganAt)
    const reason = `${failure.message}; ${failure.remedy}`
    // The resource rests, and what waits goes on waiting. A drain does not.
    if (blame === "away" || (blame === "busy" && !isDrain)) return
    yield* judge(
      events.map((event): InboxStore.Resolution => {
        if (blame === "one") return retryOrDeadLetter(event, reason)
        if (blame === "barred") return { id: event.id, state: "dead", reason }
        return { id: event.id, state: "waiting", reason, pauseMs: restMs }
      })
    )
  })

  const databaseFailed = ({ message }: Failure) =>
    Effect.fail(new DatabaseError({ operation: "act on events", code: undefined, message, isRetryable: false }))

  /** Whether what changed in the whole resource can be read from its cursor on. */
  const isIncremental = ({ table }: Place, followed: InboxStore.SyncPosition) =>
    table.resource.modifiedSince && followed.byCursor

  /** How long the whole of a resource is not to be read. What others read meanwhile answers its events too. */
  const wholeWaitMs = (place: Place, followed: InboxStore.SyncPosition) => {
    if (isDrain) return 0
    const { fullMsAgo } = followed
    const sweepMs = fullMsAgo === null || isIncremental(place, followed) ? 0 : sweepEveryMs - fullMsAgo
    return Math.max(0, known(place.path).wholeAt - now(), sweepMs)
  }

  /** Reads what changed in the whole resource, for events that nothing less answers. */
  const readWhole = Effect.fnUntraced(function* (
    place: Place,
    followed: InboxStore.SyncPosition,
    events: ReadonlyArray<InboxStore.PendingEvent>
  ) {
    // A full scan takes its time, and is not what an event is worth.
    const as = isIncremental(place, followed) ? urgent : yield* live
    const { outcome, beganAt } = yield* read(place, "changes", as)
    if (outcome.failure !== null) yield* scanFailed(events, outcome.failure, beganAt)
    else yield* health.answered
  })

  /** Whether reading the records of so many more parents may come to reading every record. */
  const mayReadAll = ({ byParent, parentsAsked }: InboxStore.SyncPosition, more: number) =>
    !byParent || parentsAsked + more > parentsMax

  /** Whether the whole is read beside the events. A drain has nothing else to do meanwhile. */
  const isApart = (place: Place, followed: InboxStore.SyncPosition) => !isDrain && !isIncremental(place, followed)

  /** By event the parent that it names, where a list of the parent's records answers it. */
  const parentsOf = (
    { table }: Place,
    followed: InboxStore.SyncPosition,
    events: ReadonlyArray<InboxStore.ClaimedEvent>
  ) => {
    const { parent, modifiedSince } = table.resource
    const byParent = new Map<bigint, string>()
    // Before its first full scan a resource is not read by parts.
    if (parent === null || modifiedSince || followed.fullMsAgo === null) return byParent
    for (const { id, recordId, body } of events) {
      if (recordId === null) continue
      const event = reader.read(body)
      const value = isEvent(event) ? event.value(parent.field) : null
      if (value !== null && InboxStore.isNumber(value)) byParent.set(id, value)
    }
    return byParent
  }

  /** Reads the records of these parents, for the events that name them; true when that went well. */
  const readSiblings = Effect.fnUntraced(function* (
    place: Place,
    byParent: ReadonlyMap<bigint, string>,
    among: ReadonlyArray<InboxStore.PendingEvent>,
    as: Priority
  ) {
    const { companyId, table, path } = place
    const { field } = table.resource.parent!
    const events = among.filter(({ id }) => byParent.has(id))
    yield* InboxStore.requestRefetch(companyId, path, field, new Set(byParent.values()))
    const { outcome, beganAt } = yield* read(place, "children", as)
    if (!isComplete(outcome)) {
      if (outcome.failure !== null) yield* scanFailed(events, outcome.failure, beganAt)
      return false
    }
    yield* health.answered
    const unanswered = yield* InboxStore.pendingRefetches(companyId, path, field)
    const answered = events.filter(({ id }) => !unanswered.has(byParent.get(id)!))
    yield* judgeRead(answered, yield* InboxStore.compareWithRow(table, companyId, answered), outcome.runId)
    return true
  })

  /** Settles events whose records were read by a list: found, or not to be seen yet, or not there. */
  const judgeRead = (
    events: ReadonlyArray<InboxStore.PendingEvent>,
    rows: ReadonlyMap<bigint, InboxStore.RowState>,
    runId: bigint | null
  ) =>
    judge(
      events.map(({ id, ageMs }): InboxStore.Resolution => {
        const { overlapMs } = company.engine
        if (rows.get(id)?.isCurrent === true) return { id, state: "done", reason: null }
        return ageMs >= overlapMs
          ? { id, state: "done", reason: "the source does not list it" }
          : {
              id,
              state: "waiting",
              reason: "the source does not show it yet",
              pauseMs: visibilityDelay(ageMs, overlapMs)
            }
      }),
      runId
    )

  /** Acts on what is due until nothing is; fails only with the database. */
  const workThrough = Effect.fnUntraced(function* (place: Place, wasLeft: boolean) {
    const { path, table, companyId, tables } = place
    /** Whether the last scan settled nothing: then it is not the scan that is missing. */
    let scannedInVain = false
    /** The events that the last scan for many was to answer. */
    let scannedFor: ReadonlySet<bigint> = new Set()
    /** When the whole of the resource is due to be read, where an event asks for it. */
    let wholeDueAt = Number.NEGATIVE_INFINITY
    let takesOver = wasLeft
    const beganAt = now()
    while (health.awayMs() === 0 && place.isOurs()) {
      if (turns.isWanted(path, beganAt)) return
      if (now() - beganAt >= sliceMs) return rest(path, handOverMs)
      const { left, rows, count } = yield* look(place, nothing)
      if (left.filter(({ id }) => scannedFor.has(id)).length * 2 > scannedFor.size) {
        known(path).scanUntil = now() + scanAgainMs
      }
      scannedFor = new Set()
      if (count === 0) return
      if (left.length < count) scannedInVain = false
      if (left.length === 0) continue
      const whole = left.filter(({ recordId }) => recordId === null)
      const numbered = left.filter(({ recordId }) => recordId !== null)
      if (!isRetrievable(table)) {
        const covered = numbered.filter(({ id }) => rows.get(id)?.isCovered === true)
        if (covered.length > 0) {
          yield* judgeRead(covered, rows, null)
          scannedInVain = false
          continue
        }
        const followed = yield* InboxStore.syncPositionOf(companyId, path)
        const waitMs = scannedInVain ? restMs : wholeWaitMs(place, followed)
        const byParent = parentsOf(place, followed, numbered)
        const mayBeAll = mayReadAll(followed, new Set(byParent.values()).size)
        if (byParent.size > 0 && (isDrain || !mayBeAll)) {
          if (!(yield* readSiblings(place, byParent, numbered, urgent))) return rest(path, restMs)
          if (byParent.size === left.length) continue
        }
        if (waitMs > 0) return rest(path, Math.min(waitMs, restMs))
        if (isApart(place, followed)) {
          // They wait until it is done.
          wholes.add(path)
          return rest(path, restMs)
        }
        yield* readWhole(
          place,
          followed,
          left.filter(({ id }) => !byParent.has(id))
        )
        scannedInVain = true
        continue
      }
      if (whole.length > 0 && now() >= wholeDueAt) {
        const followed = yield* InboxStore.syncPositionOf(companyId, path)
        const waitMs = scannedInVain ? restMs : wholeWaitMs(place, followed)
        wholeDueAt = now() + waitMs
        if (waitMs === 0 && isApart(place, followed)) {
          wholes.add(path)
          wholeDueAt = now() + restMs
        } else if (waitMs === 0) {
          yield* readWhole(place, followed, whole)
          scannedInVain = true
          if (numbered.length === 0) continue
        }
      }
      if (numbered.length === 0) return rest(path, Math.min(wholeDueAt - now(), restMs))
      const first = items(numbered)
      if (yield* isScanWorth(place, first.length)) {
        const scanned = yield* read(place, "changes")
        const blame =
          scanned.outcome.failure === null
            ? yield* Effect.as(health.answered, null)
            : yield* health.blame(scanned.outcome.failure, scanned.beganAt)
        // What it left is read one by one.
        const pauseMs = isComplete(scanned.outcome) ? lookEveryMs : blame === "busy" ? failedRestMs : scanAgainMs
        known(path).scanUntil = now() + pauseMs
        scannedFor = new Set(isComplete(scanned.outcome) ? numbered.map(({ id }) => id) : [])
        continue
      }
      const never = { arrivals: -1, ms: Number.NEGATIVE_INFINITY }
      let lookedAt = never
      const outcome = yield* fetchRecords({
        company,
        companyId,
        tables,
        table,
        health,
        takesOver,
        first,
        more: (inHand) =>
          Effect.gen(function* () {
            if (!place.isOurs()) return null
            // While nothing new is heard of, what others store is looked for once in a while.
            if (!isDrain && lookedAt.arrivals === arrivals && now() - lookedAt.ms < lookEveryMs) return []
            const at = { arrivals, ms: now() }
            const found = yield* look(place, inHand)
            const asksForWhole = found.left.some(({ recordId }) => recordId === null)
            const next = items(found.left)
            if ((asksForWhole && now() >= wholeDueAt) || (yield* isScanWorth(place, next.length))) return null
            if (next.length === 0) lookedAt = at
            return next
          }),
        isWanted: () => turns.isWanted(path, beganAt),
        lingerMs: isDrain ? 0 : lingerMs,
        told: (verdicts, landed: LandingResult | null) => {
          told(verdicts)
          // What came for a record in hand was left out.
          lookedAt = never
          if (landed === null) return
          meet(path, landed.inserted + landed.updated)
          changed(place, landed.inserted + landed.updated + landed.deleted)
        }
      })
      takesOver = false
      if (outcome.failure !== null) {
        const { kind } = outcome.failure
        if (kind === "DatabaseError") return yield* databaseFailed(outcome.failure)
        // Somebody else has it: what waits goes on waiting.
        return rest(path, kind === "TableChanged" ? 0 : restMs)
      }
    }
  })

  /** Works on a resource under a claim; true when it was ours. */
  const work = (companyId: bigint, tables: ReadonlyMap<string, Table>, table: Table) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { path } = table.resource
        const claimed = yield* InboxStore.claim(name, path, owner)
        if (!claimed.isOurs) return
        let isOurs = true
        yield* Effect.addFinalizer(() => Effect.ignore(InboxStore.release(name, path, owner)))
        const renew = Effect.delay(InboxStore.claim(name, path, owner), renewEveryMs).pipe(
          Effect.tap((again) =>
            Effect.sync(() => {
              isOurs = again.isOurs
            })
          ),
          Effect.ignore
        )
        yield* Effect.forkScoped(Effect.forever(renew))
        yield* workThrough({ companyId, tables, table, path, isOurs: () => isOurs }, claimed.wasLeft).pipe(
          Effect.withSpan("webhook.act", { attributes: { "tributary.company": name, "tributary.resource": path } })
        )
      })
    )

  /** Reads every record, or those of many parents, for the events that want that. */
  const readApart = Effect.fnUntraced(function* (place: Place) {
    const { path, companyId, table } = place
    wholes.delete(path)
    const { left } = yield* look(place, nothing)
    const asking = isRetrievable(table) ? left.filter(({ recordId }) => recordId === null) : left
    const followed = yield* InboxStore.syncPositionOf(companyId, path)
    const byParent = parentsOf(place, followed, asking)
    const mayBeAll = mayReadAll(followed, new Set(byParent.values()).size)
    if (byParent.size > 0 && mayBeAll) yield* readSiblings(place, byParent, asking, yield* live)
    else if (asking.length > 0) yield* readWhole(place, followed, asking)
  })

  /** Reads the children of the parents that changed. */
  const readKin = Effect.fnUntraced(function* (place: Place) {
    const { path, companyId } = place
    kin.delete(path)
    known(path).childrenAt = now() + childrenEveryMs
    const followed = yield* InboxStore.syncPositionOf(companyId, path)
    // Where it was never read in full, the first full scan answers everything that is asked.
    if (followed.parentsAsked === 0 || followed.fullMsAgo === null) return
    if (mayReadAll(followed, 0) && wholeWaitMs(place, followed) > 0) {
      kin.add(path)
      return
    }
    const { outcome, beganAt } = yield* read(place, "children", yield* live)
    if (outcome.failure === null) return yield* health.answered
    const blame = yield* health.blame(outcome.failure, beganAt)
    // What a drain leaves is durable: the next worker finds it.
    if (!isDrain) kin.add(path)
    if (blame === "barred" || blame === "one") known(path).childrenAt = now() + scanAgainMs
    if (outcome.failure.kind === "DatabaseError") return yield* databaseFailed(outcome.failure)
  })

  interface Task extends FairShare.Task {
    readonly run: Effect.Effect<void, DatabaseError, Database | SqlClient.SqlClient>
  }

  /** What there is to do now; `waits` when another process is at the rest. */
  const tasks = Effect.gen(function* () {
    const none = { tasks: [] as ReadonlyArray<Task>, waits: false }
    if (health.awayMs() > 0) return none
    const due = yield* InboxStore.dueResources(name, owner)
    const isAtWork = due.every(({ resource }) => resource !== null && turns.isBusy("events", resource))
    const isQuiet = () => isKinKnown() && wholes.size === 0 && ![...kin].some(isKinDue)
    if (isAtWork && isQuiet()) return none
    const tables = yield* Effect.mapError(company.tables, DatabaseError.from("read the tables"))
    if (due.some(({ resource }) => resource === null || !tables.has(resource))) {
      totals.ignored += yield* InboxStore.skipUnsynced(name, tables.keys())
    }
    const own = due.flatMap(({ resource, isClaimed }) => {
      const table = resource === null ? undefined : tables.get(resource)
      return table === undefined ? [] : [{ path: table.resource.path, table, isClaimed }]
    })
    if (own.length === 0 && isQuiet()) return none
    const companyId = yield* identify
    if (companyId === null) return none
    if (!isKinKnown()) {
      for (const path of yield* InboxStore.resourcesToRefetch(companyId)) kin.add(path)
      kinKnownAt = now()
    }
    const isIdle = (path: string) => !turns.isBusy("events", path) && now() >= known(path).restUntil
    const scans = [...new Set([...wholes, ...[...kin].filter(isKinDue)])].flatMap((path): ReadonlyArray<Task> => {
      const table = tables.get(path)
      if (table === undefined) {
        kin.delete(path)
        wholes.delete(path)
      }
      // Events that are read by a list need the same lane.
      const isFree = table !== undefined && (isRetrievable(table) || !turns.isBusy("events", path))
      if (table === undefined || !isFree || turns.isBusy("scan", path)) return []
      const place: Place = { companyId, tables, table, path, isOurs: () => true }
      return [{ path, kind: "scan", run: wholes.has(path) ? readApart(place) : readKin(place) }]
    })
    const scanned = new Set(scans.map(({ path }) => path))
    const isScanned = (path: string) => scanned.has(path) || turns.isBusy("scan", path)
    const events = own
      .filter(({ path, table, isClaimed }) => !isClaimed && isIdle(path) && (isRetrievable(table) || !isScanned(path)))
      .map(({ path, table }): Task => ({ path, kind: "events", run: work(companyId, tables, table) }))
    return { tasks: [...events, ...scans], waits: own.some(({ path, isClaimed }) => isClaimed || !isIdle(path)) }
  })

  /** Holds the resource against itself while the task runs. */
  const running = (task: Task) => {
    const { path, kind, run } = task
    return Effect.suspend(() => {
      turns.begin(task)
      return Effect.provideService(run, Priority, urgent)
    }).pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          // What was read is looked at now.
          if (kind === "scan") rest(path, 0)
        })
      ),
      Effect.tapCause(() =>
        Effect.sync(() => {
          rest(path, failedRestMs)
        })
      ),
      Effect.ensuring(
        Effect.sync(() => {
          turns.end(task)
        })
      )
    )
  }

  const arrived = () => {
    arrivals += 1
  }

  return { tasks: Effect.provideService(tasks, Priority, urgent), turns, running, health, totals, arrived }
})

/** Tells of what fails with the database once, until it goes well: the look for work, or the work on a resource. */
const teller = (name: string) => {
  const failing = new Set<string>()
  return {
    failed: (what: string) => (error: DatabaseError) =>
      Effect.suspend(() => {
        if (failing.has(what)) return Effect.void
        failing.add(what)
        return Effect.logWarning(`company ${name}: ${what} must wait: ${error.message}`)
      }),
    fine: (what: string) => {
      failing.delete(what)
    }
  }
}

/** Acts on the company's events for ever. */
export const run = (options: WorkerOptions): Effect.Effect<never, never, Database | SqlClient.SqlClient> =>
  Effect.scoped(
    Effect.gen(function* () {
      const worker = yield* make(options, false)
      const tell = teller(options.company.name)
      const ended = yield* EffectQueue.sliding<void>(1)
      const fibers = yield* FiberSet.make()
      const latch = options.inbox?.arrived
      const woken = latch === undefined ? Effect.never : Effect.tap(latch.await, () => Effect.sync(worker.arrived))
      for (;;) {
        if (latch !== undefined) yield* latch.close
        const found = yield* Effect.result(worker.tasks)
        if (found._tag === "Failure") yield* tell.failed("events")(found.failure)
        else {
          tell.fine("events")
          for (const task of worker.turns.admit(found.success.tasks)) {
            const what = `${task.kind === "events" ? "events of" : "reading"} ${task.path}`
            yield* FiberSet.run(
              fibers,
              worker.running(task).pipe(
                Effect.tap(() => Effect.sync(() => tell.fine(what))),
                Effect.catch(tell.failed(what)),
                Effect.catchDefect((defect) =>
                  Effect.logError(
                    `company ${options.company.name}: ${task.path}: this is a fault of the program`,
                    defect
                  )
                ),
                Effect.andThen(EffectQueue.offer(ended, undefined))
              )
            )
          }
        }
        yield* Effect.sleep(lookAgainMs)
        yield* Effect.timeoutOption(
          Effect.raceFirst(woken, EffectQueue.take(ended)),
          options.lookEveryMs ?? lookEveryMs
        )
      }
    })
  )

/**
 * Acts on the company's events until none is due, and says what it did. Fails when the database keeps failing; where the
 * source is away, it ends and says so.
 */
export const drain = (
  options: WorkerOptions
): Effect.Effect<WorkerStats, DatabaseError, Database | SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const worker = yield* make(options, true)
    let failures = 0
    for (;;) {
      const result = yield* Effect.result(
        Effect.gen(function* () {
          const { tasks, waits } = yield* worker.tasks
          yield* Effect.forEach(tasks, worker.running, { concurrency: FairShare.concurrency.events, discard: true })
          return tasks.length > 0 ? "more" : waits ? "waits" : "nothing"
        })
      )
      if (result._tag === "Failure") {
        failures += 1
        if (failures >= drainFailuresMax) return yield* Effect.fail(result.failure)
        yield* Effect.sleep(claimedWaitMs)
        continue
      }
      if (result.success === "more") failures = 0
      if (result.success === "waits") yield* Effect.sleep(claimedWaitMs)
      if (result.success === "nothing") return { ...worker.totals, stopped: worker.health.reason() }
    }
  })

/** One worker's closing the latch must not keep the news from another: each has its own. */
export const fanOut = (news: Latch.Latch, others: ReadonlyArray<Latch.Latch>) =>
  Effect.forever(
    Effect.gen(function* () {
      yield* news.await
      yield* news.close
      for (const other of others) other.openUnsafe()
    })
  )

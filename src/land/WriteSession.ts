/**
 * Writing pages down.
 *
 * Promise: {@link WriteSession.land} writes the records of some pages, their quarantine, the run's counts and the checkpoint
 * that covers them in one transaction under the fence (see Turn.ts), or nothing. Landing the same pages again changes
 * nothing. One record that Postgres refuses goes to quarantine and holds nothing else up. Absence is believed only when
 * a full scan is complete, every page of it was landed, and what would vanish is not most of the table. A full scan that
 * is not believed moves no position: the checkpoint does not claim that the resource was read.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ConnectorShape, Page, Rejected, SourceRecord } from "../connector/Connector.ts"
import { isInstant } from "../connector/Instant.ts"
import type { SourceError } from "../connector/SourceError.ts"
import { alteredSql } from "../warehouse/Altered.ts"
import * as Overlay from "../warehouse/Overlay.ts"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import type { Table } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Checkpoint, Lane, OpenScan, RunKind } from "./Checkpoint.ts"
import * as SchemaDrift from "./SchemaDrift.ts"
import * as FieldFindings from "./FieldFindings.ts"
import * as BatchLoader from "./BatchLoader.ts"
import { type ConflictPolicy, isBefore, mergeSql, planForAll } from "./MergeSql.ts"
import * as CheckpointIdentity from "./CheckpointIdentity.ts"
import {
  type AlreadyRunning,
  type WarehouseClockRegressed,
  type FenceLost,
  instantText,
  TableChanged,
  TableReplaced,
  acquire,
  type ResourceLock
} from "./ResourceLock.ts"

export { NewerCatalogue } from "./CheckpointIdentity.ts"
export { AlreadyRunning, WarehouseClockRegressed, FenceLost, TableChanged, TableReplaced } from "./ResourceLock.ts"

export type LandingError = DatabaseError | FenceLost | TableReplaced | WarehouseClockRegressed

export type OpenError =
  | WarehouseClockRegressed
  | DatabaseError
  | AlreadyRunning
  | FenceLost
  | TableChanged
  | CheckpointIdentity.NewerCatalogue
  | SourceError

/** A full scan met so few of the rows that deleting the rest is not believable; none of them was marked deleted. */
export interface MassDeleteBlocked {
  readonly live: number
  readonly gone: number
}

/** What one landing did. */
export interface LandingResult {
  readonly records: number
  readonly inserted: number
  readonly updated: number
  readonly unchanged: number
  readonly deleted: number
  readonly quarantined: number
  /** Rows that an earlier scan should have shown: their own stamp is older than its cursor. */
  readonly late: number
  /** How late the latest of them was, in milliseconds. */
  readonly lateMs: number
  /** Records that the source showed in an older version than the warehouse holds. */
  readonly wentBack: number
  /** What is to be told of fields that nobody has described; null when there is nothing new. */
  readonly drift: string | null
  readonly disbelieved: MassDeleteBlocked | null
}

/** A page and when its read began by the warehouse's clock, in milliseconds since 1970. */
export interface ObservedPage {
  readonly page: Page
  readonly observedAt: number
}

/** A record that the source says it does not have. */
export interface DeletedRecord {
  readonly id: string
  readonly observedAt: number
  readonly source: string
}

/** A question of `tributary.rereads`, as it stood when it was read. */
export interface RefetchRequest {
  readonly field: string
  readonly value: string
  readonly asks: bigint
}

/** What to land. */
export interface Landing {
  /** Pages in the order in which they were read. */
  readonly pages: ReadonlyArray<ObservedPage>
  /** The scan as it stands after these pages; null when they belong to none (children, single records). */
  readonly scan: OpenScan | null
  /** Whether the last of these pages ends the scan. */
  readonly complete: boolean
  /** Records found to be gone one by one. */
  readonly absent?: ReadonlyArray<DeletedRecord>
  /** Questions that these pages answer in full. */
  readonly answered?: ReadonlyArray<RefetchRequest>
  /** What else becomes true with these pages or not at all: statements of the same transaction. */
  readonly also?: (within: InTransaction) => Effect.Effect<unknown, DatabaseError>
}

/** The transaction of a landing, for those who add to it. */
export interface InTransaction {
  readonly run: ResourceLock["run"]
  readonly runId: bigint
  /** Numbers of the records of this landing that went to quarantine. */
  readonly quarantined: ReadonlySet<string>
}

/** How late rows are told from those in time. */
export interface LateArrival {
  /** The cursor as an instant: what the last completed scan claimed to have shown, milliseconds since 1970. */
  readonly cursorMs: number
  /** What the scan reads again before it: a full scan reads everything, so that only rows beyond this are news. */
  readonly toleratedMs: number
}

export interface OpenOptions {
  readonly table: Table
  /** Whose records are landed. */
  readonly connector: Pick<ConnectorShape, "catalogue" | "source">
  readonly companyId: bigint
  readonly lane: Lane
  /** See `acceptsOlderCatalogue` in Turn.ts. */
  readonly acceptsOlderCatalogue?: boolean
  /** What is written into `_origin`. */
  readonly origin: "scan" | "webhook" | "push"
  readonly authority: ConflictPolicy
  /** Whether a completed full scan may delete more than {@link OpenOptions.deletionsShareMax} of the rows. */
  readonly acceptDeletions: boolean
  /** From 0 to 1. */
  readonly deletionsShareMax: number
  /** Whose records are read again when a row changes here. */
  readonly children: ReadonlyArray<{ readonly resource: string; readonly field: string }>
  /** See `takesOver` in Turn.ts. */
  readonly takesOver?: boolean
  /** See `waits` in Turn.ts. */
  readonly waits?: boolean
}

/** What a run may look at before it decides what to do. */
export interface Preflight {
  /** The warehouse's time, in milliseconds since 1970. */
  readonly nowMs: number
  /** The oldest questions that wait for an answer here. */
  readonly rereads: (atMost: number) => Effect.Effect<ReadonlyArray<RefetchRequest>, DatabaseError>
  /** How many live rows the company has. */
  readonly countLive: Effect.Effect<number, DatabaseError>
}

export interface RunStart {
  readonly kind: RunKind
  readonly resumed: boolean
  readonly cursorFrom: string | null
  readonly lateness: LateArrival | null
}

export interface WriteSession {
  /** The checkpoint as it was when the resource was taken over; its fence is ours. */
  readonly checkpoint: Checkpoint
  readonly runId: bigint
  /** The warehouse's time of an instant on the program's monotonic clock, both in milliseconds. */
  readonly timeOf: (monotonicMs: number) => number
  readonly land: (landing: Landing) => Effect.Effect<LandingResult, LandingError>
  /** Statements that become true together, under the fence, beside any landing. */
  readonly transaction: <A, E>(
    body: (run: ResourceLock["run"]) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | LandingError>
  /** Forgets a scan in progress, so that the next one begins at its first page; `fullWanted` says that it reads all. */
  readonly restart: (fullWanted?: string) => Effect.Effect<void, LandingError>
  readonly rereads: Preflight["rereads"]
  /** Whether the company has a live row. */
  readonly hasLive: Effect.Effect<boolean, DatabaseError>
}

/** Fewer deletions than this are believed whatever their share. */
const deletionsAlways = 20
/** Whether the lateness of these rows asks for as long an overlap as is left of the learned one. */
const renews = `$16 > 0 and least(2 * $16, $17) >= ${learnedOverlap("c")}`
/** However late a row was, no scan begins more than this before its cursor because of it. */
const overlapMaxMs = 24 * 60 * 60 * 1000

/**
 * Whether a full scan has not met a record of the quarantine. A time in the future was written before the warehouse's
 * clock was set back. No time is compared where the run of the scan wrote the entry: the clock may go back by less than
 * a minute while the run reads. Parameters: scan began ($3), run ($4).
 */
const isUnmet = `(run_id <> $4 and ${isBefore("last_seen_at", "$3::timestamptz")})`

/** Takes a resource over and answers a lander that ends with the scope. */
export const open = Effect.fn("Lander.open")(function* (
  options: OpenOptions,
  start: (checkpoint: Checkpoint, look: Preflight) => Effect.Effect<RunStart, DatabaseError>
): Effect.fn.Return<WriteSession, OpenError, Database | Scope.Scope> {
  const { table, companyId, lane, origin } = options
  const resource = table.resource.path
  const { takesOver = false, waits = true, acceptsOlderCatalogue = false } = options
  const { renumber } = mergeSql(table)
  const identity = CheckpointIdentity.identityOf(table.resource, options.connector)
  const turn = yield* acquire({
    resource,
    table: table.current,
    identity,
    acceptsOlderCatalogue,
    renumber,
    companyId,
    lane,
    takesOver,
    waits
  })
  if (turn.learnt !== Overlay.inferredCount(table.resource)) return yield* new TableChanged({ resource })
  const { run, checkpoint } = turn
  const { fence } = checkpoint
  // Rows of an earlier source are overwritten and deleted until a full scan has completed: a person has said so.
  const { adoptsSource } = turn.live
  const sql = mergeSql(table, adoptsSource ? "source" : options.authority)
  const acceptDeletions = options.acceptDeletions || adoptsSource
  const rereads: Preflight["rereads"] = (atMost) =>
    run<{ field: string; value: string; asks: bigint }>(
      "look for questions about",
      `select field, value, asks from tributary.rereads where company_id = $1 and resource = $2
        order by asked_at, field, value limit $3`,
      [companyId, resource, atMost]
    ).pipe(Effect.map(({ rows }) => rows))
  const countLive = run<{ live: number }>("count", sql.countLive, [companyId]).pipe(
    Effect.map(({ rows }) => rows[0]!.live)
  )
  const [begun, opened] = yield* turn.connected(
    Effect.gen(function* () {
      const planned = yield* start(checkpoint, { nowMs: yield* turn.now, rereads, countLive })
      // Whoever held the lane before is gone: we have its lock. Whoever has taken over from us meanwhile has a later fence.
      const { rows } = yield* run<{
        id: bigint
        quarantined: boolean
        has_rows: boolean
        has_history: boolean
        version: number
      }>(
        "open a run of",
        `with abandoned as (
       update tributary.runs set status = 'abandoned', ended_at = tributary.now()
        where company_id = $1 and resource = $2 and lane = $3 and status = 'running' and fence < $5
     )
     insert into tributary.runs (company_id, resource, lane, kind, fence, resumed, began_at, cursor_from)
     values ($1, $2, $3, $4, $5, $6, tributary.now(), $7)
     returning id,
       exists (select 1 from tributary.quarantine where company_id = $1 and resource = $2 and resolved_at is null) as quarantined,
       exists (select 1 from ${table.current} where "_company_id" = $1) as has_rows,
       exists (select 1 from ${table.superseded} where "_company_id" = $1) as has_history,
       current_setting('server_version_num')::int as version`,
        [companyId, resource, lane, planned.kind, fence, planned.resumed, planned.cursorFrom]
      )
      return [planned, rows[0]!] as const
    })
  )
  const runId = opened.id
  /** Whether a landed record may have an open quarantine. */
  let hasQuarantine = opened.quarantined
  const hadRows = opened.has_rows
  /** Whether this turn reads a table from its first page that was empty when it began. */
  let isFirst = !hadRows && !begun.resumed
  const wasNeverLoaded = turn.live.cursor === null && turn.live.fullScanAt === null
  /** What the checkpoint wanted when it was last looked at: a wish that came up since stays. */
  let knownWanted = checkpoint.fullWanted
  /** Set when a landing of this run met older versions than the warehouse holds. */
  let wentBack: string | null = null

  const { lateness } = begun
  const lateBefore = lateness === null ? null : instantText(lateness.cursorMs - lateness.toleratedMs)
  const loader = BatchLoader.make({
    turn,
    sql,
    serverVersion: opened.version,
    runId,
    origin,
    // Where the table was lost and its history was not, versions go on from there.
    hasRows: hadRows || opened.has_history || !wasNeverLoaded,
    lateBefore,
    children: options.children
  })
  const drift = SchemaDrift.make({ run, table, companyId, runId })
  const fields = FieldFindings.make(turn, table, runId)
  /** Whether this run has read the scan from its first page: only then it has met every record. */
  let isWhole = !begun.resumed

  const quarantine = Effect.fnUntraced(function* (
    rejected: ReadonlyArray<{ readonly rejected: Rejected; readonly source: string }>
  ) {
    if (rejected.length === 0) return
    hasQuarantine = true
    for (const { rejected: one, source } of rejected) {
      yield* run(
        "quarantine a record of",
        `insert into tributary.quarantine as q
           (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, tributary.now(), tributary.now())
         on conflict (company_id, resource, coalesce(record_id, ''), md5(bytes)) where resolved_at is null
         do update set last_seen_at = excluded.last_seen_at, times = q.times + 1, run_id = excluded.run_id,
                       reason = excluded.reason, field = excluded.field, source = excluded.source`,
        [companyId, resource, one.id, one.field, one.reason, one.bytes, runId, source]
      )
    }
  })

  /** A record that was landed, or is gone, is no longer in quarantine, whatever stood there of it. */
  const release = (ids: ReadonlyArray<string>) =>
    hasQuarantine && ids.length > 0
      ? run(
          "release quarantine of",
          `update tributary.quarantine set resolved_at = tributary.now()
            where company_id = $1 and resource = $2 and resolved_at is null and record_id = any($3::text[])`,
          [companyId, resource, ids]
        )
      : Effect.void

  const tombstone = Effect.fnUntraced(function* (deletedAt: string, source: string) {
    yield* run("keep deleted versions of", sql.supersedeGone, [companyId, deletedAt])
    yield* run("bury", sql.tombstone, [companyId, deletedAt, runId, source, origin])
  })

  /**
   * Soft-deletes rows that a completed full scan did not return. The mass-delete guard stops this above
   * `deletionsShareMax`. A row that a push or a read by number landed while the scan ran is kept: it is observed when
   * that began, and its record may have been created after the scan had passed its place. A row that changed after the
   * position of the scan is kept when that position is behind the cursor: the answer was an old one. `kept` counts both.
   */
  const bury = Effect.fnUntraced(function* (
    scan: OpenScan
  ): Effect.fn.Return<Pick<LandingResult, "deleted" | "disbelieved"> & { readonly kept: number }, DatabaseError> {
    const nothing = { deleted: 0, disbelieved: null, kept: 0 }
    if (isFirst) {
      // Rows that were read before this scan began can only have come from another lane.
      const { rows: others } = yield* run(
        "look for other lanes of",
        `select 1 from tributary.checkpoints where company_id = $1 and resource = $2 and lane <> $3 and fence > 0 limit 1`,
        [companyId, resource, lane]
      )
      if (others.length === 0) return nothing
    }
    const began = instantText(scan.beganAt)
    // A record whose very number could not be read may be any of those that seem to be gone.
    const { rows: unreadable } = yield* run(
      "look for unreadable records of",
      `select 1 from tributary.quarantine where company_id = $1 and resource = $2
         and resolved_at is null and record_id is null and not ${isUnmet} limit 1`,
      [companyId, resource, began, runId]
    )
    if (unreadable.length > 0) return nothing
    yield* run("prepare the burial of", `${planForAll}; ${sql.createGone}; ${sql.emptyGone}`)
    const { affected: absent } = yield* run("find what is gone of", sql.findGone, [companyId, resource, began, lane])
    if (absent === 0) return nothing
    const { affected: concurrent } = yield* run("keep concurrent rows of", sql.keepConcurrent, [companyId, began])
    const position = scan.syncedThrough
    const { affected: unreached } =
      sql.keepUnreached === null || !isInstant(position)
        ? { affected: 0 }
        : yield* run("keep rows that the scan does not show of", sql.keepUnreached, [
            companyId,
            position,
            isInstant(checkpoint.cursor) ? checkpoint.cursor : null
          ])
    const kept = concurrent + unreached
    const gone = absent - kept
    if (gone === 0) return { ...nothing, kept }
    const { rows } = yield* run<{ live: number }>("count", sql.countLive, [companyId])
    const { live } = rows[0]!
    if (!acceptDeletions && gone > deletionsAlways && gone > live * options.deletionsShareMax) {
      return { deleted: 0, disbelieved: { live, gone }, kept }
    }
    yield* tombstone(began, `absent from the full scan of run ${runId}`)
    return { deleted: gone, disbelieved: null, kept }
  })

  /** Records that the source, asked for exactly them, does not have. */
  const buryAbsent = Effect.fnUntraced(function* (absent: ReadonlyArray<DeletedRecord>) {
    let deleted = 0
    for (const { id, observedAt, source } of absent) {
      yield* run("prepare the burial of", `${sql.createGone}; ${sql.emptyGone}`)
      const at = instantText(observedAt)
      const { affected } = yield* run("find what is gone of", sql.findGoneAmong, [companyId, [id], at])
      if (affected > 0) yield* tombstone(at, source)
      deleted += affected
    }
    return deleted
  })

  const forgetSeen = run(
    "forget ids of",
    "delete from tributary.scan_seen where company_id = $1 and resource = $2 and lane = $3",
    [companyId, resource, lane]
  )

  const saveCheckpoint = Effect.fnUntraced(function* (change: {
    readonly scan: OpenScan | null
    readonly completed: OpenScan | null
    readonly lateMs: number
    /** Undefined leaves it as it stands. */
    readonly fullWanted?: string | null
  }) {
    const { scan, completed, lateMs, fullWanted } = change
    const { rows, affected } = yield* run<{ same_table: boolean }>(
      "move the checkpoint of",
      `update tributary.checkpoints as c set
         cursor = coalesce($5, cursor), cursor_at = coalesce($6, cursor_at), full_scan_at = coalesce($7, full_scan_at),
         scan_run_id = $8, scan_kind = $9, scan_since = $10, scan_until = $11, scan_token = $12, scan_pages = $13,
         scan_synced_through = $14, scan_began_at = $15,
         late_ms = greatest(late_ms, $16),
         overlap_ms = case when ${renews} then least(2 * $16, $17) else overlap_ms end,
         late_at = case when ${renews} then tributary.now() else late_at end,
         full_wanted = case when not $18 then full_wanted when $19::text is not null then $19
                            when full_wanted is not distinct from $20 then null else full_wanted end,
         adopts_source = adopts_source and $7::timestamptz is null, updated_at = tributary.now()
       where company_id = $1 and resource = $2 and lane = $3 and fence = $4
       returning ${turn.isSameTable(21)} as same_table`,
      [
        companyId,
        resource,
        lane,
        fence,
        completed?.syncedThrough ?? null,
        completed === null || completed.syncedThrough === null ? null : instantText(completed.beganAt),
        completed?.kind === "full" && completed.until === null ? instantText(completed.beganAt) : null,
        scan === null ? null : runId,
        scan?.kind ?? null,
        scan?.since ?? null,
        scan?.until ?? null,
        scan?.token ?? null,
        scan?.pages ?? null,
        scan?.syncedThrough ?? null,
        scan === null ? null : instantText(scan.beganAt),
        Math.ceil(lateMs),
        overlapMaxMs,
        fullWanted !== undefined,
        fullWanted ?? null,
        knownWanted,
        ...turn.sameTableParameters
      ]
    )
    yield* turn.checkFence(affected)
    // Whatever was landed holds the table until the commit: who replaces it comes before this, or after the run.
    if (!rows[0]!.same_table) return yield* new TableReplaced({ resource })
    if (fullWanted !== undefined) knownWanted = fullWanted
  })

  /** What a completed full scan settles: absence, questions that it has answered, and whether the next may be short. */
  const completeFull = Effect.fnUntraced(function* (scan: OpenScan) {
    const buried = yield* bury(scan)
    if (hasQuarantine && buried.disbelieved === null && scan.until === null) {
      yield* run(
        "release what the scan did not meet of the quarantine of",
        `update tributary.quarantine set resolved_at = tributary.now()
          where company_id = $1 and resource = $2 and resolved_at is null and ${isUnmet}`,
        [companyId, resource, instantText(scan.beganAt), runId]
      )
    }
    yield* forgetSeen
    if (buried.disbelieved !== null) {
      const { gone, live } = buried.disbelieved
      return { ...buried, fullWanted: `${gone} of ${live} rows were absent and not believed deleted` }
    }
    yield* run(
      "forget answered questions of",
      // A time in the future was written before the warehouse's clock was set back. A run notices a step of a minute.
      `delete from tributary.rereads where company_id = $1 and resource = $2
          and (asked_at < $3 or (asked_at > tributary.now() + interval '1 minute' and $3 <= tributary.now()))`,
      [companyId, resource, instantText(scan.beganAt)]
    )
    if (options.children.length > 0 && wasNeverLoaded) {
      // Their parents came in without a word about each; one scan is cheaper than a question for every parent.
      yield* run(
        "ask for the children of",
        `update tributary.checkpoints set full_wanted = coalesce(full_wanted, $3)
          where company_id = $1 and resource = any($2::text[]) and lane = 'live' and full_scan_at is not null`,
        [companyId, options.children.map((child) => child.resource), `${resource} was loaded`]
      )
    }
    // A reason that came up while the scan was read holds for the next one too.
    let fullWanted = begun.resumed ? checkpoint.fullWanted : wentBack
    if (fullWanted === null && buried.kept > 0) {
      fullWanted = `${buried.kept} rows are newer than the last full scan, which did not return them`
    }
    if (fullWanted === null && sql.countUnstamped !== null && table.resource.modifiedSince) {
      const { rows } = yield* run<{ rows: number }>("look for unstamped rows of", sql.countUnstamped, [companyId])
      const unstamped = rows[0]!.rows
      if (unstamped > 0)
        fullWanted = `${unstamped} records carry no time of change, so that no cursor shows their changes`
    }
    if (lane === "backfill") {
      // Everything was read: where nothing followed the source yet, it can be followed from here.
      yield* run(
        "let live syncing begin after the backfill of",
        `update tributary.checkpoints set cursor = $3, cursor_at = $4, full_scan_at = $4, full_wanted = $5
          where company_id = $1 and resource = $2 and lane = 'live' and cursor is null and full_scan_at is null
            and scan_kind is null`,
        [companyId, resource, scan.syncedThrough, instantText(scan.beganAt), fullWanted]
      )
    }
    return { ...buried, fullWanted }
  })

  const landAll = Effect.fnUntraced(function* (landing: Landing) {
    const { scan, complete } = landing
    const { pages } = landing
    return yield* turn.transaction(
      Effect.gen(function* () {
        const set: Array<{ rejected: Rejected; source: string }> = pages.flatMap(({ page }) =>
          page.rejected.map((rejected) => ({ rejected, source: page.source }))
        )
        let records = 0
        const carried = function* (): Generator<BatchLoader.StagedRecord> {
          for (const { page, observedAt } of pages) {
            const at = instantText(observedAt)
            for (const record of page.records) {
              records += 1
              yield { record, observedAt: at, source: page.source }
            }
          }
        }
        const loaded = yield* loader.load(carried())
        const refusedIds = new Set<string>()
        for (const { carried: one, error } of loaded.refused) {
          refusedIds.add(one.record.id)
          set.push({ rejected: refusal(table, one.record, error), source: one.source })
        }
        const extras = pages.flatMap(({ page }) => page.records.map(({ extra }) => extra))
        const noted = yield* drift.note(extras, complete || scan === null)
        const absent = landing.absent ?? []
        const deletedOne = yield* buryAbsent(absent)
        yield* release([
          ...pages.flatMap(({ page }) => page.records.map(({ id }) => id)).filter((id) => !refusedIds.has(id)),
          ...absent.map(({ id }) => id)
        ])
        yield* quarantine(set)
        const evaluatesAbsence = scan !== null && scan.kind === "full" && scan.until === null
        if (evaluatesAbsence && pages.length > 0) {
          const ids = pages.flatMap(({ page }) => [
            ...page.records.map(({ id }) => id),
            ...page.rejected.flatMap(({ id }) => (id === null || !/^-?\d{1,18}$/.test(id) ? [] : [id]))
          ])
          yield* run(
            "remember ids of",
            `insert into tributary.scan_seen (company_id, resource, lane, page, ids) values ($1, $2, $3, $4, $5::bigint[])
             on conflict (company_id, resource, lane, page) do update set ids = excluded.ids`,
            [companyId, resource, lane, scan.pages, ids]
          )
        }
        let completed: { deleted: number; disbelieved: MassDeleteBlocked | null; fullWanted?: string | null } = {
          deleted: 0,
          disbelieved: null
        }
        if (complete && evaluatesAbsence) completed = yield* completeFull(scan)
        if (evaluatesAbsence) fields.meet(pages, loaded.updated)
        const found = complete && evaluatesAbsence && isWhole && lane === "live" ? yield* fields.complete : []
        for (const { field, value, asks } of landing.answered ?? []) {
          yield* run(
            "forget an answered question of",
            `delete from tributary.rereads where company_id = $1 and resource = $2 and field = $3 and value = $4 and asks = $5`,
            [companyId, resource, field, value, asks]
          )
        }
        const lateMs =
          loaded.late > 0 && loaded.earliestMs !== null && lateness !== null
            ? Math.max(0, lateness.cursorMs - loaded.earliestMs)
            : 0
        const landed: LandingResult = {
          records,
          inserted: loaded.inserted,
          updated: loaded.updated,
          unchanged: records - loaded.inserted - loaded.updated - refusedIds.size,
          deleted: completed.deleted + deletedOne,
          quarantined: set.length,
          late: loaded.late,
          lateMs,
          wentBack: loaded.wentBack,
          drift: [SchemaDrift.describe(resource, noted), ...found].filter((one) => one !== null).join("; ") || null,
          disbelieved: completed.disbelieved
        }
        yield* Effect.annotateCurrentSpan({
          "tributary.records": records,
          "tributary.inserted": landed.inserted,
          "tributary.updated": landed.updated,
          "tributary.quarantined": landed.quarantined
        })
        if (landed.wentBack > 0) wentBack = "the source showed older versions than the warehouse holds"
        // A scan that is not believed has not shown the resource.
        const completedScan = complete && landed.disbelieved === null ? scan : null
        yield* count(landed, landing, completedScan)
        if (landing.also !== undefined) {
          const quarantined = new Set(set.flatMap(({ rejected }) => (rejected.id === null ? [] : [rejected.id])))
          yield* landing.also({ run, runId, quarantined })
        }
        yield* saveCheckpoint({
          scan: complete ? null : scan,
          completed: completedScan,
          lateMs,
          // A source that went back is read in full until a person has decided.
          ...(wentBack !== null
            ? { fullWanted: wentBack }
            : completed.fullWanted === undefined
              ? {}
              : { fullWanted: completed.fullWanted })
        })
        return landed
      })
    )
  })

  /**
   * The history holds versions that the row has not come to: someone put older rows back into the table. The next turn
   * gives them later versions and reads every record.
   */
  const isOlderRow = (error: LandingError) =>
    error instanceof DatabaseError &&
    error.code === "23505" &&
    error.message.includes(table.supersededName.slice(0, 50))
  const renumberLater = turn
    .transaction(
      run(
        "renumber later the rows of",
        `update tributary.checkpoints set ${alteredSql("rows were replaced by older ones")}
          where company_id = $1 and resource = $2 and lane = 'live'`,
        [companyId, resource]
      )
    )
    .pipe(Effect.andThen(Effect.fail(new TableReplaced({ resource }))))

  const land: WriteSession["land"] = (landing) =>
    landAll(landing).pipe(
      Effect.catchIf(isOlderRow, () => renumberLater),
      Effect.withSpan("land", { attributes: { "tributary.resource": resource } }, { captureStackTrace: false })
    )

  const count = (landed: LandingResult, { pages }: Landing, completed: OpenScan | null) => {
    const requests = pages.reduce((sum, { page }) => sum + page.attempts, 0)
    return run(
      "count the run of",
      `update tributary.runs set pages = pages + $2, bytes = bytes + $3, records = records + $4,
         inserted = inserted + $5, updated = updated + $6, unchanged = unchanged + $7, deleted = deleted + $8,
         quarantined = quarantined + $9, requests = requests + $10, retries = retries + $11,
         cursor_to = coalesce($12, cursor_to), late = late + $13, late_ms = greatest(late_ms, $14),
         went_back = went_back + $15
       where id = $1`,
      [
        runId,
        pages.length,
        pages.reduce((sum, { page }) => sum + page.bytes, 0),
        landed.records,
        landed.inserted,
        landed.updated,
        landed.unchanged,
        landed.deleted,
        landed.quarantined,
        requests,
        requests - pages.length,
        completed?.syncedThrough ?? null,
        landed.late,
        Math.ceil(landed.lateMs),
        landed.wentBack
      ]
    )
  }

  const restart = (fullWanted?: string) =>
    turn.transaction(
      Effect.gen(function* () {
        yield* forgetSeen
        yield* saveCheckpoint({
          scan: null,
          completed: null,
          lateMs: 0,
          ...(fullWanted === undefined ? {} : { fullWanted })
        })
        // What was landed before may be gone when it is looked for again.
        isFirst = false
        fields.restart()
        isWhole = true
      })
    )

  const transaction: WriteSession["transaction"] = (body) => turn.transaction(Effect.suspend(() => body(run)))

  const hasLive = run<{ has: boolean }>(
    "look for a live row of",
    `select exists (select 1 from ${table.current} where "_company_id" = $1 and "_deleted_at" is null) as has`,
    [companyId]
  ).pipe(Effect.map(({ rows }) => rows[0]!.has))

  return { checkpoint, runId, timeOf: turn.timeOf, land, transaction, restart, rereads, hasLive } satisfies WriteSession
})

/** A record that passed the catalogue and that Postgres refuses all the same, kept field by field as it was read. */
const refusal = (table: Table, record: SourceRecord, error: DatabaseError): Rejected => ({
  id: record.id,
  field: null,
  reason: `Postgres refuses it (${error.code ?? "no code"}): ${error.message}`,
  bytes: JSON.stringify(
    Object.fromEntries([
      ...table.columns.flatMap((column, index) => {
        const value = record.columns[index]
        return value === undefined ? [] : [[column.field, value]]
      }),
      ...(record.customFields === null ? [] : [["custom_fields", record.customFields]]),
      ...(record.extra === null ? [] : [["_extra", record.extra]])
    ])
  )
})

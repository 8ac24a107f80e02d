/**
 * Writing pages down.
 *
 * Promise: {@link Lander.land} writes the records of some pages, their quarantine, the run's counts and the checkpoint
 * that covers them in one transaction, or nothing. The transaction begins by locking the checkpoint and ends by moving
 * it, both under the run's fence: a process that was taken over can no longer write. Landing the same pages again
 * changes nothing. One record that Postgres refuses goes to quarantine and holds nothing else up.
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { QueryResultRow } from "pg"
import type { Page, Rejected, SourceRecord } from "../connector/Connector.ts"
import type { Table } from "../model/Table.ts"
import { execute } from "../postgres/Connection.ts"
import { copyIn } from "../postgres/Copy.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { type Checkpoint, type CheckpointRow, fromRow, type OpenScan, type ScanKind } from "./Checkpoint.ts"
import { absentPositions, copyLines, copyValue } from "./CopyText.ts"
import { mergeSql, planForAll, planForKeys } from "./MergeSql.ts"

/** Another run has taken the resource over; this one must stop and has written nothing since. */
export class FencedOff extends Data.TaggedError("FencedOff")<{
  readonly resource: string
  readonly fence: bigint
}> {
  override get message(): string {
    return `${this.resource}: another run took over (this one held fence ${this.fence}); nothing more was written`
  }
}

/** Another process is syncing the same resource right now. */
export class AlreadyRunning extends Data.TaggedError("AlreadyRunning")<{ readonly resource: string }> {
  override get message(): string {
    return `${this.resource}: another process is syncing it right now; wait for it, or stop it, and run again`
  }
}

export type LandingError = DatabaseError | FencedOff

/** A full scan met so few of the rows that deleting the rest is not believable; none of them was marked deleted. */
export interface DisbelievedDeletions {
  readonly live: number
  readonly gone: number
}

/** What one landing did. */
export interface Landed {
  readonly records: number
  readonly inserted: number
  readonly updated: number
  readonly unchanged: number
  readonly deleted: number
  readonly quarantined: number
  readonly disbelieved: DisbelievedDeletions | null
}

/** What to land. */
export interface Landing {
  /** Pages in the order in which they were read. */
  readonly pages: ReadonlyArray<Page>
  /** The scan as it stands after these pages. */
  readonly scan: OpenScan
  /** Whether the last of these pages ends the scan. */
  readonly complete: boolean
}

export interface OpenOptions {
  readonly table: Table
  readonly companyId: bigint
  /** Whether a completed full scan may delete more than {@link goneShareMax} of the rows. */
  readonly acceptDeletions: boolean
}

export interface RunStart {
  readonly kind: ScanKind
  readonly resumed: boolean
  readonly cursorFrom: string | null
}

export interface Lander {
  /** The checkpoint as it was when the resource was taken over; its fence is ours. */
  readonly checkpoint: Checkpoint
  readonly runId: bigint
  readonly land: (landing: Landing) => Effect.Effect<Landed, LandingError>
  /** Forgets a scan in progress, so that the next one begins at its first page. */
  readonly restart: Effect.Effect<void, DatabaseError | FencedOff>
}

/** Postgres refuses the value, not the statement: the row is looked for and set aside. */
const isValueError = (error: DatabaseError) => error.code?.startsWith("22") === true

/** A full scan that misses more than this share of the rows, and more than a handful, is not believed. */
const goneShareMax = 0.5
const goneAlways = 100

const iso = (milliseconds: number): string => new Date(milliseconds).toISOString()

/** A record and the page that brought it. */
interface Carried {
  readonly record: SourceRecord
  readonly page: Page
}

/** Splits records so that no id stands twice in a round: a later version must meet the earlier one in the table. */
const rounds = (pages: ReadonlyArray<Page>): ReadonlyArray<ReadonlyArray<Carried>> => {
  const result: Array<Array<Carried>> = []
  let round: Array<Carried> = []
  let ids = new Set<string>()
  for (const page of pages) {
    for (const record of page.records) {
      if (ids.has(record.id)) {
        result.push(round)
        round = []
        ids = new Set()
      }
      ids.add(record.id)
      round.push({ record, page })
    }
  }
  if (round.length > 0) result.push(round)
  return result
}

/** How long a process waits for another one that is just ending. */
const lockRetries = 40
const lockRetryEveryMs = 250

/**
 * Takes a resource over: locks it for this process, raises the fence, and answers a lander that ends with the scope.
 */
export const open = Effect.fn("Lander.open")(function* (
  options: OpenOptions,
  start: (checkpoint: Checkpoint) => RunStart
): Effect.fn.Return<Lander, DatabaseError | AlreadyRunning, Database | Scope.Scope> {
  const { table, companyId } = options
  const resource = table.resource.path
  const database = yield* Database
  const client = yield* database.connect
  const sql = mergeSql(table)

  const run = <Row extends QueryResultRow>(operation: string, text: string, values?: ReadonlyArray<unknown>) =>
    execute<Row>(client, `${operation} ${resource}`, text, values)

  yield* run<{ locked: boolean }>("lock", `select pg_try_advisory_lock(hashtextextended($1, 0)) as locked`, [
    `tributary:${companyId}:${resource}`
  ]).pipe(
    Effect.filterOrFail(
      ({ rows }) => rows[0]?.locked === true,
      () => new AlreadyRunning({ resource })
    ),
    // A process that was just killed holds its lock until the server has noticed.
    Effect.retry({
      while: (error) => error._tag === "AlreadyRunning",
      times: lockRetries,
      schedule: Schedule.spaced(lockRetryEveryMs)
    })
  )

  const now = yield* Clock.currentTimeMillis
  const { rows: taken } = yield* run<CheckpointRow>(
    "take over",
    `insert into tributary.checkpoints as c (company_id, resource, fence, updated_at) values ($1, $2, 1, $3)
     on conflict (company_id, resource) do update set fence = c.fence + 1, updated_at = $3
     returning fence, cursor, full_scan_at, scan_kind, scan_since, scan_token, scan_pages, scan_synced_through, scan_began_at`,
    [companyId, resource, iso(now)]
  )
  const checkpoint = fromRow(taken[0]!)
  const { fence } = checkpoint
  const begun = start(checkpoint)

  // Whoever held the resource before is gone: we have its lock.
  yield* run(
    "close abandoned runs of",
    `update tributary.runs set status = 'abandoned', ended_at = $3 where company_id = $1 and resource = $2 and status = 'running'`,
    [companyId, resource, iso(now)]
  )
  const { rows: opened } = yield* run<{ id: bigint }>(
    "open a run of",
    `insert into tributary.runs (company_id, resource, kind, fence, resumed, began_at, cursor_from)
     values ($1, $2, $3, $4, $5, $6, $7) returning id`,
    [companyId, resource, begun.kind, fence, begun.resumed, iso(now), begun.cursorFrom]
  )
  const runId = opened[0]!.id
  const { rows: quarantines } = yield* run<{ open: boolean }>(
    "look for quarantine of",
    `select exists (select 1 from tributary.quarantine where company_id = $1 and resource = $2 and resolved_at is null) as open`,
    [companyId, resource]
  )

  /** Whether a landed record may have an open quarantine. */
  let hasQuarantine = quarantines[0]?.open === true
  /** Whether the table can be loaded without looking for existing rows: nothing was ever loaded completely. */
  const neverLoaded = checkpoint.cursor === null && checkpoint.fullScanAt === null
  let hasRows = true
  if (neverLoaded) {
    const { rows } = yield* run<{ has: boolean }>("look at", sql.hasRows, [companyId])
    hasRows = rows[0]?.has === true
  }

  const savepoint = <A>(attempt: Effect.Effect<A, DatabaseError>) =>
    run("mark", "savepoint round").pipe(
      Effect.andThen(attempt),
      Effect.tap(() => run("release", "release savepoint round")),
      Effect.tapError((error) =>
        error.isRetryable ? Effect.void : run("undo", "rollback to savepoint round; release savepoint round")
      )
    )

  interface Counts {
    readonly inserted: number
    readonly updated: number
    readonly refused: ReadonlyArray<{ readonly carried: Carried; readonly error: DatabaseError }>
  }

  const direct = (round: ReadonlyArray<Carried>): Effect.Effect<Counts, DatabaseError> =>
    Effect.suspend(() => {
      const ends = new Map<Page, string>()
      const lines = function* (): Generator<readonly [SourceRecord, string]> {
        for (const { record, page } of round) {
          let end = ends.get(page)
          if (end === undefined) {
            end = `${runId}\t${iso(page.beganAt)}\t${copyValue(page.source)}\tscan`
            ends.set(page, end)
          }
          yield [record, end]
        }
      }
      return copyIn(client, sql.copyDirect, copyLines(lines(), `${companyId}\t`)).pipe(
        Effect.map((inserted) => ({ inserted, updated: 0, refused: [] }))
      )
    })

  const merged = (round: ReadonlyArray<Carried>): Effect.Effect<Counts, DatabaseError> =>
    Effect.gen(function* () {
      yield* run("plan the merge of", planForKeys)
      yield* run("create the stage of", sql.createStage)
      yield* run("empty the stage of", sql.emptyStage)
      let partial = false
      const lines = function* (): Generator<readonly [SourceRecord, string]> {
        for (const { record, page } of round) {
          if (record.partial) partial = true
          yield [record, `${absentPositions(record)}\t${iso(page.beganAt)}\t${copyValue(page.source)}`]
        }
      }
      yield* copyIn(client, sql.copyStage, copyLines(lines(), ""))
      if (partial) yield* run("complete", sql.fillAbsent, [companyId])
      const { affected: updated } = yield* run("keep earlier versions of", sql.supersede, [companyId])
      const { affected } = yield* run("merge", sql.merge, [companyId, "scan", runId])
      return { inserted: affected - updated, updated, refused: [] }
    })

  /** Loads a round; halves it around a value that Postgres refuses until that record stands alone. */
  const load = (round: ReadonlyArray<Carried>): Effect.Effect<Counts, DatabaseError> => {
    if (round.length === 0) return Effect.succeed({ inserted: 0, updated: 0, refused: [] })
    const wholeRecords = round.every(({ record }) => !record.partial)
    const first = hasRows || !wholeRecords ? merged : direct
    return savepoint(first(round)).pipe(
      // A key that stands already: this is no first load any more.
      Effect.catchIf(
        (error) => first === direct && error.code === "23505",
        () => savepoint(merged(round))
      ),
      Effect.catchIf(isValueError, (error) => {
        if (round.length === 1) {
          return Effect.succeed({ inserted: 0, updated: 0, refused: [{ carried: round[0]!, error }] })
        }
        const middle = Math.floor(round.length / 2)
        return Effect.zipWith(load(round.slice(0, middle)), load(round.slice(middle)), (left, right) => ({
          inserted: left.inserted + right.inserted,
          updated: left.updated + right.updated,
          refused: [...left.refused, ...right.refused]
        }))
      })
    )
  }

  const quarantine = Effect.fnUntraced(function* (
    rejected: ReadonlyArray<{ readonly rejected: Rejected; readonly source: string }>
  ) {
    if (rejected.length === 0) return
    hasQuarantine = true
    const at = iso(yield* Clock.currentTimeMillis)
    for (const { rejected: one, source } of rejected) {
      yield* run(
        "quarantine a record of",
        `insert into tributary.quarantine as q
           (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
         on conflict (company_id, resource, coalesce(record_id, ''), md5(bytes)) where resolved_at is null
         do update set last_seen_at = excluded.last_seen_at, times = q.times + 1, run_id = excluded.run_id,
                       reason = excluded.reason, field = excluded.field, source = excluded.source`,
        [companyId, resource, one.id, one.field, one.reason, one.bytes, runId, source, at]
      )
    }
  })

  /** A record that was landed is no longer in quarantine, whatever stood there of it. */
  const release = (landed: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      if (!hasQuarantine || landed.length === 0) return
      yield* run(
        "release quarantine of",
        `update tributary.quarantine set resolved_at = $4
          where company_id = $1 and resource = $2 and resolved_at is null and record_id = any($3::text[])`,
        [companyId, resource, landed, iso(yield* Clock.currentTimeMillis)]
      )
    })

  /** Absence from a completed full scan means deleted, unless so much is absent that it cannot be believed. */
  const bury = Effect.fnUntraced(function* (
    scan: OpenScan,
    unreadable: boolean
  ): Effect.fn.Return<Pick<Landed, "deleted" | "disbelieved">, DatabaseError> {
    // A record whose very number could not be read may be any of those that seem to be gone.
    const nothing = { deleted: 0, disbelieved: null }
    if (unreadable || !hasRows) return nothing
    const began = iso(scan.beganAt)
    yield* run("plan the burial of", planForAll)
    yield* run("prepare the burial of", sql.createGone)
    yield* run("prepare the burial of", sql.emptyGone)
    const { affected: gone } = yield* run("find what is gone of", sql.findGone, [companyId, resource, began])
    if (gone === 0) return nothing
    const { rows } = yield* run<{ live: number }>("count", sql.countLive, [companyId])
    const live = rows[0]!.live
    if (!options.acceptDeletions && gone > goneAlways && gone > live * goneShareMax) {
      return { deleted: 0, disbelieved: { live, gone } }
    }
    yield* run("keep deleted versions of", sql.supersedeGone, [companyId, began])
    yield* run("bury", sql.tombstone, [companyId, began, runId, `absent from the full scan of run ${runId}`])
    return { deleted: gone, disbelieved: null }
  })

  const checkFence = (affected: number) =>
    affected === 1 ? Effect.void : Effect.fail(new FencedOff({ resource, fence }))

  const transaction = <A, E>(body: Effect.Effect<A, E>): Effect.Effect<A, E | DatabaseError | FencedOff> =>
    Effect.gen(function* () {
      yield* run("begin landing", "begin")
      // Whoever lands into this resource stands in line here; who was taken over learns it before writing.
      const { rows } = yield* run<{ fence: bigint }>(
        "lock the checkpoint of",
        "select fence from tributary.checkpoints where company_id = $1 and resource = $2 for update",
        [companyId, resource]
      )
      yield* checkFence(rows[0]?.fence === fence ? 1 : 0)
      const result = yield* body
      yield* run("commit landing of", "commit")
      return result
    }).pipe(
      Effect.tapError((error) =>
        error instanceof DatabaseError && error.isRetryable
          ? Effect.void
          : Effect.ignore(run("roll back landing of", "rollback"))
      )
    )

  const saveCheckpoint = Effect.fnUntraced(function* (change: {
    readonly scan: OpenScan | null
    readonly completed: OpenScan | null
  }) {
    const { scan, completed } = change
    const { affected } = yield* run(
      "move the checkpoint of",
      `update tributary.checkpoints set
         cursor = coalesce($4, cursor), full_scan_at = coalesce($5, full_scan_at),
         scan_run_id = $6, scan_kind = $7, scan_since = $8, scan_token = $9, scan_pages = $10,
         scan_synced_through = $11, scan_began_at = $12, updated_at = $13
       where company_id = $1 and resource = $2 and fence = $3`,
      [
        companyId,
        resource,
        fence,
        completed?.syncedThrough ?? null,
        completed?.kind === "full" ? iso(completed.beganAt) : null,
        scan === null ? null : runId,
        scan?.kind ?? null,
        scan?.since ?? null,
        scan?.token ?? null,
        scan?.pages ?? null,
        scan?.syncedThrough ?? null,
        scan === null ? null : iso(scan.beganAt),
        iso(yield* Clock.currentTimeMillis)
      ]
    )
    yield* checkFence(affected)
  })

  const land = Effect.fnUntraced(function* ({ pages, scan, complete }: Landing) {
    const landed = yield* transaction(
      Effect.gen(function* () {
        let [records, inserted, updated] = [0, 0, 0]
        const set: Array<{ rejected: Rejected; source: string }> = pages.flatMap((page) =>
          page.rejected.map((rejected) => ({ rejected, source: page.source }))
        )
        const refusedIds = new Set<string>()
        for (const round of rounds(pages)) {
          const counts = yield* load(round)
          records += round.length
          inserted += counts.inserted
          updated += counts.updated
          for (const { carried, error } of counts.refused) {
            refusedIds.add(carried.record.id)
            set.push({ rejected: refusal(table, carried.record, error), source: carried.page.source })
          }
        }
        yield* release(pages.flatMap((page) => page.records.map(({ id }) => id)).filter((id) => !refusedIds.has(id)))
        yield* quarantine(set)
        if (scan.kind === "full" && pages.length > 0) {
          const ids = pages.flatMap((page) => [
            ...page.records.map(({ id }) => id),
            ...page.rejected.flatMap(({ id }) => (id === null || !/^-?\d{1,18}$/.test(id) ? [] : [id]))
          ])
          yield* run(
            "remember ids of",
            `insert into tributary.scan_seen (company_id, resource, page, ids) values ($1, $2, $3, $4::bigint[])
             on conflict (company_id, resource, page) do update set ids = excluded.ids`,
            [companyId, resource, scan.pages, ids]
          )
        }
        let buried: Pick<Landed, "deleted" | "disbelieved"> = { deleted: 0, disbelieved: null }
        if (complete && scan.kind === "full") {
          const { rows } = yield* run<{ unreadable: boolean }>(
            "look for unreadable records of",
            `select exists (select 1 from tributary.quarantine where company_id = $1 and resource = $2
               and resolved_at is null and record_id is null and last_seen_at >= $3) as unreadable`,
            [companyId, resource, iso(scan.beganAt)]
          )
          buried = yield* bury(scan, rows[0]?.unreadable === true)
          yield* run("forget ids of", "delete from tributary.scan_seen where company_id = $1 and resource = $2", [
            companyId,
            resource
          ])
        }
        const quarantined = set.length
        const requests = pages.reduce((sum, page) => sum + page.attempts, 0)
        const unchanged = records - inserted - updated - refusedIds.size
        yield* run(
          "count the run of",
          `update tributary.runs set pages = pages + $2, bytes = bytes + $3, records = records + $4,
             inserted = inserted + $5, updated = updated + $6, unchanged = unchanged + $7, deleted = deleted + $8,
             quarantined = quarantined + $9, requests = requests + $10, retries = retries + $11,
             cursor_to = coalesce($12, cursor_to)
           where id = $1`,
          [
            runId,
            pages.length,
            pages.reduce((sum, page) => sum + page.bytes, 0),
            records,
            inserted,
            updated,
            unchanged,
            buried.deleted,
            quarantined,
            requests,
            requests - pages.length,
            complete ? scan.syncedThrough : null
          ]
        )
        yield* saveCheckpoint({ scan: complete ? null : scan, completed: complete ? scan : null })
        return { records, inserted, updated, unchanged, ...buried, quarantined } satisfies Landed
      })
    )
    return landed
  })

  const restart = transaction(
    Effect.gen(function* () {
      yield* run("forget ids of", "delete from tributary.scan_seen where company_id = $1 and resource = $2", [
        companyId,
        resource
      ])
      yield* saveCheckpoint({ scan: null, completed: null })
    })
  )

  return { checkpoint, runId, land, restart } satisfies Lander
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
        return value === undefined ? [] : [[column.name, value]]
      }),
      ...(record.customFields === null ? [] : [["custom_fields", record.customFields]]),
      ...(record.extra === null ? [] : [["_extra", record.extra]])
    ])
  )
})

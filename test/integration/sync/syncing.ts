/** Runs of the engine that read a source in memory, and what they leave in the warehouse. */
import { Effect, Layer } from "effect"
import type { ConnectorShape, Page } from "../../../src/connector/Connector.ts"
import { PageTokenRefused, ServerFault } from "../../../src/connector/SourceError.ts"
import type { Lane, RunKind } from "../../../src/land/Checkpoint.ts"
import * as ResourceLock from "../../../src/land/ResourceLock.ts"
import * as WriteSession from "../../../src/land/WriteSession.ts"
import { type SyncMode, syncResource } from "../../../src/sync/SyncResource.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import {
  failing,
  pages,
  plain,
  record,
  type Script,
  type ScriptedPage,
  scripted,
  type ScriptedSource,
  things,
  tiny
} from "../../support/tiny.ts"

export const tables = { things: tableOf(things), plain: tableOf(plain) }

/** A warehouse with tables. */
export const warehouseWith = (all: ReadonlyArray<Table>) =>
  Layer.effectDiscard(TablePlan.apply(all)).pipe(Layer.provideMerge(layerWarehouse))

export const warehouse = warehouseWith(Object.values(tables))

let companies = 0n
/** A new company for each test, so that tests share a database and no row. */
export const company = () => (companies += 1n)

export interface RunOptions extends SyncMode {
  readonly table?: Table
  readonly batchRecordsMax?: number
}

export const run = (
  source: { readonly connector: ConnectorShape },
  companyId: bigint,
  { table = tables.things, batchRecordsMax = 5_000, ...mode }: RunOptions = {}
) => syncResource({ companyId, connector: source.connector, table }, { batchRecordsMax, mode })

/** A source of a new company. */
export const newSource = (script: Script) => {
  const companyId = company()
  return { companyId, source: scripted(companyId, script) }
}

/** The same, after its first run. */
export const synced = (script: Script) => {
  const own = newSource(script)
  return Effect.as(run(own.source, own.companyId), own)
}

/** Seconds after the begin of 2026. */
export const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString().replace("Z", "000Z")

export const thing = (id: number, name: string, seconds: number | null) =>
  record(things, { id: String(id), name, lastchangedate: seconds === null ? null : at(seconds) })

/** Records without a time of change. */
export const plains = (name: string, ...ids: ReadonlyArray<number>) =>
  ids.map((id) => record(plain, { id: String(id), name }))

/** The numbers from 1. */
export const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

type Records = ScriptedPage["records"]

export const page = (seconds: number | null, ...records: Records): ScriptedPage => ({
  records,
  syncedThrough: seconds === null ? null : at(seconds)
})

/** A list of one page. */
export const list = (seconds: number | null, ...records: Records) => pages(page(seconds, ...records))

export const serverFault = new ServerFault({ status: 500, code: null, retryAfter: null })

/** The script, with an error in place of a page. */
export const failingAt =
  (token: string | null, script: Script, error = failing(serverFault)): Script =>
  (request) => {
    if (request.token === token) throw error
    return script(request)
  }

export const tokenRefused = new PageTokenRefused({ detail: "expired" })

/** The source, with an effect once before or after it reads a page. */
export const disturbed = <E, R>(
  source: ScriptedSource,
  token: string | null,
  effect: Effect.Effect<unknown, E, R>,
  when: "before" | "after" = "after"
): Effect.Effect<ScriptedSource, never, R> =>
  Effect.map(Effect.context<R>(), (context) => {
    let isDone = false
    const once = Effect.suspend(() => {
      if (isDone) return Effect.void
      isDone = true
      return Effect.orDie(Effect.provideContext(effect, context))
    })
    const { page: read } = source.connector
    const readDisturbed: ConnectorShape["page"] = (request) => {
      if (request.token !== token) return read(request)
      return when === "before" ? Effect.andThen(once, read(request)) : Effect.tap(read(request), once)
    }
    return { ...source, connector: { ...source.connector, page: readDisturbed } }
  })

/** A session that may land rows of a resource, until the end of the scope. */
export const openSession = Effect.fnUntraced(function* (
  companyId: bigint,
  lane: Lane,
  kind: RunKind,
  table: Table = tables.things
) {
  const lock = yield* ResourceLock.acquire({ table, connector: { catalogue: tiny }, companyId, lane })
  return yield* WriteSession.open(lock, {
    run: { kind },
    origin: kind === "push" ? "push" : "scan",
    authority: "newer",
    acceptDeletions: false,
    deletionsShareMax: 0.5,
    children: []
  })
})

/** Lands records as a push does. The source answered at `beganAt`, on the clock of the source. */
export const push = (companyId: bigint, table: Table, beganAt: number, records: Records) =>
  Effect.gen(function* () {
    const session = yield* openSession(companyId, "push", "push", table)
    const answer: Page = {
      records,
      rejected: [],
      next: null,
      syncedThrough: null,
      beganAt,
      source: "POST",
      bytes: 0,
      attempts: 1
    }
    yield* session.land({
      pages: [{ page: answer, observedAt: session.timeOf(beganAt) }],
      scan: null,
      complete: false
    })
  }).pipe(Effect.scoped)

export const live = (companyId: bigint, path = "things") =>
  execute<Record<string, unknown>>(
    `select *, xmin::text from erp.${path} where _company_id = $1 and _deleted_at is null order by id`,
    [companyId]
  )

/** The values of a column in the live rows, by id. */
export const valuesOf = (companyId: bigint, path = "things", column = "name") =>
  Effect.map(live(companyId, path), (rows) => rows.map((row) => row[column] as string | null))

export const history = (companyId: bigint, path = "things") =>
  execute<{ id: number; version: number; name: string; op: string; open: boolean; isOrdered: boolean }>(
    `select id::int, _version::int as version, record ->> 'name' as name, _op as op, _valid_to is null as open,
            _valid_to is null or _valid_to >= _valid_from as "isOrdered"
       from erp_history.${path} where _company_id = $1 order by id, _version`,
    [companyId]
  )

interface CheckpointRow {
  readonly cursor: string | null
  readonly cursor_read_at: Date | null
  readonly fence: bigint
  readonly full_scan_at: Date | null
  readonly full_scan_reason: string | null
  readonly learned_overlap_ms: bigint
  readonly token: string | null
}
export const checkpoint = (companyId: bigint, path = "things", lane: Lane = "live") =>
  Effect.map(
    execute<CheckpointRow>(
      "select * from tributary.checkpoints left join tributary.scans using (company_id, resource, lane) where company_id = $1 and resource = $2 and lane = $3",
      [companyId, path, lane]
    ),
    ([row]) => row!
  )

/** The records that are in quarantine now. */
export const quarantined = (companyId: bigint) =>
  execute<{ id: string | null; reason: string; bytes: string; times: number }>(
    `select record_id as id, reason, bytes, times::int from tributary.quarantine
      where company_id = $1 and resolved_at is null order by 1`,
    [companyId]
  )

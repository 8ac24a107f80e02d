/**
 * A poller that pushes rows inserted into the outbox by SQL, while a process serves.
 *
 * Promise: pending rows are sent within seconds, resource by resource, many rows at once. A resource that fails pauses,
 * longer each time up to a minute, and delays no other. Only the end of the process ends the poller.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import { childrenOf, type Table } from "../warehouse/Table.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { isOpen } from "./OutboxStore.ts"
import { push } from "./OutboxWorker.ts"
import type { PushCompany, PushSettings } from "./PushSession.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Backoff from "../time/Backoff.ts"

export interface PolledCompany extends PushCompany {
  /** The tables of the synced resources by path, with their inferred columns; read at each use. */
  readonly tables: Effect.Effect<ReadonlyMap<string, Table>, DatabaseError>
}

const pauseMinMs = 1_000
const pauseMaxMs = 60_000

/** The consecutive failures, and the end of the pause. */
interface Pause {
  readonly failures: number
  readonly untilMs: number
}

/** The poller of one company. */
interface Poller {
  readonly company: PolledCompany
  readonly settings: PushSettings
  readonly nowMs: () => number
  /** Resources that are being pushed. */
  readonly busy: Set<string>
  /** Pauses by resource; the pause of the company has the empty name. */
  readonly pauses: Map<string, Pause>
  companyId: bigint | null
}

export const openResourcesStatement = Statement.make({
  name: "find resources with open rows",
  params: ["text"],
  columns: { resource: "text" },
  // The recursive query looks each resource up once in the index, however many rows are open.
  text: `with recursive resources as (
    (select resource from tributary.outbox o
      where company = $1 and ${isOpen("o")} and push_id is null order by resource limit 1)
    union all
    select (select o.resource from tributary.outbox o
             where o.company = $1 and ${isOpen("o")} and o.push_id is null and o.resource > r.resource
             order by o.resource limit 1)
      from resources r where r.resource is not null
  ) select resource from resources where resource is not null`
})

/** Rejects the rows of a resource that is not synced: they can never be sent. */
const rejectRows = (company: string, resource: string) => {
  const reason = "the resource is not among those that are synced for this company"
  return Query.run(
    control
      .updateTable("tributary.outbox")
      .set({ state: "rejected", code: "invalid", resolved_at: Query.now, reason })
      .where((is) => is.and({ company, resource, state: "pending" }))
      .where("push_id", "is", null)
  )
}

const isPaused = ({ nowMs, pauses }: Poller, path: string): boolean => (pauses.get(path)?.untilMs ?? 0) > nowMs()

const pause = ({ company, nowMs, pauses }: Poller, path: string, reason: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const failures = (pauses.get(path)?.failures ?? 0) + 1
    const pauseMs = Backoff.delayMs(failures, pauseMinMs, pauseMaxMs)
    pauses.set(path, { failures, untilMs: nowMs() + pauseMs })
    const what = path === "" ? company.name : `${company.name}: ${path}`
    return Effect.logWarning(`push of company ${what}: ${reason}; next attempt in ${Math.round(pauseMs / 1000)} s`)
  })

/** Pushes the open rows of a resource. */
const pushResource = Effect.fnUntraced(function* (
  poller: Poller,
  tables: ReadonlyMap<string, Table>,
  table: Table,
  companyId: bigint
) {
  const { company, pauses, settings } = poller
  const { path } = table.resource
  const children = childrenOf(tables, path)
  const { failure } = yield* push({ company, companyId, table, children, settings, scope: "outbox" })
  if (failure === null) pauses.delete(path)
  // The table has new inferred columns: the next poll reads them.
  else if (failure.kind !== "TableChanged") yield* pause(poller, path, `${failure.message}; ${failure.remedy}`)
})

/** The source's number of the company; null while the source cannot be reached. */
const identify = Effect.fnUntraced(function* (poller: Poller) {
  if (poller.companyId !== null) return poller.companyId
  const result = yield* Effect.result(poller.company.connector.identify)
  if (result._tag === "Failure") {
    yield* pause(poller, "", result.failure.message)
    return null
  }
  poller.pauses.delete("")
  poller.companyId = result.success.companyId
  return poller.companyId
})

/** Starts a push of each resource with open rows that belong to no push. */
const pollOnce = Effect.fnUntraced(function* (poller: Poller) {
  const { busy, company } = poller
  const open = yield* Statement.run(openResourcesStatement, [company.name])
  const paths = open.flatMap(({ resource }) => (busy.has(resource) || isPaused(poller, resource) ? [] : [resource]))
  if (paths.length === 0 || isPaused(poller, "")) return
  const tables = yield* company.tables
  const synced = paths.flatMap((path) => tables.get(path) ?? [])
  yield* Effect.forEach(
    paths.filter((path) => !tables.has(path)),
    (path) => rejectRows(company.name, path),
    { discard: true }
  )
  if (synced.length === 0) return
  const companyId = yield* identify(poller)
  if (companyId === null) return
  for (const table of synced) {
    const { path } = table.resource
    busy.add(path)
    yield* pushResource(poller, tables, table, companyId).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.failCause(cause)
          : pause(poller, path, `this is a fault of the program, please report it: ${Cause.pretty(cause)}`)
      ),
      Effect.ensuring(Effect.sync(() => busy.delete(path))),
      Effect.forkScoped
    )
  }
})

/**
 * Pushes the open rows of a company that belong to no push, for ever. `hasRows` opens while there are some
 * (`src/processes/PendingWork.ts`).
 */
export const poll = Effect.fnUntraced(function* (company: PolledCompany, settings: PushSettings, hasRows: Latch.Latch) {
  const nowMs = yield* MonotonicClock.make
  const poller: Poller = { company, settings, nowMs, busy: new Set(), pauses: new Map(), companyId: null }
  let isFailing = false
  for (;;) {
    yield* Effect.andThen(hasRows.await, hasRows.close)
    const result = yield* Effect.result(pollOnce(poller))
    if (result._tag === "Failure" && !isFailing) {
      yield* Effect.logWarning(`push of company ${company.name}: the outbox cannot be read: ${result.failure.message}`)
    }
    isFailing = result._tag === "Failure"
  }
}, Effect.scoped)

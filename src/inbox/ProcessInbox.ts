/**
 * The work that the pending events of a company make due.
 *
 * Promise: every pending event is answered by a read that began after it was due, or by a row that shows that no read is
 * needed. No value of an event's body is ever loaded. A failed event is retried while the others go on; a dead letter stays
 * until a person replays it. A process may end at any point, and two may work on one inbox while its owner changes: no
 * event is lost, and processing an event twice does no harm.
 *
 * Full scans, and reads of the children of changed parents, run beside the events.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { Priority } from "../budget/Budget.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { mayReadChildren, postponeChildren, readForEvents, refetchChildren, scanRetryMs } from "./BulkReads.ts"
import * as InboxStore from "./InboxStore.ts"
import * as InboxWorker from "./InboxWorker.ts"
import { failurePauseMs, processResource } from "./ProcessEvents.ts"

/** Resources of a company that are worked on at the same time. */
export const concurrency: Readonly<Record<InboxWorker.WorkKind, number>> = { events: 4, read: 3 }

/** Work on a resource, which may begin now. */
export interface Work {
  readonly path: string
  readonly kind: InboxWorker.WorkKind
  readonly run: Effect.Effect<void, DatabaseError, Database | SqlClient.SqlClient>
}

/**
 * The work of a company that may begin now, with at most one of each kind for a resource. Events about no resource, or
 * about one that is not synced, are skipped at once.
 */
export const workOf = Effect.fnUntraced(function* (
  worker: InboxWorker.InboxWorker,
  due: ReadonlyArray<InboxStore.DueWork>,
  isRunning: (kind: InboxWorker.WorkKind, path: string) => boolean
) {
  const { breaker, company, identity, now } = worker
  const mayBegin = ({ kind, resource }: InboxStore.DueWork) => {
    if (resource === null) return true
    const { pausedUntil, wantsFullReadUntil } = InboxWorker.stateOf(worker, resource)
    if (kind === "children") return mayReadChildren(worker, resource) && !isRunning("read", resource)
    return now() < wantsFullReadUntil || (now() >= pausedUntil && !isRunning("events", resource))
  }
  if (breaker.isOpen() || !due.some(mayBegin)) return []
  const tables = yield* company.tables
  const targets = due.flatMap(({ kind, resource: path }) => {
    const table = path === null ? undefined : tables.get(path)
    if (path === null || table === undefined) return []
    const target: InboxWorker.ResourceTarget = { companyId: identity.companyId, tables, table, path }
    return [{ kind, state: InboxWorker.stateOf(worker, path), target }]
  })
  if (targets.length < due.length) {
    yield* InboxStore.skipUnsynced(company.name, tables.keys())
    for (const { resource } of due) {
      if (resource !== null && !tables.has(resource)) postponeChildren(worker, resource, scanRetryMs)
    }
  }
  const reads = new Map<string, Work>()
  for (const { kind, state, target } of targets) {
    const { path, table } = target
    const wantsFullRead = now() < state.wantsFullReadUntil
    if (kind === "children" ? wantsFullRead || !mayReadChildren(worker, path) : !wantsFullRead) continue
    // Events that a list answers need the same lane.
    const isLaneFree = InboxWorker.isRetrievable(table) || !isRunning("events", path)
    if (!isLaneFree || isRunning("read", path)) continue
    const run = kind === "events" ? readForEvents(worker, target) : refetchChildren(worker, target)
    reads.set(path, { path, kind: "read", run })
  }
  const events = targets.flatMap(({ kind, state, target }): ReadonlyArray<Work> => {
    const { path, table } = target
    if (kind !== "events" || isRunning("events", path) || now() < state.pausedUntil) return []
    const isRead = reads.has(path) || isRunning("read", path)
    if (isRead && !InboxWorker.isRetrievable(table)) return []
    return [{ path, kind: "events", run: processResource(worker, target) }]
  })
  return [...events, ...reads.values()]
})

/** Does the work. No other work of its kind runs on the resource meanwhile. */
export const runWork = (worker: InboxWorker.InboxWorker, { path, kind, run }: Work) =>
  run.pipe(
    Effect.provideService(Priority, InboxWorker.urgent),
    Effect.tap(() =>
      Effect.sync(() => {
        // The events that a read answered are resolved at once.
        if (kind === "read") InboxWorker.pause(worker, path, 0)
      })
    ),
    Effect.tapCause(() => Effect.sync(() => InboxWorker.pause(worker, path, failurePauseMs))),
    Effect.ensuring(
      Effect.sync(() => {
        InboxWorker.stateOf(worker, path).servedAt[kind] = worker.now()
      })
    )
  )

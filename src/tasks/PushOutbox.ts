/**
 * Pushes of rows that were inserted into the outbox by SQL, by the worker of a process of serve.
 *
 * Promise: pending rows are sent within seconds, resource by resource, many rows at once. A resource that fails pauses,
 * longer each time up to a minute, and delays no other.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as CompanyLog from "../log/CompanyLog.ts"
import { isOpen } from "../outbox/OutboxStore.ts"
import { push } from "../outbox/OutboxWorker.ts"
import type { PushSettings } from "../outbox/PushSession.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import * as Backoff from "../time/Backoff.ts"
import { childrenOf } from "../warehouse/Table.ts"
import type { TaskKey } from "./DueTasks.ts"
import { rest, taskKey, type WorkerState } from "./WorkerState.ts"

const pauseMinMs = 1_000
const pauseMaxMs = 60_000

/** SQL: whether a row is open and belongs to no push. */
const isInserted = (row: string) => `${isOpen(row)} and ${row}.push_id is null`

export const openStatement = Statement.make({
  name: "find resources with open rows",
  columns: Statement.columns("text", "company", "resource"),
  // The recursion jumps from resource to resource in an index. Its cost does not grow with the rows.
  text: `with recursive open as (
           (select o.company, o.resource from tributary.outbox o where ${isInserted("o")} order by o.company, o.resource limit 1)
           union all
           select n.company, n.resource from open p cross join lateral (
             select o.company, o.resource from tributary.outbox o
              where ${isInserted("o")} and (o.company, o.resource) > (p.company, p.resource)
              order by o.company, o.resource limit 1) n
         ) select company, resource from open`
})

/** A resource with open rows. */
export interface OpenRows extends TaskKey {
  readonly kind: "push"
}

/** The resources of owned companies with open rows that this process neither pushes nor lets rest. */
export const openRows = ({ companies, groups, resting }: WorkerState) =>
  Effect.map(Statement.run(openStatement), (rows) =>
    rows
      .map((row): OpenRows => ({ ...row, kind: "push" }))
      .filter(
        (one) => companies.has(one.company) && !groups.tasks.running.has(taskKey(one)) && !resting.has(taskKey(one))
      )
  )

/** Rejects the rows of a resource that is not synced: they can never be sent. */
const rejectRows = ({ company, resource }: OpenRows) => {
  const reason = "the resource is not among those that are synced for this company"
  return Query.run(
    control
      .updateTable("tributary.outbox")
      .set({ state: "rejected", code: "invalid", resolved_at: Query.now, reason })
      .where((is) => is.and({ company, resource, state: "pending" }))
      .where("push_id", "is", null)
  )
}

const pause = (worker: WorkerState, rows: OpenRows, reason: string) =>
  Effect.suspend(() => {
    const failures = (worker.pushFailures.get(taskKey(rows)) ?? 0) + 1
    worker.pushFailures.set(taskKey(rows), failures)
    const pauseMs = Backoff.delayMs(failures, pauseMinMs, pauseMaxMs)
    rest(worker, rows, pauseMs)
    return Effect.logWarning(
      `push of company ${rows.company}: ${rows.resource}: ${reason}; next attempt in ${Math.round(pauseMs / 1000)} s`
    )
  })

/** Pushes the open rows of a resource. */
export const pushRows = (worker: WorkerState, settings: PushSettings, rows: OpenRows) =>
  Effect.gen(function* () {
    const state = worker.companies.get(rows.company)
    const identity = state?.breaker.identity() ?? null
    if (state === undefined || identity === null) return rest(worker, rows, pauseMinMs)
    const { breaker, company } = state
    const tables = yield* company.tables
    const table = tables.get(rows.resource)
    if (table === undefined) return yield* rejectRows(rows)
    const children = childrenOf(tables, rows.resource)
    const { companyId } = identity
    const { failure } = yield* push({ company, companyId, table, children, settings, scope: "outbox" })
    const isAway = failure !== null && (yield* breaker.classify(failure)) === "company"
    // The table has new inferred columns: the next push reads them.
    if (failure !== null && !isAway && failure.kind !== "TableChanged") {
      return yield* pause(worker, rows, `${failure.message}; ${failure.remedy}`)
    }
    worker.pushFailures.delete(taskKey(rows))
    rest(worker, rows, failure === null || isAway ? pauseMinMs : 0)
  }).pipe(
    Effect.catch((error) => pause(worker, rows, error.message)),
    Effect.catchDefect((defect) =>
      pause(worker, rows, `this is a fault of the program, please report it: ${Cause.pretty(Cause.die(defect))}`)
    ),
    CompanyLog.about(rows.company)
  )

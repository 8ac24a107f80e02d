/** Workers of processes of serve. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as SqlClient from "effect/sql/SqlClient"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import type { ResourceSchedule } from "../../../src/tasks/Cron.ts"
import * as InboxStore from "../../../src/inbox/InboxStore.ts"
import * as TaskWorker from "../../../src/tasks/TaskWorker.ts"
import type { Company } from "../../../src/sync/Company.ts"
import type { TaskWorkerOptions } from "../../../src/tasks/WorkerState.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { until, untilNear } from "../../support/until.ts"

const schedule = { missed: "once", jitterMax: Duration.zero } as const
export const hourly: ResourceSchedule = { ...schedule, timing: { kind: "every", interval: Duration.hours(1) } }
export const off: ResourceSchedule = { ...schedule, timing: { kind: "off" } }

const options: TaskWorkerOptions = {
  scheduleOf: () => hourly,
  freshnessOf: () => Duration.minutes(90),
  concurrency: 2,
  reader: deliveryReader,
  datasets: datasetsDefault,
  models: []
}

export const makeWorker = (
  scheduleOf: TaskWorkerOptions["scheduleOf"] = () => hourly,
  more: Partial<Pick<TaskWorkerOptions, "push" | "checks">> = {}
) => TaskWorker.make({ ...options, ...more, scheduleOf })

/** The options of a worker that does nothing but process events. */
export const eventsOnly: TaskWorkerOptions = { ...options, isForEventsOnly: true }

/** A process that owns the company and does nothing but process its events, until it is interrupted. */
export const processEvents = Effect.fnUntraced(function* (company: Company) {
  const worker = yield* TaskWorker.make(eventsOnly)
  yield* worker.own(company)
  return yield* worker.run
}, Effect.scoped)

/** Processes the events of a company until none is due, and what they began has ended. */
export const processDue = Effect.fnUntraced(function* (company: Company) {
  const sql = yield* SqlClient.SqlClient
  const worker = yield* Effect.forkChild(processEvents(company))
  const due = Effect.map(InboxStore.dueWork, (all) => all.filter((one) => one.company === company.name))
  const running = sql`select resource from tributary.runs join tributary.companies using (company_id)
                       where company = ${company.name} and status = 'running'`
  yield* untilNear("the end of due work", due, ({ length }) => length === 0)
  yield* until("the end of runs", running, ({ length }) => length === 0)
  yield* Fiber.interrupt(worker)
})

/** A task worker with schedules for all resources. */
import * as Duration from "effect/Duration"
import type { ResourceSchedule } from "../../../src/tasks/Cron.ts"
import type { PushSettings } from "../../../src/outbox/PushSession.ts"
import * as TaskWorker from "../../../src/tasks/TaskWorker.ts"
import type { TaskWorkerOptions } from "../../../src/tasks/WorkerState.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"

const schedule = { missed: "once", jitterMax: Duration.zero } as const
export const hourly: ResourceSchedule = { ...schedule, timing: { kind: "every", interval: Duration.hours(1) } }
export const off: ResourceSchedule = { ...schedule, timing: { kind: "off" } }

export const makeWorker = (scheduleOf: TaskWorkerOptions["scheduleOf"] = () => hourly, push?: PushSettings) =>
  TaskWorker.make({
    ...(push === undefined ? {} : { push }),
    scheduleOf,
    freshnessOf: () => Duration.minutes(90),
    concurrency: 2,
    datasets: datasetsDefault,
    models: []
  })

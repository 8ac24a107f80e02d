/** The state of the tasks and of the processes that run them. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { readTasks, type Task } from "../tasks/TaskQueue.ts"

export interface ScheduleStatus {
  /** Processes of `tributary serve` that are alive. */
  readonly processes: number
  readonly tasks: ReadonlyArray<TaskStatus>
}

export interface TaskStatus extends Task {
  /** The time until its next run, by the warehouse's clock; negative when it is due. */
  readonly nextInMs: number | null
}

export const read: Effect.Effect<ScheduleStatus, SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tasks = yield* readTasks
  const [now] = yield* sql<{ processes: number; ms: number }>`
    select (extract(epoch from tributary.now()) * 1000)::float8 as ms,
           (select count(*) from tributary.processes_alive)::int as processes`
  return {
    processes: now!.processes,
    tasks: tasks.map((task) => ({
      ...task,
      nextInMs: task.nextAt === null ? null : task.nextAt.getTime() - now!.ms
    }))
  }
})

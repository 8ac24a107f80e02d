/** The state of the tasks and of the processes that run them. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import { readTasksOf, type Task } from "../tasks/TaskQueue.ts"

export interface ScheduleStatus {
  /** Processes of `tributary serve` that are alive. */
  readonly processes: number
  readonly tasks: ReadonlyArray<TaskStatus>
}

export interface TaskStatus extends Task {
  /** The time until its next run, by the warehouse's clock; negative when it is due. */
  readonly nextInMs: number | null
}

/** The processes alive, and the time. */
export const readProcesses = Query.first(
  control
    .selectFrom("tributary.processes_alive")
    .select((of) => [Query.epochMs(Query.now).as("ms"), of.cast<number>(of.fn.countAll(), "int4").as("processes")])
)

/** The tasks of these companies. */
export const readOf = (companies: ReadonlyArray<string> | null): Sql.Query<ScheduleStatus> =>
  Effect.gen(function* () {
    const tasks = yield* readTasksOf(companies)
    const now = yield* readProcesses
    return {
      processes: now!.processes,
      tasks: tasks.map((task) => ({
        ...task,
        nextInMs: task.nextAt === null ? null : task.nextAt.getTime() - now!.ms
      }))
    }
  })

/** The tasks of all companies. */
export const read = readOf(null)

/** The read model of runs. */
import * as Effect from "effect/Effect"
import type { RunStatus } from "./Resources.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"

export const lanes = ["live", "backfill", "records", "push"] as const
export const statuses: ReadonlyArray<RunStatus> = ["running", "done", "quarantined", "failed", "abandoned"]
export type Lane = (typeof lanes)[number]

/** A place in the list: the microsecond of an end, or `running`; then `-`, and the id of the run. */
export type RunPlace = `${bigint | "running"}-${bigint}`

/** The runs to list; null is any. */
export interface RunFilter {
  readonly companyId: bigint | null
  readonly resource: string | null
  readonly status: RunStatus | null
  readonly lane: Lane | null
  /** Only runs that ended in the hour that begins at this time. */
  readonly hour: Date | null
  /** Only runs that the list has after this place. */
  readonly before: RunPlace | null
}

export const anyRun: RunFilter = { companyId: null, resource: null, status: null, lane: null, hour: null, before: null }

const counts = [
  "pages",
  "requests",
  "retries",
  "bytes",
  "records",
  "inserted",
  "updated",
  "unchanged",
  "deleted"
] as const

const selected = control
  .selectFrom("tributary.runs as r")
  .select(["r.id", "r.company_id as companyId", "r.resource", "r.lane", "r.kind", "r.status", "r.resumed"])
  .select([
    "r.started_at as beganAt",
    "r.finished_at as endedAt",
    "r.cursor_from as cursorFrom",
    "r.cursor_to as cursorTo"
  ])
  .select(["r.quiet_runs as quietRuns", "r.quiet_since as quietSince"])
  .select(["r.note", "r.error_kind as errorKind", "r.error", "r.remedy"])
  .select((of) => [
    ...counts.map((name) => of.cast<number>(`r.${name}`, "float8").as(name)),
    of.cast<number>("r.quarantined", "float8").as("quarantined"),
    of.cast<number>("r.late_rows", "float8").as("late"),
    of.cast<number>("r.max_lateness_ms", "float8").as("lateMs"),
    of.cast<number>("r.stale_records", "float8").as("staleVersions"),
    Query.epochUs(of.ref("r.finished_at")).as("endedUs"),
    of
      .selectFrom("tributary.companies as c")
      .select("c.company")
      .whereRef("c.company_id", "=", "r.company_id")
      .as("company")
  ])
type RunRow = Query.RowOf<typeof selected>

export interface Run extends RunRow {
  /** Events that name the run and are dead letters: it did not read their records. Counted for runs by number. */
  readonly deadLetters: number
}

/** How many of the newest dead letters are searched for those of a run. */
export const deadLettersSearched = 20_000

export const deadLettersStatement = Statement.make({
  name: "count the dead letters of runs",
  params: ["int8[]"],
  columns: { run: "int8?", events: "float8" },
  // The addition keeps the search from reading all events by their numbers.
  text: `select run_id as run, count(*)::float8 as events
    from (select run_id from tributary.inbox where state = 'dead_letter' order by id + 0 desc limit ${deadLettersSearched}) newest
   where run_id = any($1::bigint[]) group by 1`
})

const withDeadLetters = Effect.fnUntraced(function* (runs: ReadonlyArray<RunRow>) {
  const byNumber = runs.filter(({ kind }) => kind === "fetch").map(({ id }) => id)
  const found = byNumber.length === 0 ? [] : yield* Statement.run(deadLettersStatement, [byNumber])
  return runs.map((run): Run => ({ ...run, deadLetters: found.find((one) => one.run === run.id)?.events ?? 0 }))
})

export const one = (id: bigint) =>
  Query.run(selected.where("r.id", "=", id)).pipe(
    Effect.flatMap(withDeadLetters),
    Effect.map(([run]) => run ?? null)
  )

/** The place of a run in the list. */
export const placeOf = ({ id, endedUs }: RunRow): RunPlace => `${endedUs ?? "running"}-${id}`

/** The end in microseconds, null for a run that has none, and the id. */
const placeIn = (place: RunPlace): readonly [ended: bigint | null, id: bigint] => {
  const [ended, id] = place.split("-") as [string, string]
  return [ended === "running" ? null : BigInt(ended), BigInt(id)]
}

/**
 * Those that run now, newest first, then the others, the last to end first. A row that stands for several runs has the place
 * of the last of them.
 */
export const list = (filter: RunFilter, limit: number): Sql.Query<ReadonlyArray<Run>> =>
  Effect.gen(function* () {
    const { hour, before } = filter
    const matching = selected.where((is) =>
      is.and(
        Query.given({
          "r.company_id": filter.companyId,
          "r.resource": filter.resource,
          "r.status": filter.status,
          "r.lane": filter.lane
        })
      )
    )
    const [endedBefore, idBefore] = before === null ? [null, 0n] : placeIn(before)
    const running =
      hour !== null || (before !== null && endedBefore !== null)
        ? []
        : yield* Query.run(
            matching
              .where((is) => is.and([is("r.status", "=", "running"), is("r.finished_at", "is", null)]))
              .$if(before !== null, (runs) => runs.where("r.id", "<", idBefore))
              .orderBy("r.id", "desc")
              .limit(limit)
          )
    if (running.length >= limit) return yield* withDeadLetters(running)
    const ended = yield* Query.run(
      matching
        .where("r.finished_at", "is not", null)
        .$if(hour !== null, (runs) =>
          runs.where("r.finished_at", ">=", hour).where("r.finished_at", "<", new Date(hour!.getTime() + 3_600_000))
        )
        .$if(endedBefore !== null, (runs) =>
          runs.where((is) =>
            is(is.refTuple("r.finished_at", "r.id"), "<", is.tuple(Query.timeOfUs(endedBefore!), idBefore))
          )
        )
        .orderBy("r.finished_at", "desc")
        .orderBy("r.id", "desc")
        .limit(limit - running.length)
    )
    return yield* withDeadLetters([...running, ...ended])
  })

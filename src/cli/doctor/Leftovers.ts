/** The checks of unfinished work in the warehouse: abandoned runs, quarantine, dead letters, rejected records. */
import * as Effect from "effect/Effect"
import * as PushPause from "../../outbox/PushPause.ts"
import * as LaneLock from "../../warehouse/LaneLock.ts"
import * as Output from "../Output.ts"
import { about } from "./Finding.ts"
import * as Statement from "../../postgres/Statement.ts"

/** `behindms` is the time by which the warehouse's clock is behind the last landing. */
export const leftoversStatement = Statement.make({
  name: "count unfinished work",
  columns: {
    runs: "int4",
    oldestms: "float8?",
    quarantined: "int4",
    dead: "int4",
    rejected: "int4",
    behindms: "float8?"
  },
  text: `with running as (
       select r.started_at from tributary.runs r
        where r.status = 'running' and not ${LaneLock.isHeldSql("r")})
     select (select count(*)::int from running) as runs,
            (select (max(extract(epoch from tributary.now() - started_at)) * 1000)::float8 from running) as oldestms,
            (select count(*)::int from tributary.quarantine where resolved_at is null) as quarantined,
            (select coalesce(sum(events), 0)::int from tributary.inbox_status where state = 'dead_letter') as dead,
            (select coalesce(sum(records), 0)::int from tributary.outbox_status where state = 'rejected') as rejected,
            (select extract(epoch from max(updated_at) - tributary.now()) * 1000 from tributary.checkpoints)::float8 as behindms`
})
type LeftoverRow = Statement.RowOf<typeof leftoversStatement>

/** A smaller step back is a usual correction of a clock. */
const clockStepMsMax = 60_000

interface LeftoverCheck {
  readonly check: string
  readonly count: "runs" | "quarantined" | "dead" | "rejected"
  readonly none: string
  readonly some: (number: number, row: LeftoverRow) => string
  readonly remedy: string
}

const checks: ReadonlyArray<LeftoverCheck> = [
  {
    check: "runs",
    count: "runs",
    none: "none was abandoned",
    some: (number, { oldestms }) =>
      `${Output.plural(number, "run is", "runs are")} recorded as running but the process is gone, the oldest for ${Output.elapsed(oldestms ?? 0)}`,
    remedy: "tributary sync ends them and resumes their work"
  },
  {
    check: "quarantine",
    count: "quarantined",
    none: "empty",
    some: (number) => `${Output.plural(number, "record")} could not be landed`,
    remedy: `tributary query "select resource, record_id, field, reason from tributary.quarantine where resolved_at is null"`
  },
  {
    check: "events",
    count: "dead",
    none: "no dead letters",
    some: (number) => Output.plural(number, "dead letter"),
    remedy: "tributary status shows why; tributary webhooks replay processes them again"
  },
  {
    check: "outbox",
    count: "rejected",
    none: "nothing was rejected",
    some: (number) => `${Output.plural(number, "pushed record was", "pushed records were")} rejected by the source`,
    remedy: "tributary push status shows why"
  }
]

/** The work that a person resolves, and the runs of lost processes. */
export const leftovers = Effect.gen(function* () {
  const [row] = yield* Statement.run(leftoversStatement)
  if (row === undefined) return []
  const pause = yield* PushPause.read
  return [
    ...checks.map(({ check, count, none, some, remedy }) => {
      const { ok, warning } = about(check)
      return row[count] === 0 ? ok(none) : warning(some(row[count], row), remedy)
    }),
    ...((row.behindms ?? 0) < clockStepMsMax
      ? []
      : [
          about("time").warning(
            `the warehouse's clock is ${Output.elapsed(row.behindms ?? 0)} behind its last landing`,
            "correct the clock of the database's host; the next run of each resource is a full scan"
          )
        ]),
    ...(pause === null
      ? []
      : [
          about("pushes").warning(
            PushPause.sentence(pause),
            `compare the pending records with the source, then: ${PushPause.releaseCommand}`
          )
        ])
  ]
})

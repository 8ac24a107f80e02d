/** The problems that need a person, the runs of lost processes, and the warehouse's clock. */
import * as Effect from "effect/Effect"
import * as Problems from "../../status/Problems.ts"
import * as LaneLock from "../../warehouse/LaneLock.ts"
import * as Output from "../Output.ts"
import { messageOf, remedyOf } from "../Problems.ts"
import { about } from "./Finding.ts"
import * as Statement from "../../postgres/Statement.ts"

/** `behindms` is the time by which the warehouse's clock is behind the last landing. */
export const leftoversStatement = Statement.make({
  name: "count unfinished work",
  columns: { runs: "int4", ...Statement.columns("float8?", "oldestms", "behindms") },
  text: `with running as (
       select r.started_at from tributary.runs r
        where r.status = 'running' and not ${LaneLock.isHeldSql("r")})
     select (select count(*)::int from running) as runs,
            (select (max(extract(epoch from tributary.now() - started_at)) * 1000)::float8 from running) as oldestms,
            (select extract(epoch from max(updated_at) - tributary.now()) * 1000 from tributary.checkpoints)::float8 as behindms`
})

/** A smaller step back is a usual correction of a clock. */
const clockStepMsMax = 60_000

export const leftovers = Effect.gen(function* () {
  const [row] = yield* Statement.run(leftoversStatement)
  if (row === undefined) return []
  const { runs, oldestms, behindms } = row
  const groups = Problems.grouped(yield* Problems.read(null))
  const its = about("runs")
  return [
    runs === 0
      ? its.ok("none was abandoned")
      : its.warning(
          `${Output.plural(runs, "run is", "runs are")} recorded as running but the process is gone, the oldest for ${Output.elapsed(oldestms ?? 0)}`,
          "tributary sync ends them and resumes their work"
        ),
    ...((behindms ?? 0) < clockStepMsMax
      ? []
      : [
          about("time").warning(
            `the warehouse's clock is ${Output.elapsed(behindms ?? 0)} behind its last landing`,
            "correct the clock of the database's host; the next run of each resource is a full scan"
          )
        ]),
    ...(groups.length === 0
      ? [about("problems").ok("nothing needs a person")]
      : groups.map((group) => about(group.kind).warning(messageOf(group), remedyOf(group))))
  ]
})

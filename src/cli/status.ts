/** The command `status`: the content of the warehouse, its freshness, and its last errors. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as PushPause from "../outbox/PushPause.ts"
import * as Outbox from "../status/Outbox.ts"
import * as Schedule from "../status/Schedule.ts"
import * as Webhooks from "../status/Webhooks.ts"
import { config, demoWarehouse, json, onWarehouse, withExamples } from "./Command.ts"
import * as Output from "./Output.ts"
import { reportLines, type StatusReport } from "./status/Format.ts"
import { readPauses } from "./status/Pauses.ts"
import { readResources } from "./status/Resources.ts"

export const command = Command.make(
  "status",
  { config, demo: demoWarehouse, json },
  Effect.fn(function* (flags) {
    const report: StatusReport = yield* onWarehouse(flags, (settings) =>
      Effect.all({
        resources: readResources(settings.datasets),
        paused: readPauses(settings),
        schedule: Schedule.read,
        webhooks: Webhooks.read,
        outbox: Outbox.open,
        pushPause: PushPause.read
      })
    )
    yield* Output.printResult(flags.json, report, reportLines)
  })
).pipe(
  withExamples({
    "tributary status": "A table of every resource",
    "tributary status --demo --json": "The demo's warehouse, for a machine"
  })
)

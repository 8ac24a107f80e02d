/** The command `demo`: the whole product on one machine, from an empty folder to rows in tables. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Configuration from "../configuration/Configuration.ts"
import { config, json, switchFlag, textFlag, withExamples } from "./Command.ts"
import { type Say, startReference, type StoryReport, tellStory } from "./DemoStory.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { toTable } from "./query.ts"
import * as Progress from "./Progress.ts"
import * as SyncProgress from "./SyncProgress.ts"
import * as Warehouse from "./Warehouse.ts"

const resourcesShownMax = 16

const printJson = ({ records, webhook, delivery, resources, queries }: StoryReport) =>
  Output.print(
    Output.toJson({
      equal: true,
      records,
      webhook,
      delivery,
      resources,
      queries: queries.map(({ title, sql, result }) => ({
        title,
        sql,
        columns: result.columns.map(({ name }) => name),
        rows: result.rows
      }))
    })
  )

const printReport = Effect.fnUntraced(function* ({ company, resources, queries }: StoryReport) {
  yield* Output.print("\n6. The content of the warehouse now\n")
  const largest = resources.toSorted((a, b) => b.rows - a.rows).slice(0, resourcesShownMax)
  yield* Output.print(
    Output.table(
      ["resource", "rows", "time", `cursor (${company})`],
      largest.map((one) => [
        one.resource,
        Output.count(one.rows),
        Output.duration(one.durationMs),
        one.cursor ?? "full scan each time"
      ]),
      ["left", "right", "right"]
    )
  )
  yield* Output.printLines([`\n   and ${resources.length - largest.length} smaller ones: tributary status --demo`])
  for (const { title, result } of queries) {
    yield* Output.print(`\n   ${title}\n`)
    yield* Output.print(toTable(result))
  }
})

const nextSteps = `
What to try next
  tributary demo --serve                      the same, then keeps serving, with the dashboard
  tributary query --demo "select * from erp_models.receivables_aging order by total desc limit 5"
  tributary status --demo
  tributary reference-server --data demo      serve the API for a program of your own
  tributary init                              connect a real installation; then doctor, sync and serve
  tributary push --help                       write records back, each at most once`

export const command = Command.make(
  "demo",
  {
    serve: switchFlag("serve", "Keep serving afterwards, with changes at the source and the dashboard"),
    dashboard: textFlag(
      "dashboard",
      "HOST:PORT",
      "Address of the dashboard (default: dashboard.listen, else 127.0.0.1:8086)"
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const say: Say = (line) => (flags.json ? Effect.void : Output.printLines([line]))
    const settings = yield* Configuration.load(
      { config: Option.getOrUndefined(flags.config), dashboard: Option.getOrUndefined(flags.dashboard) },
      process.env
    )
    if (flags.serve && settings.dashboard === null) {
      return yield* new CommandFailed({
        code: exitCode.configuration,
        message: "the dashboard is off (dashboard.listen); set its address with --dashboard"
      })
    }
    yield* say("Starting an embedded Postgres (the first time takes a moment)")
    const reference = yield* Effect.forkScoped(startReference)
    const story = tellStory(
      {
        reference: Fiber.join(reference),
        settings,
        say,
        progress: SyncProgress.layer(Progress.styleOf({ json: flags.json, verbose: false }))
      },
      flags.serve ? settings.dashboard : null,
      flags.json,
      flags.json ? printJson : printReport
    )
    yield* Warehouse.provide(Effect.scoped(story), {
      databaseUrl: null,
      dataDirectory: Warehouse.demoDirectory(settings)
    })
    return yield* say(nextSteps)
  }, Effect.scoped)
).pipe(
  withExamples({
    "tributary demo": "From nothing to SQL in half a minute",
    "tributary demo --serve": "Then keep serving, with the dashboard, until Ctrl-C"
  })
)

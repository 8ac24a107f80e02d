/**
 * `tributary demo`: the whole way on one machine, from an empty folder to rows in a table.
 *
 * Promise: nothing of it is acted. A real Postgres and the real reference server come up, the real pipeline syncs over
 * HTTP, something changes at the source through the API, an event of it is delivered over HTTPS and acted on, and at the
 * end every value in the warehouse is compared with what the server says it holds. A difference is an error.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as SqlClient from "effect/sql/SqlClient"
import * as Configuring from "../configuration/Configuration.ts"
import type { CompanyConfiguration, Configuration, DashboardConfiguration } from "../configuration/Configuration.ts"
import { identifier } from "../warehouse/Identifier.ts"
import { datasetsDefault, tableOf } from "../warehouse/Table.ts"
import type { SyncReport } from "../sync/Sync.ts"
import { compare } from "../verify/Compare.ts"
import * as SyncProgress from "./SyncProgress.ts"
import { config, json, reported } from "./Command.ts"
import * as DemoServe from "./DemoServe.ts"
import * as DemoWebhook from "./DemoWebhook.ts"
import { codeOf, CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { read as runQuery, toTable } from "./query.ts"
import { Source } from "./Source.ts"
import { read as readStatus } from "./status.ts"
import * as Sync from "./sync.ts"
import * as Warehouse from "./Warehouse.ts"

/** The demo's warehouse belongs to a server that is gone: it begins anew each time. */
const emptyWarehouse = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(
    `drop schema if exists ${identifier(datasetsDefault.history)}, ${identifier(datasetsDefault.current)} cascade`
  )
  yield* sql`truncate tributary.runs, tributary.checkpoints, tributary.scan_seen, tributary.quarantine,
    tributary.inbox, tributary.inbox_claims, tributary.webhook_secrets, tributary.subscriptions, tributary.receivers,
    tributary.gaps, tributary.companies, tributary.sources, tributary.schedule, tributary.row_counts, tributary.budget_samples restart identity`
})

interface Compared {
  readonly resources: number
  readonly records: number
  readonly differences: ReadonlyArray<string>
}

const differencesShownMax = 20
/** The table is to be read, not scrolled. */
const resourcesShownMax = 16

export const command = Command.make(
  "demo",
  {
    serve: Flag.Boolean("serve").pipe(
      Flag.withDescription("Go on afterwards: things change at the source, and a page shows how they come over"),
      Flag.withDefault(false)
    ),
    dashboard: Flag.String("dashboard").pipe(
      Flag.withDescription("Where that page is (default: dashboard.listen, else 127.0.0.1:8086)"),
      Flag.withMetavar("HOST:PORT"),
      Flag.optional
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const say = (line: string) => (flags.json ? Effect.void : Output.print(line))
    const progress = SyncProgress.layer(SyncProgress.styleOf(flags))

    const story = Effect.fnUntraced(function* (settings: Configuration, page: DashboardConfiguration | null) {
      const source = yield* Source
      const demo = yield* source.demo
      const { catalogue } = source

      const reference = yield* source.reference({
        port: 0,
        controlPort: 0,
        data: "demo",
        rows: undefined,
        seed: undefined
      })
      yield* say(`The reference server answers the ERP's API at ${reference.baseUrl}`)
      yield* emptyWarehouse
      const companies = yield* demo.companies(reference)
      const configured = companies.map((company): CompanyConfiguration => ({
        name: company.name,
        url: reference.baseUrl,
        token: company.token,
        companyId: null,
        resources: null,
        webhookSecrets: [],
        webhookEvents: null
      }))
      const own: Configuration = { ...settings, companies: configured, datasets: datasetsDefault }
      const everything = { resources: [], companies: [], full: false, acceptDeletions: false }
      const succeed = (report: SyncReport) => {
        const code = codeOf(report)
        return code === exitCode.ok
          ? Effect.succeed(report)
          : Effect.fail(new CommandFailed({ code, message: "the demo's own sync did not end well; please report it" }))
      }

      yield* say("\n1. First sync: every record of every resource\n")
      const sources = yield* Sync.targets(own, everything)
      const synced = Sync.run(own, everything, sources).pipe(Effect.provide(progress), Effect.flatMap(succeed))
      const first = yield* synced
      yield* say(`   ${Sync.summary(first)}`)

      yield* say("\n2. Something changes at the source, through its API\n")
      const changed = yield* DemoWebhook.describe(demo.change(sources[0]!.connector))
      for (const line of changed) yield* say(`   ${line}`)

      yield* say("\n3. Incremental sync: only what changed is asked for\n")
      const second = yield* synced
      yield* say(`   ${Sync.summary(second)}`)

      yield* say("\n4. A webhook brings a change over: the source tells, nobody polls\n")
      const certificate = yield* DemoWebhook.throwAwayCertificate(Warehouse.demoHome(settings))
      const { brought, port } = yield* DemoWebhook.transferByWebhook({
        demo,
        reference,
        settings: own,
        company: configured[0]!,
        companyId: companies[0]!.companyId,
        connector: sources[0]!.connector,
        certificate,
        say
      })

      yield* say("\n5. Is the warehouse equal to the source? Every row and every value, both ways\n")
      const compared = yield* Effect.forEach(companies, ({ companyId }) =>
        Effect.forEach([...catalogue.resources.values()], (resource) =>
          Effect.gen(function* () {
            const state = yield* demo.state(reference, companyId, resource.path)
            const comparison = yield* compare(tableOf(resource), companyId, state)
            return {
              resources: 1,
              records: comparison.source,
              differences: comparison.differences.map(
                ({ id, kind, fields }) =>
                  `company ${companyId} ${resource.path} ${id}: ${kind}${fields.length === 0 ? "" : ` in ${fields.join(", ")}`}`
              )
            } satisfies Compared
          })
        )
      )
      const all = compared.flat()
      const differences = all.flatMap((one) => one.differences)
      const records = all.reduce((sum, one) => sum + one.records, 0)
      if (differences.length > 0) {
        for (const line of differences.slice(0, differencesShownMax)) yield* Output.note(`   ${line}`)
        return yield* new CommandFailed({
          code: exitCode.incomplete,
          message: `the warehouse differs from the source in ${differences.length} of ${records} records; please report it`
        })
      }
      yield* say(
        `   yes: ${Output.count(records)} records in ${all.length} tables of ${companies.length} companies are equal`
      )

      const statuses = yield* readStatus(datasetsDefault)
      const durations = new Map<string, number>()
      for (const outcome of [...first.companies, ...second.companies].flatMap((company) => company.outcomes)) {
        durations.set(outcome.resource, (durations.get(outcome.resource) ?? 0) + outcome.durationMs)
      }
      const rows = [...catalogue.resources.keys()].map((resource) => {
        const of = statuses.filter((status) => status.resource === resource)
        return {
          resource,
          rows: of.reduce((sum, status) => sum + status.rows, 0),
          cursor: of[0]?.cursor ?? null,
          durationMs: durations.get(resource) ?? 0
        }
      })
      const goOn =
        page === null
          ? Effect.void
          : Effect.gen(function* () {
              const webhooks = { ...own.webhooks, host: "127.0.0.1", port, tls: certificate.files, publicUrl: null }
              const url = yield* DemoServe.begin({
                demo,
                reference,
                settings: { ...own, webhooks },
                page,
                companies: sources
              })
              yield* say(`
7. Serving: schedules, webhooks, and the page

   see how everything stands at ${url}
   something changes at the source every few seconds; Ctrl-C ends it`)
              if (flags.json) yield* Output.print(Output.toJson({ ready: true, dashboard: url }))
              return yield* Effect.never
            })
      const answers = yield* Effect.forEach(demo.queries, ({ title, sql }) =>
        Effect.map(runQuery(sql), (result) => ({ title, sql, result }))
      )
      if (flags.json) {
        yield* Output.print(
          Output.toJson({
            equal: true,
            records,
            webhook: brought,
            resources: rows,
            queries: answers.map(({ title, sql, result }) => ({
              title,
              sql,
              columns: result.columns.map(({ name }) => name),
              rows: result.rows
            }))
          })
        )
        return yield* goOn
      }
      yield* say("\n6. What is in the warehouse now\n")
      const largest = rows.toSorted((a, b) => b.rows - a.rows).slice(0, resourcesShownMax)
      yield* say(
        Output.table(
          ["resource", "rows", "time", "cursor (company 1)"],
          largest.map((row) => [
            row.resource,
            Output.count(row.rows),
            Output.duration(row.durationMs),
            row.cursor ?? "full scan each time"
          ]),
          ["left", "right", "right"]
        )
      )
      yield* say(`\n   and ${rows.length - largest.length} smaller ones: npx tributary status --demo`)
      for (const { title, result } of answers) {
        yield* say(`\n   ${title}\n`)
        yield* say(toTable(result))
      }
      yield* goOn
    })

    yield* reported(
      Effect.gen(function* () {
        const settings = yield* Configuring.load(
          { config: Option.getOrUndefined(flags.config), dashboard: Option.getOrUndefined(flags.dashboard) },
          process.env
        )
        if (flags.serve && settings.dashboard === null) {
          return yield* new CommandFailed({
            code: exitCode.configuration,
            message: "the page is switched off (dashboard.listen); say where it is to be with --dashboard"
          })
        }
        const place = { databaseUrl: null, home: Warehouse.demoHome(settings) }
        yield* say("Starting an embedded Postgres (the first time takes a moment)")
        yield* Warehouse.provide(Effect.scoped(story(settings, flags.serve ? settings.dashboard : null)), place)
      })
    )
    yield* say(`
What to try next
  npx tributary demo --serve                      the same, and then the page of an operator, live
  npx tributary query --demo "select * from erp_models.receivables_aging order by total desc limit 5"
  npx tributary status --demo
  npx tributary reference-server --data demo      serve the API and point your own program at it
  npx tributary init                              connect a real installation; then doctor, sync and serve
  npx tributary push --help                       write records back, each at most once`)
  })
).pipe(
  Command.withDescription("See it work end to end on this machine: no account, nothing to install"),
  Command.withExamples([
    { command: "tributary demo", description: "From nothing to SQL in half a minute" },
    { command: "tributary demo --serve", description: "And then serving, with the page, until Ctrl-C" }
  ])
)

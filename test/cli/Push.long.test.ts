/**
 * `tributary push` in full: every subcommand, updates, cancels, queries, interruptions, and `serve`, which pushes the
 * rows of the outbox.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { firstLine } from "../support/reference.ts"
import { makeWorld, type World } from "../support/world.ts"

interface PushReport {
  readonly push: number
  readonly status: string
  readonly given: number
  readonly known: number
  readonly resumed: boolean
  readonly counts: Readonly<Record<string, number>>
  readonly calls: { readonly sent: number; readonly batches: number }
  readonly refused: ReadonlyArray<{ readonly line: number; readonly code: string; readonly field: string }>
}

const reportOf = (run: { readonly stdout: string }) => JSON.parse(run.stdout) as PushReport

/** Customers at the source whose externalid begins with the prefix. */
const sourceCustomers = (world: World, prefix: string) =>
  Effect.map(
    Effect.promise(() => world.reference.lines("/state?company=1&resource=customers")),
    (lines) =>
      lines
        .map((line) => JSON.parse(line) as { externalid: string | null; creditlimit: string; cancel: boolean })
        .filter(({ externalid }) => externalid?.startsWith(`${prefix}-`) === true)
  )

/** Repeats the effect until the condition holds. */
const until = <A, E, R>(effect: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  Effect.repeat(effect, { until: holds, schedule: Schedule.spaced("50 millis") }).pipe(Effect.timeout("60 seconds"))

describe("tributary push and its subcommands", () => {
  it.live(
    "show, retry and export the outcomes of a push",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const file = (name: string, text: string) => writeFileSync(join(world.folder, name), text)
          const unreachable = { DATABASE_URL: "postgres://none:nothing@127.0.0.1:1/none" }
          file(
            "bad.csv",
            "externalid,customercode,name,creditlimit\nT-1,TEST01,One,1.00001\nT-2,TEST02,Two,x\nT-1,TEST03,Three,3\n"
          )
          file(
            "good.csv",
            "externalid,customercode,name,creditlimit,invoiceterm\nT-1,TEST01,One,1.50,\nT-2,TEST02,Two,2,Net 3O\nT-3,TEST03,Three,3,\n"
          )

          const [help, badJson, dry, both, nowhere] = yield* Effect.all(
            [
              world.run(["push", "--help"]),
              world.run(["push", "customers", "--from", "bad.csv", "--dry-run", "--json"], unreachable),
              world.run(["push", "customers", "--from", "good.csv", "--dry-run"], unreachable),
              world.run(["push", "customers", "--from", "good.csv", "--update", "--cancel"], unreachable),
              world.run(["push", "customers", "--from", "none.csv"])
            ],
            { concurrency: 2 }
          )
          assert.strictEqual(help.code, 0)
          assert.include(help.stdout, "tributary push RESOURCE --from records.csv --dry-run")
          const { problems } = JSON.parse(badJson.stdout) as { problems: ReadonlyArray<object> }
          assert.deepStrictEqual(problems[1], {
            line: 3,
            field: "creditlimit",
            message: 'must be a plain decimal such as "12.50", not "x"'
          })
          assert.strictEqual(dry.code, 0, dry.stderr)
          assert.include(dry.stdout, "3 records would be created in customers of main: 1 batch, ")
          assert.include(
            dry.stdout,
            '  externalid T-1: {"customercode":"TEST01","name":"One","creditlimit":"1.50","externalid":"T-1"}\n'
          )
          assert.strictEqual(both.code, 1)
          assert.strictEqual(nowhere.code, 2)
          assert.include(nowhere.stderr, "none.csv cannot be read: there is no such file")

          const pushed = yield* world.run(["push", "customers", "--from", "good.csv"])
          assert.strictEqual(pushed.code, 4, pushed.stderr)
          const push = /^push (\d+)/.exec(pushed.stdout)![1]!
          const [csv, shown] = yield* Effect.all(
            [
              world.run(["push", "export-refused", push, "--to", "refused.csv"]),
              world.run(["push", "status", push]),
              world.run(["push", "export-refused", "--to", "refused.ndjson"])
            ],
            { concurrency: 2 }
          )
          assert.strictEqual(csv.code, 0, csv.stderr)
          assert.include(csv.stdout, "tributary push customers --from refused.csv")
          assert.include(shown.stdout, "3 records: 2 created, 1 refused")
          assert.include(shown.stdout, "refused: 1 unknown_value")
          const over = yield* world.run(["push", "export-refused", push, "--to", "refused.csv"])
          assert.strictEqual(over.code, 1)
          assert.include(over.stderr, "refused.csv exists already")

          file("refused.csv", readFileSync(join(world.folder, "refused.csv"), "utf8").replace("Net 3O", "Net 30"))
          const corrected = yield* world.run(["push", "customers", "--from", "refused.csv", "--json"])
          assert.strictEqual(corrected.code, 0, corrected.stderr)
          assert.strictEqual(corrected.stderr, "")
          assert.deepInclude(reportOf(corrected), { given: 1, known: 0, resumed: false })
          assert.deepInclude(reportOf(corrected).counts, { created: 1, refused: 0 })
          // The same records as lines of JSON no longer match the pushed values.
          assert.isTrue(existsSync(join(world.folder, "refused.ndjson")))
          const stale = yield* world.run(["push", "customers", "--from", "refused.ndjson"])
          assert.strictEqual(stale.code, 2)
          assert.match(
            stale.stderr,
            /^line 1: was pushed before \(push \d+\) with other values; change it with --update$/m
          )

          file("change.ndjson", '{"externalid":"T-1","creditlimit":"9.25"}\n{"externalid":"T-9","name":"None"}\n')
          file("gone.ndjson", '{"externalid":"T-3"}\n')
          const changed = yield* world.run(["push", "customers", "--from", "change.ndjson", "--update", "--json"])
          assert.strictEqual(changed.code, 4, changed.stderr)
          assert.deepInclude(reportOf(changed).counts, { updated: 1, refused: 1 })
          assert.deepInclude(reportOf(changed).refused[0]!, { line: 2, code: "not_found" })
          const gone = yield* world.run(["push", "customers", "--from", "gone.ndjson", "--cancel"])
          assert.strictEqual(gone.code, 0, gone.stderr)
          assert.include(gone.stdout, "is done: 1 cancelled (1 call; ")
          assert.deepStrictEqual(
            (yield* sourceCustomers(world, "T")).map(({ externalid, creditlimit, cancel }) => [
              externalid,
              creditlimit,
              cancel
            ]),
            [
              ["T-1", "9.2500", false],
              ["T-3", "3.0000", true],
              ["T-2", "2.0000", false]
            ]
          )
          // A push from a query of the warehouse, and a retry of rejected records after a repair at the source.
          const [selected, retried, status] = yield* Effect.all([
            world.run([
              "push",
              "customers",
              "--from",
              "select id, 'Renamed' as name from erp.customers where externalid = 'T-2'",
              "--update",
              "--json"
            ]),
            world.run(["push", "retry", "--refused", "--json"]),
            world.run(["status"])
          ])
          assert.strictEqual(selected.code, 0, selected.stderr)
          assert.deepInclude(reportOf(selected).counts, { updated: 1 })
          assert.strictEqual(retried.code, 4, retried.stderr)
          const { pushes } = JSON.parse(retried.stdout) as { pushes: ReadonlyArray<PushReport> }
          assert.deepInclude(pushes[0]!.counts, { updated: 1, refused: 1 })
          assert.include(status.stdout, "outbox of main: 0 waiting, 1 refused; see them with tributary push status")

          world.configure(
            "companies:\n  - { name: a, token_env: SERVICE_API_TOKEN }\n  - { name: b, token_env: SERVICE_API_TOKEN }\n"
          )
          const unnamed = yield* world.run(["push", "customers", "--from", "good.csv", "--dry-run"], unreachable)
          assert.strictEqual(unnamed.code, 1)
          assert.include(unnamed.stderr, "name one company with --company: a, b")
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "let serve push rows inserted into the outbox, and count them in the metrics",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure(`webhooks: { listen: "127.0.0.1:0" }
schedule: { default: off }
dashboard: { listen: off }
`)
          const serving = yield* Effect.acquireRelease(
            Effect.sync(() => world.command(["serve", "--json"])),
            ({ child, done }) =>
              Effect.promise(() => {
                child.kill("SIGTERM")
                return done
              })
          )
          const { listening } = JSON.parse(yield* Effect.promise(() => firstLine(serving))) as {
            readonly listening: string
          }
          yield* world.query(`insert into tributary.outbox (resource, operation, externalid, record) values
            ('customers', 'create', null, '{"externalid": "S-1", "customercode": "SERVE01", "name": "Served"}'),
            ('customers', 'create', null, '{"externalid": "S-2", "customercode": "SERVE02", "nickname": "x"}'),
            ('customers', 'update', 'S-1', '{"creditlimit": "7.50"}')`)
          const rows = yield* until(
            world.query<{ state: string; outcome: string; code: string; field: string }>(
              "select state, outcome, code, field from tributary.outbox order by id"
            ),
            (outboxRows) => outboxRows.every(({ state }) => state === "done" || state === "rejected")
          )
          assert.deepStrictEqual(rows, [
            { state: "done", outcome: "created", code: null, field: null },
            { state: "rejected", outcome: null, code: "invalid", field: "nickname" },
            { state: "done", outcome: "updated", code: null, field: null }
          ] as unknown as typeof rows)
          const [record] = yield* sourceCustomers(world, "S")
          assert.deepInclude(record!, { externalid: "S-1", creditlimit: "7.5000" })

          const metrics = yield* until(
            Effect.promise(async () => (await fetch(`${listening}/metrics`)).text()),
            (text) => text.includes('tributary_outbox_refused{company="main"} 1')
          )
          assert.include(metrics, 'tributary_outbox_waiting{company="main"} 0')
          assert.include(metrics, 'tributary_push_records_last_minute{company="main",outcome="updated"} 1')
          const status = yield* world.run(["push", "status"])
          assert.include(status.stdout, "customers of main: 1 created, 1 updated, 1 refused")
          assert.include(status.stdout, "tributary push retry customers --company main --refused")
        })
      ),
    { timeout: 120_000 }
  )
})

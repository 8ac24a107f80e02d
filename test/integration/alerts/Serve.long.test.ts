/** Alerts of real `serve` processes: one start and one end, also when the process that sends them is killed between. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { httpReceiver } from "../../support/alerting.ts"
import { firstLine } from "../../support/reference.ts"
import { until } from "../../support/until.ts"
import { makeWorld } from "../../support/world.ts"
import { eventsOf } from "./conditions.ts"

const settings = `companies:
  - name: north
    token_env: NORTH_TOKEN
    resources: [customers]
webhooks: { listen: "127.0.0.1:0", check_minutes: off }
dashboard: { listen: off }
alerts:
  routes: [{ name: team, http: { url_env: TEAM_URL } }]
  end_after: 1s
`

describe("three processes of serve", () => {
  it.live(
    "send one start and one end, although the one that evaluates is killed between",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure(settings)
          const webhook = yield* httpReceiver()
          const token = yield* Effect.promise(() => world.reference.token(1))
          const commands = yield* Effect.forEach([1, 2, 3], () =>
            Effect.acquireRelease(
              Effect.sync(() => world.command(["serve", "--json"], { NORTH_TOKEN: token, TEAM_URL: webhook.url })),
              ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
            ).pipe(Effect.tap((started) => Effect.promise(() => firstLine(started))))
          )
          const received = Effect.sync(() => eventsOf(webhook.requests))
          const owner = Effect.map(
            world.query<{ pid: number | null }>(
              `select p.pid from tributary.bucket_owners b join tributary.processes_alive p using (process_id) where b.bucket = 0`
            ),
            ([row]) => row?.pid ?? null
          )
          yield* until("an owner of the single services", owner, (pid) => pid !== null)
          yield* world.query("update tributary.installation set pause_reason = 'the database was restored'")
          yield* until("the start", received, (events) => events.length > 0)
          const pid = yield* owner
          const killed = commands.find(({ child }) => child.pid === pid)!
          killed.child.kill("SIGKILL")
          yield* Effect.promise(() => killed.done)
          yield* until("another owner", owner, (next) => next !== null && next !== pid, 60)
          yield* world.query("update tributary.installation set pause_reason = null")
          yield* until("the end", received, (events) => events.length > 1, 90)
          const evaluation = world.query<{ evaluated: string }>(
            "select evaluated_at::text as evaluated from tributary.alert_evaluations"
          )
          const [last] = yield* evaluation
          yield* until("another evaluation", evaluation, ([row]) => row!.evaluated !== last!.evaluated, 60)
          assert.deepStrictEqual(yield* received, ["start restore", "end restore"])
        })
      ),
    { timeout: 240_000 }
  )
})

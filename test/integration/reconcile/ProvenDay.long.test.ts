/** The requests of a company with every resource in a day, while events prove its freshness. */
import { assert, describe, layer } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import type { Database } from "../../../src/postgres/Database.ts"
import * as Reconcile from "../../../src/reconcile/Reconcile.ts"
import * as EventProofs from "../../../src/tasks/EventProofs.ts"
import * as TaskClaims from "../../../src/tasks/TaskClaims.ts"
import * as TaskSchedules from "../../../src/tasks/TaskSchedules.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import { receiver } from "../../reference-server/eventsSupport.ts"
import { settled, warehouse } from "./healing.ts"

const resources = [...serviceV2.resources.keys()]
const interval = Duration.minutes(10)
const checkInterval = Duration.minutes(5)
const dayMs = 86_400_000
const testTimeoutMs = 600_000
/** The most requests of a day. */
const requestsMax = 700

type World = Effect.Success<ReturnType<typeof settled>>

/** Runs the due tasks of the company as `serve` does. */
const runDue = Effect.fnUntraced(function* ({ name, sync }: World) {
  for (;;) {
    const claimed = yield* TaskClaims.claimTasks("me", { companies: [name], concurrency: 100, limit: 100 })
    if (claimed.length === 0) return
    for (const task of claimed) {
      const { runId } = yield* sync(task.resource)
      const nextMs = task.nowMs + Duration.toMillis(interval)
      yield* TaskClaims.completeTask(task, { status: "done", runId, error: null, remedy: null, failures: 0, nextMs })
    }
  }
})

describe("a day of proven freshness", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "300 seconds" })("against Postgres", (it) => {
    it.effect(
      "takes at most 700 requests for 86 resources, and nothing is ever late",
      () =>
        Effect.gen(function* () {
          yield* TablePlan.apply(resources.map((path) => tableOf(serviceV2.resources.get(path)!)))
          const world = yield* settled({ resources, events: deliveryReader.eventsOf(null) })
          const { advance, company, companyId, name, requests, sql } = world
          yield* sql`insert into tributary.companies (company, company_id) values (${name}, ${companyId})`
          yield* TaskSchedules.upsertSchedules(
            resources.map((resource) => ({
              company: name,
              resource,
              parent: null,
              schedule: "every 10 min",
              freshnessTarget: Duration.minutes(15),
              missed: "once",
              next: (afterMs, lastBeganMs) => (lastBeganMs ?? afterMs) + Duration.toMillis(interval)
            }))
          )
          const isOver = yield* Deferred.make<void>()
          const real = yield* Clock.Clock
          const context = yield* Effect.context<Database | SqlClient.SqlClient>()
          const late: Array<string> = []
          let passedMs = 0
          let counted = 0
          /** Each pause between two checks: both clocks go on, and what is due meanwhile runs. */
          const pause = Effect.fnUntraced(function* (durationMs: number) {
            yield* advance(durationMs / 1000)
            passedMs += durationMs
            yield* EventProofs.update(EventProofs.provenPollIntervalDefault)
            yield* runDue(world)
            for (const { resource } of yield* sql<{ resource: string }>`
            select resource from tributary.freshness where company = ${name} and is_late`) {
              late.push(`${resource} at ${passedMs / 60_000} min`)
            }
            // The first two polls of each resource are those of the start.
            if (passedMs === 4 * Duration.toMillis(checkInterval)) counted = requests.length
            if (passedMs < dayMs + 4 * Duration.toMillis(checkInterval)) return
            yield* Deferred.succeed(isOver, undefined)
            return yield* Effect.never
          })
          const sleep: Clock.Clock["sleep"] = (duration) => {
            const durationMs = Duration.toMillis(duration)
            // Only checks pause for so long. Other sleeps are timeouts, which never end.
            if (durationMs < Duration.toMillis(checkInterval)) return Effect.never
            const paused = Effect.provideService(pause(durationMs), Clock.Clock, real)
            return paused.pipe(Effect.provideContext(context), Effect.orDie)
          }
          const clock: Clock.Clock = Object.assign(Object.create(real) as Clock.Clock, { sleep })
          const checking = Reconcile.run(company, { url: receiver, checkInterval })
          yield* Effect.raceFirst(Effect.provideService(checking, Clock.Clock, clock), Deferred.await(isOver))
          const ofDay = requests.slice(counted)
          const byPath = Map.groupBy(ofDay, (request) => request.replace(/\?.*/, ""))
          const most = [...byPath].sort(([, a], [, b]) => b.length - a.length).slice(0, 6)
          assert.isAtMost(ofDay.length, requestsMax, most.map(([path, all]) => `${path} ${all.length}`).join(", "))
          assert.isAtLeast(ofDay.length, 4 * resources.length, "each resource is polled four times")
          assert.deepStrictEqual(late, [])
          const [left] = yield* sql<{ deferred: number }>`
          select count(*)::int as deferred from tributary.tasks where company = ${name} and deferred_from is not null`
          // The others were just polled.
          assert.isAtLeast(left!.deferred, resources.length * 0.9)
        }),
      testTimeoutMs
    )
  })
})

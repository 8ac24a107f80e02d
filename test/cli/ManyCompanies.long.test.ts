/**
 * Hundreds of companies on a Postgres with 100 connections: steady progress, and connections left for other programs.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Redacted, type Scope } from "effect"
import pg from "pg"
import { freshDatabase } from "../support/postgres.ts"
import { type ReferenceProcess, startCommand, startReference } from "../support/reference.ts"
import { liveTest } from "../support/live.ts"

const resources = ["salesmen", "areas", "carriers", "worktypes", "zones", "stages", "vendors", "customers"]

/** One measurement of the database. */
interface Look {
  readonly atMs: number
  readonly connections: number
  readonly done: number
  readonly failed: number
}

interface Stand {
  readonly start: (...args: ReadonlyArray<string>) => ReturnType<typeof startCommand>
  /** Measures through a new connection each time, as another program would. */
  readonly look: () => Promise<Look>
}

const stand = (companies: number): Effect.Effect<Stand, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const url = Redacted.value(yield* freshDatabase)
    const reference: ReferenceProcess = yield* Effect.acquireRelease(
      Effect.promise(() => startReference(["--data", "empty"])),
      (one) => Effect.promise(one.stop)
    )
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-companies-"))),
      (one) => Effect.sync(() => rmSync(one, { recursive: true, force: true }))
    )
    const env: Record<string, string> = { DATABASE_URL: `${url}?sslmode=disable` }
    const lines = ["webhooks: { listen: 127.0.0.1:0 }", "dashboard: { listen: off }", "companies:"]
    for (let company = 1; company <= companies; company += 1) {
      const token = yield* Effect.promise(() => reference.token(company))
      env[`TOKEN_${company}`] = token
      lines.push(
        `  - { name: c${company}, url: ${reference.baseUrl}, token_env: TOKEN_${company}, resources: [${resources.join(", ")}] }`
      )
    }
    const config = join(folder, "tributary.yaml")
    writeFileSync(config, lines.join("\n"))
    const beganAt = performance.now()
    return {
      start: (...args) => startCommand([...args, "--config", config], { cwd: folder, env }),
      look: async () => {
        const client = new pg.Client(url)
        await client.connect()
        try {
          const { rows } = await client.query<{ connections: number; there: boolean }>(
            `select count(*)::int - 1 as connections, to_regclass('tributary.runs') is not null as there
               from pg_stat_activity where backend_type = 'client backend' and datname = current_database()`
          )
          const { connections, there } = rows[0]!
          const counted = there
            ? await client.query<{ done: number; failed: number }>(
                `select (count(*) filter (where status = 'done'))::int as done,
                        (count(*) filter (where status = 'failed'))::int as failed from tributary.runs`
              )
            : null
          const { done, failed } = counted?.rows[0] ?? { done: 0, failed: 0 }
          return { atMs: performance.now() - beganAt, connections, done, failed }
        } finally {
          await client.end()
        }
      }
    }
  })

/** Measures every half second until the condition holds. */
const watch = async ({ look }: Stand, isEnough: (look: Look) => boolean): Promise<ReadonlyArray<Look>> => {
  const looks: Array<Look> = []
  for (;;) {
    const one = await look()
    looks.push(one)
    if (isEnough(one)) return looks
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

const summaryOf = (looks: ReadonlyArray<Look>): string =>
  looks
    .filter((_look, at) => at % 10 === 0 || at === looks.length - 1)
    .map(({ atMs, connections, done }) => `${Math.round(atMs / 1000)} s: ${connections} connections, ${done} runs done`)
    .join("; ")

/** The maximum of used connections, out of 100. */
const connectionsMax = 60
/** The longest time without a completed run. Beyond it, progress is not steady. */
const pauseMaxMs = 20_000
const watchedMaxMs = 80_000

liveTest(
  "a warehouse with hundreds of companies serves 300 companies of 8 resources with steady progress and few connections",
  function* () {
    const place = yield* stand(300)
    const serve = place.start("serve", "--json")
    let last = { done: 0, atMs: 0 }
    let pauseMs = 0
    const looks = yield* Effect.promise(() =>
      watch(place, ({ done, atMs }) => {
        if (done > last.done || done === 0) {
          if (last.done > 0) pauseMs = Math.max(pauseMs, atMs - last.atMs)
          last = { done, atMs }
        }
        return done >= 1_200 || atMs > watchedMaxMs
      })
    )
    serve.child.kill("SIGTERM")
    const { code, stderr } = yield* Effect.promise(() => serve.done)
    console.log(summaryOf(looks))
    assert.strictEqual(code, 0, stderr)
    assert.isAtMost(Math.max(...looks.map(({ connections }) => connections)), connectionsMax, summaryOf(looks))
    assert.isAbove(looks.at(-1)!.done, 300, summaryOf(looks))
    assert.strictEqual(looks.at(-1)!.failed, 0)
    assert.isBelow(pauseMs, pauseMaxMs, summaryOf(looks))
    assert.isBelow(stderr.split("\n").length, 50, "a line for each condition, not for each company")
  }
)

/**
 * Companies of the warehouse, with the real commands, a running `serve` and the reference server: each change takes
 * effect within seconds and disturbs no other company.
 */
import { assert, describe } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { encrypt } from "../../../src/subscriptions/SecretCipher.ts"
import { bodyOf, signatureOf } from "../../support/deliveries.ts"
import { until } from "../../support/until.ts"
import { makeWorld, type World } from "../../support/world.ts"
import { valuesOf } from "../../support/rows.ts"
import { liveTest } from "../../support/live.ts"

const key = "a key of the test, with more than thirty-two characters"
const resource = "customers"
const signingSecret = "whsec_the-secret-of-a-subscription"

/** An installation whose configuration file names company 1 as `north`, or none. */
const makeInstallation = Effect.fnUntraced(function* (hasFile: boolean) {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const second = yield* Effect.promise(() => world.reference.token(2))
  const first = yield* Effect.promise(() => world.reference.token(1))
  world.configure(`${hasFile ? `companies: [{ name: north, token_env: NORTH, resources: [${resource}] }]\n` : ""}
webhooks: { listen: "127.0.0.1:0" }
schedule: { default: { every: 5s, jitter_seconds: 0 } }
dashboard: { listen: off }
`)
  const env = { NORTH: first, SOUTH: second, TRIBUTARY_COMPANIES_KEY: key, SERVICE_API_TOKEN: "" }
  return {
    world,
    second,
    run: (args: ReadonlyArray<string>, more: Readonly<Record<string, string>> = {}) =>
      world.run(args, { ...env, ...more }),
    /** Starts `tributary serve` and waits until it is ready. */
    serve: Effect.gen(function* () {
      const command = world.command(["serve", "--json"], env)
      const output = { text: "", errors: "" }
      command.child.stdout!.on("data", (chunk: Buffer) => (output.text += chunk.toString()))
      command.child.stderr!.on("data", (chunk: Buffer) => (output.errors += chunk.toString()))
      yield* until(
        "serve is ready",
        () => ({ ...output }),
        ({ text }) => text.includes("\n"),
        60
      )
      return output
    })
  }
})

const succeed = (result: { readonly code: number | null; readonly stdout: string; readonly stderr: string }) => {
  assert.strictEqual(result.code, 0, `${result.stdout}\n${result.stderr}`)
  return result
}

const countOf = (world: World, from: string) =>
  Effect.map(world.query<{ n: number }>(`select count(*)::int as n from ${from}`), ([row]) => row!.n)

/** Rows of a table that may not exist yet. */
const rowsOf = (world: World, company: number) =>
  Effect.gen(function* () {
    const [exists] = yield* world.query<{ is: boolean }>(`select to_regclass('erp.${resource}') is not null as is`)
    return exists?.is === true ? yield* countOf(world, `erp.${resource} where _company_id = ${company}`) : 0
  })

const runsDone = (world: World, company: number) =>
  Effect.map(
    world.query<{ runs: number }>(
      `select coalesce(sum(greatest(quiet_runs, 1)), 0)::int as runs from tributary.runs
        where company_id = ${company} and status = 'done'`
    ),
    ([row]) => row!.runs
  )

/** Waits until the process has applied the last change of the companies. */
const applied = (world: World) =>
  until(
    "the last revision is applied",
    world.query<{ isApplied: boolean }>(
      `select company_revision >= (select i.company_revision from tributary.warehouse i) as "isApplied"
         from tributary.processes_alive`
    ),
    ([row, ...others]) => others.length === 0 && row?.isApplied === true
  )

describe("a company of the warehouse", () => {
  liveTest(
    "is added, paused, resumed and removed while serve runs, and another company is not disturbed",
    function* () {
      const { world, run, serve } = yield* makeInstallation(true)
      const running = yield* serve
      yield* until("north is synced", rowsOf(world, 1), (rows) => rows > 0)
      assert.strictEqual(yield* rowsOf(world, 2), 0)

      succeed(yield* run(["company", "add", "south", "--token-env", "SOUTH", "--resource", resource]))
      yield* until("the first row of south", rowsOf(world, 2), (rows) => rows > 0)
      const [stored] = yield* world.query<{ token: string | null; sealed: string }>(
        "select token, encode(sealed_token, 'escape') as sealed from tributary.company_settings"
      )
      assert.isNull(stored!.token)
      assert.notInclude(stored!.sealed, "tok")

      succeed(yield* run(["company", "pause", "south"]))
      yield* applied(world)
      const paused = yield* runsDone(world, 2)
      const north = yield* runsDone(world, 1)
      yield* until("north goes on", runsDone(world, 1), (id) => id > north)
      assert.strictEqual(yield* runsDone(world, 2), paused)

      const named = yield* run(["sync", "--company", "south"])
      assert.strictEqual(named.code, 2)
      assert.include(named.stderr, "company south is paused since")
      assert.include(named.stderr, "tributary company resume south")
      const all = succeed(yield* run(["sync", "--json"]))
      assert.deepStrictEqual(
        valuesOf((JSON.parse(all.stdout) as { companies: Array<{ name: string }> }).companies, "name"),
        ["north"]
      )

      succeed(yield* run(["company", "resume", "south"]))
      yield* until("south goes on", runsDone(world, 2), (id) => id > paused)

      const unconfirmed = yield* run(["company", "remove", "south", "--erase"])
      assert.strictEqual(unconfirmed.code, 1, unconfirmed.stderr)
      assert.include(unconfirmed.stderr, "--yes")
      const kept = yield* rowsOf(world, 1)
      const receipt = succeed(yield* run(["company", "remove", "south", "--erase", "--yes", "--json"]))
      assert.isAbove((JSON.parse(receipt.stdout) as { rows: Record<string, number> }).rows[`erp.${resource}`]!, 0)
      assert.strictEqual(yield* rowsOf(world, 2), 0)
      assert.strictEqual(yield* rowsOf(world, 1), kept)
      assert.strictEqual(yield* countOf(world, "tributary.checkpoints where company_id = 2"), 0)
      assert.strictEqual(yield* countOf(world, "tributary.receipts where company = 'south'"), 2)
      const after = yield* runsDone(world, 1)
      yield* until("north goes on after the removal", runsDone(world, 1), (id) => id > after)
      assert.strictEqual(yield* countOf(world, "tributary.runs where company_id = 2"), 0)
      assert.notInclude(running.errors, "company north:")
    }
  )

  liveTest(
    "works without a configuration file; a new token is used without a restart, and deliveries are accepted",
    function* () {
      const { world, run, serve, second } = yield* makeInstallation(false)
      let number = 0
      const running = yield* serve
      const { listening } = JSON.parse(running.text) as { listening: string }
      succeed(yield* run(["company", "add", "south", "--token-env", "SOUTH", "--resource", resource]))
      yield* until("the first row of south", rowsOf(world, 2), (rows) => rows > 0)

      // A signing secret as tributary webhooks stores it, under the token of the company.
      const sealed = encrypt("south", Redacted.make(second), Redacted.make(signingSecret), new Uint8Array(28))
      yield* world.query(
        `insert into tributary.webhook_secrets (company, subscription_id, sealed, state)
       values ('south', '1', decode('${Buffer.from(sealed).toString("hex")}', 'hex'), 'current')`
      )
      const deliver = Effect.promise(async () => {
        const body = bodyOf(`event-${(number += 1)}`)
        const { status } = await fetch(`${listening}/hooks/south`, {
          method: "POST",
          body,
          headers: {
            [deliveryReader.signatureHeader]: signatureOf(signingSecret, Math.floor(Date.now() / 1000), body)
          }
        })
        return status
      })
      yield* until("a delivery is accepted", deliver, (status) => status === 204)

      const other = yield* Effect.promise(() => world.reference.token(2))
      succeed(yield* run(["company", "rotate-token", "south", "--token-env", "OTHER"], { OTHER: other }))
      yield* applied(world)
      yield* world.control("POST", "/tokens/revoke", { token: second })
      const before = yield* runsDone(world, 2)
      yield* until("south is synced with the new token", runsDone(world, 2), (id) => id > before)
      assert.strictEqual(yield* deliver, 204)

      // Another program inserts a company; its token is sealed by the process.
      yield* world.query(
        `insert into tributary.company_settings (company, url, resources, token)
       select 'inserted', url, array['${resource}'], '${yield* Effect.promise(() => world.reference.token(1))}'
         from tributary.company_settings`
      )
      yield* until("the first row of the inserted company", rowsOf(world, 1), (rows) => rows > 0)
      assert.strictEqual(yield* countOf(world, "tributary.company_settings where token is not null"), 0)

      const wrong = yield* run(["sync"], { TRIBUTARY_COMPANIES_KEY: `${key} but another` })
      assert.strictEqual(wrong.code, 2)
      assert.include(wrong.stderr, "TRIBUTARY_COMPANIES_KEY does not open its token")
      const missing = yield* run(["sync"], { TRIBUTARY_COMPANIES_KEY: "", SERVICE_API_URL: "" })
      assert.strictEqual(missing.code, 2)
      assert.include(missing.stderr, "TRIBUTARY_COMPANIES_KEY is not set")
      succeed(yield* run(["status"], { TRIBUTARY_COMPANIES_KEY: "", SERVICE_API_URL: "" }))
    }
  )
})

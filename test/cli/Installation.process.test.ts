/** Installations of the warehouse with the real commands, `serve`, and reference servers of equal company numbers. */
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { liveTest } from "../support/live.ts"
import { startReference } from "../support/reference.ts"
import { until } from "../support/until.ts"
import { makeWorld } from "../support/world.ts"

const key = "a key of the test, with more than thirty-two characters"
const resources = ["customers", "items"].flatMap((one) => ["--resource", one])

const anotherReference = Effect.gen(function* () {
  const reference = yield* Effect.acquireRelease(
    Effect.promise(() => startReference(["--data", "demo"])),
    (server) => Effect.promise(() => server.stop())
  )
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => reference.control(method, path, body))
  yield* control("PUT", "/limits", { requestsPerMinute: 1_000_000 })
  return { reference, control, token: yield* Effect.promise(() => reference.token(1)) }
})

/** A world, with further reference servers and a command that expects an exit code. */
const makeInstallations = Effect.fnUntraced(function* (further: number, yaml: string) {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  world.configure(yaml)
  const others = yield* Effect.forEach(Array.from({ length: further }), () => anotherReference, { concurrency: 2 })
  const tokens = Object.fromEntries(others.map(({ token }, index) => [`TOKEN_${index + 2}`, token]))
  const first = yield* Effect.promise(() => world.reference.token(1))
  const env = { SERVICE_API_TOKEN: "", TRIBUTARY_COMPANIES_KEY: key, TOKEN_1: first, ...tokens }
  const run = Effect.fnUntraced(function* (code: number, ...args: ReadonlyArray<string>) {
    const done = yield* world.run(args, env)
    assert.strictEqual(done.code, code, `${args.join(" ")}: ${done.stdout}\n${done.stderr}`)
    return `${done.stdout}\n${done.stderr}`
  })
  return { world, others, run, env }
})

describe("installations of the warehouse", () => {
  liveTest(
    "differ in their settings, may have equal company numbers, and get what the radar recommends",
    function* () {
      const { world, others, run } = yield* makeInstallations(1, "dashboard: { listen: off }\n")
      const [two] = others
      yield* two!.control("PUT", "/dialect", { itemsKey: "results", paging: "page" })
      yield* run(0, "installation", "add", "one", "--url", world.reference.baseUrl)
      yield* run(0, "installation", "add", "two", "--url", two!.reference.baseUrl, "--set", "budget.scope=install")
      assert.match(yield* run(2, "installation", "add", "two"), /there is an installation two/)
      assert.match(
        yield* run(2, "installation", "set", "two", "paging.mode=pages"),
        /installation two: paging\.mode: expected .*; nothing was stored/
      )
      yield* run(0, "company", "add", "north", "--installation", "one", "--token-env", "TOKEN_1", ...resources)
      const south = ["company", "add", "south", "--installation", "two", "--token-env", "TOKEN_2", ...resources]
      assert.match(yield* run(2, ...south), /the warehouse has a company 1 of [^]*--warehouse-number 1000001/)
      yield* run(0, ...south, "--warehouse-number", "1000001")
      assert.match(yield* run(1, "company", "add", "west", "--installation", "thre", "--token-env", "TOKEN_2"), /thre/)

      const radar = yield* run(4, "radar", "--installation", "two", "--apply")
      assert.match(radar, /Stored for installation two: .*paging\.mode=page/)
      const { settings } = JSON.parse(yield* run(0, "installation", "show", "two", "--json")) as {
        settings: Record<string, Record<string, unknown>>
      }
      assert.deepInclude(settings["paging"], { mode: "page" })
      assert.deepInclude(settings["list"], { items_key: "results" })
      assert.deepInclude(settings["budget"], { scope: "install" })

      yield* run(0, "sync")
      assert.strictEqual((yield* world.compare("customers", 1)).differences.length, 0)
      const names = yield* world.query<{ company: string; number: string; names: number }>(
        `select c.company, c.company_id::text as number, count(distinct r.customercode)::int as names
           from erp.customers r join tributary.companies c on c.company_id = r._company_id group by 1, 2 order by 1`
      )
      assert.deepStrictEqual(
        names.map(({ company, number }) => [company, number]),
        [
          ["north", "1"],
          ["south", "1000001"]
        ]
      )
      assert.isAbove(names[1]!.names, 1)
      yield* run(0, "verify")

      assert.match(yield* run(0, "installation", "list"), /two +warehouse +1 +\d{4}-\d\d-\d\d/)
      yield* run(0, "installation", "set", "two", "paging.mode=")
      assert.match(
        yield* run(0, "doctor"),
        /WARNING +radar +two: compared .*: \d+ differences?; recommended and not configured: paging\.mode: page/
      )
      assert.match(yield* run(2, "installation", "remove", "two"), /companies belong to installation two: south/)
      yield* run(0, "company", "remove", "south", "--erase", "--yes")
      yield* run(0, "installation", "remove", "two")
      assert.strictEqual((yield* world.compare("customers", 1)).differences.length, 0)
    },
    240_000
  )

  liveTest(
    "do not wait for one that does not answer, nor for one that asks for a long pause",
    function* () {
      const { world, others, run, env } = yield* makeInstallations(
        2,
        `schedule: { default: { every: 1s, jitter_seconds: 0 } }
freshness: { default_minutes: 1 }
webhooks: { listen: "127.0.0.1:0" }
dashboard: { listen: off }
`
      )
      const [silent, paused] = others
      for (const [index, address] of [world, ...others].map(({ reference }) => reference.baseUrl).entries()) {
        yield* run(0, "installation", "add", `i${index}`, "--url", address)
        for (const company of [1, 2]) {
          const name = `c${index}${company}`
          const number = String(index * 100 + company)
          const token = yield* Effect.promise(() => [world, ...others][index]!.reference.token(company))
          const added = yield* world.run(
            [
              "company",
              "add",
              name,
              "--installation",
              `i${index}`,
              "--token-env",
              "T",
              "--warehouse-number",
              number,
              ...resources
            ],
            { ...env, T: token }
          )
          assert.strictEqual(added.code, 0, added.stderr)
        }
      }
      yield* silent!.control("POST", "/faults", { rules: [{ kind: "delay", ms: 600_000 }] })
      yield* paused!.control("POST", "/faults", {
        rules: [{ kind: "status", status: 503, headers: { "retry-after": "3600" } }]
      })
      const serving = world.command(["serve", "--json"], env)
      yield* Effect.addFinalizer(() => Effect.sync(() => serving.child.kill("SIGTERM")))
      const runs = world.query<{ runs: number }>(
        `select least(min(n), 1000)::int as runs from (
           select c.company, (select coalesce(sum(greatest(r.quiet_runs, 1)), 0) from tributary.runs r
                               where r.company_id = c.company_id and r.status = 'done') as n
             from tributary.companies c where c.company in ('c01', 'c02')) one`
      )
      // Two resources, each once a second: all of them as often as if the others were not there.
      yield* until("both companies are read", runs, ([row]) => (row?.runs ?? 0) >= 2, 40)
      const [before] = yield* runs
      yield* until("they are read again and again", runs, ([row]) => (row?.runs ?? 0) >= before!.runs + 10, 20)
      const late = yield* world.query<{ company: string }>(
        "select distinct company from tributary.freshness where is_late and company in ('c01', 'c02')"
      )
      assert.deepStrictEqual(late, [])
    },
    240_000
  )
})

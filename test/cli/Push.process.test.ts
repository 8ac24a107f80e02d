/** `tributary push` that is stopped by a signal or killed: it continues, and writes no record twice. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld, type World } from "../support/world.ts"
import { untilSeen } from "../support/reference.ts"
import { liveTest } from "../support/live.ts"

interface PushReport {
  readonly given: number
  readonly known: number
  readonly resumed: boolean
  readonly counts: Readonly<Record<string, number>>
}

const reportOf = (run: { readonly stdout: string }) => JSON.parse(run.stdout) as PushReport

/** New customers as lines of JSON. */
const customers = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, at) =>
    JSON.stringify({ externalid: `${prefix}-${at}`, customercode: `${prefix}${at}`, name: `Number ${at}` })
  ).join("\n")

/** Customers at the source whose externalid begins with the prefix. */
const sourceCustomers = (world: World, prefix: string) =>
  Effect.map(
    Effect.promise(() => world.reference.lines("/state?company=1&resource=customers")),
    (lines) =>
      lines
        .map((line) => JSON.parse(line) as { externalid: string | null })
        .filter(({ externalid }) => externalid?.startsWith(`${prefix}-`) === true)
  )

describe("tributary push", () => {
  liveTest("resume after a source failure or an interruption without writing a record twice", function* () {
    const world = yield* makeWorld({ data: ["--data", "empty"], company: 1 })
    world.configure(
      "requests: { attempts_max: 1 }\nbudget: { requests_per_minute: unlimited }\npush: { batch_size: 10 }\n"
    )
    const file = (name: string, text: string) => writeFileSync(join(world.folder, name), text)
    file("a.ndjson", customers("A", 60))

    yield* world.control("POST", "/faults", {
      seed: 1,
      rules: [{ path: "/customers/batch", kind: "status", status: 503, times: 1000 }]
    })
    const failed = yield* world.run(["push", "customers", "--from", "a.ndjson"])
    assert.strictEqual(failed.code, 5, failed.stderr)
    assert.include(failed.stdout, "is unfinished: 60 wait")
    assert.match(failed.stderr, /the same command, or tributary push retry \d+, continues it/)
    yield* world.control("POST", "/faults", { seed: 1, rules: [] })
    const resumed = yield* world.run(["push", "customers", "--from", "a.ndjson", "--json"])
    assert.strictEqual(resumed.code, 0, resumed.stderr)
    assert.deepInclude(reportOf(resumed), { given: 60, known: 0, resumed: true })
    assert.deepInclude(reportOf(resumed).counts, { created: 60, waiting: 0 })
    assert.lengthOf(yield* sourceCustomers(world, "A"), 60)

    // The responses are slow, so the command is stopped with requests in flight.
    file("b.ndjson", customers("B", 400))
    yield* world.control("POST", "/faults", {
      seed: 1,
      rules: [{ path: "/customers/batch", kind: "delay", ms: 200, times: 1000 }]
    })
    const stopping = world.command(["push", "customers", "--from", "b.ndjson"])
    yield* untilSeen("the source has the records", sourceCustomers(world, "B"), (records) => records.length >= 50)
    stopping.child.kill("SIGINT")
    const stopped = yield* Effect.promise(() => stopping.done)
    assert.strictEqual(stopped.code, 130, stopped.stderr)
    const again = /tributary (push retry \d+), continues it/.exec(stopped.stderr)![1]!
    yield* world.control("POST", "/faults", { seed: 1, rules: [] })
    const retried = yield* world.run(again.split(" "))
    assert.strictEqual(retried.code, 0, retried.stderr)
    assert.include(retried.stdout, "is finished: 400 created")
    const records = yield* sourceCustomers(world, "B")
    assert.lengthOf(records, 400)
    assert.lengthOf([...new Set(records.map(({ externalid }) => externalid))], 400)
    const nothing = yield* world.run(["push", "retry"])
    assert.deepStrictEqual([nothing.code, nothing.stdout], [0, "Nothing waits to be pushed.\n"])
  })

  liveTest("name the command that continues a killed push in the status, and none while it runs", function* () {
    const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
    writeFileSync(join(world.folder, "k.ndjson"), customers("K", 30))
    // The source has the records, and its answer takes longer than the push lives.
    yield* world.control("POST", "/faults", {
      seed: 1,
      rules: [{ path: "/customers/batch", kind: "slowBody", ms: 50_000, times: 10 }]
    })
    const pushing = world.command(["push", "customers", "--from", "k.ndjson"])
    yield* untilSeen("the source has the records", sourceCustomers(world, "K"), (records) => records.length === 30)
    const running = yield* world.run(["status", "--json"])
    const { problems } = JSON.parse(running.stdout) as { problems: ReadonlyArray<{ kind: string }> }
    assert.notInclude(
      problems.map(({ kind }) => kind),
      "unresolved"
    )
    pushing.child.kill("SIGKILL")
    yield* Effect.promise(() => pushing.done)
    yield* world.control("POST", "/faults", { seed: 1, rules: [] })
    const { stdout } = yield* world.run(["status"])
    assert.include(stdout, "Pushes have no known outcome (customers of company main): ")
    const step = /what to do: continue the push: tributary (push retry \d+)\n/.exec(stdout)![1]!
    const retried = yield* world.run(step.split(" "))
    assert.strictEqual(retried.code, 0, retried.stderr)
    assert.lengthOf(yield* sourceCustomers(world, "K"), 30)
    assert.notInclude((yield* world.run(["status"])).stdout, "no known outcome")
  })
})

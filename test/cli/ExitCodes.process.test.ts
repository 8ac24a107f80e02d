/** The exit code and the first line of the message of typical failures, as data; and the table of codes in the help. */
import { execFileSync } from "node:child_process"
import { closeSync, constants, openSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import pg from "pg"
import { exitCode, exitCodes, type ExitCode } from "../../src/cli/Exit.ts"
import { untilSeen } from "../support/reference.ts"
import { makeWorld } from "../support/world.ts"
import { liveTest } from "../support/live.ts"

interface FailureCase {
  readonly title: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  readonly configuration?: string
  /** A path that the source answers with 500. */
  readonly failing?: string
  readonly code: ExitCode
  /** The first line on standard error. */
  readonly line: RegExp
}

const cases: ReadonlyArray<FailureCase> = [
  { title: "success", args: ["sync", "salesmen"], code: exitCode.ok, line: /^$/ },
  {
    title: "an unknown flag",
    args: ["sync", "--ful"],
    code: exitCode.usage,
    line: /^tributary: Unrecognized flag: --ful in command tributary sync/
  },
  {
    title: "a value that a flag does not take",
    args: ["alerts", "history", "--limit", "0"],
    code: exitCode.usage,
    line: /^tributary: Invalid value for flag --limit: "0"\. Expected a whole number from 1 to 10000$/
  },
  {
    title: "a statement without a table",
    args: ["query", "select * from nothing"],
    code: exitCode.usage,
    line: /^tributary: relation "nothing" does not exist \(42P01\)$/
  },
  {
    title: "an unknown resource",
    args: ["sync", "invocies"],
    code: exitCode.configuration,
    line: /^tributary: there is no resource "invocies"; did you mean invoices\?$/
  },
  {
    title: "a broken configuration file",
    args: ["sync"],
    configuration: "companies: [\n",
    code: exitCode.configuration,
    line: /^tributary: config\/tributary\.yaml:\d+:\d+: /
  },
  {
    title: "an unreachable database",
    args: ["sync", "salesmen"],
    env: { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" },
    code: exitCode.fault,
    line: /^tributary: cannot reach Postgres at 127\.0\.0\.1:1 \(ECONNREFUSED\)/
  },
  {
    title: "a refused token",
    args: ["sync", "salesmen"],
    env: { SERVICE_API_TOKEN: "a-token-that-the-service-refuses" },
    code: exitCode.refused,
    line: /^tributary: main: GET \/me.*: the token was not accepted \(401 \w+\).*; next: tributary doctor$/
  },
  {
    title: "a resource that the source fails",
    args: ["sync", "salesmen", "vendors"],
    failing: "/vendors",
    code: exitCode.fault,
    line: /^tributary: main vendors: GET \/vendors\S*: the service failed \(500.*; next: tributary sync salesmen vendors$/
  },
  {
    title: "a record in quarantine",
    args: ["sync", "items"],
    code: exitCode.incomplete,
    line: /^tributary: main: 1 record is in quarantine; see them with tributary query /
  }
]

liveTest("a failing command ends with the code of its kind and a line that names the cause", function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  yield* world.control("POST", "/records", {
    company: 1,
    resource: "items",
    records: [{ id: 9001, sku: "NUL-1", description: "a NUL \u0000 inside" }]
  })
  const problems: Array<string> = []
  for (const { args, code, configuration, env, failing, line, title } of cases) {
    world.configure(configuration ?? "requests: { attempts_max: 1 }\n")
    yield* world.control("POST", "/faults", {
      rules: failing === undefined ? [] : [{ path: failing, kind: "status", status: 500 }]
    })
    const done = yield* world.run(args, env)
    const lines = done.stderr.trimEnd().split("\n")
    if (done.code !== code || !line.test(lines[0]!)) problems.push(`${title}: ${done.code} ${done.stderr}`)
    // A sync without a terminal prints its problems and a summary.
    if (code !== exitCode.usage && lines.length > 1) problems.push(`${title}: ${done.stderr}`)
  }
  assert.strictEqual(problems.join("\n"), "")

  yield* world.control("POST", "/faults", { rules: [{ path: "/customers", kind: "delay", ms: 3_600_000 }] })
  const stopping = world.command(["sync", "customers"])
  yield* untilSeen(
    "the run began",
    world.query("select 1 from tributary.runs where resource = 'customers'"),
    ({ length }) => length > 0
  )
  stopping.child.kill("SIGTERM")
  const stopped = yield* Effect.promise(() => stopping.done)
  assert.strictEqual(stopped.code, exitCode.interrupted)
  assert.strictEqual(stopped.stderr, "Stopped; 0 records kept. Continue with: tributary sync customers\n")
  const locks = yield* Effect.acquireRelease(
    Effect.sync(() => new pg.Client({ connectionString: world.databaseUrl })),
    (client) => Effect.promise(() => client.end())
  )
  yield* Effect.promise(() => locks.connect())
  yield* Effect.promise(() => locks.query("begin; lock table erp.salesmen"))
  const exporting = world.command(["export", "salesmen", "--to", "my files", "--format", "csv"])
  yield* untilSeen(
    "the export waits for the table",
    world.query("select from pg_locks where not granted"),
    ({ length }) => length > 0
  )
  exporting.child.kill("SIGINT")
  const exported = yield* Effect.promise(() => exporting.done)
  assert.strictEqual(
    exported.stderr,
    "Stopped; the files of the export before are unchanged. " +
      "Start again with: tributary export salesmen --to 'my files' --format csv\n"
  )
  assert.strictEqual(exported.code, exitCode.interrupted)
  yield* Effect.promise(() => locks.query("rollback"))
  const verbose = yield* world.run(["sync", "salesmen", "--verbose"])
  assert.match(verbose.stderr, /^ {2}main salesmen: nothing new \(\d+ ms\)\n$/)
  assert.match(verbose.stdout, /^main: 1 resource in [^:]+: nothing new \(\d+ records? read, \d+ requests?\)\n$/)

  const help = yield* world.run(["--help"])
  for (const { code, meaning } of exitCodes) assert.include(help.stdout, `  ${String(code).padEnd(3)}  ${meaning}\n`)
})

/** Opens a pipe to write to where a program reads from it; null where none does. */
const openPipe = (path: string): number | null => {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return null
  }
}

liveTest("a second signal ends a command that reads from a pipe without an end", function* () {
  const world = yield* makeWorld({ data: ["--data", "empty"], company: 1 })
  const pipe = join(world.folder, "records.ndjson")
  execFileSync("mkfifo", [pipe])
  const pushing = world.command(["push", "customers", "--from", pipe])
  const writer = yield* untilSeen(
    "the push reads from the pipe",
    Effect.sync(() => openPipe(pipe)),
    (opened) => opened !== null
  )
  yield* untilSeen(
    "the command ends",
    Effect.sync(() => pushing.child.kill("SIGTERM")),
    (isThere) => !isThere
  )
  const { signal, stderr } = yield* Effect.promise(() => pushing.done)
  closeSync(writer!)
  assert.strictEqual(signal, "SIGTERM", stderr)
  assert.include(stderr, "stopped; nothing was stored or sent")
})

/** `tributary init` in scripts: the files that it writes, the files that it never overwrites, and its exit codes. */
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Effect from "effect/Effect"
import { parse } from "yaml"
import { startCommand } from "../support/reference.ts"
import { makeWorld } from "../support/world.ts"
import { liveTest } from "../support/live.ts"
import { cellsOf } from "../support/rows.ts"

interface InitReport {
  readonly config: string
  readonly backup: string | null
  readonly variables: ReadonlyArray<string>
  readonly companies: ReadonlyArray<{
    readonly name: string
    readonly companyId: number
    readonly resources: number
    readonly missing: ReadonlyArray<{ readonly reason: string; readonly resources: ReadonlyArray<string> }>
  }>
  readonly warehouse: string
}

liveTest(
  "tributary init prompts for nothing without a terminal, and writes only settings that it has tested",
  function* () {
    const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
    /** Runs a command that gets its settings only from the folder and these variables. */
    const run = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
      Effect.promise(() => startCommand(args, { cwd: world.folder, env }).done)
    const north = yield* Effect.promise(() => world.reference.token(1))
    const south = yield* Effect.promise(() => world.reference.token(2, ["customers:read"]))
    const init = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
      run(["init", ...args], env)
    const base = ["--yes", "--url", world.reference.baseUrl]

    const refused: ReadonlyArray<readonly [number, string, ReadonlyArray<string>, Readonly<Record<string, string>>]> = [
      [1, "--url or SERVICE_API_URL, and there is no terminal for a prompt", [], {}],
      [1, "the token of main is missing: put it in the variable MAIN_TOKEN", base, {}],
      [1, "the address of the service: over plain http", ["--url", "http://erp.example.com"], {}],
      [1, "there are more --token-env than --company", [...base, "--token-env", "A", "--token-env", "B"], {}],
      [3, "401", base, { MAIN_TOKEN: "a-token-that-is-unknown" }],
      [5, "ECONNREFUSED", ["--yes", "--url", "http://127.0.0.1:1"], { MAIN_TOKEN: north }],
      [5, "cannot reach Postgres", base, { MAIN_TOKEN: north, DATABASE_URL: "postgres://a:s3cretword@127.0.0.1:1/x" }]
    ]
    for (const [code, text, args, env] of refused) {
      const result = yield* init(args, env)
      assert.strictEqual(result.code, code, `${args.join(" ")}: ${result.stderr}`)
      assert.include(result.stderr, text)
      assert.include(result.stderr, "nothing was written")
      assert.strictEqual(result.stdout, "")
      for (const secret of [north, "a-token-that", "s3cretword"]) assert.notInclude(result.stderr, secret)
      assert.deepStrictEqual(readdirSync(world.folder), [])
    }

    const args = [...base, "--company", "north", "--company", "south", "--json"]
    const env = { NORTH_TOKEN: north, SOUTH_TOKEN: south, DATABASE_URL: world.databaseUrl }
    const created = yield* init(args, env)
    assert.strictEqual(created.code, 0, created.stderr)
    const report = JSON.parse(created.stdout) as InitReport
    assert.deepInclude(report, { config: "config/tributary.yaml", backup: null })
    assert.deepStrictEqual(report.variables, ["NORTH_TOKEN", "SOUTH_TOKEN", "DATABASE_URL"])
    assert.deepStrictEqual(cellsOf(report.companies, "name", "companyId"), [
      ["north", 1],
      ["south", 2]
    ])
    assert.isTrue(report.companies[1]!.missing.some(({ reason }) => reason === "the token lacks the scope orders:read"))
    const { password } = new URL(world.databaseUrl)
    for (const secret of [north, south, ...(password === "" ? [] : [password])]) {
      assert.notInclude(created.stdout + created.stderr, secret)
    }
    const file = join(world.folder, "config", "tributary.yaml")
    const yaml = readFileSync(file, "utf8")
    const reference = /\$schema=(\S+)/.exec(yaml)?.[1] ?? ""
    const schema = JSON.parse(readFileSync(join(world.folder, "config", reference), "utf8")) as object
    assert.isTrue(new Ajv2020({ strict: false }).validate(schema, parse(yaml)), "an editor finds no mistake in it")
    assert.strictEqual(statSync(join(world.folder, ".env")).mode & 0o777, 0o600)

    const synced = yield* run(["sync", "customers"])
    assert.strictEqual(synced.code, 0, synced.stderr)
    assert.deepStrictEqual(yield* world.query("select distinct _company_id::int as id from erp.customers order by 1"), [
      { id: 1 },
      { id: 2 }
    ])
    const doctor = yield* run(["doctor"])
    assert.strictEqual(doctor.code, 0, doctor.stdout)

    // Existing files are overwritten only with --replace, and backed up first.
    writeFileSync(join(world.folder, ".env"), `# mine\n${readFileSync(join(world.folder, ".env"), "utf8")}OWN=1\n`)
    const before = readFileSync(join(world.folder, ".env"), "utf8")
    const again = yield* init(args, env)
    assert.strictEqual(again.code, 2)
    assert.include(again.stderr, "config/tributary.yaml exists already: --replace")
    const fresh = yield* Effect.promise(() => world.reference.token(1))
    const replaced = yield* init([...args, "--replace"], { ...env, NORTH_TOKEN: fresh })
    assert.strictEqual(replaced.code, 0, replaced.stderr)
    const backup = (JSON.parse(replaced.stdout) as InitReport).backup
    assert.strictEqual(backup, "config/tributary.yaml.backup-1")
    assert.strictEqual(readFileSync(join(world.folder, backup ?? ""), "utf8"), yaml)
    assert.strictEqual(readFileSync(join(world.folder, ".env"), "utf8"), before.replace(north, fresh))

    // Another configuration file, and a different value in .env: without --replace nothing changes.
    const other = yield* init([...base, "--company", "north", "--config", "other.yaml"], env)
    assert.strictEqual(other.code, 2, other.stdout)
    assert.include(other.stderr, ".env has another value of NORTH_TOKEN: --replace")
    assert.isFalse(existsSync(join(world.folder, "other.yaml")))
    const second = yield* init([...base, "--company", "north", "--config", "other.yaml"])
    assert.strictEqual(second.code, 0, second.stderr)
    assert.include(second.stdout, "tributary doctor --config other.yaml")
    assert.isTrue(existsSync(join(world.folder, "tributary.schema.json")), "beside the file that references it")
  }
)

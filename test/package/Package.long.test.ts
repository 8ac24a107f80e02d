/**
 * The packed package: it contains only files that it needs, and all of it runs on the oldest supported Node and on the
 * one of the checkout.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { root } from "../support/reference.ts"
import { commandOf, ended, ending, firstLine, install, type Installation, nodeOf, nodeOfTests } from "./Package.ts"
import { boundAt, fastest, describeStart } from "./Start.ts"

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly version: string
  readonly engines: { readonly node: string }
}
const oldest = manifest.engines.node.replace(/^>=/, "")

/** The allowed files of the package, by path. */
const expected = [
  /^(?:package\.json|README\.md|LICENSE)$/,
  /^src\/cli\/launch\.js$/,
  /^dist\/(?:package\.json|effect\.LICENSE)$/,
  /^dist\/(?:src|connectors)\/.*\.(?:js|sql|css|svg|json)$/,
  /^dist\/types\/.*\.d\.ts$/,
  /^dist\/schemas\/\w+\.json$/,
  /^dist\/migrations\/\d{4}_\w+\.sql$/,
  /^(?:src|connectors)\/.*\.md$/,
  /^config\/build\.js$/,
  /^config\/(?!vitest|ox|tsconfig).*\.(?:yaml|yml|json|md|png|service|timer|env|conf)$/
]

/** Patterns of real secrets. Placeholders in documentation do not match. */
const secrets = /whsec_[0-9a-f]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/]|npm_[A-Za-z0-9]{36}/

/** The columns of a table: name, type, and whether the column may be null. */
interface TableColumns {
  readonly dataset: string
  readonly name: string
  readonly columns: ReadonlyArray<readonly [name: string, type: string, isNullable: boolean]>
}

const columnsQuery = `
  select json_agg(t) as tables
    from (select table_schema as dataset, table_name as name,
                 json_agg(json_build_array(column_name, data_type, is_nullable = 'YES')) as columns
            from information_schema.columns
           where table_schema in ('erp', 'erp_asof', 'erp_history') and table_name !~ '__superseded$'
           group by 1, 2) t`

/** The types that the driver `pg` makes of values. */
const driverTypes: Readonly<Record<string, string>> = {
  bigint: "string",
  numeric: "string",
  boolean: "boolean",
  text: "string",
  date: "Date",
  "timestamp with time zone": "Date",
  jsonb: "unknown"
}

/** A program that compiles when the package's types are those of the tables. A view does not say what is never null. */
const tableProgram = (tables: ReadonlyArray<TableColumns>): string => {
  const checks = tables.map(({ dataset, name, columns }) => {
    const type = `Database["${dataset}.${name}"]`
    if (dataset !== "erp") {
      return `Same<keyof ${type}, ${columns.map(([column]) => JSON.stringify(column)).join(" | ")}>`
    }
    const members = columns.map(
      ([column, columnType, isNullable]) =>
        `readonly ${column}: ${driverTypes[columnType]}${isNullable && columnType !== "jsonb" ? " | null" : ""}`
    )
    return `Same<${type}, { ${members.join("; ")} }>`
  })
  const names = tables.map(({ dataset, name }) => JSON.stringify(`${dataset}.${name}`)).join(" | ")
  return (
    'import type { Database } from "tributary-sync/warehouse"\n' +
    "type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : never\n" +
    `export const same: ReadonlyArray<true> = [${["keyof Database", ...checks]
      .map((check, index) => (index === 0 ? `true as Same<${check}, ${names}>` : `true as ${check}`))
      .join(",\n")}]\n`
  )
}

/** Repeats the question until it has an answer, for a minute at most. */
const until = async <A>(question: () => Promise<A | null>): Promise<A> => {
  const began = performance.now()
  for (;;) {
    const answer = await question()
    if (answer !== null) return answer
    if (performance.now() - began > 60_000) throw new Error("no answer within a minute")
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

describe("the package", () => {
  let installation: Installation
  let nodes: Readonly<Record<string, string>>

  beforeAll(async () => {
    installation = await install()
    nodes = { oldest: await nodeOf(installation, oldest), tests: nodeOfTests }
    const { packed, unpacked } = installation.bytes
    console.log(`the package: ${packed} bytes, ${unpacked} unpacked, ${installation.files.length} files`)
  }, 300_000)
  const started: Array<ChildProcess> = []
  afterEach(() => ending(started.splice(0)), 60_000)
  afterAll(() => installation.remove(), 120_000)

  it("contains the files that run and the documents, and nothing else", () => {
    const odd = installation.files.map(({ path }) => path).filter((path) => !expected.some((one) => one.test(path)))
    assert.deepStrictEqual(odd, [])
    const paths = new Set(installation.files.map(({ path }) => path))
    for (const path of ["dist/src/main.js", "dist/migrations/0001_installation.sql", "config/tributary.schema.json"]) {
      assert.isTrue(paths.has(path), path)
    }
    const leaks = installation.files.filter(({ path }) =>
      secrets.test(readFileSync(join(installation.packageFolder, path), "latin1"))
    )
    assert.deepStrictEqual(leaks, [])
    assert.isBelow(installation.bytes.packed, 3_000_000)
  })

  it("has every module that its files import", async () => {
    // The first file is the program itself, which would run.
    const files = installation.files.flatMap(({ path }) =>
      /^dist\/src\/[^/]+\.js$/.test(path) && !path.endsWith("/main.js") ? [join(installation.packageFolder, path)] : []
    )
    assert.isAbove(files.length, 50)
    const load = `for (const file of ${JSON.stringify(files)}) await import(file)`
    const { code, stderr } = await ended(spawn(process.execPath, ["--input-type=module", "--eval", load]))
    assert.strictEqual(code, 0, stderr)
  })

  it("reports the required version on a Node that is too old", async () => {
    const launcher = readFileSync(join(installation.packageFolder, "src/cli/launch.js"), "utf8")
    // The same launcher with the version number of an older Node.
    const older = `Object.defineProperty(process.versions, "node", { value: "22.18.0" })\nawait import(${JSON.stringify(
      join(installation.packageFolder, "src/cli/launch.js")
    )})`
    assert.include(launcher, `"${oldest.replace(/\.0$/, "")}"`)
    const { code, stderr } = await ended(spawn(process.execPath, ["--input-type=module", "--eval", older]))
    assert.strictEqual(code, 2)
    assert.include(stderr, "tributary needs Node 22.19 or later; this is Node 22.18.0.")
  })

  it("has types of the tables and columns that a sync creates", { timeout: 240_000 }, async () => {
    const cwd = join(installation.folder, "tables")
    mkdirSync(cwd)
    const { run } = commandOf(installation, nodeOfTests, cwd)
    const demo = await run(["demo", "--json"])
    assert.strictEqual(demo.code, 0, demo.stderr)
    const columns = await run(["query", "--demo", "--json", columnsQuery])
    assert.strictEqual(columns.code, 0, columns.stderr)
    const tables = (JSON.parse(columns.stdout.trim()) as { readonly tables: ReadonlyArray<TableColumns> }).tables
    assert.isAbove(tables.length, 250)
    const program = join(installation.packageFolder, "tables.ts")
    writeFileSync(program, tableProgram(tables))
    const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "", program]
    const compiler = join(root, "node_modules", ".bin", "tsc")
    const { code, stdout } = await ended(spawn(compiler, ["--ignoreConfig", ...options], { cwd }))
    assert.strictEqual(code, 0, stdout)
  })

  for (const which of ["oldest", "tests"]) {
    const version = which === "oldest" ? oldest : process.versions.node
    it(`runs on Node ${version}: version, help, demo`, { timeout: 240_000 }, async () => {
      const cwd = join(installation.folder, `demo-${which}`)
      mkdirSync(cwd)
      const { program, options, run } = commandOf(installation, nodes[which]!, cwd)
      const one = await run(["--version"])
      assert.strictEqual(one.stdout.trim(), `tributary v${manifest.version}`, one.stderr)
      const help = await run(["--help"])
      assert.strictEqual(help.code, 0)
      for (const name of ["sync", "serve", "push", "reference-server"]) assert.include(help.stdout, name)

      const bound = boundAt(join(nodes[which]!, "node"), options)
      for (const line of [["--version"], ["--help"], ["status", "--help"], ["sync", "--help"]]) {
        const start = fastest(program, line, options, bound)
        const words = `installed, Node ${version}, tributary ${line.join(" ")}: ${describeStart(start, bound)}`
        console.log(words)
        assert.isAtMost(start.ms, bound, words)
      }

      const demo = await run(["demo", "--json"])
      assert.strictEqual(demo.code, 0, demo.stderr)
      assert.deepInclude(JSON.parse(demo.stdout) as object, { equal: true })
      const queryResult = await run([
        "query",
        "--demo",
        "--json",
        "select count(*) as n from erp_models.receivables_open"
      ])
      assert.strictEqual(queryResult.code, 0, queryResult.stderr)
      assert.notInclude(queryResult.stdout, '"n":0')
    })

    it(
      `runs on Node ${version}: reference server, sync, status, query, serve and its page`,
      { timeout: 240_000 },
      async () => {
        const cwd = join(installation.folder, `serve-${which}`)
        mkdirSync(cwd)
        const { run, start } = commandOf(installation, nodes[which]!, cwd)
        const server = start(["reference-server", "--data", "demo"])
        started.push(server)
        const { baseUrl, controlUrl } = JSON.parse(await firstLine(server)) as Record<"baseUrl" | "controlUrl", string>
        const answer = await fetch(`${controlUrl}/tokens`, {
          method: "POST",
          body: JSON.stringify({ company: 1, scopes: ["*"] })
        })
        const { token } = (await answer.json()) as { readonly token: string }
        const env = { SERVICE_API_URL: baseUrl, SERVICE_API_TOKEN: token }

        const sync = await run(["sync", "--json"], env)
        assert.strictEqual(sync.code, 0, sync.stderr)
        const status = await run(["status"], env)
        assert.strictEqual(status.code, 0, status.stderr)
        assert.include(status.stdout, "customers")
        const queryResult = await run(["query", "--json", "select count(*) > 10 as many from erp.customers"], env)
        assert.include(queryResult.stdout, '"many":true', queryResult.stderr)

        const serve = start(["serve", "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0", "--json"], env)
        started.push(serve)
        const serveEnded = ended(serve)
        const ready = JSON.parse(await firstLine(serve)) as Record<"listening" | "dashboard", string>
        assert.strictEqual((await fetch(new URL("/readyz", ready.listening))).status, 200)
        // The page shows the scheduler's tasks a moment after the start.
        const html = await until(async () => {
          const page = await fetch(ready.dashboard)
          const text = await page.text()
          return page.status === 200 && text.includes("customers") ? text : null
        })
        const assets = [...html.matchAll(/<(?:script|link)\b[^>]*?\b(?:src|href)="(\/[^"]+)"/g)].map(
          (match) => match[1]!
        )
        assert.isAbove(assets.length, 1)
        for (const asset of assets)
          assert.strictEqual((await fetch(new URL(asset, ready.dashboard))).status, 200, asset)

        serve.kill("SIGTERM")
        const { code, stderr } = await serveEnded
        assert.strictEqual(code, 0, stderr)
      }
    )
  }
})

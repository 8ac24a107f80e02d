/** The packed package: it contains only files that it needs, and runs on the oldest supported Node. */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll, afterEach, assert, beforeAll, describe, it } from "vitest"
import { root, untilSeen } from "../support/reference.ts"
import { firstDay } from "./FirstDay.ts"
import { commandOf, ended, ending, firstLine, install, type Installation, nodeOf } from "./Package.ts"

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly version: string
  readonly engines: { readonly node: string }
}
const oldest = manifest.engines.node.replace(/^>=/, "")

/** The allowed files of the package, by path. */
const expected = [
  /^(?:package\.json|(?:README|CHANGELOG|CONTRIBUTING|SECURITY)\.md|LICENSE)$/,
  /^src\/cli\/launch\.js$/,
  /^dist\/(?:package\.json|bundled\.json|licenses\/[\w@.-]+\.txt)$/,
  /^dist\/(?:src|connectors)\/.*\.(?:js|sql|css|svg|json)$/,
  /^dist\/types\/.*\.d\.ts$/,
  /^dist\/schemas\/\w+\.json$/,
  /^dist\/migrations\/\d{4}_\w+\.sql$/,
  /^(?:src|connectors|docs)\/.*\.md$/,
  /^config\/build\.js$/,
  /^config\/(?!vitest|ox|tsconfig).*\.(?:yaml|yml|json|md|png|service|timer|env|conf)$/
]

/** Patterns of real secrets. Placeholders in documentation do not match. */
const secrets = /whsec_[0-9a-f]{16}|-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/]|npm_[A-Za-z0-9]{36}/

describe("the package", () => {
  let installation: Installation
  let node: string

  beforeAll(async () => {
    installation = await install()
    node = await nodeOf(installation, oldest)
  })
  const started: Array<ChildProcess> = []
  afterEach(() => ending(started.splice(0)))
  afterAll(() => installation.remove())

  it("contains the files that run and the documents, and nothing else", () => {
    const odd = installation.files.map(({ path }) => path).filter((path) => !expected.some((one) => one.test(path)))
    assert.deepStrictEqual(odd, [])
    const paths = new Set(installation.files.map(({ path }) => path))
    for (const path of ["dist/src/main.js", "dist/migrations/0001_companies.sql", "config/tributary.schema.json"]) {
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
    assert.include(launcher, `"${oldest.replace(/\.0$/, "")}"`)
    // The same program with the version number of an older Node.
    const onOlder = (file: string) => {
      const path = JSON.stringify(join(installation.packageFolder, file))
      const older = `Object.defineProperty(process.versions, "node", { value: "22.18.0" })\nawait import(${path})`
      return ended(spawn(process.execPath, ["--input-type=module", "--eval", older]))
    }
    const { code, stderr } = await onOlder("src/cli/launch.js")
    assert.strictEqual(code, 2)
    assert.include(stderr, "tributary needs Node 22.19 or later; this is Node 22.18.0.")
    for (const name of ["client", "reference-server"])
      assert.include(
        (await onOlder(`dist/src/${name}.js`)).stderr,
        "tributary-sync needs Node 22.19 or later; this is Node 22.18.0"
      )
  })

  it(`runs on Node ${oldest}: version, help, demo`, async () => {
    const cwd = join(installation.folder, "demo")
    mkdirSync(cwd)
    const { run } = commandOf(installation, node, cwd)
    const one = await run(["--version"])
    assert.strictEqual(one.stdout.trim(), `tributary v${manifest.version}`, one.stderr)
    const help = await run(["--help"])
    assert.strictEqual(help.code, 0)
    for (const name of ["sync", "serve", "push", "reference-server"]) assert.include(help.stdout, name)

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

  it(`runs on Node ${oldest}: reference server, sync, status, query, serve and its page`, async () => {
    const cwd = join(installation.folder, "serve")
    mkdirSync(cwd)
    const { run, start } = commandOf(installation, node, cwd)
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
    const html = await Effect.runPromise(
      untilSeen(
        "the page shows customers",
        Effect.promise(async () => (await fetch(ready.dashboard)).text()),
        (text) => text.includes("customers")
      )
    )
    const assets = [...html.matchAll(/<(?:script|link)\b[^>]*?\b(?:src|href)="(\/[^"]+)"/g)].map((match) => match[1]!)
    assert.isAbove(assets.length, 1)
    for (const asset of assets) assert.strictEqual((await fetch(new URL(asset, ready.dashboard))).status, 200, asset)

    serve.kill("SIGTERM")
    const { code, stderr } = await serveEnded
    assert.strictEqual(code, 0, stderr)
  })

  it(`gives the first day of the tutorial on Node ${oldest}, at a terminal`, async () => {
    const session = await firstDay(commandOf(installation, node, join(installation.folder, "first-day")), started)
    assert.match(session, /^Equal: [\d,]+ records of 81 resources/m)
    assert.match(session, /"3500\.0000" → "777\.0000"/)
  })
})

/** A file that the program may not use, in a process of another user. */
import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, assert, beforeEach, it } from "vitest"

let folder = ""
const at = (name: string) => join(folder, name)
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-files-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/**
 * Runs code in a process that modes of files bind: as root, another user. The modules are loaded before, since that user
 * may have no right to the checkout.
 */
const asUser = (code: string): unknown => {
  const source = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
  const script = `
    import * as Effect from "effect/Effect"
    import * as ReadFile from ${source("files/ReadFile.ts")}
    import * as Chain from ${source("close/Chain.ts")}
    import * as Warehouse from ${source("cli/Warehouse.ts")}
    import { commandFailed } from ${source("cli/Command.ts")}
    import { load } from ${source("configuration/Configuration.ts")}
    import "yaml"
    process.chdir(${JSON.stringify(folder)})
    if (process.getuid() === 0) { process.setgroups([]); process.setgid(65534); process.setuid(65534) }
    const caught = (run) => { try { return { value: run() } } catch (error) { return { message: error.message } } }
    const failure = (effect) => Effect.runPromise(Effect.map(Effect.flip(effect), commandFailed))
    process.stdout.write(JSON.stringify(await (async () => { ${code} })()))`
  return JSON.parse(
    execFileSync(process.execPath, ["--input-type=module", "-e", script], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      encoding: "utf8"
    })
  )
}

const environment = `{ SERVICE_API_URL: "https://erp.example", SERVICE_API_TOKEN: "t" }`

it("a file that this process may not use is refused with its owner, its mode and code 2", () => {
  chmodSync(folder, 0o755)
  mkdirSync(at("config"))
  writeFileSync(at("config/tributary.yaml"), "requests: {}\n")
  mkdirSync(at("state/postgres"), { recursive: true })
  mkdirSync(at("closes"))
  writeFileSync(at("closes/2026-10-north.json"), "{}")
  writeFileSync(at("secret"), "A=1\n")
  for (const name of ["config", "state", "closes", "secret"]) chmodSync(at(name), 0)
  const owner = process.getuid!()
  const [byDefault, byFlag, state, chain, file] = asUser(`return [
      await failure(load({}, ${environment})),
      await failure(load({ config: "config/tributary.yaml" }, ${environment})),
      await failure(Warehouse.exists({ databaseUrl: null, dataDirectory: "state" })),
      caught(() => Chain.check("closes/2026-10-north.2.json",
        { company: { name: "north" }, period: { month: "2026-10" }, replaces: "00", revision: 2 })),
      caught(() => ReadFile.textIfPresent("secret"))
    ]`) as ReadonlyArray<{ readonly code?: number; readonly message: string }>
  for (const [one, path, part] of [
    [byDefault, "config/tributary.yaml", "config"],
    [byFlag, "config/tributary.yaml", "config"],
    [state, "state/postgres", "state"]
  ] as const) {
    assert.strictEqual(one!.code, 2)
    assert.include(
      one!.message,
      `${path} cannot be used: ${at(part)} belongs to user ${owner} and group ${process.getgid!()} with mode 0000`
    )
    assert.match(one!.message, /for example: chmod [uo]\+x /)
  }
  assert.include(chain!.message, "closes/2026-10-north.json cannot be used")
  // Other users get no right to a file, which may have secrets.
  assert.match(file!.message, /^secret cannot be used: .* for example: ch(own \d+|mod u\+r) /)
  for (const name of ["config", "state", "closes"]) chmodSync(at(name), 0o700)
})

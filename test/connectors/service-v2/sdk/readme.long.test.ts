/** The programs of the client's page: each is compiled, and run against the reference server; what it prints is compared. */
import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { stripTypeScriptTypes } from "node:module"
import { promisify } from "node:util"
import { afterAll, assert, describe, it } from "vitest"
import { useReference } from "./support.ts"
import { valuesOf } from "../../../support/rows.ts"

const sdk = useReference()
const root = fileURLToPath(new URL("../../../..", import.meta.url))
const page = "connectors/service-v2/sdk/README.md"
/** In the checkout, so that the compiler finds the types of Node. */
const folder = join(root, "node_modules/.cache", `sdk-readme-${process.pid}`)
const run = promisify(execFile)

const programs = [...readFileSync(join(root, page), "utf8").matchAll(/```ts\n\/\/ ([\w-]+)\.ts\n([^]*?)```/g)].map(
  ([, name, text]) => ({ name: name!, text: text! })
)

/** The lines that the program's comments show; a line that is printed twice has both texts. */
const shown = (text: string) => [...text.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line]) => line!)

const words = (texts: ReadonlyArray<string>) =>
  texts
    .join(" ")
    .split(/\s+/)
    .filter((word) => word !== "")
    .sort()

const write = () => {
  mkdirSync(folder, { recursive: true })
  const address = join(root, "connectors/service-v2/sdk/index.ts")
  for (const { name, text } of programs) {
    const program = text.replaceAll('"tributary-sync/client"', JSON.stringify(address))
    writeFileSync(join(folder, `${name}.ts`), program)
    // Node does not strip types below `node_modules`.
    writeFileSync(join(folder, `${name}.mjs`), stripTypeScriptTypes(program))
  }
  const compilerOptions = { noEmit: true, noUncheckedIndexedAccess: false, incremental: false, tsBuildInfoFile: null }
  const config = { extends: join(root, "tsconfig.json"), compilerOptions, include: ["*.ts"] }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
}

describe("the page of the client", () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("has programs that compile, and print what they show", { timeout: 120_000 }, async () => {
    assert.deepStrictEqual(valuesOf(programs, "name"), ["invoices", "changes", "errors", "webhooks"])
    write()
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    const compiled = await run(process.execPath, [compiler, "-p", folder]).catch((error: { stdout?: string }) => error)
    assert.strictEqual(compiled.stdout, "")
    const env = { ...process.env, SERVICE_API_URL: sdk.baseUrl(), SERVICE_API_TOKEN: await sdk.token() }
    for (const { name, text } of programs) {
      const { stdout } = await run(process.execPath, [join(folder, `${name}.mjs`)], { env, timeout: 60_000 })
      assert.deepStrictEqual(words([stdout]), words(shown(text)), name)
    }
  })
})

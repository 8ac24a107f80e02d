/**
 * The modules of the package as another project gets them: with declarations for two versions of TypeScript, and with
 * examples that run.
 */
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { generate } from "../../connectors/service-v2/package/generate.ts"
import { start } from "../../connectors/service-v2/reference-server/index.ts"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { type Block, blocksOf, fileNameOf } from "../readme/Blocks.ts"
import { root } from "../support/reference.ts"
import { addPackages, ended, installInProject, nodeOfTests } from "./Package.ts"

const node = join(nodeOfTests, "node")
const serverPage = "connectors/service-v2/reference-server/README.md"
const modulesPage = "connectors/service-v2/package/README.md"

/** The modules of the package. */
const modules = ["reference-server", "client", "records", "schemas", "warehouse"]

const compilers = { "TypeScript 5": "5.9.3", "TypeScript 7": null } as const
const resolutions = [
  { module: "node16", moduleResolution: "node16" },
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" }
] as const

const filesOf = (page: string): ReadonlyArray<readonly [name: string, block: Block]> =>
  blocksOf(page).flatMap((block) => {
    const name = fileNameOf(block.text)
    return name === null ? [] : [[name, block] as const]
  })

/** A literal of JSON that TypeScript checks against a type. */
const typed = (name: string, type: string, value: unknown) =>
  `export const ${name}: ${type} = ${JSON.stringify(value)}\n`

describe("the modules of the package", () => {
  let installation: Awaited<ReturnType<typeof installInProject>>

  beforeAll(async () => {
    installation = await installInProject()
    await addPackages(installation.project, "typescript@5.9.3", "@types/node@24.19.2", "kysely@0.29.9")
  }, 300_000)
  afterAll(() => installation.remove(), 120_000)

  const file = (name: string, text: string) => {
    const path = join(installation.project, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
  const run = (...args: ReadonlyArray<string>) =>
    ended(spawn(node, args, { cwd: installation.project, env: { ...process.env, PATH: nodeOfTests } }))

  /** Compiles files of the project, with every library checked. */
  const compile = async (
    compiler: keyof typeof compilers,
    files: ReadonlyArray<string>,
    options: Readonly<Record<string, unknown>>
  ) => {
    const require = createRequire(join(compilers[compiler] === null ? root : installation.project, "package.json"))
    const manifest = require.resolve("typescript/package.json")
    const { bin, version } = require(manifest) as { readonly bin: { readonly tsc: string }; readonly version: string }
    assert.strictEqual(`TypeScript ${version.split(".")[0]}`, compiler)
    const settings = {
      compilerOptions: {
        target: "es2022",
        noEmit: true,
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        skipLibCheck: false,
        resolveJsonModule: true,
        types: [],
        ...options
      },
      files
    }
    file("tsconfig.json", JSON.stringify(settings))
    const { code, stdout, stderr } = await run(join(dirname(manifest), bin.tsc), "--project", "tsconfig.json")
    assert.strictEqual(code, 0, `${compiler} with ${JSON.stringify(options)}: ${stdout}${stderr}`)
  }

  it("has examples that compile with both compilers, and run", { timeout: 240_000 }, async () => {
    const examples = [...filesOf(serverPage), ...filesOf(modulesPage)]
    for (const [name, { text }] of examples) file(name, text)
    const names = [...new Set(examples.map(([name]) => name))]
    for (const module of modules) assert.include(names, `${module}.ts`)
    const options = { types: ["node"], lib: ["es2022", "esnext.disposable"], allowImportingTsExtensions: true }
    for (const compiler of Object.keys(compilers) as ReadonlyArray<keyof typeof compilers>) {
      for (const resolution of resolutions) {
        await compile(compiler, names, {
          ...options,
          ...resolution,
          ...(resolution.module === "node16" ? { module: "node18", moduleResolution: "node16" } : {})
        })
      }
    }
    for (const name of names) {
      if (name.startsWith("receivable")) continue
      const { code, stderr, stdout } = await run(name)
      assert.strictEqual(code, 0, `${name}: ${stderr}`)
      assert.notStrictEqual(stdout, "", name)
    }
  })

  it("has declarations that need neither types of Node nor of other packages", { timeout: 240_000 }, async () => {
    const names = modules.map((name) => name.replace("-", "_"))
    file(
      "plain.ts",
      modules.map((name, index) => `import type * as ${names[index]} from "tributary-sync/${name}"\n`).join("") +
        `export type All = [${names.map((name) => `keyof typeof ${name}`).join(", ")}]\n`
    )
    for (const compiler of Object.keys(compilers) as ReadonlyArray<keyof typeof compilers>) {
      for (const resolution of resolutions)
        await compile(compiler, ["plain.ts"], { lib: ["es2022", "dom"], ...resolution })
    }
  })

  it("has the files that follow from the catalogue of the sources", () => {
    const files = generate()
    assert.isAbove(files.size, serviceV2.resources.size)
    for (const [path, text] of files) {
      assert.isTrue(readFileSync(join(installation.packageFolder, "dist", path), "utf8") === text, path)
    }
  })

  it("has types and schemas that every record of the server fits", { timeout: 240_000 }, async () => {
    await using server = await start({ data: "demo" })
    const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }))
    let program = 'import type { Records } from "tributary-sync/records"\n'
    let count = 0
    for (const name of serviceV2.resources.keys()) {
      const records = await server.records(name as "invoices")
      const schema = JSON.parse(
        readFileSync(join(installation.packageFolder, "dist", "schemas", `${name}.json`), "utf8")
      ) as object
      const validate = ajv.compile(schema)
      for (const record of records) assert.isTrue(validate(record), `${name}: ${ajv.errorsText(validate.errors)}`)
      assert.isFalse(validate({ ...records[0], id: "1" }), name)
      program += typed(name, `ReadonlyArray<Records["${name}"]>`, records.slice(0, 5))
      count += records.length
    }
    assert.isAbove(count, 1000)
    file("fits.ts", program)
    await compile("TypeScript 7", ["fits.ts"], { module: "nodenext", moduleResolution: "nodenext" })
    file("misfit.ts", typed("wrong", 'import("tributary-sync/records").Records["salesmen"]', { id: "1" }))
    const misfit = await compile("TypeScript 7", ["misfit.ts"], {
      module: "nodenext",
      moduleResolution: "nodenext"
    }).then(
      () => null,
      (error: unknown) => error as Error
    )
    assert.include(misfit?.message, "is not assignable to type 'number'")
  })
})

/** The installed package: the types of its tables. */
import { spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { root } from "../support/reference.ts"
import { commandOf, ended, install, type Installation, nodeOfTests } from "./Package.ts"

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

describe("the installed package", () => {
  let installation: Installation

  beforeAll(async () => {
    installation = await install()
  }, 300_000)
  afterAll(() => installation.remove(), 120_000)

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
})

/** A check of each named statement: the database prepares it with the parameter and column types that it declares. */
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type pg from "pg"
import { prepareSql } from "../../../src/outbox/AssumedNew.ts"
import { createSql } from "../../../src/outbox/InputTable.ts"
import { Database } from "../../../src/postgres/Database.ts"
import * as Statement from "../../../src/postgres/Statement.ts"
import { layerWarehouse } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const test = testWith(layerWarehouse)

const root = fileURLToPath(new URL("../../..", import.meta.url))

interface Declared {
  readonly file: string
  readonly statement: Statement.Statement<ReadonlyArray<Statement.Type>, Statement.Columns>
}

/** The exported statements of all modules, and the number of statements that each file declares. */
const declared = async (): Promise<ReadonlyArray<Declared>> => {
  const declarations: Array<Declared> = []
  for (const file of globSync("src/**/*.ts", { cwd: root })) {
    const count = readFileSync(`${root}/${file}`, "utf8").match(/\bStatement\.(?:make|named)\(/g)?.length ?? 0
    if (count === 0) continue
    const values = Object.values((await import(`${root}/${file}`)) as Record<string, unknown>).flatMap((value) =>
      typeof value === "object" && value !== null && !Statement.isStatement(value)
        ? [value, ...Object.values(value)]
        : [value]
    )
    const own = values.filter(Statement.isStatement)
    assert.strictEqual(own.length, count, `${file} declares statements that it does not export`)
    declarations.push(...own.map((statement) => ({ file, statement })))
  }
  return declarations
}

interface Field {
  readonly name: string
  readonly dataTypeID: number
  readonly tableID: number
  readonly columnID: number
}

interface Described {
  readonly params: ReadonlyArray<number>
  readonly fields: ReadonlyArray<Field>
}

/** Protocol messages of `pg` that its types omit. */
interface Wire {
  readonly parse: (query: { readonly text: string; readonly name: string }) => void
  readonly describe: (of: { readonly type: "S"; readonly name: string }) => void
  readonly sync: () => void
  readonly once: (event: string, listener: (message: never) => void) => void
  readonly removeAllListeners: (event: string) => void
}

/** Prepares a statement without running it. */
const describeStatement = (client: pg.Client, text: string): Promise<Described> =>
  new Promise((resolve, reject) => {
    let params: ReadonlyArray<number> = []
    let fields: ReadonlyArray<Field> = []
    let failure: Error | null = null
    const wire = (client as unknown as { readonly connection: Wire }).connection
    wire.once("parameterDescription", (message: { readonly dataTypeIDs: ReadonlyArray<number> }) => {
      params = message.dataTypeIDs
    })
    const query = {
      submit: () => {
        wire.parse({ text, name: "" })
        wire.describe({ type: "S", name: "" })
        wire.sync()
      },
      handleRowDescription: (message: { readonly fields: ReadonlyArray<Field> }) => {
        fields = message.fields
      },
      handleError: (error: Error) => {
        failure = error
      },
      handleReadyForQuery: () => {
        wire.removeAllListeners("parameterDescription")
        if (failure === null) resolve({ params, fields })
        else reject(failure)
      }
    }
    client.query(query as unknown as pg.Submittable)
  })

test("every named SQL statement has the declared parameters and columns", function* () {
  const client = yield* (yield* Database).connect
  const rows = <Row extends pg.QueryResultRow>(text: string) =>
    Effect.map(
      Effect.promise(() => client.query<Row>(text)),
      (result) => result.rows
    )
  // The temporary tables of a push.
  yield* rows(`${prepareSql}; ${createSql}`)
  const types = new Map(
    (yield* rows<{ oid: number; name: string }>("select oid::int4 as oid, typname as name from pg_type")).map(
      ({ oid, name }) => [oid, name.startsWith("_") ? `${name.slice(1)}[]` : name]
    )
  )
  const nullable = new Set(
    (yield* rows<{ key: string }>(
      `select attrelid || '.' || attnum as key from pg_attribute a
             join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p') where attnum > 0 and not attnotnull`
    )).map(({ key }) => key)
  )
  const statements = yield* Effect.promise(declared)
  const names = statements.map(({ statement }) => statement.name)
  assert.deepStrictEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
    "a name belongs to one statement"
  )
  const problems: Array<string> = []
  for (const { file, statement } of statements) {
    const addProblem = (problem: string) => problems.push(`${file}: ${statement.name}: ${problem}`)
    if (statement.params.length > 8 && !("values" in statement))
      addProblem("has more than eight parameters without names")
    const described = yield* Effect.promise(() =>
      describeStatement(client, statement.text).catch((error: unknown) => {
        addProblem(String(error))
        return null
      })
    )
    if (described === null) continue
    const params = described.params.map((oid) => types.get(oid))
    const paramTypes = statement.params.map((type) => type.replace("?", ""))
    if (params.join() !== paramTypes.join()) addProblem(`takes ${params.join()}, and declares ${paramTypes.join()}`)
    const columns = described.fields.map(({ name, dataTypeID }) => `${name}: ${types.get(dataTypeID)}`)
    const expected = Object.entries(statement.columns).map(([name, type]) => `${name}: ${type.replace("?", "")}`)
    if (columns.join() !== expected.join()) {
      addProblem(`answers ${columns.join(", ")}, and declares ${expected.join(", ")}`)
      continue
    }
    for (const { name, tableID, columnID } of described.fields) {
      if (nullable.has(`${tableID}.${columnID}`) && !statement.columns[name]!.endsWith("?"))
        addProblem(`${name} may be null`)
    }
  }
  assert.deepStrictEqual(problems, [])
})

/**
 * dbt's sources against a warehouse with the reference server's demo data: every column exists with the stated type.
 * Every test, run as the SQL that dbt makes of it, finds nothing in sound data, and finds planted defects.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { describe, it as plainly } from "vitest"
import { parse, stringify } from "yaml"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../connectors/service-v2/models/index.ts"
import { words } from "../../src/catalogue/Field.ts"
import { withFields } from "../../src/catalogue/Resource.ts"
import * as Dbt from "../../src/warehouse/Dbt.ts"
import { withInferred } from "../../src/warehouse/WarehouseCatalogue.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { layerDemo } from "../support/demo.ts"
import { suite } from "../support/suite.ts"
import { assertNone } from "../support/assertions.ts"
import { sql } from "../support/postgres.ts"

const Config = Schema.Struct({
  severity: Schema.Literals(["error", "warn"]),
  where: Schema.optionalKey(Schema.String)
})

const named = <Arguments extends Schema.Struct.Fields>(fields: Arguments) =>
  Schema.Struct({ name: Schema.optionalKey(Schema.String), arguments: Schema.Struct(fields), config: Config })

/** The forms of a test in dbt's documents, as far as the file uses them. */
const Test = Schema.Union([
  Schema.Literal("not_null"),
  Schema.Struct({ unique: named({ column_name: Schema.String }) }),
  Schema.Struct({ accepted_values: named({ values: Schema.Array(Schema.String), quote: Schema.Boolean }) }),
  Schema.Struct({
    relationships: named({ column_name: Schema.String, to: Schema.String, field: Schema.String })
  })
])
type Test = typeof Test.Type

const File = Schema.Struct({
  version: Schema.Literal(2),
  sources: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      description: Schema.String,
      schema: Schema.String,
      loader: Schema.String,
      tables: Schema.Array(
        Schema.Struct({
          name: Schema.String,
          identifier: Schema.optionalKey(Schema.String),
          description: Schema.String,
          config: Schema.optionalKey(
            Schema.Struct({
              freshness: Schema.Struct({
                warn_after: Schema.Struct({ count: Schema.Int, period: Schema.Literal("minute") })
              }),
              loaded_at_query: Schema.String
            })
          ),
          data_tests: Schema.optionalKey(Schema.Array(Test)),
          columns: Schema.Array(
            Schema.Struct({
              name: Schema.String,
              description: Schema.String,
              data_type: Schema.String,
              quote: Schema.optionalKey(Schema.Boolean),
              data_tests: Schema.optionalKey(Schema.Array(Test))
            })
          )
        })
      )
    })
  )
})

const datasets = { ...datasetsDefault, models: "erp_models" }
const models = readModels()
const resources = [...serviceV2.resources.values()]
const options = { resources, models, datasets, freshnessOf: () => Duration.seconds(90) }

/** The file as dbt reads it. A property that its documents do not contain is rejected. */
const read = (sources: ReadonlyArray<Dbt.DbtSource>) =>
  Schema.decodeUnknownSync(File)(parse(stringify({ version: 2, sources }, { aliasDuplicateObjects: false })), {
    onExcessProperty: "error"
  })

const file = read(Dbt.sourcesOf(options))
const [erp, views] = file.sources

interface Compiled {
  readonly name: string
  readonly sql: string
}

/** The SQL of dbt's own generic tests. Its rows are the failures. */
const compiled = (table: (typeof erp & {})["tables"][number]): ReadonlyArray<Compiled> => {
  const relation = `"${datasets.current}"."${table.identifier ?? table.name}"`
  const of = (test: Test, columnName: string, where: string): Compiled => {
    const from = (condition: string | undefined) =>
      condition === undefined ? relation : `(select * from ${relation} where ${condition}) dbt_subquery`
    if (test === "not_null") {
      return { name: `${where} not_null`, sql: `select ${columnName} from ${relation} where ${columnName} is null` }
    }
    if ("unique" in test) {
      const { arguments: parameters, config, name } = test.unique
      const column = parameters.column_name
      return {
        name: name ?? where,
        sql: `select ${column} as unique_field, count(*) as n_records from ${from(config.where)}
               where ${column} is not null group by ${column} having count(*) > 1`
      }
    }
    if ("accepted_values" in test) {
      const { arguments: parameters, config } = test.accepted_values
      const values = parameters.values.map((value) => (parameters.quote ? `'${value}'` : value)).join(",")
      return {
        name: `${where} accepted_values`,
        sql: `with all_values as (
                select ${columnName} as value_field, count(*) as n_records from ${from(config.where)} group by ${columnName})
              select * from all_values where value_field not in (${values})`
      }
    }
    const { arguments: reference, config, name } = test.relationships
    const [, source, target] = /^source\('(\w+)', '(\w+)'\)$/.exec(reference.to) ?? []
    const parentTable = erp!.tables.find((one) => one.name === target)
    if (parentTable === undefined) return assert.fail(`${reference.to} is not among the sources`)
    assert.strictEqual(source, datasets.current)
    return {
      name: name ?? where,
      sql: `with child as (select ${reference.column_name} as from_field from ${from(config.where)} where ${reference.column_name} is not null),
                 parent as (select ${reference.field} as to_field from "${source}"."${parentTable.identifier ?? parentTable.name}")
            select from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null`
    }
  }
  return [
    ...(table.data_tests ?? []).map((test) => of(test, "", table.name)),
    ...table.columns.flatMap((column) =>
      (column.data_tests ?? []).map((test) =>
        of(test, column.quote === true ? `"${column.name}"` : column.name, `${table.name}.${column.name}`)
      )
    )
  ]
}

const tests = erp!.tables.flatMap(compiled)
const kindOf = (name: string) => / (\w+)$/.exec(name)?.[1] ?? (name.endsWith("_exists") ? "relationships" : "unique")

/** Names of these tests that fail, with the number of rows. */
const failing = Effect.fnUntraced(function* (some: ReadonlyArray<Compiled> = tests) {
  const failures = yield* Effect.forEach(
    some,
    ({ name, sql: text }) =>
      Effect.map(sql.unsafe(text), (rows) => (rows.length === 0 ? [] : [`${name}: ${rows.length}`])),
    { concurrency: 8 }
  )
  return failures.flat()
})

describe("dbt's sources", () => {
  plainly("contain the selected resources and refer to no other", () => {
    const some = resources.filter(({ path }) => path === "orders" || path === "customers")
    const [only, ...rest] = read(Dbt.sourcesOf({ ...options, resources: some })).sources
    assert.deepStrictEqual(only?.tables.map(({ name }) => name).sort(), ["customers", "orders"])
    assert.deepStrictEqual(rest, [])
    const orders = only!.tables.find(({ name }) => name === "orders")!
    assert.deepStrictEqual(
      orders.data_tests?.flatMap((test) =>
        test !== "not_null" && "relationships" in test ? [test.relationships.arguments] : []
      ),
      [
        {
          column_name: `("_company_id" || '-' || "customerid")`,
          to: "source('erp', 'customers')",
          field: `("_company_id" || '-' || "id")`
        }
      ]
    )
    assert.deepStrictEqual(orders.config?.freshness.warn_after, { count: 2, period: "minute" })
  })

  plainly("identify inferred columns by their names, and quote names where needed", () => {
    const base = serviceV2.resources.get("customers")!
    const inferred = withInferred(base, [
      { name: "unit price", column: "unit_price_0a1b2c3d", type: "decimal" },
      { name: "Colour", column: "Colour", type: "text" }
    ])
    const columns = read(Dbt.sourcesOf({ ...options, resources: [{ ...inferred, table: "customers_0a1b2c3d" }] }))
      .sources[0]!.tables[0]!
    assert.strictEqual(columns.name, "customers")
    assert.strictEqual(columns.identifier, "customers_0a1b2c3d")
    const [price, colour] = ["unit_price_0a1b2c3d", "Colour"].map((name) =>
      columns.columns.find((column) => column.name === name)
    )
    assert.deepStrictEqual([price?.data_type, price?.quote], ["numeric", undefined])
    assert.include(price?.description, '"unit price"')
    assert.deepStrictEqual([colour?.data_type, colour?.quote], ["text", true])
  })

  plainly("are no template where a text looks like one, and end no SQL text", () => {
    const base = serviceV2.resources.get("customers")!
    const [id] = base.fields
    const odd = withFields({ ...base, purpose: "the {{ odd }} ones" }, [
      id!,
      { ...base.field.get("customercode")!, values: words({ "it's": "", "{{ x }}": "" }) }
    ])
    const [table] = read(Dbt.sourcesOf({ ...options, resources: [odd] })).sources[0]!.tables
    assert.match(table!.description, /^\{% raw %\}the \{\{ odd \}\} ones\..*\{% endraw %\}$/)
    const [test] = table!.columns.find(({ name }) => name === "customercode")!.data_tests!
    assert.deepStrictEqual(
      test !== "not_null" && test !== undefined && "accepted_values" in test
        ? test.accepted_values.arguments.values
        : [],
      ["it''s", "{% raw %}{{ x }}{% endraw %}"]
    )
  })

  plainly("give every test a unique name that is valid for a table, in case its failures are stored", () => {
    const names = erp!.tables.flatMap((table) =>
      (table.data_tests ?? []).flatMap((test) =>
        test === "not_null" ? [] : Object.values(test).map(({ name }) => name)
      )
    )
    assert.isAbove(names.length, resources.length)
    assert.strictEqual(new Set(names).size, names.length)
    assertNone(names, (name) => name === undefined || name.length > 63)
  })
})

suite("dbt's sources and a warehouse of demo data", layerDemo, (test) => {
  test("have the existing columns, and tests that find planted defects only", function* () {
    const storedTables = yield* sql<{ place: string; columns: ReadonlyArray<string> }>`
          select n.nspname || '.' || c.relname as place,
                 array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) order by a.attnum) as columns
            from pg_class c join pg_namespace n on n.oid = c.relnamespace
            join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
           where n.nspname in ('erp', 'erp_models') and c.relkind in ('r', 'v') group by 1`
    const plainType = (type: string) => (type === "timestamptz" ? "timestamp with time zone" : type)
    assert.deepStrictEqual(
      Object.fromEntries(
        file.sources.flatMap(({ schema, tables }) =>
          tables.map((table) => [
            `${schema}.${table.identifier ?? table.name}`,
            table.columns.map((column) => `${column.name} ${plainType(column.data_type)}`)
          ])
        )
      ),
      Object.fromEntries(storedTables.map(({ place, columns }) => [place, columns]))
    )
    assert.strictEqual(views?.tables.length, models.length)

    assert.deepStrictEqual(yield* failing(), [])
    const kinds = Map.groupBy(tests, ({ name }) => kindOf(name))
    assert.sameMembers([...kinds.keys()], ["not_null", "unique", "accepted_values", "relationships"])

    // Defects that no sync produces: a value outside the set, a dangling reference, a duplicate key.
    yield* sql`update erp.orders set status = 'lost', customerid = 999999
                    where id = (select min(id) from erp.orders where _company_id = 1) and _company_id = 1`
    yield* sql`update erp.customers c set customercode = upper(o.customercode) from erp.customers o
                    where c._company_id = 1 and o._company_id = 1 and o.id = (select min(id) from erp.customers where _company_id = 1)
                      and c.id = (select max(id) from erp.customers where _company_id = 1)`
    const ofDefects = tests.filter(({ name }) => /orders|customers/.test(name))
    assert.sameMembers(yield* failing(ofDefects), [
      "erp_customers_one_row_per_customercode: 1",
      "erp_orders_customerid_exists: 1",
      "orders.status accepted_values: 1"
    ])
    // The tests ignore deleted records, and references to customers in a company without customers.
    yield* sql`update erp.orders set _deleted_at = now() where status = 'lost'`
    yield* sql`delete from erp.customers where _company_id = 2`
    assert.deepStrictEqual(yield* failing(ofDefects), ["erp_customers_one_row_per_customercode: 1"])

    // The freshness is the last successful read of the company with the oldest one; null if there was none.
    const loadedAtQuery = erp!.tables.find(({ name }) => name === "orders")!.config!.loaded_at_query
    const loadedAt = Effect.map(
      sql.unsafe<{ min: Date | null }>(loadedAtQuery),
      ([row]) => row?.min?.toISOString() ?? null
    )
    assert.isNull(yield* loadedAt)
    yield* sql`insert into tributary.checkpoints (company_id, resource, updated_at) values
          (1, 'orders', now()), (2, 'orders', now()), (2, 'customers', now())`
    yield* sql`insert into tributary.runs (company_id, resource, lane, kind, status, started_at, fence) values
          (1, 'orders', 'live', 'full', 'done', '2026-01-01T00:00:00Z', 1),
          (1, 'orders', 'live', 'incremental', 'done', '2026-01-03T00:00:00Z', 1),
          (1, 'orders', 'live', 'incremental', 'failed', '2026-01-05T00:00:00Z', 1),
          (2, 'orders', 'live', 'full', 'done', '2026-01-02T00:00:00Z', 1),
          (2, 'customers', 'live', 'full', 'done', '2026-01-01T00:00:00Z', 1)`
    assert.strictEqual(yield* loadedAt, "2026-01-02T00:00:00.000Z")
  })
})

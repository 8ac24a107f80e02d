/** A check that `src/postgres/Tables.ts` matches the migrated database. `npm run docs` writes that file. */
import { describe } from "@effect/vitest"
import { assertGenerated } from "../../docs/generated.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"
import { assertNone } from "../../support/assertions.ts"

const head = `/* oxlint-disable max-lines -- generated */
/**
 * The tables of the control plane, for Kysely. Generated from the migrated database by \`npm run docs\`.
 */
import type { Generated } from "kysely"
import * as Query from "./Query.ts"
`

/** The types that the drivers return. */
const typeOf: Readonly<Record<string, string>> = {
  bigint: "bigint",
  integer: "number",
  "double precision": "number",
  boolean: "boolean",
  text: "string",
  json: "unknown",
  jsonb: "unknown",
  interval: "unknown",
  bytea: "Uint8Array",
  "timestamp with time zone": "Date",
  "text[]": "ReadonlyArray<string>",
  "integer[]": "ReadonlyArray<number>",
  "bigint[]": "ReadonlyArray<bigint>"
}

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
  readonly isNullable: boolean
  readonly hasDefault: boolean
  /** The condition of a check constraint on this column alone. */
  readonly check: string | null
}

const columnType = ({ type, isNullable, hasDefault, check }: Column): string => {
  const values = check === null ? [] : [...check.matchAll(/'(\w+)'::text/g)].map(([, value]) => `"${value}"`)
  const value = values.length === 0 ? typeOf[type]! : values.join(" | ")
  const plain = isNullable && value !== "unknown" ? `${value} | null` : value
  return hasDefault ? `Generated<${plain}>` : plain
}

const textOf = (columns: ReadonlyArray<Column>): string => {
  const members = [...Map.groupBy(columns, ({ table }) => table)].map(
    ([table, own]) =>
      `  readonly "tributary.${table}": {\n${own.map((column) => `    readonly ${column.name}: ${columnType(column)}\n`).join("")}  }\n`
  )
  return `${head}\nexport interface ControlTables {\n${members.join("")}}\n\nexport const control = Query.k<ControlTables>()\n`
}

describe("the generated types in src/postgres/Tables.ts", () => {
  testWith(layerWarehouse)("match the migrated database", function* () {
    const columns = yield* sql.unsafe<Column>(
      `select c.relname as table, a.attname as name, format_type(a.atttypid, null) as type,
                not a.attnotnull as "isNullable", a.atthasdef or a.attidentity <> '' as "hasDefault",
                (select pg_get_constraintdef(k.oid) from pg_constraint k
                  where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum]
                    and pg_get_constraintdef(k.oid) ~ 'ARRAY') as check
           from pg_class c join pg_attribute a on a.attrelid = c.oid
          where c.relnamespace = 'tributary'::regnamespace and c.relkind in ('r', 'v') and a.attnum > 0 and not a.attisdropped
            -- Only effect/cluster uses its tables.
            and not starts_with(c.relname, 'cluster_')
          order by c.relname, a.attnum`
    )
    assertNone(columns, ({ type }) => !(type in typeOf))
    assertGenerated("src/postgres/Tables.ts", () => textOf(columns))
  })
})

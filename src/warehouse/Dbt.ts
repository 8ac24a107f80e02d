/**
 * The warehouse as dbt sources: every table of current records and every view, with columns, types, meanings and tests.
 *
 * Promise: every text comes from the catalogue, and a failing test has a cause. A test of Tributary's own promises
 * (keys, meta columns) fails with an error. A test of a promise that only the source can keep (sets of values,
 * references, the keys that people use) fails with a warning. It covers existing records, and a reference only
 * companies that have rows in the other table. The tests are dbt's own four, so that no package is needed. Freshness is
 * the time of the last read, not of the last change: a table without changes is not stale.
 *
 * Text that dbt's templates would interpret is marked as raw. The form is that of dbt 1.10.5 and later (`arguments`,
 * `loaded_at_query`).
 */
import * as Duration from "effect/Duration"
import type { Field } from "../catalogue/Field.ts"
import type { Basis, Resource } from "../catalogue/Resource.ts"
import { controlDataset } from "./Grants.ts"
import { identifier, literal, nameFor } from "./Identifier.ts"
import type { Model } from "./Model.ts"
import { type Column, type Datasets, type Table, tableOf } from "./Table.ts"

type Severity = "error" | "warn"

/** A test with its arguments; a test without arguments is its name. */
export type DbtTest =
  | "not_null"
  | {
      readonly [test in "unique" | "accepted_values" | "relationships"]?: {
        readonly name?: string
        readonly arguments: Readonly<Record<string, string | boolean | ReadonlyArray<string>>>
        readonly config: { readonly severity: Severity; readonly where?: string }
      }
    }

export interface DbtColumn {
  readonly name: string
  readonly description: string
  readonly data_type: string
  /** Whether the name has to be quoted; otherwise tests name the column without quotes. */
  readonly quote?: true
  readonly data_tests?: ReadonlyArray<DbtTest>
}

export interface DbtTable {
  readonly name: string
  /** The table's name in the database where it is another one. */
  readonly identifier?: string
  readonly description: string
  readonly config?: {
    readonly freshness: { readonly warn_after: { readonly count: number; readonly period: "minute" } }
    readonly loaded_at_query: string
  }
  readonly data_tests?: ReadonlyArray<DbtTest>
  readonly columns: ReadonlyArray<DbtColumn>
}

/** A source; its file begins with {@link heading}. */
export interface DbtSource {
  readonly name: string
  readonly description: string
  readonly schema: string
  readonly loader: "tributary"
  readonly tables: ReadonlyArray<DbtTable>
}

export interface DbtOptions {
  readonly resources: ReadonlyArray<Resource>
  /** Views; one whose tables are not all among the resources is left out. */
  readonly models: ReadonlyArray<Model>
  readonly datasets: Datasets & { readonly models: string }
  /** The freshness target of a resource. */
  readonly freshnessOf: (resource: string) => Duration.Duration
}

/** The comment lines at the beginning of a file. */
export const heading: ReadonlyArray<string> = [
  "Written by `tributary schema dbt`. Write it again after `tributary schema apply`; changes by hand are lost.",
  "For dbt 1.10.5 or later. The database is the one of the dbt target.",
  "Freshness is the start of the last complete run, of the company with the oldest one. dbt's role needs:",
  `  grant usage on schema ${controlDataset} to <role>; grant select on ${controlDataset}.freshness to <role>;`
]

const basisTexts: Readonly<Record<Basis, string>> = {
  documented: "Fields are the API's documents, field by field.",
  named: "The API's documents name it and say what it does; its fields are derived from the references to them.",
  inferred: "The API's documents do not describe it; it is here because another resource refers to it.",
  configured: "Known from the configuration only; its columns are inferred from the records."
}

/** A text that dbt's templates do not interpret. */
const raw = (text: string): string => (/\{[{%#]/.test(text) ? `{% raw %}${text}{% endraw %}` : text)

const existing = `"_deleted_at" is null`

/** `numeric(20,4)` of `numeric(20,4) not null`. */
const typeOf = ({ sqlType }: Pick<Column, "sqlType">): string => sqlType.replace(/ (?:not null|default).*$/, "")

/** All values of the meta columns. */
const metaValues: Readonly<Record<string, ReadonlyArray<string>>> = {
  _op: ["insert", "update", "delete"],
  _origin: ["scan", "webhook", "push"]
}

const isPlain = (name: string): boolean => /^[a-z_][a-z0-9_]*$/.test(name)

/** One text per company and value, since numbers and keys are unique only within a company. */
const ofCompany = (value: string): string => `("_company_id" || '-' || ${value})`

const acceptedValues = (values: ReadonlyArray<string>, isText: boolean, severity: Severity): DbtTest => ({
  accepted_values: {
    arguments: { values: values.map((value) => raw(value.replaceAll("'", "''"))), quote: isText },
    config: { severity, ...(severity === "warn" ? { where: existing } : {}) }
  }
})

const valuesTest = (field: Field | undefined): ReadonlyArray<DbtTest> => {
  if (field === undefined || field.values === null || !field.typed || field.inferred !== null) return []
  return [
    acceptedValues(
      field.values.map(({ value }) => String(value)),
      field.type._tag !== "integer",
      "warn"
    )
  ]
}

const columnOf = (column: Column, tests: ReadonlyArray<DbtTest>, isOurs: boolean): DbtColumn => ({
  name: column.name,
  description: raw(column.comment),
  data_type: typeOf(column),
  // A keyword of SQL can be a plain name, so that a column with tests is always quoted.
  ...(!isPlain(column.name) || (tests.length > 0 && !isOurs) ? { quote: true as const } : {}),
  ...(tests.length > 0 ? { data_tests: tests } : {})
})

/** The start of the last complete run, of the company with the oldest one; null without one. */
const loadedAt = ({ path }: Resource): string =>
  `select min(fresh_at) from ${identifier(controlDataset)}."freshness" where resource = ${literal(path)}`

/** The tests that name more than one column. */
const tableTests = (
  table: Table,
  tables: ReadonlyMap<string, Table>,
  named: (name: string) => string
): ReadonlyArray<DbtTest> => {
  const { resource, datasets } = table
  const column = (field: string): string => table.columns.find((one) => one.field === field)!.sql
  const tests: Array<DbtTest> = [
    {
      unique: {
        name: named(`${datasets.current}_${table.name}_one_row_per_id`),
        arguments: { column_name: ofCompany(`"id"`) },
        config: { severity: "error" }
      }
    }
  ]
  const { key } = resource
  if (key !== null && key.unique && resource.basis !== "configured") {
    const value = key.caseSensitive ? column(key.field) : `lower(${column(key.field)})`
    tests.push({
      unique: {
        name: named(`${datasets.current}_${table.name}_one_row_per_${key.field}`),
        arguments: { column_name: ofCompany(value) },
        config: { severity: "warn", where: `${existing} and ${column(key.field)} <> ''` }
      }
    })
  }
  for (const field of resource.fields) {
    const target = field.reference?.half === "id" ? tables.get(field.reference.resource) : undefined
    if (target === undefined || !field.typed || field.inferred !== null) continue
    tests.push({
      relationships: {
        name: named(`${datasets.current}_${table.name}_${field.name}_exists`),
        arguments: {
          column_name: ofCompany(column(field.name)),
          to: `source('${datasets.current}', '${target.resource.path}')`,
          field: ofCompany(`"id"`)
        },
        config: {
          severity: "warn",
          where: `${existing} and "_company_id" in (select "_company_id" from ${target.current})`
        }
      }
    })
  }
  return tests
}

const currentOf = ({ resources, datasets, freshnessOf }: DbtOptions): DbtSource => {
  const tables = new Map(resources.map((resource) => [resource.path, tableOf(resource, datasets)]))
  const used = new Set<string>()
  const named = (name: string): string => {
    const given = nameFor(name, used)
    used.add(given.toLowerCase())
    return given
  }
  return {
    name: datasets.current,
    description: "Records of the ERP as they are now, a row per company and number",
    schema: datasets.current,
    loader: "tributary",
    tables: [...tables.values()].map((table): DbtTable => {
      const { resource } = table
      return {
        name: resource.path,
        ...(table.name === resource.path ? {} : { identifier: table.name }),
        description: raw(`${resource.purpose}. ${basisTexts[resource.basis]}`),
        config: {
          freshness: {
            warn_after: {
              count: Math.max(1, Math.ceil(Duration.toMinutes(freshnessOf(resource.path)))),
              period: "minute"
            }
          },
          loaded_at_query: loadedAt(resource)
        },
        data_tests: tableTests(table, tables, named),
        columns: [
          {
            name: "_company_id",
            description: "the company whose record it is; the primary key is (_company_id, id)",
            data_type: "bigint",
            data_tests: ["not_null"]
          },
          ...table.columns.map((column) =>
            columnOf(
              column,
              column.name === "id" ? ["not_null"] : valuesTest(resource.field.get(column.field)),
              column.name === "id"
            )
          ),
          ...table.meta.map((column) => {
            const values = metaValues[column.name]
            const tests: ReadonlyArray<DbtTest> = [
              ...(column.sqlType.includes("not null") ? ["not_null" as const] : []),
              ...(values === undefined ? [] : [acceptedValues(values, true, "error")])
            ]
            return columnOf(column, tests, true)
          })
        ]
      }
    })
  }
}

const viewsOf = ({ resources, models, datasets }: DbtOptions): DbtSource => {
  const known = new Set(resources.map(({ path }) => path))
  return {
    name: datasets.models,
    description: "Views that answer questions about the records",
    schema: datasets.models,
    loader: "tributary",
    tables: models
      .filter((model) => model.resources.every((path) => known.has(path)))
      .map((model) => ({
        name: model.name,
        description: raw(model.comment),
        columns: model.columns.map(({ name, type, comment }) => ({
          name,
          description: raw(comment),
          data_type: type,
          ...(isPlain(name) ? {} : { quote: true as const })
        }))
      }))
  }
}

/** The sources of a warehouse: its current records, and its views when there are any. */
export const sourcesOf = (options: DbtOptions): ReadonlyArray<DbtSource> =>
  [currentOf(options), viewsOf(options)].filter(({ tables }) => tables.length > 0)

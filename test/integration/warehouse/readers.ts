/** The datasets of a warehouse, and a role that reads the rows of one company. */
import * as Effect from "effect/Effect"
import * as CompanyGrants from "../../../src/warehouse/CompanyGrants.ts"
import { controlDataset } from "../../../src/warehouse/Grants.ts"
import { asOfModelsDataset, modelOf, modelsDatasetDefault } from "../../../src/warehouse/Model.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { execute, sql } from "../../support/postgres.ts"

export const datasets = {
  ...datasetsDefault,
  models: modelsDatasetDefault,
  asOfModels: asOfModelsDataset,
  control: controlDataset
}

/** A view of the names of things on the day. */
export const namesModel = modelOf(
  "names",
  "-- Which names are there?\n--\n-- Columns:\n--   company_id bigint: company\n--   name text: name\n--   day date: day\n" +
    "select _company_id as company_id, name, {{as_of}} as day from {{things}} where _deleted_at is null\n"
)

/** Runs a statement as of a moment, in a transaction of its own. */
export const readAsOf = <Row extends object>(moment: string, statement: string, { mode = "", role = "none" } = {}) =>
  sql.withTransaction(
    sql`select set_config('tributary.as_of', ${moment}, true), set_config('tributary.as_of_mode', ${mode}, true)`.pipe(
      Effect.andThen(sql.unsafe(`set local role ${role}`)),
      Effect.andThen(sql.unsafe<Row>(statement))
    )
  )

/** Grants a role of this name, which ends with the scope. */
export const companyReader = (companyId: bigint, role: string) =>
  Effect.acquireRelease(
    Effect.forEach(CompanyGrants.statements(datasets, companyId, role), (statement) => execute(statement)),
    () => Effect.orDie(Effect.andThen(execute(`drop owned by ${role}`), execute(`drop role ${role}`)))
  )

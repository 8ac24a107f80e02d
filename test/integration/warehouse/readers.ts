/** The datasets of a warehouse, and a role that reads the rows of one company. */
import * as Effect from "effect/Effect"
import * as CompanyGrants from "../../../src/warehouse/CompanyGrants.ts"
import { controlDataset } from "../../../src/warehouse/Grants.ts"
import { asOfModelsDataset, modelsDatasetDefault } from "../../../src/warehouse/Model.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { execute } from "../../support/postgres.ts"

export const datasets = {
  ...datasetsDefault,
  models: modelsDatasetDefault,
  asOfModels: asOfModelsDataset,
  control: controlDataset
}

/** Grants a role of this name, which ends with the scope. */
export const companyReader = (companyId: bigint, role: string) =>
  Effect.acquireRelease(
    Effect.forEach(CompanyGrants.statements(datasets, companyId, role), (statement) => execute(statement)),
    () => Effect.orDie(Effect.andThen(execute(`drop owned by ${role}`), execute(`drop role ${role}`)))
  )

/** Companies that a source has identified. */
import * as SourceGuard from "../../src/sync/SourceGuard.ts"

/** Stores a company whose number in the warehouse is the one at the source. */
export const saveCompany = (name: string, companyId: bigint) =>
  SourceGuard.save(name, { companyId, sourceNumber: companyId }, null)

/** The companies whose requests are paused. */
import * as Effect from "effect/Effect"
import type { PauseReport } from "../../budget/PermitRule.ts"
import * as BudgetState from "../../budget/BudgetState.ts"
import { companyFingerprint } from "../../budget/TokenFingerprint.ts"
import type { Configuration } from "../../configuration/Configuration.ts"

export interface CompanyPause {
  readonly company: string
  readonly until: Date
  /** The answer that caused it; null where it was not recorded. */
  readonly by: PauseReport | null
}

/** The pauses of these companies, or of all that are configured. */
export const readPauses = (settings: Configuration, names: ReadonlyArray<string> | null) => {
  const companies = settings.companies
    .filter(({ name }) => names === null || names.includes(name))
    .map((one) => ({ name: one.name, fingerprint: companyFingerprint(one) }))
  return Effect.map(BudgetState.readBudgets(companies.map(({ fingerprint }) => fingerprint)), (states) => {
    const byFingerprint = new Map(states.map((state) => [state.fingerprint, state]))
    return companies.flatMap(({ fingerprint, name }): ReadonlyArray<CompanyPause> => {
      const state = byFingerprint.get(fingerprint)
      const until = state?.pausedUntil ?? null
      return until === null ? [] : [{ company: name, until, by: state?.pausedBy ?? null }]
    })
  })
}

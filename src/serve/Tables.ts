/**
 * The tables of all resources that events may name, as a sync creates them, and the privacy rules that they follow.
 *
 * Promise: the revision of the rules is known only while every table follows the rules of this process. When others have
 * replaced them, {@link make}'s `replaced` fails.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Company } from "../sync/Company.ts"
import { pending } from "../warehouse/PendingRules.ts"
import type { RulesChanged } from "../warehouse/RulesChanged.ts"
import * as TablePlan from "../warehouse/TablePlan.ts"

export const make = Effect.gen(function* () {
  const prepared = new WeakSet<Company>()
  const replaced = yield* Deferred.make<never, RulesChanged>()
  let revision: bigint | null = null
  const tablesOf = Effect.fnUntraced(function* (companies: ReadonlyArray<Company>) {
    const shared = yield* Effect.all(new Set(companies.map(({ tables }) => tables)))
    return [...new Map(shared.flatMap((one) => [...one])).values()]
  })
  const apply = Effect.fnUntraced(function* (companies: ReadonlyArray<Company>) {
    const plan = yield* TablePlan.applyAndLog(yield* tablesOf(companies))
    const older = plan.rules.find(({ isReplaced }) => isReplaced)
    if (older !== undefined) {
      yield* Deferred.fail(replaced, older)
      return null
    }
    for (const company of companies) prepared.add(company)
    return plan.rules.length === 0 ? plan.revision : null
  })
  return {
    /** Creates the tables of all companies. */
    create: (companies: ReadonlyArray<Company>) =>
      Effect.map(apply(companies), (found) => {
        revision = found ?? revision
      }),
    /** The revision of the rules at which every table followed those of this process. */
    rules: () => revision,
    /** Fails when others have replaced the rules of this process. */
    replaced: Deferred.await(replaced),
    /** Finds out whether the tables follow the rules, so that bodies are stored before the tables are prepared. */
    confirm: (companies: ReadonlyArray<Company>) =>
      Effect.ignore(
        Effect.map(Effect.flatMap(tablesOf(companies), pending), (found) => {
          if (found.rules.length === 0) ({ revision } = found)
        })
      ),
    /** Creates the tables of a company that is new, which tell nothing about the rules for those of others. */
    prepare: (company: Company) =>
      Effect.suspend(() => (prepared.has(company) ? Effect.void : Effect.asVoid(apply([company]))))
  }
})

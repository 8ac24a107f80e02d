/**
 * The budget of each token: whoever connects to a source gets it here.
 *
 * Promise: with a warehouse, every process on it shares the budget of a token, and within a process there is one line
 * to stand in. Without one (the default) a budget is of its process alone.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { type BudgetShape, fromPermitStore, make } from "./Budget.ts"
import * as PostgresPermitStore from "./PostgresPermitStore.ts"

/** Whose budget, and how large it is. */
export interface TokenBudget {
  readonly baseUrl: string
  readonly token: Redacted.Redacted
  /** What the source's limit is counted by: a token, or everything that comes to the address. */
  readonly scope: "token" | "install"
  /** Null for no limit but Retry-After. */
  readonly requestsPerMinute: number | null
  /** The longest hold that is waited for. */
  readonly heldMaxMs: number
}

export interface BudgetsShape {
  readonly of: (budget: TokenBudget) => Effect.Effect<BudgetShape>
}

export const Budgets = Context.Reference<BudgetsShape>("tributary/budget/Budgets", {
  defaultValue: () => ({ of: ({ requestsPerMinute, heldMaxMs }) => make(requestsPerMinute, { heldMaxMs }) })
})

/** Budgets that are shared through the warehouse. */
export const layerPostgres: Layer.Layer<never, never, SqlClient.SqlClient> = Layer.effect(
  Budgets,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const context = yield* Effect.context<Scope.Scope>()
    const made = new Map<string, BudgetShape>()
    return {
      of: Effect.fnUntraced(function* (budget: TokenBudget) {
        const fingerprint = PostgresPermitStore.fingerprintOf(budget.baseUrl, budget.token, budget.scope)
        const key = `${fingerprint} ${budget.requestsPerMinute} ${budget.heldMaxMs}`
        const known = made.get(key)
        if (known !== undefined) return known
        const ledger = PostgresPermitStore.make(sql, fingerprint, { perMinute: budget.requestsPerMinute })
        // It lives as long as the warehouse, whoever connected first.
        const shape = yield* Effect.provideContext(fromPermitStore(ledger, { heldMaxMs: budget.heldMaxMs }), context)
        made.set(key, shape)
        return shape
      })
    } satisfies BudgetsShape
  })
)

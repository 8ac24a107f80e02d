/**
 * The rate budgets of all tokens: a connector gets its budget here.
 *
 * Promise: with a warehouse, all processes on it share the budget of a token, and a process has one dispatcher for each.
 * Without a warehouse (the default, for `init` and `doctor`, which send a few requests) only Retry-After is honoured.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { type BudgetShape, fromPermitStore, makeUnlimited } from "./Budget.ts"
import * as PostgresPermitStore from "./PostgresPermitStore.ts"

/** The token and the size of its budget. */
export interface TokenBudget {
  readonly baseUrl: string
  readonly token: Redacted.Redacted
  /** The unit of the source's limit: each token, or the whole address. */
  readonly scope: "token" | "install"
  /** Null for no limit but Retry-After. */
  readonly requestsPerMinute: number | null
  /** The longest pause that a request waits for. */
  readonly pauseWaitMax: Duration.Duration
}

export interface BudgetsShape {
  readonly of: (budget: TokenBudget) => Effect.Effect<BudgetShape>
}

export const Budgets = Context.Reference<BudgetsShape>("tributary/budget/Budgets", {
  defaultValue: () => ({ of: ({ pauseWaitMax }) => makeUnlimited({ pauseWaitMax }) })
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
        const key = `${fingerprint} ${budget.requestsPerMinute} ${Duration.toMillis(budget.pauseWaitMax)}`
        const existing = made.get(key)
        if (existing !== undefined) return existing
        const store = PostgresPermitStore.make(sql, fingerprint, { perMinute: budget.requestsPerMinute })
        // The budget lives as long as the warehouse, not as long as the first connector.
        const shape = yield* Effect.provideContext(
          fromPermitStore(store, { pauseWaitMax: budget.pauseWaitMax }),
          context
        )
        made.set(key, shape)
        return shape
      })
    } satisfies BudgetsShape
  })
)

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
import * as RcMap from "effect/RcMap"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { type BudgetShape, fromPermitStore, makeOwn } from "./Budget.ts"
import * as PostgresPermitStore from "./PostgresPermitStore.ts"
import { fingerprintOf } from "./TokenFingerprint.ts"

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
  /** The budget, until the end of the scope. */
  readonly of: (budget: TokenBudget) => Effect.Effect<BudgetShape, never, Scope.Scope>
}

export const Budgets = Context.Reference<BudgetsShape>("tributary/budget/Budgets", {
  defaultValue: () => ({ of: ({ pauseWaitMax }) => makeOwn(null, { pauseWaitMax }) })
})

/** What tells two budgets apart. */
interface BudgetKey {
  readonly fingerprint: string
  readonly perMinute: number | null
  readonly pauseWaitMaxMs: number
}

/** Budgets that are shared through the warehouse. A budget lives as long as the last of its connectors. */
export const layerPostgres: Layer.Layer<never, never, SqlClient.SqlClient> = Layer.effect(
  Budgets,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const budgets = yield* RcMap.make({
      lookup: ({ fingerprint, perMinute, pauseWaitMaxMs }: BudgetKey) =>
        fromPermitStore(PostgresPermitStore.make(sql, fingerprint, perMinute), {
          pauseWaitMax: Duration.millis(pauseWaitMaxMs)
        })
    })
    return {
      of: ({ baseUrl, token, scope, requestsPerMinute, pauseWaitMax }) =>
        RcMap.get(budgets, {
          fingerprint: fingerprintOf(baseUrl, token, scope),
          perMinute: requestsPerMinute,
          pauseWaitMaxMs: Duration.toMillis(pauseWaitMax)
        })
    } satisfies BudgetsShape
  })
)

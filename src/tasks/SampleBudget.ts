/**
 * The use of each token's budget over the last hours, for a chart: `tributary.budget_usage`.
 *
 * Promise: one row for each budget every fifteen seconds of the warehouse's clock, however many processes sample. A row
 * counts what the budget counts: the permits of the last minute. A budget without a limit counts no permits. A budget
 * without a request for ten minutes has no rows unless it is paused: thousands of idle companies cost nothing.
 */
import * as Effect from "effect/Effect"
import { readBudgets } from "../budget/BudgetState.ts"
import { readNowMs } from "../postgres/Now.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import { control } from "../postgres/Tables.ts"

const samples = (fingerprint: string, sinceMs: number) =>
  control
    .selectFrom("tributary.budget_usage")
    // `used`: requests of the last minute. `allowed` and `configured` are the limits at that time; null without one.
    .select(["at", "used", "allowed", "configured", "is_paused as isPaused"])
    // Answers 429 of the source so far.
    .select((of) => of.cast<number>("rate_limited_count", "float8").as("refusals"))
    .where("fingerprint", "=", fingerprint)
    .where("at", ">=", Query.nowPlus(-sinceMs))
    .orderBy("at")

export type Sample = Query.RowOf<typeof samples>

/** The samples of this period until now, oldest first. */
export const read = (fingerprint: string, sinceMs: number): Sql.Query<ReadonlyArray<Sample>> =>
  Query.run(samples(fingerprint, sinceMs))

const everyMs = 15_000
const idleMs = 600_000

/** Writes the sample of this quarter of a minute unless it exists; returns the time to the next one. */
export const sample = Effect.fnUntraced(function* (fingerprints: ReadonlyArray<string>) {
  const now = yield* readNowMs
  const at = new Date(Math.floor(now / everyMs) * everyMs)
  const budgets = (yield* readBudgets(fingerprints, idleMs)).map((budget) => ({
    fingerprint: budget.fingerprint,
    at,
    used: budget.used,
    allowed: budget.allowed,
    configured: budget.configured,
    rate_limited_count: BigInt(budget.refusals),
    is_paused: budget.pausedUntil !== null
  }))
  if (budgets.length > 0) {
    yield* Query.run(
      control
        .insertInto("tributary.budget_usage")
        .values(budgets)
        .onConflict((conflict) => conflict.doNothing())
    )
  }
  return at.getTime() + everyMs - now
})

/** Samples the budgets of the time until it is interrupted. */
export const sampleBudget = (fingerprints: () => ReadonlyArray<string>): Sql.Query<never> =>
  Effect.forever(
    Effect.flatMap(
      Effect.suspend(() => sample(fingerprints())),
      (nextMs) => Effect.sleep(Math.ceil(nextMs))
    )
  )

/** The reasons for which a request gets no permit. */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import type { PauseReport } from "./PermitRule.ts"

/** The permit store did not answer for a while. Without a permit no request is sent. May be tried again. */
export class BudgetUnavailable extends Data.TaggedError("BudgetUnavailable")<{ readonly detail: string }> {
  override get message(): string {
    return `no permit to send, since the warehouse that keeps the request budget does not answer (${this.detail})`
  }
}

/** A pause is in force that is longer than the caller waits. */
export class BudgetPaused extends Data.TaggedError("BudgetPaused")<{
  readonly retryAfter: Duration.Duration
  readonly by: PauseReport | null
}> {
  override get message(): string {
    return `the source requested a pause that lasts another ${Math.ceil(Duration.toSeconds(this.retryAfter))} s`
  }
}

export type BudgetError = BudgetUnavailable | BudgetPaused

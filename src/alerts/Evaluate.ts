/**
 * The evaluation of alert conditions, which one process makes.
 *
 * Promise: one transaction reads the conditions that hold, changes their stored state and writes the messages about it. A
 * killed process leaves the state and the messages of its last evaluation: the next one repeats nothing and forgets
 * nothing. Evaluations of several processes run one after another. A condition has one message of each event and level on
 * a route. An evaluation that cannot read a condition changes nothing.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as ConditionStore from "./ConditionStore.ts"
import * as Observations from "./Observations.ts"
import type { AlertConfiguration } from "./Route.ts"
import { evaluate } from "./Transitions.ts"
import { repeatResting } from "../time/Resting.ts"

export interface Observed<E, R> {
  /** The companies of `serve` that are not paused. */
  readonly companies: () => ReadonlyArray<Observations.ObservedCompany>
  /** The problem of the warehouse's disk; null without one, and where its free space is not known. */
  readonly disk: Effect.Effect<Observations.DiskProblem | null, E, R>
}

const everyMs = 15_000
/** The rest after an evaluation, as a multiple of its time. */
const restShare = 20

/** One evaluation. Answers the number of messages that it wrote. */
export const evaluateOnce = <E, R>(settings: AlertConfiguration, { companies, disk }: Observed<E, R>) =>
  transaction(
    Effect.gen(function* () {
      const { evaluatedAt, now } = yield* ConditionStore.begin
      const silences = yield* ConditionStore.readSilences
      if (silences.length > 0) yield* ConditionStore.withdrawSilenced
      const rows = yield* ConditionStore.readConditions
      const observations = yield* Observations.read(companies(), disk, now)
      const changes = evaluate(
        {
          now,
          isAfterBreak: evaluatedAt === null || now.getTime() - evaluatedAt.getTime() > ConditionStore.breakMs,
          conditions: rows,
          observations,
          silences,
          announced: ConditionStore.announcedOf(rows)
        },
        settings
      )
      yield* ConditionStore.save(changes.stored, changes.messages, changes.ended, now)
      return changes.messages.length
    })
  )

/** Evaluates until it is interrupted. */
export const evaluateForever = <E, R>(
  settings: AlertConfiguration,
  observed: Observed<E, R>
): Effect.Effect<never, E | DatabaseError, R | SqlClient.SqlClient> =>
  repeatResting(evaluateOnce(settings, observed), () => ({ times: restShare, leastMs: everyMs }))

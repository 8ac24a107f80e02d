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
import type { AlertConfiguration } from "./Route.ts"
import { evaluate, type Observation } from "./Transitions.ts"
import * as Problems from "../status/Problems.ts"
import { alertKinds } from "../status/ProblemKinds.ts"
import { repeatResting } from "../time/Resting.ts"

/** The names of the companies of `serve` that are not paused. */
export type ObservedCompanies = () => ReadonlyArray<string>

const observationOf = (problem: Problems.Problem): Observation => ({
  ...problem,
  company: problem.company ?? "",
  what: problem.subject === "" ? problem.what : `${problem.subject}: ${Problems.sentenceOf(problem)}`,
  remedy: Problems.stepOf(problem)
})

const everyMs = 15_000
/** The rest after an evaluation, as a multiple of its time. */
const restShare = 20

/** One evaluation. Answers the number of messages that it wrote. */
export const evaluateOnce = (settings: AlertConfiguration, companies: ObservedCompanies) =>
  transaction(
    Effect.gen(function* () {
      const { evaluatedAt, now } = yield* ConditionStore.begin
      const silences = yield* ConditionStore.readSilences
      if (silences.length > 0) yield* ConditionStore.withdrawSilenced
      const rows = yield* ConditionStore.readConditions
      const problems = yield* Problems.read(companies())
      const observations = problems.filter(({ kind }) => alertKinds.includes(kind)).map(observationOf)
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
export const evaluateForever = (
  settings: AlertConfiguration,
  companies: ObservedCompanies
): Effect.Effect<never, DatabaseError, SqlClient.SqlClient> =>
  repeatResting(evaluateOnce(settings, companies), () => ({ times: restShare, leastMs: everyMs }))

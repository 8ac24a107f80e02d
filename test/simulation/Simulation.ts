/**
 * The simulation of one seed: a safety phase with faults, healing, a few more runs, and the final checks. The plan says
 * whether syncs run, webhooks beside them or alone, or pushes.
 *
 * Promise: the outcome follows from the seed, the options and the code alone. Two runs have the same trace.
 */
import { Stalled } from "./kernel/Kernel.ts"
import type { Plan, PlanOptions } from "./Plan.ts"
import { planOf } from "./PushPlan.ts"
import { withRules } from "./RulesPlan.ts"
import { pushes } from "./PushPart.ts"
import { syncs } from "./SyncPart.ts"
import { type Bench, Objection, openWorld } from "./World.ts"

export interface Failure {
  readonly checker: string
  readonly holds: string
  readonly what: string
}

export interface Result {
  readonly seed: number
  readonly hash: string
  readonly failure: Failure | null
  /** Requests, statements, writes and faults. */
  readonly steps: number
  readonly kills: number
  readonly fired: ReadonlyMap<string, number>
  readonly plan: Plan
  readonly lines: ReadonlyArray<string>
}

const failureOf = (error: unknown): Failure => {
  if (error instanceof Objection)
    return { checker: error.checker.name, holds: error.checker.holds, what: error.message }
  if (error instanceof Stalled)
    return { checker: "lively", holds: "I12: after healing, everything finishes", what: error.message }
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { checker: "simulation", holds: "the simulation itself does not fail", what }
}

export const simulate = async (
  bench: Bench,
  seed: number,
  options: PlanOptions = {},
  keep = false
): Promise<Result> => {
  await bench.clear()
  const drawn = withRules(planOf(seed, options))
  const world = openWorld(bench, drawn, keep)
  const { kernel, trace, fired, connections } = world
  const { pushing } = drawn
  const part = pushing === null ? syncs(world) : pushes(world, { ...drawn, pushing })
  let failure: Failure | null = null
  try {
    await part.run()
  } catch (error) {
    failure = failureOf(error)
    trace.event(kernel.now, "", `OBJECTION of ${failure.checker}: ${failure.what}`)
  }
  await bench.sessions.takeAllBack()
  if (drawn.later.rules.length > 0) await bench.drop(drawn.resources)
  const { steps, kills } = part.end()
  const faults = [...fired.values()].reduce((sum, count) => sum + count, 0)
  return {
    seed,
    hash: trace.hash(),
    failure,
    steps: steps + connections.statements + faults,
    kills,
    fired,
    plan: drawn,
    lines: trace.lines
  }
}

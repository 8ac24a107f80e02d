/** A named situation of the service that clients meet rarely: a small program over the store and the control calls. */
import { ControlError } from "../control/Input.ts"
import type { World } from "../World.ts"
import { closedPeriod } from "./closedPeriod.ts"
import { lateRows } from "./lateRows.ts"
import { monthEnd } from "./monthEnd.ts"
import { rateLimitStorm } from "./rateLimitStorm.ts"
import { restoredBackup } from "./restoredBackup.ts"
import { ties } from "./ties.ts"
import { webhookOutage } from "./webhookOutage.ts"

export interface ScenarioInput {
  /** The company whose records change. */
  readonly company: number
  /** How many records or requests; each scenario has its default. */
  readonly count: number
  /** How long, in hours; each scenario has its default. */
  readonly hours: number
}

export interface Scenario {
  readonly name: string
  /** What changes, and what a client must therefore do. */
  readonly description: string
  /** The members of the input that it takes, with their defaults. */
  readonly defaults: Partial<ScenarioInput>
  /** Changes the world; returns what changed. */
  readonly run: (world: World, input: ScenarioInput) => Readonly<Record<string, unknown>>
}

/** All scenarios, in the order of their names. */
export const scenarios: ReadonlyArray<Scenario> = [
  closedPeriod,
  lateRows,
  monthEnd,
  rateLimitStorm,
  restoredBackup,
  ties,
  webhookOutage
]

/** Runs a scenario; throws a {@link ControlError} when it does not exist or does not take the input. */
export const runScenario = (
  world: World,
  name: string,
  input: Partial<ScenarioInput>
): Readonly<Record<string, unknown>> => {
  const scenario = scenarios.find((one) => one.name === name)
  if (scenario === undefined) {
    throw new ControlError(`there is no scenario ${name}; there are: ${scenarios.map((one) => one.name).join(", ")}`)
  }
  const { defaults, run } = scenario
  const unknown = Object.keys(input).find((member) => !(member in defaults))
  if (unknown !== undefined) {
    throw new ControlError(`${name} takes no ${unknown}; it takes: ${Object.keys(defaults).join(", ")}`)
  }
  return run(world, { company: 1, count: 1, hours: 1, ...defaults, ...input })
}

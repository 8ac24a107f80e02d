/** The scenarios by name. */
import { ApiError } from "../ApiError.ts"
import { ControlError } from "../control/Input.ts"
import type { World } from "../World.ts"
import { closedPeriod } from "./closedPeriod.ts"
import { lateRows } from "./lateRows.ts"
import { monthEnd } from "./monthEnd.ts"
import { rateLimitStorm } from "./rateLimitStorm.ts"
import { restoredBackup } from "./restoredBackup.ts"
import type { Scenario, ScenarioInput } from "./Scenario.ts"
import { ties } from "./ties.ts"
import { webhookOutage } from "./webhookOutage.ts"

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

/** Runs a scenario; throws a {@link ControlError} when it does not exist, does not take the input, or meets a rule. */
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
  try {
    return run(world, { company: 1, count: 1, hours: 1, ...defaults, ...input })
  } catch (error) {
    if (error instanceof ApiError) throw new ControlError(`${name} cannot run: ${error.message}`)
    throw error
  }
}

/** A named situation of the service that clients meet rarely: a small program over the store and the control calls. */
import type { World } from "../World.ts"

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

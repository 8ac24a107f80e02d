/** The messages between `run.ts` and its worker processes. */
import type { FaultClass, PlanOptions } from "./Plan.ts"
import type { Failure } from "./Simulation.ts"

export interface Job {
  readonly seed: number
  readonly options: PlanOptions
  readonly keep: boolean
}

export interface Answer {
  readonly seed: number
  readonly hash: string
  readonly failure: Failure | null
  readonly steps: number
  readonly kills: number
  readonly fired: ReadonlyArray<readonly [string, number]>
  readonly on: ReadonlyArray<FaultClass>
  readonly drawn: string
  readonly lines: ReadonlyArray<string>
  /** An error of the simulation itself. */
  readonly defect: string | null
}

/** The three initial states of a server. */
import { microsPerDay } from "../time.ts"
import { demo } from "./demo.ts"
import { installShared } from "./install.ts"
import { scale } from "./scale.ts"
import type { SeedTarget } from "./SeedTarget.ts"

export type DataKind = "empty" | "demo" | "scale"

export interface SeedOptions {
  readonly data: DataKind
  /** Invoice lines of `scale`. */
  readonly rows: number
  readonly seed: number
}

/** The install is older than all of its data. */
const installedDaysAgo = 400

export const seed = (target: SeedTarget, { data, rows, seed }: SeedOptions): void => {
  target.clock.elsewhen(() => {
    target.clock.advance(-installedDaysAgo * microsPerDay)
    installShared(target)
  })
  if (data === "demo") demo(target, seed)
  if (data === "scale") scale(target, rows, seed)
}

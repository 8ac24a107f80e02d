/** The three known states that a server can begin in. */
import { microsPerDay } from "../time.ts"
import type { World, WorldData } from "../World.ts"
import { demo } from "./demo.ts"
import { installShared } from "./install.ts"
import { scale } from "./scale.ts"

/** The install is older than anything that is done with it. */
const installedDaysAgo = 400

export const seed = (world: World, { data, rows, seed }: WorldData): void => {
  world.clock.elsewhen(() => {
    world.clock.advance(-installedDaysAgo * microsPerDay)
    installShared(world)
  })
  if (data === "demo") demo(world, seed)
  if (data === "scale") scale(world, rows, seed)
}

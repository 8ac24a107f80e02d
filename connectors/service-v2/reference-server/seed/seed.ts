/** The three known states that a server can begin in. */
import type { World, WorldData } from "../World.ts"
import { demo } from "./demo.ts"
import { installShared } from "./install.ts"
import { scale } from "./scale.ts"

export const seed = (world: World, { data, rows, seed }: WorldData): void => {
  installShared(world)
  if (data === "demo") demo(world, seed)
  if (data === "scale") scale(world, rows, seed)
}

/** More rows of one instant than a page holds. */
import { printInstant } from "../time.ts"
import { insertCustomers } from "./lateRows.ts"
import type { Scenario } from "./Scenario.ts"

export const ties: Scenario = {
  name: "ties",
  description:
    "Inserts customers that all have the same lastchangedate, more than a page holds. A client that continues after a page by the time alone loses the rest or reads the page for ever: the cursor also needs the id.",
  defaults: { company: 1, count: 600 },
  run: (world, { company, count }) => {
    const at = world.clock.now()
    const ids = insertCustomers(world, company, "TIE", count, at)
    return { resource: "customers", firstId: ids[0], lastId: ids.at(-1), count, at: printInstant(at) }
  }
}

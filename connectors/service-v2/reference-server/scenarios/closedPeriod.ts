/** The books are closed through the end of the month before. */
import { changeCompany } from "../control/companies.ts"
import { addDays, printDay } from "../time.ts"
import type { Scenario } from "./Scenario.ts"

export const closedPeriod: Scenario = {
  name: "closed-period",
  description:
    "Closes the ledger through the last day of the month before. A posting that is dated there answers 422 period_closed: a client dates it later, or leaves it to a person.",
  defaults: { company: 1 },
  run: (world, { company }) => {
    const day = printDay(world.clock.now())
    const { closedThrough } = changeCompany(world, company, { closedThrough: addDays(`${day.slice(0, 7)}-01`, -1) })
    return { company, closedThrough }
  }
}

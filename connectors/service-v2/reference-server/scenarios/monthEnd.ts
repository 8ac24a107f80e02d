/** The last minute of a month: many postings at once, then the period is closed. */
import { changeCompany } from "../control/companies.ts"
import { ControlError } from "../control/Input.ts"
import { create, special } from "../rules/operations.ts"
import { ensureCompany } from "../seed/install.ts"
import { addDays, microsPerSecond, printDay, printInstant, readDay } from "../time.ts"
import type { World } from "../World.ts"
import type { Scenario } from "./Scenario.ts"

/** The last minute of the present month begins then, in microseconds. */
const lastMinute = (now: number): number => {
  const day = printDay(now)
  const nextMonth = addDays(`${day.slice(0, 7)}-28`, 4).slice(0, 7)
  return readDay(`${nextMonth}-01`)! - 60 * microsPerSecond
}

/** Invoices through the rules, each posted. */
const postInvoices = (world: World, company: number, count: number): ReadonlyArray<number> => {
  const scopes = new Set(world.store.catalogue.areas.map(({ name }) => `${name}:write`))
  const context = world.context(company, 0, scopes)
  const resource = (path: string) => context.store.resource(path)
  const code = `ME-${String(world.store.draw(`${company}/scenarios/ME`)).padStart(5, "0")}`
  const customer = create(context, resource("customers"), { customercode: code, name: "Month end" }).version
  return Array.from({ length: count }, (_, index) => {
    const lines = [{ description: "Work of the month", quantity: "1", price: `${100 + index}.00` }]
    const { version } = create(context, resource("invoices"), { customerid: customer.id, lines })
    special(context, version, context.rules.get("invoices")!.specials!["post"]!, undefined)
    return version.id
  })
}

export const monthEnd: Scenario = {
  name: "month-end",
  description:
    "Moves the clock to the last minute of the month, posts many invoices at once, which fires their events, and closes the ledger through that day. A client meets a burst of changes in many resources, and its late postings answer 422 period_closed.",
  defaults: { company: 1, count: 40 },
  run: (world, { company, count }) => {
    const at = Math.max(world.clock.now(), lastMinute(world.clock.now()))
    const day = printDay(at)
    const closed = world.settingsOf(company).closedThrough
    if (closed !== null && closed >= day) {
      throw new ControlError(`the ledger of company ${company} is closed through ${closed}: move the clock beyond it`)
    }
    world.clock.set(at)
    world.events.rebase()
    ensureCompany(world, company)
    const ids = world.events.audibly(() => postInvoices(world, company, count))
    const { closedThrough } = changeCompany(world, company, { closedThrough: day })
    return { now: printInstant(at), resource: "invoices", firstId: ids[0], lastId: ids.at(-1), count, closedThrough }
  }
}

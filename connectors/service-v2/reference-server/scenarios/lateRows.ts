/** Rows that become visible after a later synced_through was handed out. */
import { isObject } from "../json.ts"
import { putRecords } from "../control/records.ts"
import { microsPerSecond, printInstant } from "../time.ts"
import type { World } from "../World.ts"
import type { Scenario } from "./Scenario.ts"

const lateSeconds = 60

/** Inserts customers that changed at this time; returns their ids. */
export const insertCustomers = (
  world: World,
  company: number,
  prefix: string,
  count: number,
  at: number
): ReadonlyArray<number> => {
  const records = Array.from({ length: count }, () => {
    const code = `${prefix}-${String(world.store.draw(`${company}/scenarios/${prefix}`)).padStart(5, "0")}`
    return { customercode: code, name: `Customer ${code}` }
  })
  const stored = putRecords(world, { company, resource: "customers", records, at: printInstant(at) })
  const parsed = JSON.parse(stored) as { readonly records: ReadonlyArray<unknown> }
  return parsed.records.filter(isObject).map(({ id }) => Number(id))
}

export const lateRows: Scenario = {
  name: "late-rows",
  description: `Inserts customers whose lastchangedate is ${lateSeconds} seconds ago, as a transaction that was open for so long does. A client that continues exactly at its last synced_through never reads them: it must overlap its reads, and compare with a full read.`,
  defaults: { company: 1, count: 5 },
  run: (world, { company, count }) => {
    const at = world.clock.now() - lateSeconds * microsPerSecond
    return { resource: "customers", ids: insertCustomers(world, company, "LATE", count, at), at: printInstant(at) }
  }
}

/** A service that was restored from a backup: its newest records are gone, and their ids are given again. */
import { ensureCompany } from "../seed/install.ts"
import type { Change, StoreState } from "../store/Store.ts"
import { indexedFields } from "../store/Store.ts"
import { Table } from "../store/Table.ts"
import type { TableKey, Version } from "../store/Table.ts"
import { microsPerSecond, printInstant } from "../time.ts"
import { insertCustomers } from "./lateRows.ts"
import type { Scenario } from "./Scenario.ts"
import type { World } from "../World.ts"

/** Users stay, because tokens belong to them. */
const keptResource = "users"

/** The content of a store without the changes after a time. Sequences of numbers are not set back. */
const before = ({ store }: World, at: number): StoreState => {
  const state = store.state()
  const records = new Map<string, { readonly key: TableKey; readonly current: Map<number, Version> }>()
  const nextIds = new Map<string, number>()
  const history: Array<Change> = []
  for (const change of state.history) {
    const { table: key, id } = change.version
    const { path } = key.resource
    if (change.at > at && path !== keptResource) continue
    history.push(change)
    nextIds.set(path, Math.max(nextIds.get(path) ?? 1, id + 1))
    const name = `${key.company} ${path}`
    let table = records.get(name)
    if (table === undefined) records.set(name, (table = { key, current: new Map() }))
    if (change.op === "delete") table.current.delete(id)
    else table.current.set(id, change.version)
  }
  const indexed = indexedFields(store.catalogue)
  const tables = [...records.values()].map(({ key, current }) =>
    Table.of(key, indexed.get(key.resource.path) ?? [], [...current.values()])
  )
  return { ...state, tables, history, nextIds, seq: history.at(-1)?.seq ?? 0 }
}

export const restoredBackup: Scenario = {
  name: "restored-backup",
  description:
    "Undoes every change of the last hours, of all companies, and sets the ids back; then inserts customers, which get ids of customers that are gone. Changed records are again as they were, with their old lastchangedate. A client that reads changes only keeps what no longer exists and mixes two records of one id: it must compare with a full read. Users, tokens and subscriptions stay.",
  defaults: { company: 1, hours: 24, count: 3 },
  run: (world, { company, hours, count }) => {
    const at = world.clock.now() - Math.round(hours * 3600 * microsPerSecond)
    const changes = world.store.history.length
    world.replaceStore(before(world, at))
    const undone = changes - world.store.history.length
    ensureCompany(world, company)
    const ids = insertCustomers(world, company, "NEW", count, world.clock.now())
    return { to: printInstant(at), undone, resource: "customers", ids }
  }
}

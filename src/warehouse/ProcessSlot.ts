/**
 * The number of a process of `tributary serve` among those on its warehouse: the lowest that no live process has.
 *
 * It is an advisory lock on the lock session of the process (`postgres/SessionLocks.ts`), so that another process can tell
 * this session from that of a command.
 */
import * as Effect from "effect/Effect"
import { Database } from "../postgres/Database.ts"
import * as LaneLock from "./LaneLock.ts"

const prefix = "tributary:process:"
/** More processes have no number that {@link holdersSql} finds. */
const slotsMax = 1_024

/** The number of this process, until the end of the scope. */
export const acquire = Effect.gen(function* () {
  const { locks } = yield* Database
  for (let slot = 0; ; slot += 1) if (yield* locks.tryLock(`${prefix}${slot}`)) return slot
})

/** SQL: the lock sessions of processes of serve. */
export const holdersSql = LaneLock.holdersSql(
  `any (array(select hashtextextended('${prefix}' || slot, 0) from generate_series(0, ${slotsMax - 1}) slot))`
)

/** The parts of the server that seeding writes to. */
import type { Context } from "../rules/Rules.ts"
import type { ServerClock } from "../ServerClock.ts"
import type { Store } from "../store/Store.ts"

export interface SeedTarget {
  readonly clock: ServerClock
  readonly store: Store
  readonly context: (company: number, userId: number, scopes: ReadonlySet<string>) => Context
}

/** The simulated business of one company: writes through the rules, each at its own time. */
import type { Random } from "../random.ts"
import { cancel, create, special, update } from "../rules/operations.ts"
import type { Context } from "../rules/Rules.ts"
import type { ServerClock } from "../ServerClock.ts"
import type { Version } from "../store/Table.ts"
import { microsPerDay, microsPerSecond } from "../time.ts"

const microsPerHour = 3600 * microsPerSecond

/** A write planned for a time. */
interface PlannedWrite {
  readonly at: number
  readonly run: () => void
}

export class Business {
  readonly clock: ServerClock
  readonly context: Context
  readonly chance: Random
  readonly end: number
  private readonly planned: Array<PlannedWrite> = []

  constructor(clock: ServerClock, context: Context, chance: Random, end: number) {
    this.clock = clock
    this.context = context
    this.chance = chance
    this.end = end
  }

  /** Plans a write; one after the present never runs. */
  plan(at: number, run: () => void): void {
    if (at < this.end) this.planned.push({ at, run })
  }

  /** Runs the planned writes in the order of their times, with the clock at each time. */
  run(): void {
    for (;;) {
      let next = 0
      for (let index = 1; index < this.planned.length; index++) {
        if (this.planned[index]!.at < this.planned[next]!.at) next = index
      }
      const [write] = this.planned.splice(next, 1)
      if (write === undefined) return
      this.clock.set(write.at)
      write.run()
    }
  }

  later(daysLeast: number, daysMost: number): number {
    const days = this.chance.integer(daysLeast * 24, daysMost * 24) / 24
    return this.clock.now() + Math.floor(days * microsPerDay) + this.chance.integer(0, microsPerHour)
  }

  make(path: string, body: Readonly<Record<string, unknown>>): Version {
    return create(this.context, this.context.store.resource(path), body).version
  }

  /** The current version of the record. */
  fresh({ table, id }: Version): Version {
    return this.context.store.table(table.company, table.resource.path).get(id)!
  }

  change(version: Version, body: Readonly<Record<string, unknown>>): void {
    update(
      this.context,
      version.table.resource,
      body,
      () => this.fresh(version),
      () => {}
    )
  }

  cancel(version: Version): void {
    cancel(this.context, this.fresh(version))
  }

  special(version: Version, name: string): Version {
    const rule = this.context.rules.get(version.table.resource.path)!.specials![name]!
    const outcome = special(this.context, this.fresh(version), rule, undefined)
    if ("kind" in outcome) throw new Error(`${name} writes nothing`)
    return outcome.version
  }

  all(path: string): ReadonlyArray<Version> {
    return [...this.context.store.table(this.context.company, path).all()]
  }
}

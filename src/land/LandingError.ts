/** Reasons why a resource cannot be locked, or a landing cannot be written. */
import * as Data from "effect/Data"
import type { DatabaseError } from "../postgres/DatabaseError.ts"

/** Another run has acquired the resource; this one must stop and has written nothing since. */
export class FenceLost extends Data.TaggedError("FenceLost")<{
  readonly resource: string
  readonly fence: bigint
}> {
  override get message(): string {
    return `${this.resource}: another run took over (this one had fence ${this.fence}); nothing more was written`
  }
}

/** The table has columns that this process does not know; what it would write could lose their values. */
export class TableChanged extends Data.TaggedError("TableChanged")<{ readonly resource: string }> {
  override get message(): string {
    return `${this.resource}: another process has just added columns to the table`
  }
}

/** The table was replaced while a run wrote into it; what was landed before is not in it. */
export class TableReplaced extends Data.TaggedError("TableReplaced")<{
  readonly resource: string
}> {
  override get message(): string {
    return `${this.resource}: its table was dropped, truncated or restored while the run was landing into it`
  }
}

/** The warehouse's clock was set back or forward while the run read: the times of its reads are unknown. */
export class WarehouseClockStepped extends Data.TaggedError("WarehouseClockStepped")<{
  readonly resource: string
  /** Negative: set back. */
  readonly byMs: number
}> {
  override get message(): string {
    const direction = this.byMs < 0 ? "back" : "forward"
    const seconds = Math.round(Math.abs(this.byMs) / 1000)
    return `${this.resource}: the warehouse's clock was set ${direction} by ${seconds} s while the run read`
  }
}

/** Another process syncs the same resource right now. */
export class AlreadyRunning extends Data.TaggedError("AlreadyRunning")<{ readonly resource: string }> {
  override get message(): string {
    return `${this.resource}: another process is syncing it right now; wait for it, or stop it, and run again`
  }
}

export type LandingError = DatabaseError | FenceLost | TableReplaced | WarehouseClockStepped

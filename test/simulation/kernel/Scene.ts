/** What every part of a simulated world shares: its virtual time, the plan, the trace, and the count of faults. */
import type { Plan } from "../Plan.ts"
import type { Kernel } from "./Kernel.ts"
import type { Trace } from "./Trace.ts"

export interface Scene<P extends Plan = Plan> {
  readonly kernel: Kernel
  readonly drawn: P
  readonly trace: Trace
  /** Counts a fault. */
  readonly fired: (what: string) => void
}

export class Actor<P extends Plan = Plan> {
  protected readonly kernel: Kernel
  protected readonly drawn: P
  protected readonly fired: (what: string) => void
  private readonly trace: Trace

  constructor({ kernel, drawn, trace, fired }: Scene<P>) {
    this.kernel = kernel
    this.drawn = drawn
    this.trace = trace
    this.fired = fired
  }

  /** Adds an event to the trace. */
  protected log(who: string, what: string): void {
    this.trace.event(this.kernel.now, who, what)
  }

  /** Counts a fault, and adds it to the trace with what it struck. */
  protected strikes(who: string, what: string, struck = ""): void {
    this.log(who, `! ${what}${struck}`)
    this.fired(what)
  }
}

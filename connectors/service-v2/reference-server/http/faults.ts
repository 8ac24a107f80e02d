/**
 * Faults that the control plane requests.
 *
 * Promise: which request a fault hits depends only on the rules, the seed and the order of requests. `status`, `html`
 * and `garbage` answer instead of the service: the work is not done. `reset` closes the connection before the work,
 * `delay` waits before it. `dropResponse`, `truncate` and `slowBody` do the work and damage the answer.
 */
import { random } from "../random.ts"
import type { Random } from "../random.ts"

export const faultKinds = [
  "status",
  "reset",
  "delay",
  "truncate",
  "dropResponse",
  "html",
  "garbage",
  "slowBody"
] as const
export type FaultKind = (typeof faultKinds)[number]

/** The fault of an answer, or of its request, on the wire. */
export interface WireFault {
  readonly kind: "reset" | "delay" | "truncate" | "dropResponse" | "slowBody"
  readonly ms: number
  readonly bytes: number | null
}

export interface Fault {
  readonly kind: FaultKind
  readonly method: string | null
  readonly path: RegExp | null
  readonly after: number
  readonly times: number | null
  readonly rate: number
  readonly status: number | null
  readonly code: string | null
  readonly headers: Readonly<Record<string, string>> | null
  readonly body: string | null
  readonly ms: number
  readonly bytes: number | null
}

export interface Armed {
  readonly fault: Fault
  /** Matching requests so far. */
  seen: number
  /** Uses so far. */
  fired: number
}

export interface FaultsState {
  readonly armed: ReadonlyArray<Readonly<Armed>>
  /** The seed of the rest of the random numbers. */
  readonly random: number
}

export class Faults {
  private armed: ReadonlyArray<Armed>
  private random: Random

  constructor({ armed, random: seed }: FaultsState = { armed: [], random: 1 }) {
    this.armed = armed.map((rule) => ({ ...rule }))
    this.random = random(seed)
  }

  state(): FaultsState {
    return { armed: this.armed.map((rule) => ({ ...rule })), random: this.random.state() }
  }

  arm(faults: ReadonlyArray<Fault>, random: Random): void {
    this.armed = faults.map((fault) => ({ fault, seen: 0, fired: 0 }))
    this.random = random
  }

  /** Adds rules after the present ones, whose counts stay. */
  add(faults: ReadonlyArray<Fault>, random: Random): void {
    this.armed = [...this.armed, ...faults.map((fault) => ({ fault, seen: 0, fired: 0 }))]
    this.random ??= random
  }

  all(): ReadonlyArray<Readonly<Armed>> {
    return this.armed
  }

  clear(): void {
    this.armed = []
  }

  /** The first rule that fires for a request. */
  draw(method: string, path: string): Fault | null {
    for (const rule of this.armed) {
      const { fault } = rule
      if (fault.method !== null && fault.method !== method) continue
      if (fault.path !== null && !fault.path.test(path)) continue
      rule.seen++
      if (rule.seen <= fault.after || (fault.times !== null && rule.fired >= fault.times)) continue
      if (fault.rate < 1 && !this.random.chance(fault.rate)) continue
      rule.fired++
      return fault
    }
    return null
  }
}

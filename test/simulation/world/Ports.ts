/**
 * The processes that listen for deliveries.
 *
 * Promise: a delivery reaches one process that listens. A frozen process receives it when it is thawed. A dead one
 * never answers.
 */
import { chance } from "../kernel/Chance.ts"
import type { Owner } from "../kernel/Kernel.ts"
import { Actor } from "../kernel/Scene.ts"
import type { Answer, Arrival, Port } from "./Sender.ts"

interface Listener {
  readonly receive: (arrival: Arrival, done: (status: number) => void) => void
  /** How far the process's clock is ahead, in microseconds. */
  readonly skew: () => number
}

export class Ports extends Actor implements Port {
  private readonly chance = chance(this.drawn.seed, "ports")
  private readonly listening = new Map<Owner, Listener>()

  open(owner: Owner, listening: Listener): void {
    this.listening.set(owner, listening)
  }

  close(owner: Owner): void {
    this.listening.delete(owner)
  }

  receive(arrival: Arrival, answered: (answer: Answer) => void): boolean {
    const { kernel, chance } = this
    if (this.listening.size === 0) return false
    const [owner, { receive, skew }] = chance.pick([...this.listening])
    kernel.deliver(owner, () => {
      const arrived = kernel.now + skew()
      receive(arrival, (status) => {
        answered({ status, arrival, clocks: [arrived, kernel.now + skew()], by: owner.name })
      })
    })
    return true
  }
}

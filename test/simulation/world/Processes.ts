/**
 * Simulated processes and the faults that strike any of them.
 *
 * Promise: a killed process runs no further instruction. The server notices the loss of its connections a while later.
 * A paused process runs no instruction until it is resumed, however late.
 */
import { type Effect, type Fiber } from "effect"
import { type Chance, chance } from "../kernel/Chance.ts"
import type { Owner } from "../kernel/Kernel.ts"
import { Actor } from "../kernel/Scene.ts"
import type { Plan } from "../Plan.ts"
import { type Machine, type Services, start } from "./Engine.ts"

export interface ProcessLife {
  readonly owner: Owner
  readonly place: number
  fiber: Fiber.Fiber<unknown, unknown> | null
}

export abstract class Processes<Life extends ProcessLife, P extends Plan = Plan> extends Actor<P> {
  protected readonly machine: Machine<P>
  protected readonly chance: Chance
  protected readonly alive = new Set<Life>()
  /** How far the clocks of the places are off, in microseconds. */
  protected readonly jumps = [...this.drawn.skews]
  protected lives = 0
  protected faults = true
  protected accepting = true
  kills = 0
  /** The clock of the processes at a place. */
  protected abstract clockOf(place: number): number

  constructor(machine: Machine<P>, stream: string) {
    super(machine)
    this.machine = machine
    this.chance = chance(machine.drawn.seed, stream)
  }

  /** Draws when clocks jump and when the server restarts. */
  protected beginDisturbances(): void {
    const { chance, drawn, kernel } = this
    if (drawn.on.has("K2")) {
      for (let times = chance.integer(1, 4); times > 0; times--) {
        kernel.after(chance.integer(0, drawn.safety), null, () => {
          const place = chance.integer(0, this.jumps.length - 1)
          this.jumps[place]! += chance.pick([-1, 1]) * chance.skewed(1_000_000, 86_400_000_000)
          this.fired("K2 clock jumped")
        })
      }
    }
    for (let times = drawn.restarts; times > 0; times--) {
      kernel.after(chance.integer(0, drawn.safety), null, () => {
        if (!this.faults) return
        this.strikes("db", "D1 restart")
        this.machine.connections.restart(chance.skewed(100_000, 6_000_000))
      })
    }
  }

  /** Runs a program in a process. `ended` is called when it ended, never when the process was killed. */
  protected start<A>(
    life: Life,
    what: string,
    program: (skew: () => number) => Effect.Effect<A, unknown, Services>,
    ended: (end: { readonly result: A | null; readonly cause: string | null }) => void
  ): void {
    const { owner, place } = life
    this.alive.add(life)
    this.log(owner.name, `begins ${what}`)
    const skew = () => this.jumps[this.clockOf(place)] ?? 0
    const clock = { skew, monotonicOrigin: this.kernel.now - this.chance.integer(1_000_000, 1e12) }
    const random = chance(this.drawn.seed, `${this.drawn.pushing === null ? "" : "push "}random ${owner.name}`)
    life.fiber = start(this.machine, owner, program(skew), clock, random, (end) => {
      this.alive.delete(life)
      ended(end)
    })
  }

  /** The running process of an owner that faults may strike. */
  protected victim(owner: Owner): Life | undefined {
    if (!this.faults || owner.state !== "running") return undefined
    return [...this.alive].find((one) => one.owner === owner)
  }

  /** A moment later, up to `most` microseconds. */
  protected soon(most: number, strike: () => void): void {
    this.kernel.after(this.chance.integer(0, most), null, strike)
  }

  /** Whether a process is still there to be killed; it is counted then. */
  protected isStruck(life: Life, why: string): boolean {
    if (life.owner.state === "dead" || !this.alive.has(life) || !this.faults) return false
    this.strikes(life.owner.name, why)
    this.kills++
    return true
  }

  protected cut(life: Life): void {
    const { connections, ports } = this.machine
    this.kernel.kill(life.owner)
    connections.cut(life.owner)
    ports.close(life.owner)
    this.alive.delete(life)
  }

  protected interrupt({ owner, fiber }: Life): void {
    if (owner.state !== "running" || fiber === null) return
    this.strikes(owner.name, "C2 interrupted")
    fiber.interruptUnsafe()
  }

  /** Freezes a process for a drawn time. `begun` draws what happens meanwhile. */
  protected freeze(life: Life, draw: () => number, begun: (length: number) => void): void {
    const { kernel } = this
    const { owner } = life
    if (owner.state !== "running" || !this.alive.has(life) || !this.faults) return
    const length = draw()
    this.log(owner.name, `! C3 paused for ${(length / 1e6).toFixed(1)} s`)
    this.fired("C3 pause")
    kernel.freeze(owner)
    begun(length)
    kernel.after(length, null, () => {
      if (owner.state !== "frozen") return
      this.log(owner.name, "resumed")
      kernel.thaw(owner)
    })
  }

  /** A frozen process loses its locks, or its connections. */
  protected loseSession({ owner }: Life): void {
    const { connections } = this.machine
    if (this.chance.chance(0.7)) connections.loseLocks(owner)
    else connections.cut(owner)
  }

  /** Stops new processes and faults. `done` is called when every process has ended its work. */
  protected healAll(isService: (life: Life) => boolean, done: () => void): void {
    const { kernel } = this
    this.faults = false
    this.accepting = false
    for (const life of this.alive) {
      if (life.owner.state === "frozen") kernel.thaw(life.owner)
      if (isService(life)) life.fiber?.interruptUnsafe()
    }
    const look = () => {
      if (this.alive.size === 0) done()
      else kernel.after(250_000, null, look)
    }
    look()
  }
}

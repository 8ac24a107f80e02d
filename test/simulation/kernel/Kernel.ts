/**
 * Virtual time, and the order in which tasks run.
 *
 * Promise: nothing in the simulated world waits for real time. The seed picks the next runnable task. When no task is
 * runnable, the pending real work (statements of the real database) is done, one at a time and to its end. Only then
 * does the time move, to the next timer. So the same seed gives the same order, although the database is real.
 *
 * A task, a timer or an answer belongs to a process. A frozen process keeps what arrives until it is thawed; a dead one
 * loses it. So a kill needs no interruption: no code of the process runs again.
 */
import { type Clock, Duration, Effect, type Scheduler } from "effect"
import type { Chance } from "./Chance.ts"

/** A simulated process. */
export interface Owner {
  readonly name: string
  state: "running" | "frozen" | "dead"
  /** What arrived while it was frozen. */
  readonly kept: Array<() => void>
}

export const owner = (name: string): Owner => ({ name, state: "running", kept: [] })

interface Timer {
  readonly at: number
  readonly order: number
  readonly owner: Owner | null
  readonly run: () => void
  cancelled: boolean
}

interface Task {
  readonly owner: Owner
  readonly priority: number
  readonly run: () => void
}

/** The simulated world cannot continue: an error of the simulation, or a stall of the code under test. */
export class Stalled extends Error {
  override readonly name = "Stalled"
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

export class Kernel {
  /** Microseconds since 1970; never goes back. */
  now: number
  /** Tasks and timers that ran. */
  turns = 0
  private readonly chance: Chance
  private tasks: Array<Task> = []
  private readonly timers: Array<Timer> = []
  private readonly real: Array<() => Promise<void>> = []
  private order = 0
  private ended = false

  constructor(start: number, chance: Chance) {
    this.now = start
    this.chance = chance
  }

  /** Runs `run` at a time. Returns a function that cancels it. */
  at(time: number, owner: Owner | null, run: () => void): () => void {
    const timer: Timer = { at: Math.max(time, this.now), order: this.order++, owner, run, cancelled: false }
    push(this.timers, timer)
    return () => {
      timer.cancelled = true
    }
  }

  after(micros: number, owner: Owner | null, run: () => void): () => void {
    return this.at(this.now + Math.max(0, Math.round(micros)), owner, run)
  }

  /** Real work: done alone, before the time moves. */
  work(job: () => Promise<void>): void {
    this.real.push(job)
  }

  /** Runs a callback for a process, now or when the process is thawed. */
  deliver(owner: Owner | null, run: () => void): void {
    if (owner === null || owner.state === "running") run()
    else if (owner.state === "frozen") owner.kept.push(run)
  }

  freeze(owner: Owner): void {
    if (owner.state === "running") owner.state = "frozen"
  }

  thaw(owner: Owner): void {
    if (owner.state !== "frozen") return
    owner.state = "running"
    for (const run of owner.kept.splice(0)) this.after(0, owner, run)
  }

  kill(owner: Owner): void {
    owner.state = "dead"
    owner.kept.length = 0
    this.tasks = this.tasks.filter((task) => task.owner !== owner)
  }

  /** Ends {@link run} after the current task. */
  end(): void {
    this.ended = true
  }

  /** Runs the world until {@link end} is called. */
  async run(turnsMax: number): Promise<void> {
    this.ended = false
    const turnsEnd = this.turns + turnsMax
    for (;;) {
      if (this.ended) return
      if (this.turns > turnsEnd) throw new Stalled(`no end after ${turnsMax} turns`)
      const task = this.pick()
      if (task !== null) {
        this.turns++
        task.run()
        continue
      }
      await settled()
      if (this.hasRunnable()) continue
      const job = this.real.shift()
      if (job !== undefined) {
        await job()
        continue
      }
      const timer = pop(this.timers)
      if (timer === undefined) throw new Stalled("no task, timer or work is left")
      if (timer.cancelled || timer.owner?.state === "dead") continue
      this.now = timer.at
      this.turns++
      this.deliver(timer.owner, timer.run)
    }
  }

  private hasRunnable(): boolean {
    return this.tasks.some((task) => task.owner.state === "running")
  }

  private pick(): Task | null {
    if (this.tasks.length === 0) return null
    const runnable: Array<number> = []
    for (let index = 0; index < this.tasks.length; index++) {
      if (this.tasks[index]!.owner.state === "running") runnable.push(index)
    }
    if (runnable.length === 0) return null
    const index = runnable.length === 1 ? runnable[0]! : this.chance.pick(runnable)
    return this.tasks.splice(index, 1)[0]!
  }

  /** The scheduler of a process: its runnable fibers are picked by the seed. */
  scheduler(owner: Owner): Scheduler.Scheduler {
    const schedule = (run: () => void, priority: number) => {
      if (owner.state !== "dead") this.tasks.push({ owner, priority, run })
    }
    return {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= 2048,
      makeDispatcher: () => ({ scheduleTask: schedule, flush: () => {} })
    }
  }

  /** The clock of a process. `skew` (microseconds) moves its wall clock, never its monotonic one. */
  clock(owner: Owner, skew: () => number, monotonicOrigin: number): Clock.Clock {
    const wall = () => this.now + skew()
    const millis = () => Math.floor(wall() / 1000)
    const nanos = () => BigInt(wall()) * 1000n
    const monotonic = () => BigInt(this.now - monotonicOrigin) * 1000n
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) => {
        const time = Duration.toMillis(duration)
        if (time <= 0) return Effect.yieldNow
        if (!Number.isFinite(time)) return Effect.never
        return Effect.callback<void>((resume) => {
          const cancel = this.after(time * 1000, owner, () => resume(Effect.void))
          return Effect.sync(cancel)
        })
      }
    }
  }
}

// -- a heap by (time, order) --------------------------------------------------------------------------------------------

const isBefore = (a: Timer, b: Timer) => a.at < b.at || (a.at === b.at && a.order < b.order)

const push = (heap: Array<Timer>, timer: Timer) => {
  let index = heap.push(timer) - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (!isBefore(heap[index]!, heap[parent]!)) return
    ;[heap[index], heap[parent]] = [heap[parent]!, heap[index]!]
    index = parent
  }
}

const pop = (heap: Array<Timer>): Timer | undefined => {
  const top = heap[0]
  const last = heap.pop()
  if (top === undefined || last === undefined || heap.length === 0) return top
  heap[0] = last
  let index = 0
  for (;;) {
    const [left, right] = [2 * index + 1, 2 * index + 2]
    let least = index
    if (left < heap.length && isBefore(heap[left]!, heap[least]!)) least = left
    if (right < heap.length && isBefore(heap[right]!, heap[least]!)) least = right
    if (least === index) return top
    ;[heap[index], heap[least]] = [heap[least]!, heap[index]!]
    index = least
  }
}

/**
 * The cost of a process: its peak memory and its processor time, as the kernel counts them.
 *
 * Promise: figures come from `/proc` and are those of the process itself, not of its parent. Without `/proc` they are
 * null, never an estimate.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { secondsSince } from "./measuring.ts"

const read = (path: string): string | null => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return null
  }
}

const ticksPerSecond = ((): number => {
  try {
    return Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }).trim())
  } catch {
    return 100
  }
})()

interface Stat {
  /** A letter: `T` is stopped, `Z` and `X` have ended. */
  readonly state: string
  readonly parent: number
  readonly own: number
  /** Processor time of its children that have ended. */
  readonly ended: number
}

export const statOf = (pid: number): Stat | null => {
  const text = read(`/proc/${pid}/stat`)
  if (text === null) return null
  // The name in brackets may contain spaces. The fields after it are: state, parent, …
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const ticks = (place: number) => Number(fields[place]) / ticksPerSecond
  return { state: fields[0]!, parent: Number(fields[1]), own: ticks(11) + ticks(12), ended: ticks(13) + ticks(14) }
}

/** The live children of a process. */
export const childrenOf = (pid: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && statOf(Number(name))?.parent === pid)
    .map(Number)

/** Seconds of processor time of a process alone. */
export const cpuOf = (pid: number): number | null => statOf(pid)?.own ?? null

/** Seconds of processor time of a process, of its live children and of those that have ended. */
export const cpuOfFamily = (pid: number): number | null => {
  const root = statOf(pid)
  if (root === null) return null
  const family = [root, ...childrenOf(pid).map(statOf)]
  return family.reduce((sum, one) => sum + (one === null ? 0 : one.own + one.ended), 0)
}

const memoryMbOf =
  (name: string) =>
  (pid: number): number | null => {
    const match = new RegExp(`${name}:\\s+(\\d+)`).exec(read(`/proc/${pid}/status`) ?? "")
    return match === null ? null : Number(match[1]) / 1024
  }

/** The peak memory of a process, in MB. */
export const peakMbOf = memoryMbOf("VmHWM")

/** The current memory of a process, in MB. */
export const rssMbOf = memoryMbOf("VmRSS")

export const difference = (after: number | null, before: number | null): number | null =>
  after === null || before === null ? null : after - before

/** The shares of a core that a process and Postgres use, over a time in which nothing happens. */
export const idleShares = async (pid: number, postgresCpu: () => number | null, ms: number) => {
  const [began, own, postgres] = [performance.now(), cpuOf(pid), postgresCpu()]
  await sleep(ms)
  const seconds = secondsSince(began)
  const shareOf = (cpuSeconds: number | null) => (cpuSeconds === null ? null : cpuSeconds / seconds)
  const postgresShare = shareOf(difference(postgresCpu(), postgres))
  const ofPostgres = postgresShare === null ? "?" : (postgresShare * 100).toFixed(1)
  return {
    seconds,
    share: shareOf(difference(cpuOf(pid), own)),
    note: `over ${seconds.toFixed(0)} s; Postgres ${ofPostgres} %`
  }
}

export interface Cost {
  readonly peakMb: number | null
  readonly cpuSeconds: number | null
}

const watchEveryMs = 10

/** Polls a process until it ends. The last moments are missed; both figures only ever grow. */
export const watch = (pid: number): (() => Cost) => {
  let cost: Cost = { peakMb: null, cpuSeconds: null }
  const look = () => {
    const [peakMb, cpuSeconds] = [peakMbOf(pid), cpuOf(pid)]
    cost = { peakMb: peakMb ?? cost.peakMb, cpuSeconds: cpuSeconds ?? cost.cpuSeconds }
  }
  const timer = setInterval(look, watchEveryMs)
  return () => {
    clearInterval(timer)
    return cost
  }
}

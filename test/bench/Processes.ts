/**
 * The cost of a process: its peak memory and its processor time, as the kernel counts them.
 *
 * Promise: figures come from `/proc` and are those of the process itself, not of its parent. Without `/proc` they are
 * null, never an estimate.
 */
import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"

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
  readonly parent: number
  readonly own: number
  /** Processor time of its children that have ended. */
  readonly ended: number
}

const statOf = (pid: number): Stat | null => {
  const text = read(`/proc/${pid}/stat`)
  if (text === null) return null
  // The name in brackets may contain spaces. The fields after it are numbers: state, parent, …
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const ticks = (place: number) => Number(fields[place]) / ticksPerSecond
  return { parent: Number(fields[1]), own: ticks(11) + ticks(12), ended: ticks(13) + ticks(14) }
}

/** Seconds of processor time of a process alone. */
export const cpuOf = (pid: number): number | null => statOf(pid)?.own ?? null

/** Seconds of processor time of a process, of its live children and of those that have ended. */
export const cpuOfFamily = (pid: number): number | null => {
  const root = statOf(pid)
  if (root === null) return null
  let sum = root.own + root.ended
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    const child = statOf(Number(name))
    if (child !== null && child.parent === pid) sum += child.own + child.ended
  }
  return sum
}

/** The peak memory of a process, in MB. */
export const peakMbOf = (pid: number): number | null => {
  const match = /VmHWM:\s+(\d+)/.exec(read(`/proc/${pid}/status`) ?? "")
  return match === null ? null : Number(match[1]) / 1024
}

/** The current memory of a process, in MB. */
export const rssMbOf = (pid: number): number | null => {
  const match = /VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`) ?? "")
  return match === null ? null : Number(match[1]) / 1024
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

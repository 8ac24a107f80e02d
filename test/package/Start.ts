/**
 * Start times of programs, compared with the promised bound for a command: 0.6 s.
 *
 * The fastest of several starts counts; a start within the bound ends the series. Its time is the elapsed time or the
 * processor time, whichever is less. Processor time excludes the wait for busy processors; on a quiet machine both are
 * the same. On a busy machine the processor time grows too. Therefore the bound grows in proportion to the bare start of
 * Node, and by half as much again for programs that run beside the tests. `npm run bench` compares with the bound itself.
 */
import { spawnSync } from "node:child_process"

/** The promised bound. */
export const boundMs = 600
/** The allowance for other programs, which take their share of caches and cores. */
const slack = 1.5
/** The bare start of Node on a quiet machine with two cores. */
const bareMs = 30
const times = 7

interface Options {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

export interface Start {
  readonly ms: number
  readonly elapsedMs: number
  readonly processorMs: number
}

const once = (program: string, args: ReadonlyArray<string>, options: Options): Start => {
  const { status, stderr } = spawnSync(
    "bash",
    ["-c", `TIMEFORMAT=$'\\n%3R %3U %3S'; time "$0" "$@" > /dev/null`, program, ...args],
    { ...options, encoding: "utf8" }
  )
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${status}: ${stderr}`)
  const [elapsed = 0, user = 0, system = 0] = stderr.trim().split("\n").at(-1)!.split(" ").map(Number)
  const elapsedMs = Math.round(elapsed * 1000)
  const processorMs = Math.round((user + system) * 1000)
  return { ms: Math.min(elapsedMs, processorMs), elapsedMs, processorMs }
}

/** The first start within the bound, otherwise the fastest of several starts. Each must exit with 0. */
export const fastest = (program: string, args: ReadonlyArray<string>, options: Options, bound: number): Start => {
  let best = once(program, args, options)
  for (let done = 1; best.ms > bound && done < times; done++) {
    const next = once(program, args, options)
    if (next.ms < best.ms) best = next
  }
  return best
}

/** The bound under the current load. */
export const boundAt = (node: string, options: Options, ms: number = boundMs): number =>
  Math.round(ms * slack * Math.max(1, fastest(node, ["--eval", "0"], options, bareMs).ms / bareMs))

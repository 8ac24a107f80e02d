/** Metrics of this process: version, CPU, memory, event loop. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { counter, gauge, type Metric } from "./Metrics.ts"

const lagEveryMs = 100

/** The metrics of this process and its version; they need no warehouse. */
export const make = Effect.fnUntraced(function* (
  version: string
): Effect.fn.Return<Effect.Effect<ReadonlyArray<Metric>>> {
  const beganAt = (yield* Clock.currentTimeMillis) / 1000 - process.uptime()
  const lag = monitorEventLoopDelay({ resolution: lagEveryMs })
  lag.enable()
  return Effect.sync(() => {
    const { user, system } = process.cpuUsage()
    const { rss, heapUsed } = process.memoryUsage()
    // The histogram has the times between two measurements, which include the interval.
    const lagMs = lag.count === 0 ? 0 : Math.max(0, lag.percentile(99) / 1e6 - lagEveryMs)
    lag.reset()
    return [
      gauge("tributary_build_info", "1, with the version as a label.", [
        { labels: { version, node: process.versions.node }, value: 1 }
      ]),
      counter("process_cpu_seconds_total", "CPU time of the process.", [{ value: (user + system) / 1e6 }]),
      gauge("process_resident_memory_bytes", "Memory of the process.", [{ value: rss }]),
      gauge("process_start_time_seconds", "When the process began.", [{ value: beganAt }]),
      gauge("nodejs_heap_size_used_bytes", "Memory in use by JavaScript objects.", [{ value: heapUsed }]),
      gauge(
        "nodejs_eventloop_lag_p99_seconds",
        "99th percentile of the delay of the event loop since the last scrape.",
        [{ value: lagMs / 1000 }]
      )
    ]
  })
})

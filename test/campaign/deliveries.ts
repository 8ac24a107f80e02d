/**
 * The command `npm run campaign:deliveries`: changes are sent to three endpoints by two real processes, while senders and
 * receivers are killed, answers are lost, and an endpoint is down for virtual days.
 *
 *   npm run campaign:deliveries -- --changes 200000 --kills 60 --down-days 3 --latency 20 --seed 1
 *
 * Exit code 1 when a change is missing, is out of order, or arrived again under another id; and when the delay at 500
 * changes a second is above its bounds: p50 300 ms, p99 1.5 s.
 */
import { parseArgs } from "node:util"
import { deliveryCampaign } from "./DeliveryCampaign.ts"

const { values } = parseArgs({
  options: {
    changes: { type: "string", default: "200000" },
    kills: { type: "string", default: "60" },
    "down-days": { type: "string", default: "3" },
    latency: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false }
  }
})
const bounds = { p50: 300, p99: 1_500 }

const seed = Number(values.seed)
const report = await deliveryCampaign({
  changes: Number(values.changes),
  kills: Number(values.kills),
  downDays: Number(values["down-days"]),
  latencySeconds: Number(values.latency),
  seed,
  tell: (line) => process.stderr.write(`${line}\n`)
})
const problems = [...report.problems]
const { latency } = report
if (latency !== null && (latency.p50 > bounds.p50 || latency.p99 > bounds.p99)) {
  problems.push(`the delay is above its bounds: p50 ${bounds.p50} ms, p99 ${bounds.p99} ms`)
}
if (values.json) process.stdout.write(`${JSON.stringify({ ...report, problems }, null, 2)}\n`)
else {
  const arrivals = Object.entries(report.arrivals).map(([name, count]) => `${name} ${count}`)
  process.stdout.write(
    `${report.changes} changes, ${report.kills} kills, ${report.duplicates} duplicates, arrivals: ${arrivals.join(", ")}, in ${report.seconds.toFixed(0)} s\n` +
      (latency === null
        ? ""
        : `${latency.count} changes at 500 a second: commit to delivery p50 ${latency.p50} ms, p99 ${latency.p99} ms\n`) +
      `${problems.length === 0 ? "no problem" : `${problems.length} PROBLEMS\n${problems.join("\n")}`}, seed ${seed}\n`
  )
}
process.exitCode = problems.length === 0 ? 0 : 1

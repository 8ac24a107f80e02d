/**
 * The command `npm run campaign:webhooks`: sends thousands of deliveries through faults to a receiver that is killed,
 * reconciles once, and compares warehouse and source.
 *
 *   npm run campaign:webhooks -- --deliveries 10000 --kills 8 --postgres-kills 1 --companies 6 --seed 1
 *
 * Exit code 1 at any violation. The seed draws the same faults again.
 */
import { parseArgs } from "node:util"
import { webhookCampaign } from "./WebhookCampaign.ts"

const { values } = parseArgs({
  options: {
    deliveries: { type: "string", default: "10000" },
    kills: { type: "string", default: "8" },
    "postgres-kills": { type: "string", default: "1" },
    companies: { type: "string", default: "6" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false }
  }
})
const natural = (name: Exclude<keyof typeof values, "json">): number => {
  const value = Number(values[name])
  if (Number.isSafeInteger(value) && value >= 0) return value
  process.stderr.write(`--${name} must be a whole number from 0, not ${values[name]}\n`)
  process.exit(2)
}

const table = (rows: ReadonlyArray<readonly [string, string]>): string => {
  const width = Math.max(...rows.map(([what]) => what.length))
  return rows.map(([what, text]) => `  ${what.padEnd(width)}  ${text}`).join("\n")
}

const seed = natural("seed")
process.stderr.write(`seed ${seed}\n`)
const report = await webhookCampaign({
  deliveries: natural("deliveries"),
  kills: natural("kills"),
  postgresKills: natural("postgres-kills"),
  companies: Math.max(1, natural("companies")),
  seed,
  tell: (line) => process.stderr.write(`${line}\n`)
})
if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
else {
  const { counts, forged, sums, seconds, problems } = report
  const numbers = (of: Readonly<Record<string, number>>) =>
    Object.entries(of).map(([what, count]) => [what, String(Math.round(count))] as const)
  process.stdout.write(
    `deliveries\n${table(numbers(counts))}\n` +
      `forged, with their answers\n${table(
        Object.entries(forged).map(([kind, answers]) => [
          kind,
          Object.entries(answers)
            .map(([status, times]) => `${status}: ${times}`)
            .join(", ")
        ])
      )}\n` +
      `together\n${table(numbers(sums))}\n` +
      `${problems.length === 0 ? "no violation" : `${problems.length} VIOLATIONS`}, seed ${seed}, ${seconds.toFixed(0)} s\n`
  )
}
process.exitCode = report.problems.length === 0 ? 0 : 1

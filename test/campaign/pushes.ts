/**
 * The command `npm run campaign:pushes`: pushes records through faults with processes that are killed with -9,
 * sometimes two at a time. Then it finds records that the source has twice, not at all, or with other values.
 *
 *   npm run campaign:pushes -- --kills 50 --postgres-kills 3 --records 900 --seed 1
 *
 * Exit code 1 at any violation. The seed draws the same records and faults again.
 */
import { parseArgs } from "node:util"
import { pushCampaign } from "./PushCampaign.ts"

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "50" },
    "postgres-kills": { type: "string", default: "3" },
    records: { type: "string", default: "900" },
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

const table = (of: Readonly<Record<string, number>>): string => {
  const rows = Object.entries(of).toSorted(([one], [other]) => (one < other ? -1 : 1))
  const width = Math.max(0, ...rows.map(([what]) => what.length))
  return rows.map(([what, times]) => `  ${what.padEnd(width)}  ${Math.round(times)}\n`).join("")
}

const seed = natural("seed")
process.stderr.write(`seed ${seed}\n`)
const report = await pushCampaign({
  kills: natural("kills"),
  postgresKills: natural("postgres-kills"),
  records: natural("records"),
  seed,
  tell: (line) => process.stderr.write(`${line}\n`)
})
if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
else {
  const { chaos, killed, sums, seconds, problems } = report
  process.stdout.write(
    `writes on their way\n${table(chaos)}` +
      `killed with -9\n${table(killed)}` +
      `together\n${table(sums)}` +
      `${problems.length === 0 ? "no violation" : `${problems.length} VIOLATIONS`}, seed ${seed}, ${seconds.toFixed(0)} s\n`
  )
}
process.exitCode = report.problems.length === 0 ? 0 : 1

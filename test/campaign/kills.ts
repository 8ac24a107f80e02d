/**
 * The command `npm run campaign:kills`: kills real syncs and Postgres with -9 at random places, resumes suspended
 * processes, and compares warehouse and source.
 *
 *   npm run campaign:kills -- --kills 200 --postgres-kills 20 --zombies 10 --seed 1
 *
 * Exit code 1 at any difference. The seed draws the same places and writes again.
 */
import { parseArgs } from "node:util"
import { campaign, type CampaignReport } from "./Campaign.ts"
import { phases } from "./Places.ts"

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "200" },
    "postgres-kills": { type: "string", default: "20" },
    zombies: { type: "string", default: "10" },
    seed: { type: "string", default: "1" },
    json: { type: "boolean", default: false }
  }
})
const natural = (name: "kills" | "postgres-kills" | "zombies" | "seed"): number => {
  const value = Number(values[name])
  if (Number.isSafeInteger(value) && value >= 0) return value
  process.stderr.write(`--${name} must be a whole number from 0, not ${values[name]}\n`)
  process.exit(2)
}

const table = ({ killed }: CampaignReport): string => {
  const rows = [
    ["killed", ...phases, "together"],
    ...Object.entries(killed).map(([victim, counts]) => [
      victim,
      ...phases.map((phase) => String(counts[phase])),
      String(phases.reduce((sum, phase) => sum + counts[phase], 0))
    ])
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows
    .map((row) =>
      row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  ")
    )
    .join("\n")
}

const seed = natural("seed")
process.stderr.write(`seed ${seed}\n`)
const report = await campaign({
  kills: natural("kills"),
  postgresKills: natural("postgres-kills"),
  zombies: natural("zombies"),
  seed,
  tell: (line) => process.stderr.write(`${line}\n`)
})
if (values.json) process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
else {
  const { seconds, endedBefore, wentOn, runAgain, runs, versions, recordsCompared, written } = report
  process.stdout.write(
    `${table(report)}\n` +
      `${endedBefore} commands ended before their place; when Postgres was killed ${wentOn} syncs continued, ${runAgain} were run again\n` +
      `written meanwhile: ${Object.entries(written)
        .map(([what, times]) => `${times} ${what}`)
        .join(", ")}\n` +
      `${recordsCompared} records compared by plain SQL, ${runs} runs and ${versions} versions audited, in ${seconds.toFixed(0)} s\n` +
      `${report.problems.length === 0 ? "no difference" : `${report.problems.length} PROBLEMS`}, seed ${seed}\n`
  )
}
process.exitCode = report.problems.length === 0 ? 0 : 1

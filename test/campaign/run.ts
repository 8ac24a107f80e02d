/**
 * The command `npm run campaign -- NAME`: real processes and a real Postgres, killed with -9 and disturbed, and the
 * comparison afterwards.
 *
 *   npm run campaign -- kills --kills 200 --postgres-kills 20                     syncs; warehouse and source are equal
 *   npm run campaign -- webhooks --deliveries 2000 --kills 20 --companies 3       a receiver; no acknowledged event is lost
 *   npm run campaign -- pushes --kills 50 --postgres-kills 3 --records 900        pushes; the source has each record once
 *   npm run campaign -- owners --disturbances 100 --processes 4 --companies 24    several `serve` share the companies
 *   npm run campaign -- deliveries --changes 200000 --kills 60 --down-days 3      senders of changes to three endpoints
 *
 * Each takes `--seed` (1), which draws the same places, faults and writes again, and `--json`. Exit code 1 at any problem.
 */
import { parseArgs } from "node:util"
import { type Numbers, type Part, runCampaign } from "./Campaign.ts"
import { deliveries } from "./DeliveryPart.ts"
import { owners } from "./OwnerPart.ts"
import { pushes } from "./PushPart.ts"
import { syncs } from "./SyncPart.ts"
import { webhooks } from "./WebhookPart.ts"

const parts: Readonly<Record<string, Part>> = { kills: syncs, webhooks, pushes, owners, deliveries }

const refuse = (text: string): never => {
  process.stderr.write(`${text}\n`)
  process.exit(2)
}

const [name, ...args] = process.argv.slice(2)
const chosen = parts[name ?? ""] ?? refuse(`expected one of ${Object.keys(parts).join(", ")}, not ${name}`)
const options: Numbers = { ...chosen.options, seed: 1 }
const { values } = parseArgs({
  args,
  options: {
    json: { type: "boolean", default: false },
    ...Object.fromEntries(Object.keys(options).map((option) => [option, { type: "string" as const }]))
  }
})
const given = Object.fromEntries(
  Object.entries(options).map(([option, usual]) => {
    const value = Number((values as Readonly<Record<string, unknown>>)[option] ?? usual)
    if (!Number.isSafeInteger(value) || value < 0) refuse(`--${option} must be a whole number from 0`)
    return [option, value]
  })
)
process.stderr.write(`seed ${given["seed"]}\n`)
const report = await runCampaign(chosen, given, (line) => process.stderr.write(`${line}\n`))
const { counts, problems, seconds, seed } = report
const lines = Object.entries(counts)
  .toSorted(([one], [other]) => (one < other ? -1 : 1))
  .map(([what, times]) => `  ${String(times).padStart(9)}  ${what}\n`)
const result = problems.length === 0 ? "no problem" : `${problems.join("\n")}\n${problems.length} PROBLEMS`
process.stdout.write(
  values.json
    ? `${JSON.stringify(report, null, 2)}\n`
    : `${lines.join("")}${result}, seed ${seed}, ${seconds.toFixed(0)} s\n`
)
process.exitCode = problems.length === 0 ? 0 : 1

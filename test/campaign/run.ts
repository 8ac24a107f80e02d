/**
 * The command `npm run campaign -- NAME`: real processes and a real Postgres, killed with -9 and disturbed, and the
 * comparison afterwards.
 *
 *   npm run campaign -- kills --kills 200 --postgres-kills 20 --zombies 10        syncs; warehouse and source are equal
 *   npm run campaign -- webhooks --deliveries 10000 --kills 8 --companies 6       a receiver behind a proxy with faults
 *   npm run campaign -- pushes --kills 50 --postgres-kills 3 --records 900        pushes; the source has each record once
 *   npm run campaign -- owners --disturbances 100 --processes 4 --companies 24    several `serve` share the companies
 *   npm run campaign -- deliveries --changes 200000 --kills 60 --down-days 3      senders of changes to three endpoints
 *
 * Each takes `--seed` (1), which draws the same places, faults and writes again, and `--json`. Exit code 1 at any problem.
 */
import { parseArgs } from "node:util"
import { campaign as killCampaign } from "./Campaign.ts"
import { deliveryCampaign } from "./DeliveryCampaign.ts"
import { kinds, ownerCampaign } from "./OwnerCampaign.ts"
import { phases } from "./Places.ts"
import { pushCampaign } from "./PushCampaign.ts"
import { quantile } from "./Stand.ts"
import { webhookCampaign } from "./WebhookCampaign.ts"

/** The whole numbers of the command line, by the name of their option. */
type Numbers = Readonly<Record<string, number>>

interface Outcome {
  readonly report: object
  readonly problems: ReadonlyArray<string>
  readonly seconds: number
  /** The figures of the report. */
  readonly text: string
}

interface Campaign {
  /** The options with their usual values. */
  readonly options: Numbers
  readonly run: (given: Numbers, tell: (line: string) => void) => Promise<Outcome>
}

/** Rows of cells. The first column is text, the others are numbers. */
const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows
    .map((row) => row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))))
    .map((cells) => `  ${cells.join("  ")}\n`)
    .join("")
}

const counted = (counts: Numbers): string =>
  table(Object.entries(counts).map(([what, count]) => [what, String(Math.round(count))]))

/** How long a company may be without an owner after 99 of 100 disturbances. */
const promisedMs = { killed: 12_000, stopped: 3_000, suspended: 12_000, "cut off": 12_000, "Postgres killed": 12_000 }
/** Bounds of the delay from commit to delivery at 500 changes a second. */
const delayMsMax = { p50: 300, p99: 1_500 }

const campaigns: Readonly<Record<string, Campaign>> = {
  kills: {
    options: { kills: 200, "postgres-kills": 20, zombies: 10 },
    run: async ({ kills, "postgres-kills": postgresKills, zombies, seed }, tell) => {
      const report = await killCampaign({
        kills: kills!,
        postgresKills: postgresKills!,
        zombies: zombies!,
        seed: seed!,
        tell
      })
      const { killed, endedBefore, wentOn, runAgain, runs, versions, recordsCompared, written } = report
      const victims = Object.entries(killed).map(([victim, counts]) => [
        victim,
        ...phases.map((phase) => String(counts[phase])),
        String(phases.reduce((sum, phase) => sum + counts[phase], 0))
      ])
      return {
        ...report,
        report,
        text:
          `killed\n${table([["", ...phases, "together"], ...victims])}` +
          `${endedBefore} commands ended before their place; when Postgres was killed ${wentOn} syncs continued, ${runAgain} were run again\n` +
          `written meanwhile\n${counted(written)}` +
          `${recordsCompared} records compared by plain SQL, ${runs} runs and ${versions} versions audited\n`
      }
    }
  },
  webhooks: {
    options: { deliveries: 10_000, kills: 8, "postgres-kills": 1, companies: 6 },
    run: async ({ deliveries, kills, "postgres-kills": postgresKills, companies, seed }, tell) => {
      const report = await webhookCampaign({
        deliveries: deliveries!,
        kills: kills!,
        postgresKills: postgresKills!,
        companies: Math.max(1, companies!),
        seed: seed!,
        tell
      })
      const answers = Object.entries(report.forged).map(([kind, of]) => [
        kind,
        Object.entries(of)
          .map(([status, times]) => `${status}: ${times}`)
          .join(", ")
      ])
      return {
        ...report,
        report,
        text:
          `deliveries\n${counted(report.counts)}forged, with their answers\n${table(answers)}` +
          `together\n${counted(report.sums)}`
      }
    }
  },
  pushes: {
    options: { kills: 50, "postgres-kills": 3, records: 900 },
    run: async ({ kills, "postgres-kills": postgresKills, records, seed }, tell) => {
      const report = await pushCampaign({
        kills: kills!,
        postgresKills: postgresKills!,
        records: records!,
        seed: seed!,
        tell
      })
      const { chaos, killed, sums } = report
      return {
        ...report,
        report,
        text: `writes on their way\n${counted(chaos)}killed with -9\n${counted(killed)}together\n${counted(sums)}`
      }
    }
  },
  owners: {
    options: { disturbances: 100, processes: 4, companies: 24 },
    run: async ({ disturbances, processes, companies, seed }, tell) => {
      const [some, several, shared] = [disturbances!, processes!, companies!].map((count) => Math.max(1, count))
      const report = await ownerCampaign({
        disturbances: some!,
        processes: several!,
        companies: shared!,
        seed: seed!,
        tell
      })
      const problems = [...report.problems]
      const rows = kinds.flatMap((kind) => {
        const sorted = report.unownedMs[kind].toSorted((a, b) => a - b)
        if (sorted.length === 0) return []
        const slow = quantile(sorted, 0.99)
        if (slow > promisedMs[kind])
          problems.push(`${kind}: owned again after ${slow} ms, promised ${promisedMs[kind]} ms`)
        return [[kind, String(sorted.length), String(quantile(sorted, 0.5)), String(sorted.at(-1))]]
      })
      return {
        report,
        problems,
        seconds: report.seconds,
        text:
          `owned again\n${table([["after", "times", "median ms", "most ms"], ...rows])}` +
          `${report.writes} writes meanwhile, ${report.recordsCompared} records compared by plain SQL\n`
      }
    }
  },
  deliveries: {
    options: { changes: 200_000, kills: 60, "down-days": 3, latency: 20 },
    run: async ({ changes, kills, "down-days": downDays, latency: latencySeconds, seed }, tell) => {
      const report = await deliveryCampaign({
        changes: changes!,
        kills: kills!,
        downDays: downDays!,
        latencySeconds: latencySeconds!,
        seed: seed!,
        tell
      })
      const problems = [...report.problems]
      const { latency } = report
      if (latency !== null && (latency.p50 > delayMsMax.p50 || latency.p99 > delayMsMax.p99))
        problems.push(`the delay is above its bounds: p50 ${delayMsMax.p50} ms, p99 ${delayMsMax.p99} ms`)
      const delay =
        latency === null
          ? ""
          : `${latency.count} changes at 500 a second: commit to delivery p50 ${latency.p50} ms, p99 ${latency.p99} ms\n`
      return {
        report,
        problems,
        seconds: report.seconds,
        text:
          `${report.changes} changes, ${report.kills} kills, ${report.duplicates} duplicates\n` +
          `arrivals\n${counted(report.arrivals)}${delay}`
      }
    }
  }
}

const refuse = (text: string): never => {
  process.stderr.write(`${text}\n`)
  process.exit(2)
}

const [name, ...args] = process.argv.slice(2)
const chosen = campaigns[name ?? ""] ?? refuse(`expected one of ${Object.keys(campaigns).join(", ")}, not ${name}`)
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
const { report, problems, seconds, text } = await chosen.run(given, (line) => process.stderr.write(`${line}\n`))
process.stdout.write(
  values.json
    ? `${JSON.stringify({ ...report, problems }, null, 2)}\n`
    : `${text}${problems.join("\n")}${problems.length === 0 ? "no problem" : `\n${problems.length} PROBLEMS`}, seed ${given["seed"]}, ${seconds.toFixed(0)} s\n`
)
process.exitCode = problems.length === 0 ? 0 : 1

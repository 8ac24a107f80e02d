/**
 * The driver of the campaigns: real commands are killed with -9 at drawn places, Postgres is killed beside them, and then
 * plain SQL compares the warehouse with the source.
 *
 * Promise: one random stream draws all places, faults and writes. The report has the seed, every problem, and the number
 * of each thing that happened.
 */
import { Chance } from "../fuzz/Chance.ts"
import type { CommandRun } from "../support/reference.ts"
import { secondsSince } from "../bench/measuring.ts"
import { type CommandWatch, type Counts, type Moment, never, type Tap } from "../support/tap.ts"
import { auditHistory, auditRuns, compare, type Difference } from "./Difference.ts"
import { describePlace, type Place, watchFor } from "./Places.ts"
import { openStand, type Stand } from "./Stand.ts"

/** The whole numbers of the command line, by the name of their option. */
export type Numbers = Readonly<Record<string, number>>

/** One campaign: what is started, killed and compared. */
export interface Part {
  /** The options with their usual values. */
  readonly options: Numbers
  /** The companies of the source that get a token. */
  readonly companies: (given: Numbers) => ReadonlyArray<number>
  readonly run: (campaign: Campaign, given: Numbers) => Promise<void>
}

export interface Report {
  readonly seed: number
  readonly seconds: number
  readonly counts: Numbers
  readonly problems: ReadonlyArray<string>
}

export interface Attempt extends Awaited<CommandRun["done"]> {
  /** Whether the command reached its place. */
  readonly isStruck: boolean
  readonly counts: Counts
}

type Upstream = Parameters<Stand["start"]>[1]
type Strike = (command: CommandRun, watched: CommandWatch) => Promise<void> | void

/** The numbers of so many companies. */
export const numbersTo = (companies: number) => Array.from({ length: Math.max(1, companies) }, (_, place) => place + 1)

/** The companies of a configuration. */
export const companiesYaml = (companies: ReadonlyArray<number>, resources: ReadonlyArray<string>): string =>
  `companies: [${companies
    .map((one) => `{ name: c${one}, token_env: TOKEN_${one}, resources: [${resources.join(", ")}] }`)
    .join(", ")}]
budget: { requests_per_minute: unlimited }
`

export const shown = ({ code, signal, stderr }: Awaited<CommandRun["done"]>) =>
  `${code ?? signal}: ${stderr.slice(-1500)}`

export type Campaign = Awaited<ReturnType<typeof openCampaign>>

const openCampaign = async (companies: ReadonlyArray<number>, seed: number, tell: (line: string) => void) => {
  const problems: Array<string> = []
  const counts: Record<string, number> = {}
  const stand = await openStand(companies)
  const count = (what: string, times = 1) => void (counts[what] = (counts[what] ?? 0) + times)
  const problem = (text: string) => {
    problems.push(text)
    tell(`PROBLEM ${text}`)
  }

  /** Starts a command behind a tap. At its place it calls `strike`, and the command waits for the result. */
  const attempt = async (
    tap: Tap,
    args: ReadonlyArray<string>,
    place: Place | null,
    strike: Strike = () => {},
    along: (moment: Moment) => Promise<void> | void = () => {}
  ): Promise<Attempt> => {
    const started = Promise.withResolvers<CommandRun>()
    const isAt = place === null ? () => false : watchFor(place)
    let isStruck = false
    const hit = async () => {
      if (isStruck) return
      isStruck = true
      await strike(await started.promise, watched)
    }
    const watched: CommandWatch = tap.watch(async (moment) => {
      try {
        await along(moment)
        if (isAt(moment)) await hit()
      } catch (error) {
        problem(`the campaign itself failed: ${String(error)}`)
      }
    })
    const command = stand.start(args, tap)
    started.resolve(command)
    if (place?.kind === "start") void hit()
    if (place?.kind === "report") command.child.stdout!.once("data", () => void hit())
    const ended = await command.done
    return { ...ended, isStruck, counts: watched.counts() }
  }

  /** Kills a command with -9 at its place. Nothing that it sends afterwards goes on. */
  const kill = async (
    tap: Tap,
    args: ReadonlyArray<string>,
    place: Place,
    along?: (moment: Moment) => Promise<void> | void
  ): Promise<Attempt> => {
    const strike: Strike = ({ child }) => {
      child.kill("SIGKILL")
      return never
    }
    const ended = await attempt(tap, args, place, strike, along)
    count(
      ended.signal === "SIGKILL"
        ? `${args[0]} killed: ${describePlace(place)}`
        : `${args[0]} ended before it could be killed`
    )
    return ended
  }

  /** Kills Postgres when the command is at its place. Returns null when the command ended before. */
  const killPostgres = async (
    tap: Tap,
    args: ReadonlyArray<string>,
    place: Place,
    andChildren: boolean
  ): Promise<Attempt | null> => {
    const postgres: { restarted: Promise<void> | null } = { restarted: null }
    const ended = await attempt(tap, args, place, () => {
      postgres.restarted = stand.killPostgres(andChildren)
    })
    if (!ended.isStruck) return null
    await postgres.restarted
    count(`Postgres killed beside ${args[0]}: ${describePlace(place)}`)
    return ended
  }

  /** Runs a command that must succeed. */
  const settle = async (args: ReadonlyArray<string>, upstream: Upstream) => {
    const ended = await stand.start([...args, "--json"], upstream).done
    if (ended.code !== 0) problem(`${args.join(" ")} ended with ${shown(ended)}`)
    return ended
  }

  const report = (when: string, differences: ReadonlyArray<Difference>) => {
    for (const { company, what, detail } of differences) problem(`company ${company}, ${when}: ${what} ${detail}`)
  }

  /** Compares resources with the source. `apart` has the records that may differ; null leaves the resource out. */
  const compareAll = (
    databaseUrl: string,
    when: string,
    of: ReadonlyArray<number>,
    resources: ReadonlyArray<string>,
    apart: (company: number, resource: string) => ReadonlySet<number> | null = () => new Set()
  ) =>
    stand.withClient(databaseUrl, async (client) => {
      for (const company of of) {
        for (const resource of resources) {
          const without = apart(company, resource)
          if (without === null) continue
          const state = await stand.reference.lines(`/state?company=${company}&resource=${resource}`)
          count("records compared by plain SQL", state.length)
          report(when, await compare(client, company, resource, state, without))
        }
      }
    })

  /** Checks the ledger and the history. */
  const audit = (databaseUrl: string, resources: ReadonlyArray<string>) =>
    stand.withClient(databaseUrl, async (client) => {
      report("at the end", await auditRuns(client))
      for (const resource of resources) {
        report("at the end", await auditHistory(client, resource))
        const { rows } = await client.query<{ n: string }>(`select count(*) as n from erp_history."${resource}"`)
        count("versions audited", Number(rows[0]!.n))
      }
    })

  const ask = <Row extends object>(databaseUrl: string, text: string, values: ReadonlyArray<unknown> = []) =>
    stand.withClient(databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows)

  const chance = new Chance(seed)
  return {
    stand,
    chance,
    /** Another random stream, for what runs beside. */
    stream: () => new Chance(chance.below(2 ** 31)),
    tell,
    problem,
    problems,
    count,
    counts,
    attempt,
    kill,
    killPostgres,
    settle,
    compareAll,
    audit,
    ask
  }
}

/** Runs one campaign. */
export const runCampaign = async (part: Part, given: Numbers, tell: (line: string) => void): Promise<Report> => {
  const began = performance.now()
  const seed = given["seed"]!
  const campaign = await openCampaign(part.companies(given), seed, tell)
  try {
    await part.run(campaign, given)
  } finally {
    await campaign.stand.close()
  }
  const { counts, problems } = campaign
  return { seed, seconds: secondsSince(began), counts, problems }
}

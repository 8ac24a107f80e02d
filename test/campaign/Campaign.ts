/**
 * The campaign of kills: real syncs against a real Postgres and a real server, killed again and again while records
 * change.
 *
 * Promise: each chapter has a fresh warehouse and drawn settings. After a chapter the warehouse is compared with the
 * source. The first comparison follows one ordinary sync only, so that no full scan repairs a loss. The second follows
 * full scans for records that were removed without a trace. It uses `verify` and plain SQL. The report contains every
 * problem and the seed.
 */
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { Chance } from "../fuzz/Chance.ts"
import type { CommandRun } from "../support/reference.ts"
import { type Counts, type Moment, never, type Tap, type CommandWatch } from "../support/tap.ts"
import { auditHistory, auditRuns, compare } from "./Difference.ts"
import { draw, drawAtWork, isAt, type Phase, phaseOf, phases, type Place } from "./Places.ts"
import { freeze, openStand, shareOf } from "./Stand.ts"
import { type Writer, writer } from "./Writers.ts"

export interface CampaignOptions {
  readonly kills: number
  readonly postgresKills: number
  readonly zombies: number
  readonly seed: number
  readonly tell: (line: string) => void
}

const victims = ["sync", "backfill", "postgres", "zombie"] as const
export type Victim = (typeof victims)[number]

export interface CampaignReport {
  readonly seed: number
  readonly seconds: number
  readonly killed: Readonly<Record<Victim, Readonly<Record<Phase, number>>>>
  /** Commands that ended before the place of their kill. */
  readonly endedBefore: number
  /** Syncs during which Postgres was killed: those that continued, and those that were run again. */
  readonly wentOn: number
  readonly runAgain: number
  readonly runs: number
  readonly versions: number
  readonly recordsCompared: number
  readonly written: Readonly<Record<string, number>>
  readonly problems: ReadonlyArray<string>
}

const companies = [1, 2] as const
const resources = [
  "customers",
  "items",
  "orders",
  "orderlines",
  "invoices",
  "invoicelines",
  "shipments",
  "payments",
  "rmareturns",
  "areas",
  "ardailycloses"
]
const killsPerChapter = 50
const settingsOf = (path: string) => serviceV2.resources.get(path)!

/** The settings of a chapter's installation. */
interface Setting {
  readonly batchRecords: number
  readonly pageSize: number
  readonly concurrency: number
  readonly sweepMinutes: number
  readonly backfills: boolean
}

const drawSetting = (chance: Chance, chapter: number): Setting => ({
  batchRecords: chance.pick([20, 60, 200, 2_500]),
  pageSize: chance.pick([10, 25, 50]),
  concurrency: chance.pick([1, 3, 6]),
  // Alternates, so that one campaign has both.
  sweepMinutes: chapter % 2 === 0 ? 0 : 600,
  backfills: chapter % 4 < 2
})

const yamlOf = ({ batchRecords, pageSize, concurrency }: Setting, sweepMinutes: number) =>
  `companies:
${companies.map((company) => `  - { name: c${company}, token_env: TOKEN_${company}, resources: [${resources.join(", ")}] }`).join("\n")}
budget: { requests_per_minute: unlimited }
paging: { page_size: ${pageSize} }
sync:
  batch_records: ${batchRecords}
  concurrency: ${concurrency}
  overlap_seconds: 0
  sweep_every_minutes: ${sweepMinutes}
`

/** A company with its writer and its commands. */
interface Track {
  readonly company: number
  readonly chance: Chance
  readonly writer: Writer
  readonly live: Tap
  readonly beside: Tap
  /** The counts of a sync, or a backfill, that ends without a kill. */
  readonly usual: Record<"sync" | "backfill", Counts>
}

interface Attempt extends Awaited<CommandRun["done"]> {
  readonly watched: CommandWatch
  /** The command's phase at its place; null when it ended before. */
  readonly phase: Phase | null
}

const emptyPhases = (): Record<Phase, number> =>
  Object.fromEntries(phases.map((phase) => [phase, 0])) as Record<Phase, number>

export const campaign = async (options: CampaignOptions): Promise<CampaignReport> => {
  const { seed, tell } = options
  const began = process.hrtime.bigint()
  const chance = new Chance(seed)
  const problems: Array<string> = []
  const killed = Object.fromEntries(victims.map((victim) => [victim, emptyPhases()])) as Record<
    Victim,
    Record<Phase, number>
  >
  const written: Record<string, number> = {}
  const sums = { endedBefore: 0, wentOn: 0, runAgain: 0, runs: 0, versions: 0, recordsCompared: 0 }
  const problem = (text: string) => {
    problems.push(text)
    tell(`PROBLEM ${text}`)
  }
  const stand = await openStand(companies)

  /** Starts a command behind a tap. At its place it calls `strike`, and the command waits for the result. */
  const attempt = async (
    tap: Tap,
    args: ReadonlyArray<string>,
    place: Place,
    strike: (command: CommandRun, watched: CommandWatch) => Promise<void> | void,
    along: (moment: Moment) => Promise<void> | void = () => {},
    afterwards: (moment: Moment) => void = () => {}
  ): Promise<Attempt> => {
    const state: { command: CommandRun | null; phase: Phase | null; hasReported: boolean } = {
      command: null,
      phase: null,
      hasReported: false
    }
    const handleMoment = async (moment: Moment) => {
      if (state.phase !== null) return afterwards(moment)
      await along(moment)
      if (state.phase === null && isAt(place, moment)) {
        state.phase = phaseOf(watched, state.hasReported)
        await strike(state.command!, watched)
      }
    }
    const watched: CommandWatch = tap.watch((moment) =>
      handleMoment(moment).catch((error: unknown) => problem(`the campaign itself failed: ${String(error)}`))
    )
    const command = stand.start(args, tap)
    state.command = command
    command.child.stdout!.once("data", () => {
      state.hasReported = true
      if (place.kind !== "report") return
      state.phase = phaseOf(watched, true)
      void strike(command, watched)
    })
    if (place.kind === "start") {
      state.phase = phaseOf(watched, false)
      void strike(command, watched)
    }
    const ended = await command.done
    return { ...ended, watched, phase: state.phase }
  }

  const shown = ({ code, signal, stderr }: Awaited<CommandRun["done"]>) => `${code ?? signal}: ${stderr.slice(-1500)}`

  const chapter = async (
    number: number,
    share: { readonly kills: number; readonly postgresKills: number; readonly zombies: number }
  ) => {
    const setting = drawSetting(chance, number)
    tell(`chapter ${number + 1}: ${JSON.stringify(setting)}`)
    const databaseUrl = await stand.database()
    const config = stand.configure(`chapter-${number}.yaml`, yamlOf(setting, setting.sweepMinutes))
    const configAll = stand.configure(`chapter-${number}-all.yaml`, yamlOf(setting, 0))
    const direct = { databaseUrl, baseUrl: stand.reference.baseUrl }
    const ask = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
      stand.withClient(databaseUrl, async (client) => (await client.query<Row>(text, [...values])).rows)
    const of = (company: number) => ["--company", `c${company}`, "--config", config, "--json"]
    const tracks: Array<Track> = []
    for (const company of companies) {
      const drawn = new Chance(chance.below(2 ** 31))
      tracks.push({
        company,
        chance: drawn,
        writer: await writer(stand.reference, company, resources, new Chance(drawn.below(2 ** 31))),
        live: await stand.openTap(databaseUrl),
        beside: await stand.openTap(databaseUrl),
        usual: {
          sync: { requests: 20, landings: 12, messages: 100 },
          backfill: { requests: 20, landings: 12, messages: 100 }
        }
      })
    }

    /** Writes at drawn requests of a command. */
    const writing = ({ chance: drawn, writer: hand }: Track, requests: number) => {
      const at = new Set(Array.from({ length: drawn.between(0, 3) }, () => drawn.between(2, Math.max(2, requests))))
      return async (moment: Moment) => {
        if (moment.kind === "request" && moment.stage === "asked" && at.delete(moment.number)) await hand.write()
      }
    }
    const writeBefore = async ({ chance: drawn, writer: hand }: Track) => {
      for (let times = drawn.between(0, 3); times > 0; times -= 1) await hand.write()
    }

    // -------------------------------------------------------------------------------------------- commands are killed
    const killOne = async (track: Track, victim: "sync" | "backfill"): Promise<boolean> => {
      const { company, live, beside } = track
      const place = draw(track.chance, track.usual[victim])
      const range = victim === "backfill" && track.chance.is(0.5) ? ["--since", "2026-08-01"] : []
      const ended = await attempt(
        victim === "sync" ? live : beside,
        [victim, ...of(company), ...range],
        place,
        ({ child }) => {
          child.kill("SIGKILL")
          return never
        },
        writing(track, track.usual[victim].requests)
      )
      if (ended.signal === "SIGKILL" && ended.phase !== null) {
        killed[victim][ended.phase] += 1
        return true
      }
      sums.endedBefore += 1
      if (ended.code !== 0) problem(`company ${company}: ${victim} ended with ${shown(ended)}`)
      track.usual[victim] = ended.watched.counts()
      return false
    }

    const killRounds = async (track: Track, target: number) => {
      for (let left = target, idle = 0; left > 0;) {
        await writeBefore(track)
        const isBoth = setting.backfills && left > 1 && track.chance.is(0.25)
        const results = await Promise.all([killOne(track, "sync"), ...(isBoth ? [killOne(track, "backfill")] : [])])
        const hits = results.filter(Boolean).length
        left -= hits
        idle = hits > 0 ? 0 : idle + 1
        if (idle > 20) return problem(`company ${track.company}: commands end before they can be killed`)
      }
    }
    await Promise.all(tracks.map((track, place) => killRounds(track, shareOf(share.kills, tracks.length, place))))
    const count = () => victims.map((victim) => `${victim} ${Object.values(killed[victim]).reduce((a, b) => a + b, 0)}`)
    tell(`  killed so far: ${count().join(", ")}`)

    // --------------------------------------------------------------------------------------------- Postgres is killed
    for (let kills = 0, idle = 0; kills < share.postgresKills; idle += 1) {
      if (idle > share.postgresKills + 20) return problem("no sync runs while Postgres is killed")
      await Promise.all(tracks.map(writeBefore))
      const first = tracks[chance.below(tracks.length)]!
      const andChildren = chance.is(0.5)
      const place = drawAtWork(chance, first.usual.sync)
      const postgres: { restarted: Promise<void> | null } = { restarted: null }
      const all = await Promise.all(
        tracks.map((track) =>
          attempt(
            track.live,
            ["sync", ...of(track.company)],
            track === first ? place : { kind: "message", number: -1 },
            () => {
              postgres.restarted = stand.killPostgres(andChildren)
            },
            writing(track, track.usual.sync.requests)
          )
        )
      )
      if (postgres.restarted === null) {
        sums.endedBefore += 1
        first.usual.sync = all[tracks.indexOf(first)]!.watched.counts()
        continue
      }
      await postgres.restarted
      kills += 1
      killed.postgres[all[tracks.indexOf(first)]!.phase!] += 1
      for (const [index, ended] of all.entries()) {
        if (ended.code === 0) sums.wentOn += 1
        else if (ended.code === 5) {
          sums.runAgain += 1
          tell(`  a sync gave up when Postgres was killed: ${ended.stderr.trim().split("\n").slice(-2).join(" | ")}`)
          const again = await stand.start(["sync", ...of(tracks[index]!.company)], direct).done
          if (again.code !== 0) problem(`after Postgres was killed, run again: ${shown(again)}`)
        } else problem(`while Postgres was killed: ${shown(ended)}`)
      }
    }
    tell(`  killed so far: ${count().join(", ")}`)

    // --------------------------------------------------------------------------------------------------------- zombies
    interface Trace {
      readonly id: string
      readonly resource: string
      readonly counts: string
      readonly versions: string
    }
    const traces = (company: number, runs: ReadonlyArray<string>): Promise<ReadonlyArray<Trace>> => {
      const versions = resources
        .map((path) => `select _run_id from erp_history."${path}" where _company_id = ${company}`)
        .join(" union all ")
      return ask<Trace>(
        `select id::text, resource, concat_ws(' ', pages, records, inserted, updated, deleted, quarantined) as counts,
                (select count(*) from (${versions}) v where v._run_id = r.id)::text as versions
           from tributary.runs r where id = any($1::bigint[]) order by id`,
        [runs]
      )
    }
    const idsOf = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)
    const running = async (company: number) =>
      idsOf(
        await ask<{ id: string }>(
          `select id::text from tributary.runs where company_id = $1 and lane = 'live' and status = 'running'`,
          [company]
        )
      )
    /** The ids of these runs whose resource another run has acquired; a process may continue with the others. */
    const supersededRuns = async (runs: ReadonlyArray<string>) =>
      idsOf(
        await ask<{ id: string }>(
          `select r.id::text from tributary.runs r join tributary.checkpoints c using (company_id, resource, lane)
            where r.id = any($1::bigint[]) and r.fence < c.fence`,
          [runs]
        )
      )

    const zombie = async (track: Track): Promise<boolean> => {
      const { company, chance: drawn } = track
      await writeBefore(track)
      const way = drawn.pick(["superseded", "superseded, the other still at work", "fence"] as const)
      const args = ["sync", ...of(company)]
      /** Resolved when it has requested a lock twice after it was resumed. */
      const tried = Promise.withResolvers<void>()
      let tries = 0
      const wakes = (moment: Moment) => {
        if (moment.kind !== "message" || !moment.text.includes("pg_try_advisory_lock")) return
        tries += 1
        if (tries === 2) tried.resolve()
      }
      let before: ReadonlyArray<Trace> = []
      let failure: string | null = null
      const other: { attempt: Promise<Attempt> | null } = { attempt: null }

      /** Suspends a process, lets another one acquire its work, and resumes it. */
      const supersede = async ({ child, done }: CommandRun, watched: CommandWatch) => {
        await freeze(child.pid!)
        const runs = await running(company)
        if (way === "fence") {
          await ask(
            `update tributary.checkpoints c set fence = c.fence + 1 from (
               select resource from tributary.checkpoints where company_id = $1 and lane = 'live'
                and resource in (select resource from tributary.runs where company_id = $1 and lane = 'live' and status = 'running')
                for update skip locked) free
              where c.company_id = $1 and c.lane = 'live' and c.resource = free.resource`,
            [company]
          )
        } else {
          await ask(
            `select pg_terminate_backend(pid, 5000) from pg_stat_activity
              where client_port = any($1::int[]) and pid <> pg_backend_pid()`,
            [watched.databasePorts()]
          )
          if (way === "superseded") {
            const second = await stand.start(args, direct).done
            if (second.code !== 0) failure = `the second sync ended with ${shown(second)}`
          } else {
            const place = { kind: "request", number: drawn.between(2, 6), stage: "asked" } as const
            const reached = Promise.withResolvers<void>()
            other.attempt = attempt(track.beside, args, place, async () => {
              reached.resolve()
              await Promise.race([tried.promise, done])
            })
            await Promise.race([reached.promise, other.attempt])
          }
        }
        before = await traces(company, await supersededRuns(runs))
      }
      const strike = (command: CommandRun, watched: CommandWatch) =>
        supersede(command, watched).finally(() => command.child.kill("SIGCONT"))
      const place = drawAtWork(drawn, track.usual.sync)
      const ended = await attempt(track.live, args, place, strike, writing(track, 20), wakes)
      if (ended.phase === null) {
        sums.endedBefore += 1
        track.usual.sync = ended.watched.counts()
        return false
      }
      const second = await other.attempt
      if (second !== null && second.code !== 0) failure = `the second sync ended with ${shown(second)}`
      if (failure !== null) problem(`company ${company}, zombie (${way}): ${failure}`)
      if (ended.code !== 0 && ended.code !== 5)
        problem(`company ${company}, zombie (${way}) ended with ${shown(ended)}`)
      const after = await traces(company, idsOf(before))
      if (JSON.stringify(after) !== JSON.stringify(before)) {
        problem(
          `company ${company}: a zombie (${way}) wrote after another process had acquired its lane: before ${JSON.stringify(before)}, after ${JSON.stringify(after)}`
        )
      }
      if (before.length === 0) return false
      killed.zombie[ended.phase] += 1
      return true
    }
    await Promise.all(
      tracks.map(async (track, place) => {
        const target = shareOf(share.zombies, tracks.length, place)
        for (let hits = 0, idle = 0; hits < target; idle += 1) {
          if (idle > target + 20) return problem(`company ${track.company}: syncs end before they can be suspended`)
          if (await zombie(track)) hits += 1
        }
      })
    )

    // -------------------------------------------------------------------------------------------------- the comparison
    const settle = async (what: string, args: ReadonlyArray<string>) => {
      const ended = await stand.start([...args, "--json"], direct).done
      if (ended.code !== 0) problem(`${what} ended with ${shown(ended)}`)
      return ended
    }
    const state = (company: number, path: string) => stand.reference.lines(`/state?company=${company}&resource=${path}`)
    const compareAll = (when: string, apart: (track: Track, path: string) => ReadonlySet<number> | null) =>
      stand.withClient(databaseUrl, async (client) => {
        for (const track of tracks) {
          for (const path of resources) {
            const without = apart(track, path)
            if (without === null) continue
            const records = await state(track.company, path)
            sums.recordsCompared += records.length
            for (const { what, detail } of await compare(client, track.company, path, records, without)) {
              problem(`chapter ${number + 1}, company ${track.company}, ${when}: ${what} ${detail}`)
            }
          }
        }
      })

    await settle("the last sync", ["sync", "--config", config])
    await compareAll("after an ordinary sync", ({ writer: hand }, path) => {
      const { modifiedSince, parent } = settingsOf(path)
      const removed = hand.removed.get(path)!
      if (modifiedSince) return removed
      if (setting.sweepMinutes === 0) return new Set()
      return parent === null ? null : new Set([...removed, ...hand.childOnlyChanges.get(path)!])
    })
    const withRemoved = resources.filter((path) => tracks.some(({ writer: hand }) => hand.removed.get(path)!.size > 0))
    if (withRemoved.length > 0) await settle("the full sync", ["sync", "--full", ...withRemoved, "--config", configAll])
    await settle("the sync of everything", ["sync", "--config", configAll])
    if (setting.backfills) await settle("the last backfill", ["backfill", "--config", configAll])
    await settle("verify", ["verify", "--config", configAll])
    await compareAll("at the end", () => new Set())
    await stand.withClient(databaseUrl, async (client) => {
      const differences = [...(await auditRuns(client))]
      for (const path of resources) differences.push(...(await auditHistory(client, path)))
      for (const { company, what, detail } of differences) {
        problem(`chapter ${number + 1}, company ${company}: ${what}: ${detail}`)
      }
      const [runs] = (await client.query<{ n: number }>("select count(*)::int as n from tributary.runs")).rows
      sums.runs += runs!.n
      for (const path of resources) {
        const [row] = (await client.query<{ n: number }>(`select count(*)::int as n from erp_history."${path}"`)).rows
        sums.versions += row!.n
      }
    })
    for (const { writer: hand, live, beside } of tracks) {
      for (const [name, times] of Object.entries(hand.counts)) written[name] = (written[name] ?? 0) + times
      await live.close()
      await beside.close()
    }
  }

  try {
    const chapters = Math.max(
      1,
      Math.ceil(Math.max(options.kills / killsPerChapter, options.postgresKills / 10, options.zombies / 5))
    )
    for (let number = 0; number < chapters; number += 1) {
      await chapter(number, {
        kills: shareOf(options.kills, chapters, number),
        postgresKills: shareOf(options.postgresKills, chapters, number),
        zombies: shareOf(options.zombies, chapters, number)
      })
    }
  } finally {
    await stand.close()
  }
  return { seed, seconds: Number(process.hrtime.bigint() - began) / 1e9, killed, ...sums, written, problems }
}

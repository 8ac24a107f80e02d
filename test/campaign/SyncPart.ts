/**
 * The campaign of kills: syncs and backfills of two companies are killed again and again while records change.
 *
 * Promise: each chapter has a fresh warehouse and drawn settings. The first comparison follows one ordinary sync only, so
 * that no full scan repairs a loss. The second follows full scans for records that were removed without a trace.
 */
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { Chance } from "../fuzz/Chance.ts"
import type { Counts, Moment, Tap } from "../support/tap.ts"
import { type Campaign, companiesYaml, type Part, shown } from "./Campaign.ts"
import { draw, drawAtWork } from "./Places.ts"
import { shareOf } from "./Stand.ts"
import { type Writer, writer } from "./Writers.ts"

const companies = [1, 2]
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
const idleMax = 20

/** The settings of a chapter's installation. */
interface Setting {
  readonly batchRecords: number
  readonly pageSize: number
  readonly concurrency: number
}

const yamlOf = ({ batchRecords, pageSize, concurrency }: Setting, sweepMinutes: number) =>
  `${companiesYaml(companies, resources)}
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
  readonly tap: Tap
  /** The counts of a command that ends without a kill. */
  usual: Counts
}

const chapter = async (campaign: Campaign, number: number, kills: number, postgresKills: number) => {
  const { chance, count, problem, settle, stand, tell } = campaign
  const setting: Setting = {
    batchRecords: chance.pick([20, 60, 200, 2_500]),
    pageSize: chance.pick([10, 25, 50]),
    concurrency: chance.pick([1, 3, 6])
  }
  // Alternates, so that one campaign has both.
  const sweepMinutes = number % 2 === 0 ? 0 : 600
  tell(`chapter ${number + 1}: ${JSON.stringify(setting)}`)
  const databaseUrl = await stand.database()
  const direct = { databaseUrl, baseUrl: stand.reference.baseUrl }
  const config = stand.configure(`chapter-${number}.yaml`, yamlOf(setting, sweepMinutes))
  const configAll = stand.configure(`chapter-${number}-all.yaml`, yamlOf(setting, 0))
  const argsOf = (command: string, company: number) =>
    [command, "--company", `c${company}`, "--config", config, "--json"] as const
  const tracks: Array<Track> = []
  for (const company of companies) {
    tracks.push({
      company,
      chance: campaign.stream(),
      writer: await writer(stand.reference, company, resources, campaign.stream()),
      tap: await stand.openTap(databaseUrl),
      usual: { requests: 20, landings: 12, messages: 100 }
    })
  }
  const writeBefore = async ({ chance: drawn, writer: hand }: Track) => {
    for (let times = drawn.between(0, 3); times > 0; times -= 1) await hand.write()
  }
  /** Writes at drawn requests of a command. */
  const writing = ({ chance: drawn, writer: hand, usual }: Track) => {
    const at = new Set(Array.from({ length: drawn.between(0, 3) }, () => drawn.between(2, Math.max(2, usual.requests))))
    return async (moment: Moment) => {
      if (moment.kind === "request" && moment.stage === "asked" && at.delete(moment.number)) await hand.write()
    }
  }

  const killRounds = async (track: Track, target: number) => {
    for (let left = target, idle = 0; left > 0;) {
      if (idle > idleMax) return problem(`company ${track.company}: commands end before they can be killed`)
      await writeBefore(track)
      const args = argsOf(track.chance.is(0.8) ? "sync" : "backfill", track.company)
      const ended = await campaign.kill(track.tap, args, draw(track.chance, track.usual, "read"), writing(track))
      if (ended.signal === "SIGKILL") {
        left -= 1
        idle = 0
        continue
      }
      idle += 1
      if (ended.code !== 0) problem(`company ${track.company}: ${args[0]} ended with ${shown(ended)}`)
      track.usual = ended.counts
    }
  }
  await Promise.all(tracks.map((track, place) => killRounds(track, shareOf(kills, tracks.length, place))))

  for (let done = 0, idle = 0; done < postgresKills; idle += 1) {
    if (idle > postgresKills + idleMax) return problem("no sync runs while Postgres is killed")
    const track = chance.pick(tracks)
    await writeBefore(track)
    const args = argsOf("sync", track.company)
    const place = drawAtWork(chance, track.usual, "read")
    const ended = await campaign.killPostgres(track.tap, args, place, chance.is(0.5))
    if (ended === null) continue
    done += 1
    if (ended.code === 5) await settle(args.slice(0, -1), direct)
    else if (ended.code !== 0) problem(`while Postgres was killed: ${shown(ended)}`)
    count(ended.code === 0 ? "syncs that continued when Postgres was back" : "syncs that were run again")
  }

  await settle(["sync", "--config", config], direct)
  const handOf = (company: number) => tracks.find((track) => track.company === company)!.writer
  await campaign.compareAll(databaseUrl, "after an ordinary sync", companies, resources, (company, path) => {
    const { modifiedSince, parent } = serviceV2.resources.get(path)!
    const { removed, childOnlyChanges } = handOf(company)
    if (modifiedSince) return removed.get(path)!
    if (sweepMinutes === 0) return new Set()
    return parent === null ? null : new Set([...removed.get(path)!, ...childOnlyChanges.get(path)!])
  })
  const withRemoved = resources.filter((path) => tracks.some(({ writer: hand }) => hand.removed.get(path)!.size > 0))
  if (withRemoved.length > 0) await settle(["sync", "--full", ...withRemoved, "--config", configAll], direct)
  for (const command of ["sync", "backfill", "verify"]) await settle([command, "--config", configAll], direct)
  await campaign.compareAll(databaseUrl, "at the end", companies, resources)
  await campaign.audit(databaseUrl, resources)
  for (const { writer: hand, tap } of tracks) {
    for (const [what, times] of Object.entries(hand.counts)) count(`records ${what}`, times)
    await tap.close()
  }
}

export const syncs: Part = {
  options: { kills: 200, "postgres-kills": 20 },
  companies: () => companies,
  run: async (campaign, { kills, "postgres-kills": postgresKills }) => {
    const chapters = Math.max(1, Math.ceil(Math.max(kills! / killsPerChapter, postgresKills! / 10)))
    for (let number = 0; number < chapters; number += 1)
      await chapter(campaign, number, shareOf(kills!, chapters, number), shareOf(postgresKills!, chapters, number))
  }
}

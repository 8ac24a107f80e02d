/**
 * The campaign of pushes: `tributary push` behind a proxy with faults is killed again and again, and started again with
 * the same arguments.
 *
 * Promise: in the end every record has an outcome, the source holds every record of the files exactly once and no other,
 * and the warehouse shows it before and after one sync. No key was ever used for two requests.
 */
import type { Counts } from "../support/tap.ts"
import { type Attempt, type Campaign, companiesYaml, type Part, shown } from "./Campaign.ts"
import { draw, drawAtWork } from "./Places.ts"
import {
  change,
  differences,
  draw as drawRecord,
  type ExpectedRecord,
  ndjson,
  type PushRecord,
  resource
} from "./PushFile.ts"
import { openPushFaults } from "./PushFaults.ts"
import { shareOf } from "./Stand.ts"

/** The dialects of the source, a chapter for each. */
const dialects = [
  { batchStatus: "integer", uniqueExternalid: false },
  { batchStatus: "text", uniqueExternalid: false },
  { batchStatus: "integer", uniqueExternalid: true }
] as const
const companyOf = (chapter: number) => 11 + chapter

/** Client timeout and number of attempts. One second is the smallest timeout that can be configured. */
const clientTimeoutSeconds = 1
const attemptsMax = 3
const stopped = 5
const runsMax = 12
const idleMax = 10
const usual: Counts = { requests: 8, landings: 20, messages: 100 }

interface Share {
  readonly kills: number
  readonly postgresKills: number
  readonly records: number
}

const chapter = async (campaign: Campaign, number: number, share: Share) => {
  const { chance, count, problem, stand, tell } = campaign
  const { reference } = stand
  const company = companyOf(number)
  const setting = {
    batchSize: chance.pick([5, 10, 25]),
    concurrency: chance.pick([2, 4, 8]),
    useBatch: chance.is(0.85)
  }
  tell(`chapter ${number + 1}: ${JSON.stringify({ ...dialects[number], ...setting })}`)
  await reference.control("PUT", "/dialect", dialects[number])
  const databaseUrl = await stand.database()
  const ask = <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) =>
    campaign.ask<Row>(databaseUrl, text, values)
  const config = stand.configure(
    `push-${number}.yaml`,
    `${companiesYaml([company], [resource])}
requests: { timeout_seconds: ${clientTimeoutSeconds}, attempts_max: ${attemptsMax} }
push:
  batch_size: ${setting.batchSize}
  concurrency: ${setting.concurrency}
  use_batch: ${setting.useBatch}
`
  )
  const direct = { databaseUrl, baseUrl: reference.baseUrl }
  // Applies the migrations and creates the tables, so that only pushes are killed.
  await campaign.settle(["sync", "--config", config], direct)
  const proxy = await openPushFaults({
    upstream: reference.baseUrl,
    chance: campaign.stream(),
    clientTimeoutMs: clientTimeoutSeconds * 1000,
    count,
    misused: problem
  })
  stand.alsoClose(proxy.close)
  const tap = await stand.openTap(databaseUrl, proxy.baseUrl)

  const expected = new Map<string, ExpectedRecord>()
  let files = 0
  /** Writes a file. Returns the arguments of the command that pushes it. */
  const give = (records: ReadonlyArray<Partial<PushRecord>>, ...flags: ReadonlyArray<string>) => {
    const file = stand.configure(`push-${number}-${(files += 1)}.ndjson`, ndjson(records))
    return ["push", resource, ...flags, "--company", `c${company}`, "--config", config, "--json", "--from", file]
  }
  const giveCreates = (times: number) =>
    give(
      Array.from({ length: times }, () => {
        const record = drawRecord(chance, `${company}-${expected.size}`)
        expected.set(record.externalid, { record, changes: 0, isCancelled: false })
        return record
      })
    )
  const some = (times: number): ReadonlyArray<ExpectedRecord> => {
    const all = [...expected.values()].filter(({ isCancelled }) => !isCancelled)
    return Array.from({ length: Math.min(times, all.length) }, () => all.splice(chance.below(all.length), 1)[0]!)
  }
  const giveUpdates = (times: number) => {
    const records = some(times).map((one, place) => {
      // One record in ten is pushed unchanged.
      if (place % 10 !== 9) {
        one.record = change(chance, one.record)
        one.changes += 1
      }
      const { externalid, description, estimatedhours, assignrole } = one.record
      return { externalid, description, estimatedhours, assignrole }
    })
    return give(records, "--update")
  }
  const giveCancels = (times: number) => {
    const records = some(times).map((one) => {
      one.isCancelled = true
      return { externalid: one.record.externalid }
    })
    return give(records, "--cancel")
  }

  const checkEnd = (run: Attempt) => {
    if (run.signal === "SIGKILL" || run.code === 0) return
    if (run.code === stopped) count("pushes that stopped and continued later")
    else problem(`a push ended with ${shown(run)}`)
  }
  const finish = async (args: ReadonlyArray<string>) => {
    for (let runs = 1; ; runs += 1) {
      const run = await campaign.attempt(tap, args, null)
      checkEnd(run)
      if (run.code === 0) break
      if (run.code !== stopped || runs === runsMax) return problem(`a push does not finish: ${shown(run)}`)
    }
    const left = await ask("select 1 from tributary.outbox where state in ('pending', 'in_flight')")
    if (left.length > 0) problem("a push reports that it is finished, and records are pending")
  }
  /** Kills pushes until so many kills have happened. Pushes new records when a push finishes before. */
  const storm = async (kills: number, next: () => ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
    let args = next()
    for (let done = 0, idle = 0; done < kills;) {
      if (idle > idleMax) {
        problem("pushes end before they can be killed")
        break
      }
      const run = await campaign.kill(tap, args, draw(chance, usual, "write"))
      checkEnd(run)
      if (run.signal === "SIGKILL") {
        done += 1
        idle = 0
        continue
      }
      idle += 1
      if (run.code !== 0) continue
      await finish(args)
      args = next()
    }
    await finish(args)
    return args
  }

  const creates = Math.ceil(share.kills * 0.65)
  const updates = Math.ceil((share.kills - creates) * 0.6)
  const last = await storm(creates, () => giveCreates(expected.size === 0 ? Math.max(30, share.records) : 150))
  // A finished push that is repeated sends nothing.
  const again = await stand.start(last, direct).done
  const repeated = JSON.parse(again.stdout === "" ? "{}" : again.stdout) as {
    readonly calls?: { readonly sent: number }
  }
  if (again.code !== 0 || repeated.calls?.sent !== 0)
    problem(`the same records pushed again: ${again.stdout} ${shown(again)}`)
  await storm(updates, () => giveUpdates(30))
  await storm(share.kills - creates - updates, () => giveCancels(12))
  for (let kills = 0; kills < share.postgresKills; kills += 1) {
    const args = giveCreates(40)
    const place = drawAtWork(chance, { requests: 3, landings: 5, messages: 0 }, "write")
    const run = await campaign.killPostgres(tap, args, place, chance.is(0.5))
    if (run !== null) checkEnd(run)
    await finish(args)
  }
  // The next push closes the requests that the last killed one left open.
  await finish(giveCreates(10))
  await proxy.flush()

  interface Row {
    readonly externalid: string
    readonly operation: string
    readonly state: string
    readonly reason: string | null
    readonly differences: unknown
    readonly record_id: string | null
  }
  const keys = new Set<string>()
  for (const row of await ask<Row>("select * from tributary.outbox order by id")) {
    const { externalid, operation, state } = row
    if (operation === "create") keys.add(externalid)
    count(`${operation}s ${state}`)
    if (!expected.has(externalid)) problem(`${operation} of ${externalid} was in no push`)
    else if (state !== "done" || row.record_id === null)
      problem(`${operation} of ${externalid} is ${state}: ${row.reason}`)
    else if (row.differences !== null && JSON.stringify(row.differences) !== "[]")
      problem(`${operation} of ${externalid} is done with differences: ${JSON.stringify(row.differences)}`)
  }
  for (const key of expected.keys()) if (!keys.has(key)) problem(`${key} was pushed and is not in the outbox`)
  for (const { id } of await ask<{ id: string }>(
    "select id from tributary.push_requests where state = 'open' or body is not null"
  ))
    problem(`request ${id} is open, or keeps its body`)
  for (const { id } of await ask<{ id: string }>("select id from tributary.pushes where finished_at is null"))
    problem(`push ${id} is not finished`)
  const of = `company=${company}&resource=${resource}`
  const [state, history] = [await reference.lines(`/state?${of}`), await reference.lines(`/history?${of}`)]
  for (const text of differences(expected, state, history)) problem(`chapter ${number + 1}: ${text}`)
  // Every written record is in the warehouse already, as it was answered.
  await campaign.compareAll(databaseUrl, "before the last sync", [company], [resource])
  await campaign.settle(["sync", "--config", config], direct)
  await campaign.settle(["verify", "--config", config], direct)
  await campaign.compareAll(databaseUrl, "after the last sync", [company], [resource])
  await campaign.audit(databaseUrl, [resource])
}

export const pushes: Part = {
  options: { kills: 50, "postgres-kills": 3, records: 900 },
  companies: () => dialects.map((_, number) => companyOf(number)),
  run: async (campaign, { kills, "postgres-kills": postgresKills, records }) => {
    for (const number of dialects.keys()) {
      await chapter(campaign, number, {
        kills: shareOf(kills!, dialects.length, number),
        postgresKills: shareOf(postgresKills!, dialects.length, number),
        records: shareOf(records!, dialects.length, number)
      })
    }
  }
}

/** `tributary status`: what the warehouse holds and how far each resource has been read. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as SqlClient from "effect/sql/SqlClient"
import { describePause } from "../budget/Pause.ts"
import { fingerprintOf } from "../budget/PostgresPermitStore.ts"
import * as BudgetState from "../budget/BudgetState.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import * as FieldFinding from "../warehouse/FieldFinding.ts"
import { identifier } from "../warehouse/Identifier.ts"
import { learnedOverlap } from "../warehouse/Overlap.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { control } from "../postgres/Tables.ts"
import * as Query from "../postgres/Query.ts"
import * as PushPause from "../outbox/PushPause.ts"
import * as Outbox from "../status/Outbox.ts"
import * as Schedule from "../status/Schedule.ts"
import * as Webhooks from "../status/Webhooks.ts"
import { config, configuration, demoWarehouse, json, reported } from "./Command.ts"
import * as Output from "./Output.ts"
import * as Warehouse from "./Warehouse.ts"

export interface ResourceStatus {
  readonly companyId: bigint
  readonly resource: string
  readonly rows: number
  readonly deleted: number
  readonly cursor: string | null
  /** How the last run ended. */
  readonly lastRun: string | null
  readonly lastRunAt: string | null
  /** When a run last ended well, and how long ago that is. */
  readonly freshAt: string | null
  readonly ageMs: number | null
  readonly quarantined: number
  readonly error: string | null
  readonly remedy: string | null
  /** What the last run had to tell although it went well. */
  readonly note: string | null
  /** Why the next run reads every record; null when it need not. */
  readonly fullWanted: string | null
  /** How far before its cursor a scan begins at least because rows were late; what is configured may be longer. */
  readonly overlapMs: number
  /** What full scans found out about fields. */
  readonly findings: ReadonlyArray<FieldFinding.FieldFinding>
}

/** The status of every resource that a run has touched. */
export const read = Effect.fn("status.read")(function* (datasets: Datasets) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const checkpoints = yield* Query.run(
    control
      .selectFrom("tributary.checkpoints as c")
      .leftJoin(
        (eb) =>
          eb
            .selectFrom("tributary.runs")
            .distinctOn(["company_id", "resource"])
            .selectAll()
            .where("lane", "=", "live")
            .orderBy("company_id")
            .orderBy("resource")
            .orderBy("id", "desc")
            .as("r"),
        (join) => join.onRef("r.company_id", "=", "c.company_id").onRef("r.resource", "=", "c.resource")
      )
      .leftJoin(
        (eb) =>
          eb
            .selectFrom("tributary.runs")
            .select((e) => ["company_id", "resource", e.fn.max("began_at").as("at")])
            .where("status", "=", "done")
            .where("lane", "=", "live")
            // What a parent's change brought in says nothing of the other records.
            .where("kind", "in", ["full", "incremental"])
            .groupBy(["company_id", "resource"])
            .as("ok"),
        (join) => join.onRef("ok.company_id", "=", "c.company_id").onRef("ok.resource", "=", "c.resource")
      )
      .leftJoin(
        (eb) =>
          eb
            .selectFrom("tributary.quarantine")
            .select((e) => ["company_id", "resource", e.fn.countAll().as("records")])
            .where("resolved_at", "is", null)
            .groupBy(["company_id", "resource"])
            .as("q"),
        (join) => join.onRef("q.company_id", "=", "c.company_id").onRef("q.resource", "=", "c.resource")
      )
      .select([
        "c.company_id",
        "c.resource",
        "c.cursor",
        "r.status",
        "r.began_at",
        "r.error",
        "r.note",
        "c.full_wanted",
        "r.remedy",
        "ok.at as fresh_at",
        "q.records as quarantined"
      ])
      .where("c.lane", "=", "live")
      .orderBy("c.company_id")
      .orderBy("c.resource")
  )
  const overlaps = yield* sql.unsafe<{ company: bigint; resource: string; ms: number }>(
    `select c.company_id as company, c.resource, ${learnedOverlap("c")}::float8 as ms
       from tributary.checkpoints c where c.lane = 'live' and c.overlap_ms > 0`
  )
  const findings = yield* FieldFinding.read
  // A resource whose name no table can have stands under another one.
  const mapped = yield* sql<{ path: string; name: string }>`
    select api_name as path, sql_name as name from tributary.names where scope = ''`
  const tableNames = new Map(mapped.map(({ path, name }) => [path, name]))
  const tables = yield* sql<{ name: string }>`
    select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = ${datasets.current} and c.relkind = 'r'`
  const known = new Set(tables.map(({ name }) => name))
  const counted = new Map<string, { rows: number; deleted: number }>()
  for (const resource of new Set(checkpoints.map((checkpoint) => checkpoint.resource))) {
    const table = tableNames.get(resource) ?? resource
    if (!known.has(table)) continue
    const counts = yield* sql.unsafe<{ company: bigint; rows: number; deleted: number }>(
      `select "_company_id" as company, (count(*) filter (where "_deleted_at" is null))::int as rows,
              (count(*) filter (where "_deleted_at" is not null))::int as deleted
         from ${identifier(datasets.current)}.${identifier(table)} group by 1`
    )
    for (const { company, rows, deleted } of counts) counted.set(`${company} ${resource}`, { rows, deleted })
  }
  return checkpoints.map((row): ResourceStatus => {
    const counts = counted.get(`${row.company_id} ${row.resource}`)
    return {
      companyId: row.company_id,
      resource: row.resource,
      rows: counts?.rows ?? 0,
      deleted: counts?.deleted ?? 0,
      cursor: row.cursor,
      lastRun: row.status,
      lastRunAt: row.began_at?.toISOString() ?? null,
      freshAt: row.fresh_at?.toISOString() ?? null,
      ageMs: row.fresh_at === null ? null : now - row.fresh_at.getTime(),
      quarantined: Number(row.quarantined ?? 0),
      error: row.error,
      remedy: row.remedy,
      note: row.note,
      fullWanted: row.full_wanted,
      overlapMs: overlaps.find((one) => one.company === row.company_id && one.resource === row.resource)?.ms ?? 0,
      findings: findings
        .filter((one) => one.companyId === row.company_id && one.resource === row.resource)
        .map(({ field, kind, rows, runs }) => ({ field, kind, rows, runs }))
    }
  })
})

const age = (milliseconds: number | null): string =>
  milliseconds === null ? "never" : `${Output.elapsed(milliseconds)} ago`

/** An instant to the second. */
const at = (instant: string): string => `${instant.slice(0, 19)}Z`

/** A log that is read with each look is no older than the look, about. */
const staleLogMs = 60_000

const subscriptionLines = (subscription: Webhooks.SubscriptionStatus): ReadonlyArray<string> => {
  const { id, url, state, paused, failCount, lastDeliveryAt, disabledAt, checkedMs, logReadMs, problem } = subscription
  const told = [
    disabledAt === null ? state : `${state} since ${at(disabledAt)}`,
    ...(paused && state === "disabled" ? ["paused as well"] : []),
    ...(failCount === null || failCount === 0 ? [] : [`${Output.count(failCount)} failed in a row`]),
    lastDeliveryAt === null ? "nothing delivered yet" : `last delivery ${at(lastDeliveryAt)}`,
    `looked at ${age(checkedMs)}`,
    ...(logReadMs !== null && logReadMs - checkedMs < staleLogMs
      ? []
      : [logReadMs === null ? "its log was never read" : `its log was read ${age(logReadMs)}`])
  ]
  const remedy = {
    active: null,
    paused: `npx tributary webhooks resume ${id}`,
    disabled: paused
      ? `npx tributary webhooks resume ${id}`
      : "it is enabled again by npx tributary serve as soon as a test delivery arrives",
    gone: "npx tributary webhooks ensure"
  }[state]
  return [
    `    subscription ${id}: ${told.join(", ")}`,
    `      ${url}`,
    ...(remedy === null ? [] : [`      what to do: ${remedy}`]),
    ...(problem === null
      ? []
      : [
          `      the last look at it failed: ${problem}`,
          ...(subscription.remedy === null ? [] : [`      what to do: ${subscription.remedy}`])
        ])
  ]
}

const inboxLines = (inbox: Webhooks.InboxStatus): ReadonlyArray<string> => {
  const { waiting, oldestMs, done, ignored, dead, deadReasons } = inbox
  const oldest = oldestMs === null ? "" : ` (the oldest came ${age(oldestMs)})`
  const settled = `${Output.count(done)} done and ${Output.count(ignored)} ignored in 24 h`
  return [
    `    inbox: ${Output.count(waiting)} waiting${oldest}, ${settled}, ${Output.count(dead)} dead`,
    ...deadReasons.map((reason) => `      dead: ${reason}`),
    ...(dead === 0 ? [] : ["      what to do: npx tributary webhooks replay --dead"])
  ]
}

const gapLine = ({ resource, cause, detail, beganAt, endedAt, reason }: Webhooks.GapStatus): string => {
  const since = beganAt === null ? "since nobody knows when" : `since ${at(beganAt)}`
  const now = endedAt === null ? "it goes on" : `it ended ${at(endedAt)} and is to be read again`
  return `    gap: ${resource} (${cause}) ${since}: ${detail}; ${now}${reason === null ? "" : `: ${reason}`}`
}

/** What is known of events, in lines. */
export const webhookLines = (companies: ReadonlyArray<Webhooks.CompanyStatus>): ReadonlyArray<string> =>
  companies.flatMap(({ company, subscriptions, inbox, gaps, closed, receivers, receiverSeenMs }) => [
    `  webhooks of ${company}:`,
    ...(subscriptions.length === 0 ? ["    no subscription is known"] : subscriptions.flatMap(subscriptionLines)),
    receivers > 0
      ? `    receivers: ${Output.count(receivers)} alive`
      : `    receivers: none alive (${receiverSeenMs === null ? "there never was one" : `the last one ${age(receiverSeenMs)}`}); start one with: npx tributary serve`,
    ...inboxLines(inbox),
    ...gaps.map(gapLine),
    ...closed.map(
      ({ resource, cause, closedBy, closedMs }) => `    closed: ${resource} (${cause}) ${age(closedMs)} by ${closedBy}`
    )
  ])

/** What is to be written to the source and is not settled, or was refused. */
export const outboxLines = (companies: ReadonlyArray<Outbox.OutboxStatus>): ReadonlyArray<string> =>
  companies.map(({ company, waiting, sending, refused, oldestMs }) => {
    const oldest = oldestMs === null ? "" : ` (the oldest came ${age(oldestMs)})`
    const open = `${Output.count(waiting + sending)} waiting${oldest}`
    return `  outbox of ${company}: ${open}, ${Output.count(refused)} refused; see them with npx tributary push status`
  })

/** Of so many tasks the names are told; the others are counted. */
const namesMax = 8

const named = (tasks: ReadonlyArray<Schedule.TaskStatus>): string => {
  const names = tasks.map(({ resource, kind }) => (kind === "sync" ? resource : `backfill of ${resource}`))
  const told = names.slice(0, namesMax).join(", ")
  return names.length > namesMax ? `${told} and ${Output.count(names.length - namesMax)} more` : told
}

/** What runs by schedule, runs now, rests and fails, in lines; nothing where nobody has ever served. */
export const scheduleLines = ({ processes, tasks }: Schedule.ScheduleStatus): ReadonlyArray<string> => {
  const companies = [...new Set(tasks.map(({ company }) => company))]
  const alive =
    processes > 0
      ? `${Output.count(processes)} alive`
      : "none alive, so that nothing runs by schedule; start one with: npx tributary serve"
  return companies.flatMap((company, index) => {
    const own = tasks.filter((task) => task.company === company)
    const syncs = own.filter(({ kind, schedule }) => kind === "sync" && schedule !== null)
    const running = own.filter(({ isRunning }) => isRunning)
    const paused = own.filter(({ pausedAt }) => pausedAt !== null)
    const asked = own.filter(({ askedAt, isRunning }) => askedAt !== null && !isRunning)
    const skipped = own.filter(({ status }) => status === "skipped")
    const failing = own.filter(({ status, isRunning }) => status === "failed" && !isRunning)
    const [next] = syncs
      .filter(({ isRunning, pausedAt, nextInMs }) => !isRunning && pausedAt === null && nextInMs !== null)
      .sort((a, b) => a.nextInMs! - b.nextInMs!)
    const when = (ms: number) => (ms <= 0 ? `due since ${Output.elapsed(-ms)}` : `in ${Output.elapsed(ms)}`)
    return [
      ...(index === 0 ? [`  processes of serve: ${alive}`] : []),
      `  schedule of ${company}: ${Output.count(syncs.length)} resources` +
        (next === undefined ? "" : `, next ${next.resource} ${when(next.nextInMs!)}`),
      ...(running.length === 0 ? [] : [`    running: ${named(running)}`]),
      ...(asked.length === 0 ? [] : [`    asked for: ${named(asked)}`]),
      ...(paused.length === 0 ? [] : [`    paused: ${named(paused)}`]),
      ...(skipped.length === 0 ? [] : [`    skipped, since the token may not read them: ${named(skipped)}`]),
      // What stops a company is the same sentence for all of its resources.
      ...[...new Set(failing.map(({ error }) => error))].flatMap((error) => {
        const same = failing.filter((task) => task.error === error)
        const { remedy, nextInMs } = same[0]!
        const again = nextInMs === null ? "" : `; again ${nextInMs <= 0 ? "soon" : when(nextInMs)}`
        return [
          `    failed: ${named(same)}: ${error ?? "nobody knows why"}${again}`,
          ...(remedy === null ? [] : [`      what to do: ${remedy}`])
        ]
      })
    ]
  })
}

/** Companies whose requests are paused. */
const pauses = (settings: Configuration) => {
  const named = settings.companies.map(({ name, token, url }) => ({
    name,
    fingerprint: fingerprintOf(url, token, settings.budgetScope)
  }))
  return Effect.map(BudgetState.readBudgets(named.map(({ fingerprint }) => fingerprint)), (standings) =>
    named.flatMap(({ fingerprint, name }) => {
      const found = standings.find((one) => one.fingerprint === fingerprint)
      const until = found?.heldUntil ?? null
      return until === null ? [] : [{ company: name, until, by: found?.heldBy ?? null }]
    })
  )
}

const pauseLines = (all: Effect.Success<ReturnType<typeof pauses>>): ReadonlyArray<string> =>
  all.flatMap(({ by, company, until }) => [
    `  requests of ${company} are paused until ${at(until.toISOString())}: ${by === null ? "an answer asked to wait" : describePause(by)}`,
    "    what to do: wait, or when the fault is gone: npx tributary budget release"
  ])

export const command = Command.make(
  "status",
  { config, demo: demoWarehouse, json },
  Effect.fn(function* (flags) {
    const {
      resources: statuses,
      webhooks,
      outbox,
      schedule,
      paused,
      held
    } = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        return yield* Warehouse.provide(
          Effect.all({
            resources: read(settings.datasets),
            webhooks: Webhooks.read,
            outbox: Outbox.open,
            schedule: Schedule.read,
            paused: pauses(settings),
            held: PushPause.read
          }),
          Warehouse.locationOf(settings, flags.demo)
        )
      })
    )
    if (flags.json)
      return yield* Output.print(Output.toJson({ resources: statuses, paused, schedule, webhooks, outbox, held }))
    const beside = [
      ...pauseLines(paused),
      ...scheduleLines(schedule),
      ...(held === null ? [] : [`  ${PushPause.sentence(held)}; what to do: ${PushPause.releaseCommand}`]),
      ...outboxLines(outbox),
      ...webhookLines(webhooks)
    ]
    const tellBeside = Effect.forEach(beside, Output.print, { discard: true })
    if (statuses.length === 0) {
      yield* Output.print("Nothing has been synced yet. Start with: npx tributary sync")
      return yield* tellBeside
    }
    yield* Output.print(
      Output.table(
        ["company", "resource", "rows", "deleted", "quarantine", "last run", "fresh", "cursor"],
        statuses.map((status) => [
          status.companyId.toString(),
          status.resource,
          Output.count(status.rows),
          Output.count(status.deleted),
          Output.count(status.quarantined),
          status.lastRun ?? "none",
          age(status.ageMs),
          status.cursor ?? ""
        ]),
        ["right", "left", "right", "right", "right"]
      )
    )
    for (const { companyId, resource, note, fullWanted, overlapMs, findings } of statuses) {
      if (overlapMs > 0) {
        yield* Output.print(
          `\n  company ${companyId}, ${resource}: rows were late, so that scans begin ${Output.elapsed(overlapMs)} before the cursor, ` +
            `half of it for each week without one; to forget it: npx tributary sync ${resource} --reset-overlap`
        )
      }
      for (const finding of findings)
        yield* Output.print(`\n  company ${companyId}, ${FieldFinding.describeFinding(resource, finding)}`)
      if (note !== null) yield* Output.print(`\n  company ${companyId}, ${resource}: ${note}`)
      if (fullWanted !== null) {
        yield* Output.print(`\n  company ${companyId}, ${resource} is read in full by the next run: ${fullWanted}`)
      }
    }
    for (const { companyId, resource, lastRun, error, remedy } of statuses) {
      if (error === null || lastRun === "done") continue
      yield* Output.print(`\n  company ${companyId}, ${resource}: ${error}`)
      if (remedy !== null) yield* Output.print(`    what to do: ${remedy}`)
    }
    if (beside.length > 0) yield* Output.print("")
    yield* tellBeside
  })
).pipe(
  Command.withDescription("Show what the warehouse holds, how fresh it is, and what went wrong last"),
  Command.withExamples([
    { command: "tributary status", description: "A table of every resource" },
    { command: "tributary status --demo --json", description: "The demo's warehouse, for a machine" }
  ])
)

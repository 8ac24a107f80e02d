/** The output of `tributary status` for people. */
import type * as Activity from "../../status/Activity.ts"
import type { InstallationState } from "../../status/CompanyStates.ts"
import type * as Invariants from "../../status/Invariants.ts"
import { companyStates } from "../../tasks/CountCompanies.ts"
import type { Problem } from "../../status/Problems.ts"
import type * as Outbox from "../../status/Outbox.ts"
import type * as Schedule from "../../status/Schedule.ts"
import type * as Webhooks from "../../status/Webhooks.ts"
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import * as FieldFinding from "../../warehouse/FieldFinding.ts"
import * as TableDamage from "../../warehouse/TableDamage.ts"
import * as Output from "../Output.ts"
import { problemLines } from "../Problems.ts"
import type { ResourceStatus } from "./Resources.ts"

/** Installations that are listed for people. */
const installationsMax = 20

/** The companies of each installation by state, as serve last counted them. */
export const installationLines = (installations: ReadonlyArray<InstallationState>): ReadonlyArray<string> => [
  ...installations.slice(0, installationsMax).map(({ byState, companies, installation }) => {
    const counted = companyStates.map((state) => Output.counted(byState[state], state))
    const left = companies - companyStates.reduce((sum, state) => sum + byState[state], 0)
    return `  installation ${installation}: ${Output.plural(companies, "company", "companies")}: ${Output.list([...counted, Output.counted(left, "not counted yet")])}`
  }),
  ...(installations.length > installationsMax
    ? [`  and ${Output.count(installations.length - installationsMax)} more installations; --json shows all`]
    : [])
]

const age = (milliseconds: number | null): string =>
  milliseconds === null ? "never" : `${Output.elapsed(milliseconds)} ago`

/** An instant to the second. */
const at = (instant: string): string => `${instant.slice(0, 19)}Z`

/** A log that was read at least this long before the check is out of date. */
const staleLogMs = 60_000

const subscriptionLines = (subscription: Webhooks.SubscriptionStatus): ReadonlyArray<string> => {
  const { id, url, state, paused, failCount, lastDeliveryAt, disabledAt, checkedMs, logReadMs, problem } = subscription
  const { testedAt, testError } = subscription
  const parts = [
    disabledAt === null ? state : `${state} since ${at(disabledAt)}`,
    ...(paused && state === "disabled" ? ["paused as well"] : []),
    ...(failCount === null || failCount === 0 ? [] : [`${Output.count(failCount)} failed in a row`]),
    lastDeliveryAt === null ? "nothing delivered yet" : `last delivery ${at(lastDeliveryAt)}`,
    ...(testedAt === null
      ? []
      : [
          `last test ${testError === null ? "succeeded" : "failed"} at ${at(testedAt)}${testError === null ? "" : `: ${testError}`}`
        ]),
    `checked ${age(checkedMs)}`,
    ...(logReadMs !== null && logReadMs - checkedMs < staleLogMs
      ? []
      : [logReadMs === null ? "its log was never read" : `its log was read ${age(logReadMs)}`])
  ]
  const remedy = {
    active:
      SubscriptionStore.deliveryStateOf(subscription) === "test_failed"
        ? `check the address and tributary serve, then run tributary webhooks test ${id}`
        : null,
    paused: `tributary webhooks resume ${id}`,
    disabled: paused
      ? `tributary webhooks resume ${id}`
      : "it is enabled again by tributary serve as soon as a test delivery arrives",
    deleted: "tributary webhooks ensure"
  }[state]
  return [
    `    subscription ${id}: ${parts.join(", ")}`,
    `      ${url}`,
    ...(remedy === null ? [] : [`      what to do: ${remedy}`]),
    ...(problem === null
      ? []
      : [
          `      the last check failed: ${problem}`,
          ...(subscription.remedy === null ? [] : [`      what to do: ${subscription.remedy}`])
        ])
  ]
}

const inboxLines = (inbox: Webhooks.InboxStatus): ReadonlyArray<string> => {
  const { waiting, oldestMs, done, ignored, dead } = inbox
  const oldest = oldestMs === null ? "" : ` (the oldest came ${age(oldestMs)})`
  const resolved = `${Output.count(done)} done and ${Output.count(ignored)} ignored in 24 h`
  return [`    inbox: ${Output.count(waiting)} waiting${oldest}, ${resolved}, ${Output.count(dead)} dead`]
}

const gapLine = ({ resource, cause, detail, beganAt, endedAt, reason }: Webhooks.GapStatus): string => {
  const since = beganAt === null ? "since an unknown time" : `since ${at(beganAt)}`
  const now = endedAt === null ? "it is open" : `it ended ${at(endedAt)} and will be read again`
  return `    gap: ${resource} (${cause.replaceAll("_", " ")}) ${since}: ${detail}; ${now}${reason === null ? "" : `: ${reason}`}`
}

/** The subscriptions, processes, inbox and delivery gaps of each company. */
export const webhookLines = (companies: ReadonlyArray<Webhooks.CompanyStatus>): ReadonlyArray<string> =>
  companies.flatMap(({ company, subscriptions, inbox, gaps, closed, receivers, receiverSeenMs }) => [
    `  webhooks of ${company}:`,
    ...(subscriptions.length === 0 ? ["    no subscription is known"] : subscriptions.flatMap(subscriptionLines)),
    receivers > 0
      ? `    receivers: ${Output.count(receivers)} alive`
      : `    receivers: none alive (${receiverSeenMs === null ? "none ever ran" : `the last one ${age(receiverSeenMs)}`}); start one with: tributary serve`,
    ...inboxLines(inbox),
    ...gaps.map(gapLine),
    ...closed.map(
      ({ resource, cause, closedBy, closedMs }) =>
        `    closed: ${resource} (${cause.replaceAll("_", " ")}) ${age(closedMs)} by ${closedBy}`
    )
  ])

/** The pending and rejected records of each outbox. */
export const outboxLines = (companies: ReadonlyArray<Outbox.OutboxStatus>): ReadonlyArray<string> =>
  companies.map(({ company, waiting, sending, rejected, oldestMs }) => {
    const oldest = oldestMs === null ? "" : ` (the oldest came ${age(oldestMs)})`
    const open = `${Output.count(waiting + sending)} waiting${oldest}`
    return `  outbox of ${company}: ${open}, ${Output.count(rejected)} rejected; see them with tributary push status`
  })

/** The number of rules in each state. */
export const invariantLines = (all: ReadonlyArray<Invariants.InvariantSummary>): ReadonlyArray<string> => {
  if (all.length === 0) return []
  const counts = [
    Output.counted(all.filter(({ open }) => open > 0).length, "violated"),
    Output.counted(all.filter(({ failed }) => failed > 0).length, "failed"),
    Output.counted(all.filter(({ evaluated }) => evaluated === 0).length, "not evaluated yet"),
    Output.counted(
      all.filter(({ open, failed, evaluated }) => open + failed === 0 && evaluated > 0).length,
      "not violated"
    )
  ]
  const unconfirmed = all.reduce((sum, one) => sum + one.unconfirmed, 0)
  return [`  invariants: ${Output.list([...counts, Output.plurals(unconfirmed, "unconfirmed violation")])}`]
}

/** The last day in one line; none where `serve` never ran. */
export const activityLines = (hours: ReadonlyArray<Activity.Hour>): ReadonlyArray<string> => {
  const sum = (of: (hour: Activity.Hour) => number) => hours.reduce((total, hour) => total + of(hour), 0)
  return hours.length === 0
    ? []
    : [
        `  last day: ${Output.list([
          Output.plural(
            sum(({ runs }) => runs),
            "run"
          ),
          Output.counted(
            sum(({ failed_runs: failed, abandoned_runs: abandoned }) => failed + abandoned),
            "failed or abandoned"
          ),
          Output.plurals(
            sum(({ inserted, updated, deleted }) => inserted + updated + deleted),
            "record landed",
            "records landed"
          ),
          Output.plurals(
            sum(({ requests }) => requests),
            "request"
          )
        ])}`
      ]
}

/** Names that are listed; further ones are only counted. */
const namesMax = 8

const named = (tasks: ReadonlyArray<Schedule.TaskStatus>): string =>
  Output.firstOf(
    tasks.map(({ resource, kind }) => (kind === "sync" ? resource : `backfill of ${resource}`)),
    namesMax
  )

/** The tasks of each company by their state; empty where `serve` never ran. */
export const scheduleLines = ({ processes, tasks }: Schedule.ScheduleStatus): ReadonlyArray<string> => {
  const companies = [...new Set(tasks.map(({ company }) => company))]
  const alive =
    processes > 0
      ? `${Output.count(processes)} alive`
      : "none alive: nothing runs by schedule; start one with: tributary serve"
  return companies.flatMap((company, index) => {
    const own = tasks.filter((task) => task.company === company)
    const syncs = own.filter(({ kind, schedule }) => kind === "sync" && schedule !== null)
    const states: ReadonlyArray<readonly [name: string, isIn: (task: Schedule.TaskStatus) => boolean]> = [
      ["running", ({ runningSince }) => runningSince !== null],
      ["requested", ({ askedAt, runningSince }) => askedAt !== null && runningSince === null],
      ["paused", ({ pausedAt }) => pausedAt !== null],
      ["skipped, since the token may not read them", ({ status }) => status === "skipped"]
    ]
    const deferred = syncs.filter(({ deferredFrom }) => deferredFrom !== null).length
    const [next] = syncs
      .filter(({ runningSince, pausedAt, nextInMs }) => runningSince === null && pausedAt === null && nextInMs !== null)
      .sort((a, b) => a.nextInMs! - b.nextInMs!)
    const when = (ms: number) => (ms <= 0 ? `due since ${Output.elapsed(-ms)}` : `in ${Output.elapsed(ms)}`)
    return [
      ...(index === 0 ? [`  processes of serve: ${alive}`] : []),
      `  schedule of ${company}: ${Output.plural(syncs.length, "resource")}` +
        (next === undefined ? "" : `, next ${next.resource} ${when(next.nextInMs!)}`),
      ...(deferred === 0 ? [] : [`    deferred while events prove their freshness: ${Output.count(deferred)}`]),
      ...states.flatMap(([name, isIn]) => (own.some(isIn) ? [`    ${name}: ${named(own.filter(isIn))}`] : []))
    ]
  })
}

/** Everything that `status` reads. */
export interface StatusReport {
  /** Empty where all companies are of one. */
  readonly installations: ReadonlyArray<InstallationState>
  readonly resources: ReadonlyArray<ResourceStatus>
  readonly problems: ReadonlyArray<Problem>
  readonly schedule: Schedule.ScheduleStatus
  readonly webhooks: ReadonlyArray<Webhooks.CompanyStatus>
  readonly outbox: ReadonlyArray<Outbox.OutboxStatus>
  readonly invariants: ReadonlyArray<Invariants.InvariantSummary>
  /** A sentence for each damaged table. */
  readonly damaged: ReadonlyArray<string>
  /** The last day by hour. */
  readonly activity: ReadonlyArray<Activity.Hour>
}

/** Damaged tables that are named. */
const damagedMax = 5

export const damageLines = (damaged: ReadonlyArray<string>): ReadonlyArray<string> =>
  damaged.length === 0
    ? []
    : [
        `  ${Output.plural(damaged.length, "damaged table")}; nothing is landed there:`,
        ...damaged.slice(0, damagedMax).map((sentence) => `    ${sentence}`),
        ...(damaged.length > damagedMax ? [`    and ${Output.count(damaged.length - damagedMax)} more`] : []),
        `    what to do: ${TableDamage.remedy}`
      ]

const nameOf = ({ company, companyId }: ResourceStatus): string => company ?? `company ${companyId}`

const resourceTable = (resources: ReadonlyArray<ResourceStatus>): string =>
  Output.table(
    ["company", "resource", "rows", "deleted", "quarantine", "last run", "fresh", "cursor"],
    resources.map((one) => [
      nameOf(one),
      one.resource,
      Output.count(one.rows),
      Output.count(one.deleted),
      Output.count(one.quarantined),
      one.lastRun ?? "none",
      `${age(one.ageMs)}${one.isProven ? " by events" : ""}`,
      one.cursor ?? ""
    ]),
    ["left", "left", "right", "right", "right"]
  )

const remarkLines = (status: ResourceStatus) => {
  const { resource, excludedBy, part, note, fullWanted, overlapMs, findings } = status
  const place = `\n  ${nameOf(status)}, ${resource}`
  if (excludedBy !== null)
    return [`${place}: no longer read, since exclude_resources has ${excludedBy}; the warehouse keeps its rows`]
  return [
    ...(part === null ? [] : [`${place}: only some records are kept: ${part}`]),
    ...(overlapMs === 0
      ? []
      : [
          `${place}: rows were late: scans begin ${Output.elapsed(overlapMs)} before the cursor, ` +
            `halved after each week without late rows; to reset it: tributary sync ${resource} --reset-overlap`
        ]),
    ...findings.map((finding) => `\n  ${nameOf(status)}, ${FieldFinding.describeFinding(resource, finding)}`),
    ...(note === null ? [] : [`${place}: ${note}`]),
    ...(fullWanted === null ? [] : [`${place}: the next run is a full scan: ${fullWanted}`])
  ]
}

export const reportLines = (report: StatusReport): ReadonlyArray<string> => {
  const { resources, problems, schedule, webhooks, outbox, invariants, activity } = report
  const others = [
    ...problemLines(problems),
    ...damageLines(report.damaged),
    ...installationLines(report.installations),
    ...scheduleLines(schedule),
    ...activityLines(activity),
    ...invariantLines(invariants),
    ...outboxLines(outbox),
    ...webhookLines(webhooks)
  ]
  if (resources.length === 0) return ["Nothing has been synced yet. Start with: tributary sync", ...others]
  return [resourceTable(resources), ...resources.flatMap(remarkLines), "", ...others]
}

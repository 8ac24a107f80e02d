/**
 * The conditions that hold now, from the read models of status, budget and pushes.
 *
 * Promise: a statement reads the companies in trouble, not all resources. At most {@link companiesMax} companies are read
 * in detail: those with a condition already, and then the worst.
 */
import * as Effect from "effect/Effect"
import { describePause } from "../budget/Pause.ts"
import * as BudgetState from "../budget/BudgetState.ts"
import * as EndpointStore from "../delivery/EndpointStore.ts"
import * as PushPause from "../outbox/PushPause.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import * as Invariants from "../status/Invariants.ts"
import * as Resources from "../status/Resources.ts"
import * as Webhooks from "../status/Webhooks.ts"
import type { Kind } from "./Kinds.ts"

export interface ConditionKey {
  readonly kind: Kind
  /** Empty for the whole warehouse. */
  readonly company: string
  /** The resource, endpoint, installation or invariant; empty where the kind and the company say it all. */
  readonly subject: string
}

export interface Observation extends ConditionKey {
  /** The size in classes, from 0. */
  readonly level: number
  /** When it began; null where that is not known. */
  readonly since: Date | null
  /** A sentence without its full stop. It changes with the condition only, and not with the time. */
  readonly what: string
  readonly remedy: string
  /** It is the consequence of another condition: it does not start, but goes on. */
  readonly isConsequence?: boolean
}

/** What holds, where it is not of the whole warehouse, of level 0 and since an unknown time. */
type Finding = Pick<Observation, "kind" | "what" | "remedy"> & Partial<Observation>

const observationOf = (finding: Finding): Observation => ({
  company: "",
  subject: "",
  level: 0,
  since: null,
  ...finding
})

export const keyOf = ({ kind, company, subject }: ConditionKey): string => JSON.stringify([kind, company, subject])

/** A company of `serve`. */
export interface ObservedCompany {
  readonly name: string
  /** The name of its installation, or the host of its address. */
  readonly installation: string
  /** The key of its rate budget. */
  readonly fingerprint: string
}

/** A problem of the warehouse's disk, as `doctor` finds it. */
export interface DiskProblem {
  readonly isCritical: boolean
  readonly message: string
  readonly remedy: string
}

const companiesMax = 200

export const troubledStatement = Statement.make({
  name: "find companies in trouble",
  params: ["text[]", "int4"],
  columns: { company: "text" },
  text: `select c.company from unnest($1::text[]) as c(company)
    left join (select company, true as is_open from tributary.alert_conditions
                where kind in ('late', 'failing', 'token', 'quarantine') group by 1) o using (company)
    left join (select company, true as has_failed from tributary.tasks where failure_kind is not null group by 1) t using (company)
    left join tributary.company_states s using (company)
   where o.is_open or t.has_failed or s.state in ('failing', 'late') or s.quarantined > 0
   order by o.is_open nulls last, t.has_failed nulls last, s.severity desc nulls last, c.company limit $2::int`
})

/** A level that rises by one with each multiplication by the base. */
const levelOf = (size: number, base: number): number =>
  size > 1 ? Math.floor(Math.log(size) / Math.log(base) + 1e-9) : 0

const sentenceOf = (error: string | null | undefined): string => error ?? "the reason is not known"

const timeOf = (at: Date | null): number => at?.getTime() ?? Number.NEGATIVE_INFINITY

/** The last failure of a resource, of its task or of a run that a command made. */
const failureOf = ({ task, lastRun }: Resources.ResourceState) =>
  task?.status === "failed" && (lastRun?.status !== "failed" || timeOf(task.endedAt) >= timeOf(lastRun.endedAt))
    ? { kind: task.failureKind, at: task.endedAt, error: task.error, remedy: task.remedy }
    : {
        kind: lastRun?.errorKind ?? null,
        at: lastRun?.endedAt ?? null,
        error: lastRun?.error ?? null,
        remedy: lastRun?.remedy ?? null
      }

/** When a run last succeeded. A proof by events says nothing about the token. */
const succeededMs = ({ freshAt, isProven, task }: Resources.ResourceState): number =>
  Math.max(
    isProven ? Number.NEGATIVE_INFINITY : timeOf(freshAt),
    task?.status === "done" || task?.status === "quarantined" ? timeOf(task.endedAt) : Number.NEGATIVE_INFINITY
  )

const isRefusal = (kind: string | null): boolean => kind === "Unauthorized" || kind === "Forbidden"

/** The refusal of the token: every run fails, and none has succeeded since. A refused resource alone is a failing one. */
const tokenOf = (company: string, states: ReadonlyArray<Resources.ResourceState>): ReadonlyArray<Finding> => {
  if (!states.every(({ health }) => health.isFailing || health.isBlocked || health.isPaused)) return []
  const [last] = states
    .filter(({ health }) => health.isFailing)
    .map(failureOf)
    .filter(({ kind }) => isRefusal(kind))
    .toSorted((a, b) => timeOf(b.at) - timeOf(a.at))
  if (last === undefined || states.some((state) => succeededMs(state) > timeOf(last.at))) return []
  return [
    {
      kind: "token",
      company,
      what: sentenceOf(last.error),
      remedy: `${last.remedy ?? "issue a new token"}; then check it: tributary doctor --company ${company}`
    }
  ]
}

/** The number of failures in a row that is critical. */
const failuresCritical = 10

/** The kinds of failures that are not of a company, its token or a resource. */
const isOfInstallation = (kind: string | null): boolean =>
  ["Unreachable", "TimedOut", "ServerFault", "Malformed"].includes(kind ?? "")

type States = ReadonlyArray<Resources.ResourceState>

/** Whether the company fails since its installation does not answer: nothing has succeeded since the last such failure. */
const isDown = (states: States): boolean => {
  const failures = states.filter(({ health }) => health.isFailing).map(failureOf)
  const lastMs = Math.max(...failures.map(({ at }) => timeOf(at)))
  return (
    failures.length > 0 &&
    failures.every(({ kind }) => isOfInstallation(kind)) &&
    states.every((state) => succeededMs(state) <= lastMs)
  )
}

/** The installations that do not answer to several companies, which are at least half of theirs, with these companies. */
const findDown = (companies: ReadonlyArray<ObservedCompany>, byCompany: ReadonlyMap<string, States>) =>
  [...Map.groupBy(companies, ({ installation }) => installation)].flatMap(([installation, own]) => {
    const down = own.flatMap(({ name }) => {
      const states = byCompany.get(name) ?? []
      return isDown(states) ? [{ name, states }] : []
    })
    return down.length >= 2 && down.length * 2 >= Math.min(own.length, companiesMax) ? [{ installation, down }] : []
  })

const installationObservation = ({ installation, down }: ReturnType<typeof findDown>[number]): Finding => {
  const failing = down.flatMap(({ states }) => states.filter(({ health }) => health.isFailing))
  const failures = failing.map(failureOf)
  const first = failures.toSorted((a, b) => timeOf(b.at) - timeOf(a.at))[0]
  return {
    kind: "installation",
    subject: installation,
    level: failing.some(({ task }) => (task?.failures ?? 0) >= failuresCritical) ? 1 : 0,
    what: `${installation} does not answer to its companies: ${sentenceOf(first?.error)}`,
    remedy: `${first?.remedy ?? "read the reason"}; the state of its companies: tributary status`
  }
}

const minutesOf = (ms: number): string => `${Math.round(ms / 6_000) / 10} min`

const resourceObservations = (
  state: Resources.ResourceState,
  {
    isRefused,
    isRunning,
    isDown
  }: { readonly isRefused: boolean; readonly isRunning: boolean; readonly isDown: boolean }
): ReadonlyArray<Finding> => {
  const { company, resource: subject, freshAt, health, quarantined } = state
  const failure = failureOf(state)
  const { ageMs, targetMs } = health
  const status = `tributary status --company ${company}`
  return [
    ...(health.isFailing && !isDown && !(isRefused && isRefusal(failure.kind))
      ? [
          {
            kind: "failing",
            company,
            subject,
            level: (state.task?.failures ?? 0) >= failuresCritical ? 1 : 0,
            what: `the last run of ${subject} failed: ${sentenceOf(failure.error)}`,
            remedy: `${failure.remedy ?? "read the reason"}; its state: ${status}`
          } as const
        ]
      : []),
    ...(health.isLate && targetMs !== null
      ? [
          {
            kind: "late",
            company,
            subject,
            level: ageMs === null ? 0 : levelOf(ageMs / targetMs, 2),
            since: freshAt === null ? null : new Date(freshAt.getTime() + targetMs),
            what:
              freshAt === null
                ? `${subject} was never read to its end`
                : `${subject} is as of ${freshAt.toISOString()}, its freshness target is ${minutesOf(targetMs)}`,
            remedy: `find the reason: ${status}; read it now: tributary sync ${subject} --company ${company}`,
            // The first sync of a company reads one resource after another.
            isConsequence: health.isFailing || isDown || (freshAt === null && isRunning)
          } as const
        ]
      : []),
    ...(quarantined > 0
      ? [
          {
            kind: "quarantine",
            company,
            subject,
            level: levelOf(quarantined, 10),
            what: `${quarantined} ${quarantined === 1 ? "record" : "records"} of ${subject} could not be landed`,
            remedy: `tributary query "select record_id, field, reason from tributary.quarantine where resource = '${subject}' and resolved_at is null"`
          } as const
        ]
      : [])
  ]
}

const readResources = Effect.fnUntraced(function* (companies: ReadonlyArray<ObservedCompany>, now: Date) {
  const troubled = yield* Statement.run(troubledStatement, [companies.map(({ name }) => name), companiesMax])
  if (troubled.length === 0) return []
  const states = yield* Resources.read(
    troubled.map(({ company }) => ({ name: company })),
    now
  )
  const byCompany = Map.groupBy(states, ({ company }) => company)
  const down = findDown(companies, byCompany)
  const downNames = new Set(down.flatMap((one) => one.down.map(({ name }) => name)))
  const ofCompanies = [...byCompany].flatMap(([company, own]) => {
    const token = tokenOf(company, own)
    const about = {
      isRefused: token.length > 0,
      isRunning: own.some(({ health }) => health.isRunning),
      isDown: downNames.has(company)
    }
    return [...token, ...own.flatMap((state) => resourceObservations(state, about))]
  })
  return [...down.map(installationObservation), ...ofCompanies]
})

const readGaps = (names: ReadonlyArray<string>) =>
  Effect.map(Webhooks.readGaps(names), (gaps) =>
    [...Map.groupBy(gaps, ({ company, resource }) => JSON.stringify([company, resource])).values()].map(
      (same): Finding => {
        const [{ company, resource, detail, beganAt }] = same as [(typeof same)[number]]
        return {
          kind: "gap",
          company,
          subject: resource,
          since: beganAt === null ? null : new Date(beganAt),
          what: `events about ${resource} may have been dropped: ${detail}`,
          remedy: `tributary webhooks ensure --company ${company}; it closes with the next run: tributary sync ${resource} --company ${company}`
        }
      }
    )
  )

const longPauseMs = 60 * 60_000
const budgetsMax = 1_000

const readBudgets = Effect.fnUntraced(function* (companies: ReadonlyArray<ObservedCompany>, now: Date) {
  const slow = yield* BudgetState.worstBudgets(budgetsMax)
  const paused = (slow.length === 0 ? [] : yield* BudgetState.readBudgets(slow)).filter(
    (one) => one.pausedUntil !== null
  )
  const states = new Map(paused.map((one) => [one.fingerprint, one]))
  return companies.flatMap(({ name, fingerprint }): ReadonlyArray<Finding> => {
    const state = states.get(fingerprint)
    if (state === undefined || state.pausedUntil === null) return []
    const { pausedUntil, pausedBy } = state
    return [
      {
        kind: "budget",
        company: name,
        level: pausedUntil.getTime() - now.getTime() > longPauseMs ? 1 : 0,
        since: pausedBy === null ? null : new Date(now.getTime() - pausedBy.agoMs),
        what: `no request is sent until ${pausedUntil.toISOString()}: ${pausedBy === null ? "an answer requested a pause" : describePause(pausedBy)}`,
        remedy: `wait, or when the fault is gone: tributary budget release --company ${name}`
      }
    ]
  })
})

const readEndpoints = Effect.map(EndpointStore.list, (all): ReadonlyArray<Finding> =>
  all
    .filter(({ state }) => state === "dead")
    .map(({ name, stateSince, reason }) => ({
      kind: "endpoint",
      subject: name,
      since: stateSince,
      what: `deliveries to the endpoint ${name} have stopped: ${sentenceOf(reason)}`,
      remedy: `repair the receiver, then: tributary changes endpoints resume ${name}`
    }))
)

const readRestore: Sql.Query<ReadonlyArray<Finding>> = Effect.map(PushPause.read, (reason) =>
  reason === null
    ? []
    : [
        {
          kind: "restore",
          what: PushPause.sentence(reason),
          remedy: `compare the pending records (tributary push status) with the source, then: ${PushPause.releaseCommand}`
        }
      ]
)

/** The level of a rule. */
const severityLevels = { warning: 0, critical: 1 } as const

const readInvariants = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const violated = yield* Invariants.violated(names)
  const failed = yield* Invariants.failed
  return [
    ...violated.map(({ company, invariant, statement, severity, open, detail, since }): Finding => ({
      kind: "invariant",
      company,
      subject: invariant,
      level: severityLevels[severity],
      since,
      what: `${open} ${open === 1n ? "record violates" : "records violate"} ${invariant}: ${statement}${detail === null ? "" : ` First of them: ${detail}`}`,
      remedy: `correct the records at the source; list them: ${Invariants.listCommand(invariant)}`
    })),
    // A rule that fails for several companies is one condition.
    ...failed.map(({ invariant, error, severity }): Finding => ({
      kind: "invariant",
      subject: invariant,
      level: severityLevels[severity],
      what: `the invariant ${invariant} cannot be evaluated: ${error}`,
      remedy: "correct its SQL, or what the reason names; its state: tributary status"
    }))
  ]
})

/** All conditions that hold now, each key once. */
export const read = Effect.fnUntraced(function* <E, R>(
  companies: ReadonlyArray<ObservedCompany>,
  disk: Effect.Effect<DiskProblem | null, E, R>,
  now: Date
) {
  const names = companies.map(({ name }) => name)
  const full = yield* disk
  const findings: ReadonlyArray<Finding> = [
    ...(yield* readResources(companies, now)),
    ...(yield* readGaps(names)),
    ...(yield* readBudgets(companies, now)),
    ...(yield* readEndpoints),
    ...(yield* readRestore),
    ...(yield* readInvariants(names)),
    ...(full === null
      ? []
      : [
          {
            kind: "disk" as const,
            level: full.isCritical ? 1 : 0,
            what: full.message,
            remedy: `${full.remedy}; check it: tributary doctor`
          }
        ])
  ]
  return findings.map(observationOf)
})

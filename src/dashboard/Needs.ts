/**
 * What needs a person: every kind of problem, each with one next step, the worst first.
 *
 * Promise: the same problem of several resources is listed once. A problem that is the consequence of another one of the
 * same company (a subscription that does not deliver, beside its gap) is left out.
 */
import { isRoute } from "../delivery/Endpoint.ts"
import type * as Attention from "../status/Attention.ts"
import type * as Invariants from "../status/Invariants.ts"
import type { ListedProcess } from "../status/Processes.ts"
import { worse, type ResourceState } from "../status/Resources.ts"
import * as UnresolvedRequests from "../status/UnresolvedRequests.ts"
import type { Tone } from "../web/Components.ts"
import { address, plural, visible } from "../web/Escape.ts"
import {
  eventAddress,
  outboxRequestsAddress,
  outboxRowAddress,
  processAddress,
  resourceAddress,
  resourcesAddress,
  runAddress
} from "./Addresses.ts"
import { problemOf, withoutName, withoutRequest } from "./Format.ts"
import { causeSentence } from "./pages/WebhookGaps.ts"
import { nameOf } from "./ProcessChart.ts"

/** The kinds of problems, the worst first. */
export const kinds = {
  failing: ["bad", "failing"],
  pushes: ["bad", "pushes paused"],
  receiver: ["bad", "not receiving"],
  dead: ["bad", "dead letters"],
  rejected: ["bad", "rejected"],
  critical: ["bad", "violated"],
  endpoint: ["bad", "not delivered"],
  late: ["warn", "late"],
  unresolved: ["warn", "unresolved"],
  process: ["warn", "lost process"],
  gap: ["warn", "gap lasts"],
  subscription: ["warn", "not delivering"],
  quarantine: ["warn", "quarantine"],
  warning: ["warn", "violated"],
  unevaluated: ["warn", "not evaluated"],
  blocked: ["warn", "blocked"]
} as const satisfies Readonly<Record<string, readonly [tone: Tone, word: string]>>
export type Kind = keyof typeof kinds
const order = Object.keys(kinds)

export interface Need {
  readonly kind: Kind
  /** What has the problem. */
  readonly subject: string
  readonly problem: string
  /** When it began; null where that is not known. */
  readonly since: Date | null
  readonly next: { readonly text: string; readonly to: string }
}

export const toneOf = ({ kind }: Need): Tone => kinds[kind][0]

/** All that the problems are found in. */
export interface Findings {
  readonly states: ReadonlyArray<ResourceState>
  /** When failing and blocked resources began to fail. */
  readonly failingSince: ReadonlyArray<{
    readonly company: string
    readonly resource: string
    readonly since: Date | null
  }>
  readonly attention: ReadonlyArray<Attention.Attention>
  readonly violated: ReadonlyArray<Invariants.Violated>
  /** Push requests that no process resolves; empty while all pushes are paused. */
  readonly unresolved: ReadonlyArray<UnresolvedRequests.UnresolvedRequests>
  /** Of the whole warehouse; empty on the page of one company. */
  readonly failedInvariants: ReadonlyArray<Invariants.Failed>
  readonly endpoints: ReadonlyArray<Attention.TroubledEndpoint>
  /** Why all pushes are paused. */
  readonly pushPause: string | null
  readonly lostProcesses: ReadonlyArray<ListedProcess>
}

/** The same for errors that differ only in their request and in numbers other than a status of three digits. */
const sameness = (error: string): string =>
  withoutRequest(error).replace(/\d+/g, (digits) => (digits.length === 3 ? digits : "0"))

/** The first step of a remedy. */
const firstStep = (remedy: string): string => remedy.split("; ")[0]!

const subjectOf = (states: ReadonlyArray<ResourceState>): string => {
  const [{ company, resource }] = states as [ResourceState]
  const others = states.length - 1
  return `${visible(resource)} of ${visible(company)}${others === 0 ? "" : ` and ${plural(others, "other resource")}`}`
}

/** The page of the resource, or the list of them. */
const placeOf = (states: ReadonlyArray<ResourceState>, state: string): string => {
  const [{ company, resource }] = states as [ResourceState]
  if (states.length === 1) return resourceAddress(company, resource)
  return resourcesAddress({ company: states.every((one) => one.company === company) ? company : null, state })
}

const quarantineAddress = (states: ReadonlyArray<ResourceState>): string => {
  const [{ company, resource }] = states as [ResourceState]
  return address("/quarantine", {
    company: states.every((one) => one.company === company) ? company : null,
    resource: states.length === 1 ? resource : null
  })
}

const grouped = <A>(all: ReadonlyArray<A>, keyOf: (one: A) => string): ReadonlyArray<ReadonlyArray<A>> => [
  ...Map.groupBy(all, keyOf).values()
]

const earliest = (dates: ReadonlyArray<Date | null>): Date | null =>
  dates.reduce((first, date) => (first === null || (date !== null && date < first) ? date : first), null)

/** Whether it is late because of its quarantine. */
const isHeldUp = ({ health, lastRun, quarantined }: ResourceState): boolean =>
  health.isLate && !health.isFailing && lastRun?.status === "quarantined" && quarantined > 0

const failingSinceOf = ({ failingSince }: Findings, { company, resource }: ResourceState): Date | null =>
  failingSince.find((one) => one.company === company && one.resource === resource)?.since ?? null

const failingNeeds = (findings: Findings, now: Date): ReadonlyArray<Need> => {
  const { states } = findings
  const failing = states.filter(({ health }) => health.isFailing).toSorted(worse)
  return grouped(failing, (state) => sameness(problemOf(state, now)?.error ?? "")).map((same) => {
    const { error, remedy } = problemOf(same[0]!, now) ?? { error: "its last run failed", remedy: null }
    return {
      kind: "failing",
      subject: subjectOf(same),
      problem: withoutName(error, same[0]!.resource),
      since: earliest(same.map((state) => failingSinceOf(findings, state) ?? state.task?.endedAt ?? null)),
      next: { text: firstStep(remedy ?? "see its last run"), to: placeOf(same, "failing") }
    }
  })
}

/** Late and not failing: failing ones are listed with the reason of the failure. */
const lateNeeds = ({ states, attention }: Findings, now: Date): ReadonlyArray<Need> => {
  const pausedUntil = new Map(attention.map((one) => [one.company, one.pausedUntil]))
  const late = states.filter(({ health }) => health.isLate && !health.isFailing).toSorted(worse)
  const reasonOf = (state: ResourceState) => {
    const until = pausedUntil.get(state.company) ?? null
    return until === null
      ? (problemOf(state, now) ?? { error: "its age exceeds its target", remedy: null })
      : {
          error: `The source has paused the requests of ${visible(state.company)}.`,
          remedy: "see until when, and why"
        }
  }
  return grouped(late, (state) => sameness(reasonOf(state).error)).map((same) => {
    const [first] = same as [ResourceState]
    const { error, remedy } = reasonOf(first)
    const isPaused = (pausedUntil.get(first.company) ?? null) !== null
    const isRunning = first.lastRun?.status === "running" && same.length === 1
    return {
      kind: "late",
      subject: subjectOf(same),
      problem: error,
      since: earliest(
        same.map(({ freshAt, health: { targetMs } }) =>
          freshAt === null || targetMs === null ? null : new Date(freshAt.getTime() + targetMs)
        )
      ),
      next: {
        text: firstStep(remedy ?? "see its last run"),
        to: isPaused
          ? address("/budget", { company: first.company })
          : isRunning
            ? runAddress(first.lastRun.id)
            : same.every(isHeldUp)
              ? quarantineAddress(same)
              : placeOf(same, "late")
      }
    }
  })
}

const quarantineNeeds = ({ states, attention }: Findings): ReadonlyArray<Need> =>
  grouped(
    states.filter((state) => state.quarantined > 0 && !isHeldUp(state)),
    ({ company }) => company
  ).map((same) => {
    const records = same.reduce((sum, { quarantined }) => sum + quarantined, 0)
    return {
      kind: "quarantine",
      subject: subjectOf(same),
      problem: `${plural(records, "record")} could not be landed`,
      since: attention.find(({ company }) => company === same[0]!.company)?.quarantinedSince ?? null,
      next: {
        text: "see the reason, then correct the record at the source",
        to: quarantineAddress(same)
      }
    }
  })

const blockedNeeds = (findings: Findings, now: Date): ReadonlyArray<Need> =>
  grouped(
    findings.states.filter(({ health }) => health.isBlocked),
    ({ company }) => company
  ).map((same) => {
    const { error, remedy } = problemOf(same[0]!, now) ?? { error: "the token may not read it", remedy: null }
    return {
      kind: "blocked",
      subject: subjectOf(same),
      problem: withoutName(error, same[0]!.resource),
      since: earliest(same.map((state) => failingSinceOf(findings, state))),
      next: { text: firstStep(remedy ?? "give the token the right to read it"), to: placeOf(same, "blocked") }
    }
  })

/** Of the events and pushes of one company. */
const companyNeeds = (one: Attention.Attention): ReadonlyArray<Need> => {
  const { company, dead, gaps, rejected, down } = one
  const name = visible(company)
  const webhooks = address("/webhooks", { company })
  const isReceiving = one.receivers > 0 || !one.hasSubscription
  return [
    isReceiving
      ? null
      : ({
          kind: "receiver",
          subject: `events of ${name}`,
          problem: "no process receives them; the source drops what it cannot deliver",
          since: null,
          next: { text: "start one: tributary serve", to: webhooks }
        } as const),
    dead === 0
      ? null
      : ({
          kind: "dead",
          subject: `${plural(dead, "event")} of ${name}`,
          problem: withoutRequest(firstStep(one.deadReason ?? "its processing failed for the last time")),
          since: one.deadSince,
          next: {
            text: dead === 1 ? "remove the cause, then replay it" : "remove the cause, then replay all",
            to: dead === 1 && one.deadEvent !== null ? eventAddress(company, one.deadEvent) : webhooks
          }
        } as const),
    rejected === 0
      ? null
      : ({
          kind: "rejected",
          subject: `${plural(rejected, "pushed record")} of ${name}`,
          problem: withoutRequest(one.rejectedReason ?? "the source rejected it"),
          since: one.rejectedSince,
          next: {
            text: "correct the record, then try again",
            to:
              rejected === 1 && one.rejectedRow !== null
                ? outboxRowAddress(one.rejectedRow)
                : address("/outbox/rows", { company, state: "rejected" })
          }
        } as const),
    down === 0 || gaps > 0
      ? null
      : ({
          kind: "subscription",
          subject: `${plural(down, "subscription")} of ${name}`,
          problem: one.downReason ?? "the source does not deliver its events",
          since: null,
          next: { text: "resume it, or create it again", to: webhooks }
        } as const)
  ].filter((need) => need !== null)
}

/** Requests that may have been applied or not; the list on the page of the outbox has the step of each resource. */
const unresolvedNeeds = ({ unresolved }: Findings): ReadonlyArray<Need> =>
  grouped(unresolved, ({ company }) => company).map((same) => {
    const first = same.find(({ isRefused }) => isRefused) ?? same[0]!
    const step = UnresolvedRequests.stepOf(first)
    const requests = same.reduce((sum, one) => sum + one.requests, 0)
    return {
      kind: "unresolved",
      subject: `${plural(requests, "push request")} of ${visible(first.company)}`,
      problem: withoutRequest(UnresolvedRequests.problemOf(first)),
      since: earliest(same.map(({ since }) => since)),
      next: { text: firstStep(step), to: outboxRequestsAddress }
    }
  })

/** Gaps of one cause are one problem, also of several companies. */
const gapNeeds = ({ attention }: Findings): ReadonlyArray<Need> => {
  const open = attention.filter(({ gaps }) => gaps > 0)
  return grouped(open, ({ gapCause }) => String(gapCause)).map((same) => {
    const [{ gapCause: cause }] = same as [Attention.Attention]
    const gaps = same.reduce((sum, one) => sum + one.gaps, 0)
    return {
      kind: "gap",
      subject: `${plural(gaps, "delivery gap")} of ${same.map(({ company }) => visible(company)).join(", ")}`,
      problem: cause === null ? "some events may be missing" : causeSentence(cause),
      since: earliest(same.map(({ gapSince }) => gapSince)),
      next: {
        text: "see what closes the gap",
        to: address("/webhooks", { company: same.length === 1 ? same[0]!.company : null })
      }
    }
  })
}

/** Of the rules, and of the whole warehouse. */
const otherNeeds = (findings: Findings): ReadonlyArray<Need> => {
  const { violated, failedInvariants, endpoints, pushPause, lostProcesses } = findings
  const rules = grouped(violated, ({ invariant }) => invariant)
  return [
    ...(pushPause === null
      ? []
      : [
          {
            kind: "pushes",
            subject: "all pushes",
            problem: pushPause,
            since: null,
            next: { text: "compare the pending records with the source", to: "/outbox" }
          } as const
        ]),
    ...rules.map((same): Need => {
      const [{ invariant, severity, statement, detail }] = same as [Invariants.Violated]
      const records = same.reduce((sum, { open }) => sum + open, 0n)
      return {
        kind: severity,
        subject: `${visible(invariant)} by ${plural(Number(records), "record")} of ${same.map(({ company }) => visible(company)).join(", ")}`,
        problem: detail ?? statement,
        since: earliest(same.map(({ since }) => since)),
        next: { text: "correct the record at the source", to: address("/invariants", { invariant }) }
      }
    }),
    ...grouped(failedInvariants, ({ error }) => error).map((same): Need => ({
      kind: "unevaluated",
      subject: same.map(({ invariant }) => visible(invariant)).join(", "),
      problem: same[0]!.error,
      since: null,
      next: { text: "correct what the reason names", to: address("/invariants", { invariant: same[0]!.invariant }) }
    })),
    ...lostProcesses.map((one): Need => ({
      kind: "process",
      subject: `process ${nameOf(one)}`,
      problem: "it sends no heartbeat, and did not stop in order",
      since: one.heartbeatAt,
      next: { text: "see how it ended, then start it again", to: processAddress(one.processId) }
    })),
    ...endpoints.map(({ name, isDead, reason, lost, since }): Need => ({
      kind: "endpoint",
      subject: `endpoint ${visible(name)}`,
      problem: isDead
        ? `deliveries have stopped: ${reason ?? "the reason is not known"}`
        : `${plural(lost, isRoute(name) ? "message" : "change")} not accepted`,
      since,
      next: {
        text: isDead ? "repair the receiver, then resume it" : "see the log, then replay them",
        to: address("/endpoints", { endpoint: name })
      }
    }))
  ]
}

/** Every problem, the worst first. */
export const needsOf = (findings: Findings, now: Date): ReadonlyArray<Need> =>
  [
    ...failingNeeds(findings, now),
    ...lateNeeds(findings, now),
    ...findings.attention.flatMap(companyNeeds),
    ...unresolvedNeeds(findings),
    ...gapNeeds(findings),
    ...otherNeeds(findings),
    ...quarantineNeeds(findings),
    ...blockedNeeds(findings, now)
  ].toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind))

/** When the first of the problems began; null where that is not known. */
export const beganAt = (needs: ReadonlyArray<Need>): Date | null => earliest(needs.map(({ since }) => since))

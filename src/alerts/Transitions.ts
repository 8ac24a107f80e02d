/**
 * The rules by which conditions start, get worse and end: a pure function.
 *
 * A condition is observed, starts when it was observed for long enough, and ends when it was absent for long enough. A
 * shorter absence changes nothing, so that a flapping condition has one start and one end. A route gets a start when the
 * condition is severe enough for it, one message for each higher level, and an end if it got a start.
 */
import * as Duration from "effect/Duration"
import { type Kind, severityOf } from "../status/ProblemKinds.ts"
import { type AlertConfiguration, dueAtMs, matches } from "./Route.ts"

export interface ConditionKey {
  readonly kind: Kind
  /** Empty for the whole warehouse. */
  readonly company: string
  /** The subject of the problem. */
  readonly subject: string
}

export const keyOf = ({ kind, company, subject }: ConditionKey): string => JSON.stringify([kind, company, subject])

/** A problem that holds now. Its sentence changes with the problem only, and not with the time. */
export interface Observation extends ConditionKey {
  readonly level: number
  readonly since: Date | null
  readonly what: string
  readonly remedy: string
  /** It does not start, but goes on. */
  readonly isConsequence: boolean
}

export interface Condition extends ConditionKey {
  readonly level: number
  readonly since: Date
  readonly observedAt: Date
  readonly startedAt: Date | null
  readonly absentAt: Date | null
  readonly what: string
  readonly remedy: string
}

export type Event = "start" | "worse" | "end"

/** A message of a condition on a route. */
export interface Message extends ConditionKey {
  readonly route: string
  readonly event: Event
  readonly level: number
  readonly dueAt: Date
}

export interface Silence {
  /** Null is any. */
  readonly kind: string | null
  readonly company: string | null
  readonly subject: string | null
}

export const isSilenced = (silences: ReadonlyArray<Silence>, { kind, company, subject }: ConditionKey): boolean =>
  silences.some(
    (one) =>
      (one.kind === null || one.kind === kind) &&
      (one.company === null || one.company === company) &&
      (one.subject === null || one.subject === subject)
  )

/** The highest level that a route got a message about. */
export type Announced = ReadonlyMap<string, number>

export interface Situation {
  readonly now: Date
  /** No evaluation was made for some time: what was observed before has to be observed for long enough again. */
  readonly isAfterBreak: boolean
  readonly conditions: ReadonlyArray<Condition>
  readonly observations: ReadonlyArray<Observation>
  readonly silences: ReadonlyArray<Silence>
  /** By the key of the condition. */
  readonly announced: ReadonlyMap<string, Announced>
}

export interface Changes {
  /** Conditions that are new or changed. */
  readonly stored: ReadonlyArray<Condition>
  readonly ended: ReadonlyArray<ConditionKey>
  readonly messages: ReadonlyArray<Message>
}

/** The condition after an observation; null while it is the consequence of another one. */
const observed = (
  before: Condition | undefined,
  observation: Observation,
  { now, isAfterBreak }: Situation,
  { startAfter }: AlertConfiguration
): Condition | null => {
  const { kind, company, subject, level, what, remedy } = observation
  const isStarted = before !== undefined && before.startedAt !== null
  if (observation.isConsequence && !isStarted) return null
  const observedAt = before === undefined || (isAfterBreak && !isStarted) ? now : before.observedAt
  const isDue = now.getTime() - observedAt.getTime() >= Duration.toMillis(startAfter[kind])
  return {
    kind,
    company,
    subject,
    level,
    what,
    remedy,
    since: before?.since ?? observation.since ?? now,
    observedAt,
    startedAt: before?.startedAt ?? (isDue ? now : null),
    absentAt: null
  }
}

/** The condition while it is not observed; null when it ends, or never started. */
const absent = (condition: Condition, { now }: Situation, { endAfter }: AlertConfiguration): Condition | null => {
  if (condition.startedAt === null) return null
  const absentAt = condition.absentAt ?? now
  return now.getTime() - absentAt.getTime() >= Duration.toMillis(endAfter) ? null : { ...condition, absentAt }
}

/** The messages of a condition that holds: a start where there was none, and one for a higher level. */
const messagesOf = (condition: Condition, announced: Announced, nowMs: number, { routes }: AlertConfiguration) => {
  const { kind, company, subject, level } = condition
  const severity = severityOf(kind, level)
  return routes
    .filter((route) => matches(route, { kind, company, severity }))
    .flatMap((route): ReadonlyArray<Message> => {
      const last = announced.get(route.name)
      if (last !== undefined && level <= last) return []
      const dueAt = new Date(dueAtMs(route, severity, nowMs))
      return [
        { kind, company, subject, route: route.name, event: last === undefined ? "start" : "worse", level, dueAt }
      ]
    })
}

/** The ends on the routes that got a start. */
const endsOf = (
  { kind, company, subject, level }: Condition,
  announced: Announced,
  nowMs: number,
  { routes }: AlertConfiguration
) =>
  routes
    .filter(({ name }) => announced.has(name))
    .map((route): Message => {
      const worst = severityOf(kind, announced.get(route.name) ?? level)
      const dueAt = new Date(dueAtMs(route, worst, nowMs))
      return { kind, company, subject, route: route.name, event: "end", level, dueAt }
    })

const isSame = (one: Condition, other: Condition): boolean =>
  one.level === other.level &&
  one.what === other.what &&
  one.remedy === other.remedy &&
  one.observedAt.getTime() === other.observedAt.getTime() &&
  one.startedAt?.getTime() === other.startedAt?.getTime() &&
  one.absentAt?.getTime() === other.absentAt?.getTime()

const nothing: Announced = new Map()

/** What changes, and the messages about it. */
export const evaluate = (situation: Situation, settings: AlertConfiguration): Changes => {
  const { announced, conditions, now, observations, silences } = situation
  const before = new Map(conditions.map((one) => [keyOf(one), one]))
  const holding = new Map(observations.map((one) => [keyOf(one), one]))
  const stored: Array<Condition> = []
  const ended: Array<ConditionKey> = []
  const messages: Array<Message> = []
  for (const key of new Set([...before.keys(), ...holding.keys()])) {
    const condition = before.get(key)
    const observation = holding.get(key)
    const sent = announced.get(key) ?? nothing
    const after =
      observation !== undefined
        ? observed(condition, observation, situation, settings)
        : absent(condition!, situation, settings)
    const silenced = isSilenced(silences, (condition ?? observation)!)
    if (after !== null) {
      if (condition === undefined || !isSame(condition, after)) stored.push(after)
      if (after.startedAt !== null && after.absentAt === null && !silenced)
        messages.push(...messagesOf(after, sent, now.getTime(), settings))
    } else if (condition !== undefined) {
      // The end of a condition whose start was sent is sent after the silence.
      if (silenced && sent.size > 0) continue
      ended.push(condition)
      messages.push(...endsOf(condition, sent, now.getTime(), settings))
    }
  }
  return { stored, ended, messages }
}

/** A state in the making, line by line. */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import { ControlError } from "../control/Input.ts"
import type { Attempt, LoggedAttempt } from "../events/Log.ts"
import type { Waiting } from "../events/Occurrence.ts"
import type { SubscriptionState } from "../events/state.ts"
import { plainDialect } from "../http/dialect.ts"
import type { FaultsState } from "../http/faults.ts"
import type { KeptAnswer } from "../http/idempotency.ts"
import type { RateState } from "../http/rate.ts"
import type { StoredToken } from "../http/tokens.ts"
import { plainLimits } from "../Limits.ts"
import type { CompanySettings } from "../rules/Rules.ts"
import type { StoreState } from "../store/Store.ts"
import type { WorldState } from "../World.ts"
import { readTime, readTimeOrNull } from "./lines.ts"
import type { forms, Kind } from "./lines.ts"

type LineOf<K extends Kind> = (typeof forms)[K]["Type"]

/** A decoded line. */
export type Line = { readonly [K in Kind]: LineOf<K> }[Kind]

export type ChangeLine = LineOf<"change">

export interface Draft {
  readonly single: {
    clock?: LineOf<"clock">
    server?: LineOf<"server">
    dialect?: LineOf<"dialect">
    limits?: LineOf<"limits">
  }
  readonly settings: Map<number, CompanySettings>
  readonly nextIds: Map<string, number>
  readonly sequences: Map<string, number>
  readonly trusted: Array<string>
  readonly tokens: Map<number, StoredToken>
  readonly rate: Array<RateState>
  readonly faults: Array<FaultsState["armed"][number]>
  readonly subscriptions: Map<number, SubscriptionState>
  /** By the ids of subscription and event. */
  readonly events: Map<string, readonly [number, Waiting]>
  readonly attempts: Array<LoggedAttempt>
  readonly answers: Map<string, KeptAnswer>
}

export const emptyDraft = (): Draft => ({
  single: {},
  settings: new Map(),
  nextIds: new Map(),
  sequences: new Map(),
  trusted: [],
  tokens: new Map(),
  rate: [],
  faults: [],
  subscriptions: new Map(),
  events: new Map(),
  attempts: [],
  answers: new Map()
})

/** Adds an entry that must be the first of its key. */
const addTo = <K, A>(map: Map<K, A>, key: K, value: A, what: string) => {
  if (map.has(key)) throw new ControlError(`there is a second ${what} ${String(key)}`)
  map.set(key, value)
}

const addCompany = (catalogue: Catalogue, draft: Draft, line: LineOf<"company">) => {
  const { company, unlicensed, recordLimits, closedThrough } = line
  const unknown = unlicensed.find((name) => !catalogue.features.includes(name))
  if (unknown !== undefined) throw new ControlError(`there is no module "${unknown}"`)
  const uncapped = Object.keys(recordLimits).find((path) => catalogue.resources.get(path)?.capped !== true)
  if (uncapped !== undefined) throw new ControlError(`${uncapped} is not capped`)
  const settings = {
    unlicensed: new Set(unlicensed),
    recordLimits: new Map(Object.entries(recordLimits)),
    closedThrough
  }
  addTo(draft.settings, company, settings, "company")
}

const addToken = (draft: Draft, line: LineOf<"token">) => {
  const token = {
    id: line.id,
    company: line.company,
    userCompany: line.usercompany,
    userId: line.userid,
    login: line.login,
    scopes: new Set(line.scopes),
    supervisor: line.supervisor,
    active: line.active,
    expires: readTimeOrNull(line.expires),
    revoked: line.revoked,
    lastUsed: readTimeOrNull(line.lastused),
    lastAddress: line.lastaddress
  }
  addTo(draft.tokens, line.id, { digest: line.sha256, token }, "token")
}

const addFault = (draft: Draft, line: LineOf<"fault">) => {
  const { kind: _, fault: kind, path, seen, fired, ...rest } = line
  draft.faults.push({ fault: { ...rest, kind, path: path === null ? null : new RegExp(path) }, seen, fired })
}

const addSubscription = (draft: Draft, line: LineOf<"subscription">) => {
  const { kind: _, token, previousSecret, previousUntil, lastDelivery, disabled, ...rest } = line
  if (!draft.tokens.has(token)) throw new ControlError(`there is no token ${token}`)
  if ((previousSecret === null) !== (previousUntil === null)) {
    throw new ControlError("previousSecret and previousUntil are both null or both set")
  }
  const subscription = {
    ...rest,
    owner: token,
    lastDelivery: readTimeOrNull(lastDelivery),
    disabled: readTimeOrNull(disabled),
    previous: previousSecret === null ? null : { secret: previousSecret, until: readTime(previousUntil!) }
  }
  addTo(draft.subscriptions, line.id, subscription, "subscription")
}

const addEvent = (draft: Draft, line: LineOf<"event">) => {
  const { id, type, scope, subscription, attempts, state, settled, body } = line
  if (!draft.subscriptions.has(subscription)) throw new ControlError(`there is no subscription ${subscription}`)
  if ((state === "waiting") !== (settled === null)) throw new ControlError("settled is null while the event waits")
  const event = {
    occurrence: { id, type, scope, body: Buffer.from(body) },
    attempts,
    state,
    settled: readTimeOrNull(settled)
  }
  addTo(draft.events, `${subscription} ${id}`, [subscription, event], "event")
}

const addAttempt = (draft: Draft, line: LineOf<"attempt">) => {
  const event = draft.events.get(`${line.subscription} ${line.event}`)?.[1]
  if (event === undefined) throw new ControlError(`subscription ${line.subscription} has no event ${line.event}`)
  if (line.seq <= (draft.attempts.at(-1)?.attempt.seq ?? 0)) throw new ControlError("seq is not above the one before")
  const attempt: Attempt = {
    subscriptionId: line.subscription,
    event,
    attempt: line.attempt,
    at: readTime(line.at),
    url: line.url,
    headers: line.headers,
    outcome: {
      status: line.status,
      body: Buffer.from(line.body, "base64"),
      durationms: line.durationms,
      failure: line.failure
    },
    delivered: line.delivered,
    abandoned: line.abandoned,
    seq: line.seq
  }
  draft.attempts.push({ attempt, server: line.logs !== "subscription", subscription: line.logs !== "server" })
}

const addAnswer = (draft: Draft, line: LineOf<"answer">) => {
  const { key, fingerprint, at, status, headers, body } = line
  const answer = { status, headers, body, wire: null }
  addTo(draft.answers, key, { key, fingerprint, answer, at: readTime(at) }, "answer of key")
}

/** Adds a line; throws {@link ControlError}. `before` is the number of lines between the header and this one. */
export const addLine = (catalogue: Catalogue, draft: Draft, line: Exclude<Line, ChangeLine>, before: number): void => {
  switch (line.kind) {
    case "clock":
      draft.single.clock = line
      return
    case "server":
      draft.single.server = line
      return
    case "dialect":
      draft.single.dialect = line
      return
    case "limits":
      draft.single.limits = line
      return
    case "company":
      return addCompany(catalogue, draft, line)
    case "next":
      if (!catalogue.resources.has(line.resource)) throw new ControlError(`there is no resource ${line.resource}`)
      return addTo(draft.nextIds, line.resource, line.id, "next id of")
    case "sequence":
      return addTo(draft.sequences, line.name, line.last, "sequence")
    case "trust":
      draft.trusted.push(line.pem)
      return
    case "token":
      return addToken(draft, line)
    case "rate":
      draft.rate.push({ key: line.key, times: line.times.map(readTime) })
      return
    case "fault":
      return addFault(draft, line)
    case "subscription":
      return addSubscription(draft, line)
    case "event":
      return addEvent(draft, line)
    case "attempt":
      return addAttempt(draft, line)
    case "answer":
      return addAnswer(draft, line)
    case "end":
      if (line.lines === before) return
      throw new ControlError(`there are ${before} lines between the header and this one, not ${line.lines}`)
  }
}

/** The state of a complete draft. */
export const finish = (draft: Draft, changes: Pick<StoreState, "history" | "tables" | "seq">): WorldState => {
  const { clock, server, dialect, limits } = draft.single as Required<Draft["single"]>
  if (server.seq < changes.seq)
    throw new ControlError(`the line of kind server has seq ${server.seq}: a change is above`)
  if (server.attempts < (draft.attempts.at(-1)?.attempt.seq ?? 0)) {
    throw new ControlError(`the line of kind server counts ${server.attempts} attempts: an attempt is above`)
  }
  const { kind: _dialect, ...switches } = dialect
  const { kind: _limits, ...limitValues } = limits
  return {
    clock: { offset: clock.offset, stoppedAt: readTimeOrNull(clock.stopped) },
    store: {
      tables: changes.tables,
      history: changes.history,
      nextIds: draft.nextIds,
      sequences: draft.sequences,
      seq: server.seq,
      stampLast: readTime(server.stamp)
    },
    tokens: [...draft.tokens.values()],
    rate: draft.rate,
    answers: [...draft.answers.values()],
    faults: { armed: draft.faults, random: server.faultRandom },
    limits: { ...plainLimits, ...limitValues },
    dialect: { ...plainDialect, ...switches },
    settings: draft.settings,
    events: {
      subscriptions: [...draft.subscriptions.values()],
      events: [...draft.events.values()],
      log: { attempts: draft.attempts, seq: server.attempts },
      trusted: draft.trusted,
      due: readTime(server.cycle),
      fired: server.fired,
      outageUntil: readTimeOrNull(server.outageUntil)
    },
    random: server.random,
    requests: server.requests
  }
}

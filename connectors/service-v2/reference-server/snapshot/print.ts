/** A state as the lines of a snapshot file; `lines.ts` describes them. */
import { print, Raw } from "../json.ts"
import type { Change } from "../store/Store.ts"
import type { Fault } from "../http/faults.ts"
import type { SubscriptionState } from "../events/state.ts"
import type { Version } from "../store/Table.ts"
import type { WorldState } from "../World.ts"
import { format, formatVersion, printTime } from "./lines.ts"

const timeOrNull = (micros: number | null) => (micros === null ? null : printTime(micros))

const sorted = <A>(entries: Iterable<readonly [string, A]>): ReadonlyArray<readonly [string, A]> =>
  [...entries].sort(([a], [b]) => (a < b ? -1 : 1))

function* settings({ clock, store, random, faults, requests, events, dialect, limits, settings }: WorldState) {
  yield { kind: "clock", stopped: timeOrNull(clock.stoppedAt), offset: clock.offset }
  yield {
    kind: "server",
    random,
    faultRandom: faults.random,
    requests,
    seq: store.seq,
    stamp: printTime(store.stampLast),
    cycle: printTime(events.due),
    fired: events.fired,
    attempts: events.log.seq,
    outageUntil: timeOrNull(events.outageUntil)
  }
  yield { kind: "dialect", ...Object.fromEntries(sorted(Object.entries(dialect))) }
  yield { kind: "limits", ...Object.fromEntries(sorted(Object.entries(limits))) }
  for (const [company, { unlicensed, recordLimits, closedThrough }] of [...settings].sort(([a], [b]) => a - b)) {
    const limitsByResource = Object.fromEntries(sorted(recordLimits))
    yield {
      kind: "company",
      company,
      unlicensed: [...unlicensed].sort(),
      recordLimits: limitsByResource,
      closedThrough
    }
  }
  for (const [resource, id] of sorted(store.nextIds)) yield { kind: "next", resource, id }
  for (const [name, last] of sorted(store.sequences)) yield { kind: "sequence", name, last }
}

const faultLine = ({ kind, path, ...fault }: Fault, seen: number, fired: number) => {
  const { method, ...rest } = fault
  return { kind: "fault", fault: kind, method, path: path?.source ?? null, ...rest, seen, fired }
}

function* access({ tokens, rate, faults, events }: WorldState) {
  for (const pem of events.trusted) yield { kind: "trust", pem }
  for (const { digest, token } of tokens) {
    yield {
      kind: "token",
      id: token.id,
      sha256: digest,
      company: token.company,
      usercompany: token.userCompany,
      userid: token.userId,
      login: token.login,
      scopes: [...token.scopes],
      supervisor: token.supervisor,
      active: token.active,
      expires: timeOrNull(token.expires),
      revoked: token.revoked,
      lastused: timeOrNull(token.lastUsed),
      lastaddress: token.lastAddress
    }
  }
  for (const { key, times } of rate) yield { kind: "rate", key, times: times.map(printTime) }
  for (const { fault, seen, fired } of faults.armed) yield faultLine(fault, seen, fired)
}

const subscriptionLine = ({ previous, ...subscription }: SubscriptionState) => ({
  kind: "subscription",
  id: subscription.id,
  token: subscription.owner,
  url: subscription.url,
  events: subscription.events,
  description: subscription.description,
  paused: subscription.paused,
  failcount: subscription.failcount,
  lastDelivery: timeOrNull(subscription.lastDelivery),
  disabled: timeOrNull(subscription.disabled),
  cancelled: subscription.cancelled,
  secret: subscription.secret,
  previousSecret: previous?.secret ?? null,
  previousUntil: timeOrNull(previous?.until ?? null)
})

function* deliveries({ events, answers }: WorldState) {
  for (const subscription of events.subscriptions) yield subscriptionLine(subscription)
  for (const [subscription, { occurrence, attempts, state, settled }] of events.events) {
    const { id, type, scope } = occurrence
    const body = Buffer.from(occurrence.body).toString()
    yield { kind: "event", subscription, id, type, scope, attempts, state, settled: timeOrNull(settled), body }
  }
  for (const { attempt: one, server, subscription } of events.log.attempts) {
    yield {
      kind: "attempt",
      seq: one.seq,
      subscription: one.subscriptionId,
      event: one.event.occurrence.id,
      attempt: one.attempt,
      at: printTime(one.at),
      url: one.url,
      headers: one.headers,
      delivered: one.delivered,
      abandoned: one.abandoned,
      status: one.outcome.status,
      body: Buffer.from(one.outcome.body).toString("base64"),
      durationms: one.outcome.durationms,
      failure: one.outcome.failure,
      logs: server && subscription ? "both" : server ? "server" : "subscription"
    }
  }
  for (const { key, fingerprint, at, answer } of answers) {
    const { status, headers, body } = answer
    yield { kind: "answer", key, fingerprint, at: printTime(at), status, headers, body }
  }
}

const pairsText = (name: string, pairs: ReadonlyMap<string, string> | null) =>
  pairs === null ? "" : `,"${name}":[${[...pairs].map(([key, text]) => `[${JSON.stringify(key)},${text}]`).join(",")}]`

const valuesText = ({ values }: Version) => {
  let text = ""
  for (const name in values) {
    const value = values[name]
    text += `,${JSON.stringify(name)}:${value instanceof Raw ? value.text : JSON.stringify(value ?? null)}`
  }
  return `{${text.slice(1)}}`
}

const changeLine = ({ seq, op, version, at }: Change): string => {
  const { company, resource } = version.table
  const head = JSON.stringify({
    kind: "change",
    seq,
    op,
    company,
    resource: resource.path,
    id: version.id,
    at: printTime(at)
  })
  if (op === "delete") return head
  const more = `${pairsText("extra", version.extra)}${pairsText("custom", version.custom)}`
  return `${head.slice(0, -1)},"values":${valuesText(version)}${more}}`
}

function* lines(state: WorldState): Generator<string> {
  for (const line of settings(state)) yield print(line)
  for (const line of access(state)) yield print(line)
  for (const line of deliveries(state)) yield print(line)
  for (const change of state.store.history) yield changeLine(change)
}

const linesPerChunk = 500

/** The text of a snapshot file, in chunks of whole lines. */
export function* printSnapshot(state: WorldState): Generator<string> {
  let chunk = [JSON.stringify({ format, version: formatVersion })]
  let count = 0
  for (const line of lines(state)) {
    count++
    chunk.push(line)
    if (chunk.length < linesPerChunk) continue
    yield `${chunk.join("\n")}\n`
    chunk = []
  }
  chunk.push(JSON.stringify({ kind: "end", lines: count }))
  yield `${chunk.join("\n")}\n`
}

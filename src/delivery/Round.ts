/**
 * One round of an endpoint: reads what is due and what is new, sends it, and stores the results.
 *
 * Promise: one transaction stores the position, what waits and what was delivered, guarded by the fence. A crash before
 * it repeats the same changes under the same ids. What waits is bounded: beyond the bound the position stays, and the
 * feed keeps the changes. A truncate is sent in a round of its own, after everything before it was delivered or waits;
 * what waits of its resource becomes obsolete.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type { Change, Position } from "../changes/ChangeFeed.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import { companyNames } from "../tasks/TaskQueue.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import { matches } from "./Endpoint.ts"
import { type Keys, secretsOf } from "./EndpointSecrets.ts"
import * as Plan from "./Plan.ts"
import * as Resolve from "./Resolve.ts"
import { type Attempt, send } from "./Sending.ts"
import * as SenderStore from "./SenderStore.ts"
import type { EndpointRow, Waiting } from "./SenderStore.ts"
import type { Transport } from "./Transport.ts"

/** Changes of one round. */
const changesMax = 200
/** With more waiting changes, no new one is read. */
export const waitingMax = 1000
/** A position without a change for the endpoint is stored this often. */
const storeEveryMs = 2_000

export class EndpointUnusable extends Data.TaggedError("EndpointUnusable")<{ readonly message: string }> {}

export interface Sender extends SenderStore.Lease {
  readonly keys: Keys
  readonly transport: Transport
}

/** What the loop of an endpoint knows after a round. */
export interface State {
  /** Everything up to here was read. */
  readonly position: Position | null
  readonly storedMs: number
  /** Whether the next round may find more at once. */
  readonly isBusy: boolean
  /** Whether new changes are read. */
  readonly canRead: boolean
  /** When something that waits is due; null for nothing. */
  readonly dueMs: number | null
}

export const initial: State = { position: null, storedMs: 0, isBusy: true, canRead: true, dueMs: null }

const resumeOf = ({ resume }: Change): Position => ChangeFeed.parse(resume)!

/** New changes, up to a truncate or that truncate alone, and the position that they reach. */
const readFresh = Effect.fnUntraced(function* (row: EndpointRow, from: Position) {
  const end: Position = { number: row.end, token: row.endToken }
  if (row.end <= from.number) return { fresh: [], position: from }
  if (row.onlyCompany !== null && row.companyId === null) return { fresh: [], position: end }
  const read = yield* ChangeFeed.readAfter(from, { companyId: row.companyId, resources: row.resources }, changesMax)
  const last = read.at(-1)
  const fresh = read.filter((change) => matches(row, change))
  const truncate = fresh.findIndex(({ op }) => op === "truncate")
  if (truncate >= 0) {
    const part = fresh.slice(0, Math.max(1, truncate))
    return { fresh: part, position: resumeOf(part.at(-1)!) }
  }
  const isWhole = read.length < changesMax && (last === undefined || last.position < row.end)
  return { fresh, position: isWhole ? end : resumeOf(last!) }
})

interface Work {
  readonly row: EndpointRow
  readonly position: Position
  readonly waiting: ReadonlyArray<Waiting>
  readonly plan: Plan.Plan
  /** What waits of a resource that was truncated. */
  readonly obsolete: ReadonlyArray<Waiting>
  /** What waits, and is in the feed no more. */
  readonly gone: ReadonlyArray<Waiting>
}

const readWork = Effect.fnUntraced(function* (row: EndpointRow, from: Position) {
  const all = row.hasWaiting ? yield* SenderStore.readWaiting(row.name) : []
  const isProbe = row.nextAttemptMs !== null && row.failures > 0 && all.length > 0
  const { fresh, position } =
    isProbe || all.length >= waitingMax ? { fresh: [], position: from } : yield* readFresh(row, from)
  const truncated = fresh[0]?.op === "truncate" ? Plan.resourceKey(fresh[0]) : null
  const obsolete = all.filter((one) => Plan.resourceKey(one) === truncated)
  const waiting = truncated === null ? all : all.filter((one) => !obsolete.includes(one))
  const due = isProbe ? Plan.probeOf(waiting) : Plan.dueOf(waiting, row.nowMs, changesMax)
  const changes =
    due.length === 0 ? [] : yield* Statement.run(SenderStore.changesStatement, [due.map((one) => one.position)])
  const byPosition = new Map(changes.map((change) => [change.position, change]))
  const gone = due.filter((one) => !byPosition.has(one.position))
  const plan = Plan.make({
    waiting: waiting.filter((one) => !gone.includes(one)),
    due: due.flatMap((one) => {
      const change = byPosition.get(one.position)
      return change === undefined ? [] : [{ waiting: one, change }]
    }),
    fresh,
    batchMax: row.batchMax
  })
  return { row, position, waiting, plan, obsolete, gone } satisfies Work
})

const namesOf = ({ lanes }: Plan.Plan) => {
  const ids = new Set(lanes.flat(2).map(({ change }) => change.companyId))
  return ids.size === 0 ? Effect.succeed(new Map<bigint, string>()) : companyNames(ids)
}

const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? item.toString() : item))

/** The entries of the delivery log. */
const logOf = ({ obsolete, gone }: Work, attempts: ReadonlyArray<Attempt>, { results }: Resolve.Resolution) =>
  [
    ...attempts.map(({ id, items, status, error, durationMs: ms }, index) => ({
      id,
      first: items[0]!.change.position,
      changes: items.length,
      result: results[index],
      status,
      error,
      ms
    })),
    ...[
      ...obsolete.map((one) => [one, "its resource was truncated before it was delivered"] as const),
      ...gone.map((one) => [one, "the feed has it no more: its history was removed"] as const)
    ].map(([{ position }, error]) => ({
      id: `chg_${position}`,
      first: position,
      changes: 1,
      result: "obsolete",
      status: null,
      error,
      ms: 0
    }))
  ].slice(-SenderStore.logMax)

const store = Effect.fnUntraced(function* (
  sender: Sender,
  work: Work,
  attempts: ReadonlyArray<Attempt>,
  resolution: Resolve.Resolution
) {
  const { name } = sender
  const { row, position, obsolete, gone } = work
  const log = logOf(work, attempts, resolution)
  const advanced = yield* SenderStore.advance(sender, position, resolution, log.length)
  if (advanced === null) return yield* new SenderStore.LeaseLost({ endpoint: name })
  if (resolution.endReason !== null) yield* SenderStore.end(sender, resolution.endReason)
  const ended = row.hasWaiting ? [...resolution.delivered, ...[...obsolete, ...gone].map((one) => one.position)] : []
  if (ended.length > 0) yield* SenderStore.deleteWaiting(name, ended)
  if (resolution.waits.length > 0) yield* Statement.run(SenderStore.waitStatement, [name, toJson(resolution.waits)])
  if (resolution.waits.some(({ state }) => state === "dead")) yield* SenderStore.deleteOldDead(name)
  if (resolution.isRecovered) yield* SenderStore.makeDue(name)
  if (log.length > 0) {
    const entries = toJson(log.map((entry, place) => ({ ...entry, place })))
    yield* Statement.run(SenderStore.logStatement, [name, advanced.attempts - BigInt(log.length), entries])
  }
})

/** Runs one round, and answers the state for the next one. */
export const run = Effect.fnUntraced(function* (sender: Sender, state: State) {
  const row = yield* SenderStore.load(sender)
  const stored: Position = { number: row.lastPosition, token: row.lastToken }
  const from = state.position !== null && state.position.number > stored.number ? state.position : stored
  if (row.nextAttemptMs !== null && row.nextAttemptMs > row.nowMs) {
    return { ...state, position: from, isBusy: false, canRead: false, dueMs: row.nextAttemptMs } satisfies State
  }
  const secrets = secretsOf(sender.keys, row)
  if (secrets.length === 0) {
    return yield* new EndpointUnusable({
      message: `endpoint ${row.name}: its signing secret cannot be opened with this key; tributary changes endpoints rotate ${row.name} makes another`
    })
  }
  const monotonicMs = yield* MonotonicClock.make
  const beganMs = monotonicMs()
  const work = yield* readWork(row, from)
  const { plan, position, waiting } = work
  const hasWork = plan.lanes.length + plan.behind.length + work.obsolete.length + work.gone.length > 0
  const isStored = hasWork || (position.number > stored.number && row.nowMs - state.storedMs >= storeEveryMs)
  if (!hasWork && !isStored) {
    const canRead = waiting.length < waitingMax
    // Without a change for the endpoint, the end is reached unless the page was full.
    const isBusy = canRead && position.number < row.end
    return { ...state, position, isBusy, canRead, dueMs: Plan.nextDueMs(waiting) } satisfies State
  }
  const companies = yield* namesOf(plan)
  const attempts = yield* send(plan, { row, secrets, companies, transport: sender.transport })
  const sent = new Set(attempts.flatMap(({ items }) => items))
  const unsent = plan.lanes.flat(2).filter((item) => item.waiting === null && !sent.has(item))
  const random = yield* Random.Random
  const resolution = Resolve.resolve({
    row,
    waiting,
    attempts,
    unsent: [...plan.behind, ...unsent.map(({ change }) => change)],
    nowMs: row.nowMs + monotonicMs() - beganMs,
    random: () => random.nextDoubleUnsafe()
  })
  yield* transaction(store(sender, work, attempts, resolution))
  return { ...state, position, storedMs: row.nowMs, isBusy: true, canRead: true, dueMs: null } satisfies State
})

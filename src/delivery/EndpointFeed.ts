/**
 * The changes of an endpoint: what is due and what is new in the change feed, as signed webhooks.
 *
 * Promise: what waits is bounded: beyond the bound the position stays, and the feed keeps the changes. A truncate is sent in
 * a round of its own, after everything before it was delivered or waits; what waits of its resource becomes obsolete.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type { Change, Position } from "../changes/ChangeFeed.ts"
import * as Statement from "../postgres/Statement.ts"
import { companyNames } from "../tasks/TaskQueue.ts"
import { matches } from "./Endpoint.ts"
import { type Keys, secretsOf } from "./EndpointSecrets.ts"
import * as Message from "./Message.ts"
import * as Plan from "./Plan.ts"
import { EndpointUnusable, type Feed } from "./Round.ts"
import { post } from "./Sending.ts"
import * as SenderStore from "./SenderStore.ts"
import type { EndpointRow } from "./SenderStore.ts"
import { limitsDefault } from "./Transport.ts"

/** Changes of one round. */
const changesMax = 200
/** With more waiting changes, no new one is read. */
export const waitingMax = 1000

/** A change without an attempt. */
const entryOf = ({ position, companyId, resource, id }: Change, nowMs: number): Plan.Entry => ({
  position,
  companyId,
  resource,
  recordId: id,
  attempts: 0,
  failedMs: null,
  nextAttemptMs: nowMs
})

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
    return { fresh: part, position: ChangeFeed.positionOf(part.at(-1)!) }
  }
  const isWhole = read.length < changesMax && (last === undefined || last.position < row.end)
  return { fresh, position: isWhole ? end : ChangeFeed.positionOf(last!) }
})

const namesOf = ({ lanes }: Plan.Plan) => {
  const ids = new Set(lanes.flat(2).map(({ companyId }) => companyId))
  return ids.size === 0 ? Effect.succeed(new Map<bigint, string>()) : companyNames(ids)
}

/** The feed of the endpoints that these keys sign for. */
export const make = (keys: Keys): Feed => ({
  limits: limitsDefault,
  isIdempotent: true,
  isFinished: false,
  read: Effect.fnUntraced(function* ({ transport }, row, from) {
    const secrets = secretsOf(keys, row)
    if (secrets.length === 0) {
      return yield* new EndpointUnusable({
        message: `endpoint ${row.name}: its signing secret cannot be opened with this key; tributary changes endpoints rotate ${row.name} makes another`
      })
    }
    const all = row.hasWaiting ? yield* SenderStore.readWaiting(row.name) : []
    const isProbe = SenderStore.isProbed(row) && all.length > 0
    const { fresh, position } =
      isProbe || all.length >= waitingMax ? { fresh: [], position: from } : yield* readFresh(row, from)
    const truncated = fresh[0]?.op === "truncate" ? Plan.resourceKey(fresh[0]) : null
    const obsolete = all.filter((one) => Plan.resourceKey(one) === truncated)
    const waiting = truncated === null ? all : all.filter((one) => !obsolete.includes(one))
    const due = isProbe ? Plan.probeOf(waiting) : Plan.dueOf(waiting, row.nowMs, changesMax)
    const changes =
      due.length === 0 ? [] : yield* Statement.run(SenderStore.changesStatement, [due.map((one) => one.position)])
    const contents = new Map([...changes, ...fresh].map((change) => [change.position, change]))
    const gone = due.filter(({ position: one }) => !contents.has(one))
    const plan = Plan.make({
      waiting: waiting.filter((one) => !gone.includes(one)),
      due: due.filter((one) => !gone.includes(one)),
      fresh: fresh.map((change) => entryOf(change, row.nowMs)),
      batchMax: row.batchMax
    })
    const companies = yield* namesOf(plan)
    return {
      ...plan,
      position,
      waiting,
      obsolete: [
        ...obsolete.map((one) => ({ ...one, error: "its resource was truncated before it was delivered" })),
        ...gone.map((one) => ({ ...one, error: "the feed has it no more: its history was removed" }))
      ],
      canRead: waiting.length < waitingMax,
      send: Effect.fnUntraced(function* (items) {
        const message = Message.make(
          items.map((item) => contents.get(item.position)!),
          { isBatch: row.batchMax > 1, companies }
        )
        const headers = Message.headersOf(message, secrets, yield* Clock.currentTimeMillis)
        const { url, allowPrivate } = row
        return { ...(yield* post(transport, { url, allowPrivate, headers, body: message.body })), id: message.id }
      })
    }
  })
})

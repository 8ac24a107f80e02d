/**
 * Which changes a round sends, and in which messages. A pure function of what waits and what is new.
 *
 * Promise: the changes of a record are in one lane, in the order of their positions, and a lane sends one message at a
 * time. A change of a record is not sent while an earlier one waits for its next attempt. While a truncate waits, all
 * changes of its resource follow it in one lane.
 */
import type { Change } from "../changes/ChangeFeed.ts"
import type { Waiting } from "./SenderStore.ts"

/** A change that is sent. */
export interface Item {
  readonly change: Change
  /** What orders it: its record, or its resource while a truncate waits. */
  readonly key: string
  /** Null for a new change. */
  readonly waiting: Waiting | null
}

/** Changes that are sent by one request. */
export type Message = ReadonlyArray<Item>

export interface Plan {
  /** Each lane is a list of messages. */
  readonly lanes: ReadonlyArray<ReadonlyArray<Message>>
  /** New changes that wait for an earlier one. */
  readonly behind: ReadonlyArray<Change>
}

interface Place {
  readonly companyId: bigint
  readonly resource: string
}

export const resourceKey = ({ companyId, resource }: Place): string => `${companyId}/${resource}`

/** The key of a record, given what waits. */
export const makeKeys = (waiting: ReadonlyArray<Waiting>) => {
  const truncated = new Set(waiting.filter(({ recordId }) => recordId === null).map(resourceKey))
  return (place: Place, record: bigint | null): string => {
    const key = resourceKey(place)
    return record === null || truncated.has(key) ? key : `${key}/${record}`
  }
}

const chainsOf = (waiting: ReadonlyArray<Waiting>): ReadonlyArray<ReadonlyArray<Waiting>> => {
  const keyOf = makeKeys(waiting)
  return [...Map.groupBy(waiting, (one) => keyOf(one, one.recordId)).values()]
}

/** The records whose earliest change has failed. */
export const countFailed = (waiting: ReadonlyArray<Waiting>): number =>
  chainsOf(waiting).filter(([first]) => first!.attempts > 0).length

/** When the next waiting change is due; null where none waits. */
export const nextDueMs = (waiting: ReadonlyArray<Waiting>): number | null =>
  waiting.length === 0 ? null : Math.min(...chainsOf(waiting).map(([first]) => first!.nextAttemptMs))

/** The waiting changes to send, at most about `max`: each record's in their order, from its earliest on. */
export const dueOf = (waiting: ReadonlyArray<Waiting>, nowMs: number, max: number): ReadonlyArray<Waiting> => {
  const due: Array<Waiting> = []
  for (const chain of chainsOf(waiting)) {
    if (due.length >= max) break
    if (chain[0]!.nextAttemptMs <= nowMs) due.push(...chain.slice(0, max - due.length))
  }
  return due
}

/** The one change that tries an endpoint again: one that was tried least, so that a single bad record does not decide. */
export const probeOf = (waiting: ReadonlyArray<Waiting>): ReadonlyArray<Waiting> => {
  const heads = chainsOf(waiting).map(([first]) => first!)
  return heads.length === 0 ? [] : [heads.reduce((best, one) => (one.attempts < best.attempts ? one : best))]
}

/** Cuts changes into messages. After each failure of a change, its messages are half as long. */
const messagesOf = (items: ReadonlyArray<Item>, batchMax: number): ReadonlyArray<Message> => {
  const messages: Array<Array<Item>> = []
  let room = 0
  for (const item of items) {
    const max = Math.max(1, batchMax >> Math.min(30, item.waiting?.attempts ?? 0))
    const current = messages.at(-1)
    if (current !== undefined && current.length < Math.min(room, max)) {
      current.push(item)
      room = Math.min(room, max)
    } else {
      messages.push([item])
      room = max
    }
  }
  return messages
}

export interface PlanOptions {
  /** Everything that waits. */
  readonly waiting: ReadonlyArray<Waiting>
  /** The part of it that is sent, with its changes. */
  readonly due: ReadonlyArray<{ readonly waiting: Waiting; readonly change: Change }>
  /** New changes, in the order of their positions, which follow everything that waits. */
  readonly fresh: ReadonlyArray<Change>
  readonly batchMax: number
}

export const make = ({ waiting, due, fresh, batchMax }: PlanOptions): Plan => {
  const keyOf = makeKeys(waiting)
  const sent = new Set(due.map((one) => one.waiting.position))
  const blocked = new Set(waiting.filter(({ position }) => !sent.has(position)).map((one) => keyOf(one, one.recordId)))
  const [behind, ready] = [new Array<Change>(), new Array<Item>()]
  for (const one of due) ready.push({ ...one, key: keyOf(one.waiting, one.waiting.recordId) })
  for (const change of fresh) {
    const key = keyOf(change, change.id)
    if (blocked.has(key)) behind.push(change)
    else ready.push({ change, key, waiting: null })
  }
  const lanes =
    batchMax > 1
      ? [ready.sort((a, b) => Number(a.change.position - b.change.position))]
      : [...Map.groupBy(ready, ({ key }) => key).values()]
  return { lanes: lanes.flatMap((items) => (items.length === 0 ? [] : [messagesOf(items, batchMax)])), behind }
}

/**
 * Which changes a round sends, and in which messages. A pure function of what waits and what is new.
 *
 * Promise: the changes of a record are in one lane, in the order of their positions, and a lane sends one message at a
 * time. A change of a record is not sent while an earlier one waits for its next attempt. While a truncate waits, all
 * changes of its resource follow it in one lane.
 */

/** A change that is new or waits: one of the feed, or an alert message with its condition as the record. */
export interface Entry {
  readonly position: bigint
  readonly companyId: bigint
  readonly resource: string
  /** Null for a truncate. */
  readonly recordId: bigint | null
  /** Failed attempts. */
  readonly attempts: number
  readonly failedMs: number | null
  readonly nextAttemptMs: number
}

/** A change that is sent. */
export interface Item extends Entry {
  /** What orders it: its record, or its resource while a truncate waits. */
  readonly key: string
}

/** Changes that are sent by one request. */
export type Message = ReadonlyArray<Item>

export interface Plan {
  /** Each lane is a list of messages. */
  readonly lanes: ReadonlyArray<ReadonlyArray<Message>>
  /** New changes that wait for an earlier one. */
  readonly behind: ReadonlyArray<Entry>
}

export const resourceKey = ({ companyId, resource }: Pick<Entry, "companyId" | "resource">): string =>
  `${companyId}/${resource}`

/** The key of a record, given what waits. */
export const makeKeys = (waiting: ReadonlyArray<Entry>) => {
  const truncated = new Set(waiting.filter(({ recordId }) => recordId === null).map(resourceKey))
  return (entry: Entry): string => {
    const key = resourceKey(entry)
    return entry.recordId === null || truncated.has(key) ? key : `${key}/${entry.recordId}`
  }
}

const chainsOf = <E extends Entry>(waiting: ReadonlyArray<E>): ReadonlyArray<ReadonlyArray<E>> => [
  ...Map.groupBy(waiting, makeKeys(waiting)).values()
]

/** When the next waiting change is due; null where none waits. */
export const nextDueMs = (waiting: ReadonlyArray<Entry>): number | null =>
  waiting.length === 0 ? null : Math.min(...chainsOf(waiting).map(([first]) => first!.nextAttemptMs))

/** The waiting changes to send, at most `max`: each record's in their order, from its earliest up to one that is not due. */
export const dueOf = <E extends Entry>(waiting: ReadonlyArray<E>, nowMs: number, max: number): ReadonlyArray<E> =>
  chainsOf(waiting)
    .flatMap((chain) => {
      const place = chain.findIndex(({ nextAttemptMs }) => nextAttemptMs > nowMs)
      return place < 0 ? chain : chain.slice(0, place)
    })
    .slice(0, max)

/** The one change that tries an endpoint again: one that was tried least, so that a single bad record does not decide. */
export const probeOf = <E extends Entry>(waiting: ReadonlyArray<E>): ReadonlyArray<E> => {
  const heads = chainsOf(waiting).map(([first]) => first!)
  return heads.length === 0 ? [] : [heads.reduce((best, one) => (one.attempts < best.attempts ? one : best))]
}

/** Cuts changes into messages. After each failure of a change, its messages are half as long. */
const messagesOf = (items: ReadonlyArray<Item>, batchMax: number): ReadonlyArray<Message> => {
  const messages: Array<Array<Item>> = []
  let room = 0
  for (const item of items) {
    const max = Math.max(1, batchMax >> Math.min(30, item.attempts))
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
  readonly waiting: ReadonlyArray<Entry>
  /** The part of it that is sent. */
  readonly due: ReadonlyArray<Entry>
  /** New changes, in the order of their positions, which follow everything that waits. */
  readonly fresh: ReadonlyArray<Entry>
  readonly batchMax: number
}

export const make = ({ waiting, due, fresh, batchMax }: PlanOptions): Plan => {
  const keyOf = makeKeys(waiting)
  const sent = new Set(due.map(({ position }) => position))
  const blocked = new Set(waiting.filter(({ position }) => !sent.has(position)).map(keyOf))
  const isBehind = (one: Entry) => blocked.has(keyOf(one))
  const ready = [...due, ...fresh.filter((one) => !isBehind(one))].map((one): Item => ({ ...one, key: keyOf(one) }))
  const lanes =
    batchMax > 1
      ? [ready.sort((a, b) => Number(a.position - b.position))]
      : [...Map.groupBy(ready, ({ key }) => key).values()]
  return {
    lanes: lanes.flatMap((items) => (items.length === 0 ? [] : [messagesOf(items, batchMax)])),
    behind: fresh.filter(isBehind)
  }
}

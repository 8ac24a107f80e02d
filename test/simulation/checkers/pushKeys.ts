/**
 * P3: a key belongs to the same bytes for ever, is stored before it is used, and is not used after the source may have
 * removed it.
 */
import type { Sending } from "../world/WriteNetwork.ts"
import type { PlannedRow } from "../world/People.ts"
import { carries, type PushCheckerOf, describeRow } from "./PushChecker.ts"

/** Maximum age of a key. Retries of a write that began in time may continue for a while. */
const ageMax = (23 * 60 + 40) * 60_000_000

/** Maximum time until a process whose lane was acquired by another one notices it. */
const settledMax = 10_000_000

/** Answers after which the outcome is still open. The same request may be sent again. */
const settlesNothing = new Set([401, 403, 408, 423, 425, 429])

/** Whether the answer that a process received shows the result of the record. */
const showsResult = ({ status, answer, path }: Sending, one: PlannedRow, place: number): boolean => {
  if (status === null || answer === null || settlesNothing.has(status)) return false
  // An operation that is not implemented has no effect.
  if (status >= 500 && status !== 501) return false
  if (status >= 300 && status < 400) return false
  if (answer.includes('"request_in_progress"')) return false
  if (!path.endsWith("/batch") || status !== 207)
    return one.operation !== "create" || status >= 400 || answer.includes('"id"')
  try {
    const { results } = JSON.parse(answer) as {
      results: ReadonlyArray<{ index?: unknown; record?: unknown; error?: { code?: string } }>
    }
    const own = results.filter(({ index }) => index === place)
    // Two identical writes have one effect.
    return (
      own.length > 0 &&
      new Set(own.map((item) => JSON.stringify(item))).size === 1 &&
      ("record" in own[0]! || "error" in own[0]!)
    )
  } catch {
    return false
  }
}

const placeIn = ({ body, path }: Sending, { externalid }: PlannedRow): number =>
  path.endsWith("/batch")
    ? (JSON.parse(body!) as ReadonlyArray<{ externalid?: unknown }>).findIndex((item) => item.externalid === externalid)
    : 0

export const pushKeys: PushCheckerOf = ({ planned, sendings, reads }) => {
  const first = new Map<string, Sending>()
  return {
    name: "push keys",
    holds:
      "P3: one key, one request, byte for byte; stored before it is sent; not sent after 23 hours, nor when it was closed; no second key while the outcome of the first is unknown",
    sent: ({ sending, call }) => {
      const { key, method, path, body, ifMatch, at } = sending
      if (key === "") return `${method} ${path} has no key`
      if (call === null) return `${method} ${path} was sent with the key ${key}, which is not stored`
      if (call.state === "open" && call.body !== body)
        return `${method} ${path}: request ${call.number} was stored with other bytes than were sent`
      if (call.settledAt !== null && at - call.settledAt > settledMax)
        return `${method} ${path}: request ${call.number} is ${call.state} since ${((at - call.settledAt) / 1e6).toFixed(0)} s and was sent again`
      const before = first.get(key)
      if (before === undefined) {
        if (call.state !== "open")
          return `${method} ${path}: request ${call.number} is ${call.state} and was sent for the first time`
        first.set(key, sending)
        return anew(sending)
      }
      if (before.method !== method || before.path !== path || before.body !== body || before.ifMatch !== ifMatch)
        return `the key ${key} was sent with two requests: ${before.method} ${before.path} ${before.body} and ${method} ${path} ${body}`
      if (at - before.at > ageMax)
        return `the key ${key} was sent again ${((at - before.at) / 3.6e9).toFixed(2)} h after its first time`
      return null
    }
  }

  /** The first use of a key: the outcome of every earlier write of the same record must be known. */
  function anew(sending: Sending): string | null {
    for (const one of planned) {
      if (!carries(sending, one)) continue
      if (one.operation === "cancel") continue
      const earlier = sendings.filter(
        (other) => other.number < sending.number && other.key !== sending.key && carries(other, one)
      )
      for (const group of Map.groupBy(earlier, ({ key }) => key).values()) {
        const place = placeIn(group[0]!, one)
        if (group.some((other) => showsResult(other, one, place) && other.endedAt! <= sending.at)) continue
        const since = group[0]!.at
        const isSeen = reads.some(
          ({ company, path, sentAt, at }) =>
            company === sending.company &&
            sentAt >= since &&
            at <= sending.at &&
            (one.operation === "create" ? path.startsWith(`/${one.resource}?`) : path.startsWith(sending.path))
        )
        if (!isSeen)
          return `${describeRow(one)}: sent with a second key, and no process has looked up the outcome of the first (${group[0]!.key})`
      }
    }
    return null
  }
}

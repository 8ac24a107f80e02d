/**
 * An event as it is sent (EVT-07..EVT-11).
 *
 * Promise: the envelope is made once, when the event fires: every attempt sends the same bytes, with the record of that
 * time. Ids never repeat: they contain the time, a count, and random digits from the seed.
 */
import type { Random } from "../random.ts"
import { printInstant } from "../time.ts"

export interface Occurrence {
  readonly id: string
  readonly type: string
  /** The scope that the owner's token needs to receive it (EVT-02); null for test events. */
  readonly scope: string | null
  readonly body: Uint8Array
}

/** An event queued for one subscription. */
export interface Waiting {
  readonly occurrence: Occurrence
  attempts: number
  state: "waiting" | "delivered" | "abandoned" | "dropped"
  /** Time at which it left the queue, in microseconds; null while it waits. */
  settled: number | null
}

export const waiting = (occurrence: Occurrence): Waiting => ({
  occurrence,
  attempts: 0,
  state: "waiting",
  settled: null
})

export const eventId = (now: number, count: number, random: Random): string =>
  `evt_${now.toString(16).padStart(14, "0")}${count.toString(16).padStart(8, "0")}${random.hex(8)}`

/** `data` is JSON text. */
export const occurrence = (
  id: string,
  type: string,
  scope: string | null,
  company: number,
  data: string,
  at: number
): Occurrence => {
  const head = JSON.stringify({ id, type, createdate: printInstant(at), companyid: company })
  return { id, type, scope, body: Buffer.from(`${head.slice(0, -1)},"data":${data}}`) }
}

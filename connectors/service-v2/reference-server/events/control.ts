/**
 * Control calls for deliveries (DESIGN 5.3).
 *
 * Promise: an attempt is shown as it was sent: its headers, and the bytes of its body in base64.
 */
import { X509Certificate } from "node:crypto"
import type { World } from "../World.ts"
import { printAttempt } from "./Log.ts"
import type { Attempt } from "./Log.ts"

const array = (attempts: ReadonlyArray<Attempt>) => `[${attempts.map(printAttempt).join(",")}]`

export const runCycle = async ({ events }: World): Promise<string> => `{"attempts":${array(await events.cycle())}}`

/** Sends the event of an attempt once more; a message when that is not possible. */
export const replay = ({ events }: World, delivery: number): Promise<string> | string => {
  const attempt = events.log.find(delivery)
  if (attempt === undefined) return `there is no delivery ${delivery}`
  return (
    events.replay(attempt)?.then(printAttempt) ??
    `delivery ${delivery} cannot be sent again: its event waits for a cycle, or its subscription is cancelled`
  )
}

/** Attempts per chunk of the answer. */
const attemptsPerChunk = 200

export function* printDeliveries({ events }: World): Generator<string> {
  const attempts = events.log.all().slice()
  yield '{"deliveries":['
  for (let start = 0; start < attempts.length; start += attemptsPerChunk) {
    const text = array(attempts.slice(start, start + attemptsPerChunk)).slice(1, -1)
    yield start === 0 ? text : `,${text}`
  }
  yield "]}"
}

const certificates = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** Trusts the certificates of a PEM text; returns a message when it contains no readable one. */
export const trust = ({ events }: World, pem: unknown): number | string => {
  const texts = typeof pem === "string" ? (pem.match(certificates) ?? []) : []
  if (texts.length === 0) return "caPem must be a certificate in PEM, -----BEGIN CERTIFICATE-----"
  try {
    for (const one of texts) void new X509Certificate(one)
  } catch (error) {
    return `caPem cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
  events.trusted = [...new Set([...events.trusted, ...texts])]
  return events.trusted.length
}

/** Requests and answers without sockets, so that tests can call the server in process. */
import type { WireFault } from "./faults.ts"

export interface Request {
  readonly method: string
  /** Path and query as sent, for example `/!/api/v2/orders?limit=10`. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array | null
  /** The address of the caller. */
  readonly address?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body in chunks, where it may be too long for one text; `body` is empty then. */
  readonly chunks?: Iterable<string>
  /** The body as bytes, where it is not text; `body` is empty then. */
  readonly bytes?: Uint8Array
  /** The answer after external work; the other members have no meaning then. Never rejects. */
  readonly pending?: Promise<Answer>
  /** The fault of the answer on the wire; null means none. */
  readonly wire: WireFault | null
}

/** An answer without the headers that all answers share. */
export interface Result {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body as bytes, where it is not text. */
  readonly bytes?: Uint8Array
  /** The result after the answer of a receiver. */
  readonly pending?: Promise<Result>
}

export const json: string = "application/json"

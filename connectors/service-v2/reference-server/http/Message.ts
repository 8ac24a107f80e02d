/** Requests and answers without sockets, so that the server can be driven in process. */
import type { WireFault } from "./faults.ts"

export interface Request {
  readonly method: string
  /** Path and query as they came, for example `/!/api/v2/orders?limit=10`. */
  readonly url: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array | null
  /** Where the request came from. */
  readonly address?: string
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The body in pieces, where it may be too long for one text; `body` is empty then. */
  readonly chunks?: Iterable<string>
  /** The body where it is no text; `body` is empty then. */
  readonly bytes?: Uint8Array
  /** The answer itself, where something outside must be waited for; the rest says nothing then. Never rejects. */
  readonly pending?: Promise<Answer>
  /** What happens to the answer on its way; null is nothing. */
  readonly wire: WireFault | null
}

/** An answer before the headers that all answers share. */
export interface Result {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body where it is no text. */
  readonly bytes?: Uint8Array
  /** The result itself, where a receiver must be waited for. */
  readonly pending?: Promise<Result>
}

export const json: string = "application/json"

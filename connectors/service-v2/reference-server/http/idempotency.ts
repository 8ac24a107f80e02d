/**
 * Stored answers by Idempotency-Key (B-05..B-10).
 *
 * Promise: a key of a token belongs to one request, identified by the hash of its method, path, query and body bytes.
 * The same request gets the first answer, byte for byte, for 24 hours of the server's clock; another one is refused.
 */
import { createHash } from "node:crypto"
import { limits } from "../../catalogue/limits.ts"
import { ApiError } from "../ApiError.ts"
import { microsPerSecond } from "../time.ts"
import type { Answer, Request } from "./Message.ts"

const keptMicros = limits.idempotencyHours * 3600 * microsPerSecond

interface Kept {
  readonly fingerprint: string
  /** Null while the request runs. */
  readonly answer: Answer | null
  readonly at: number
}

/** A stored answer with its key. */
export interface KeptAnswer {
  readonly key: string
  readonly fingerprint: string
  readonly answer: Answer
  /** Microseconds since 1970. */
  readonly at: number
}

export const fingerprint = (request: Request): string =>
  createHash("sha256")
    .update(`${request.method} ${request.url}\n`)
    .update(request.body ?? new Uint8Array())
    .digest("base64")

/** The store key of a request; null when it has no Idempotency-Key. */
export const keyOf = (tokenId: number, request: Request): string | null => {
  const key = request.headers["idempotency-key"]
  if (key === undefined) return null
  if (key.length > limits.idempotencyKeyLengthMax || !/^[\x20-\x7e]+$/.test(key) || key.trim() === "") {
    throw new ApiError(
      "invalid_request",
      `Idempotency-Key must be 1 to ${limits.idempotencyKeyLengthMax} printable characters`,
      { field: "Idempotency-Key" }
    )
  }
  return `${tokenId} ${key}`
}

/** Refusals that do not depend on the request itself: sending it again may succeed. */
const passing = new Set(["request_in_progress", "idempotency_replay"])
const keptStatuses = new Set([400, 404, 409, 422])

export const isKept = (status: number, code: string | null): boolean =>
  status < 300 || (keptStatuses.has(status) && (code === null || !passing.has(code)))

export class Idempotency {
  private readonly kept: Map<string, Kept>

  constructor(state: ReadonlyArray<KeptAnswer> = []) {
    this.kept = new Map(state.map(({ key, ...kept }) => [key, kept]))
  }

  /** The stored answers, oldest first; keys of running requests are left out. */
  state(): ReadonlyArray<KeptAnswer> {
    return [...this.kept].flatMap(([key, { fingerprint, answer, at }]) =>
      answer === null ? [] : [{ key, fingerprint, answer, at }]
    )
  }

  /** The first answer to a key, or null. Throws when the key is running or belongs to another request. */
  recall(key: string, print: string, now: number): Answer | null {
    const entry = this.kept.get(key)
    if (entry === undefined || now - entry.at > keptMicros) return null
    if (entry.fingerprint !== print) {
      throw new ApiError("idempotency_replay", "the Idempotency-Key was used for another request", {
        field: "Idempotency-Key"
      })
    }
    if (entry.answer === null) {
      throw new ApiError("request_in_progress", "the first request with this Idempotency-Key is still running", {
        headers: { "Retry-After": "1" }
      })
    }
    return entry.answer
  }

  /** Marks a key as running; false when it exists already. */
  claim(key: string, print: string, now: number): boolean {
    if (this.kept.has(key)) return false
    this.kept.set(key, { fingerprint: print, answer: null, at: now })
    return true
  }

  /** Releases a running key. */
  release(key: string): void {
    if (this.kept.get(key)?.answer === null) this.kept.delete(key)
  }

  keep(key: string, print: string, answer: Answer, now: number): void {
    this.kept.delete(key)
    this.kept.set(key, { fingerprint: print, answer, at: now })
    for (const [oldest, { at }] of this.kept) {
      if (now - at <= keptMicros) break
      this.kept.delete(oldest)
    }
  }
}

/**
 * A webhook delivery, and what is thought of it before anything else is.
 *
 * Promise: only a delivery that is {@link Verdict} `Genuine` may change anything, and the verdict is about its raw bytes.
 */
import type * as Redacted from "effect/Redacted"

/** One delivery as it arrived. */
export interface Delivery {
  /** The signature header, as it came; undefined when there was none. */
  readonly signature: string | undefined
  /** The body's bytes, before anybody read them. */
  readonly body: Uint8Array
  /** When it arrived, in milliseconds since 1970 by the receiver's clock. */
  readonly receivedAt: number
}

export type Verdict =
  /** Signed with one of the secrets, and recently. `sentAt` is in seconds since 1970. */
  | { readonly _tag: "Genuine"; readonly sentAt: number }
  /** The header does not have its form. */
  | { readonly _tag: "Malformed"; readonly detail: string }
  /** Too old, or too far in the future. `ageSeconds` is negative for the future. */
  | { readonly _tag: "Stale"; readonly ageSeconds: number }
  /** No signature fits any of the secrets. */
  | { readonly _tag: "Forged" }

export interface VerifySettings {
  /** Every secret that may be in use; two while one is being rotated. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** How old a delivery may be; the documents say five minutes. */
  readonly toleranceSeconds: number
  /** How far the sender's clock may be ahead. */
  readonly aheadSeconds: number
}

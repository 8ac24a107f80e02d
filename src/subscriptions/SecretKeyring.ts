/** The signing secrets that are accepted now, as the receiver sees them. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"

export interface SecretKeyring {
  /** From memory, so that a forgery costs no question; empty for a company that is not known. */
  readonly of: (company: string) => ReadonlyArray<Redacted.Redacted>
  /** How many the company with the most has. */
  readonly most: () => number
  /**
   * Reads what other processes may have stored meanwhile. Asked before a delivery is called forged, so it asks the
   * database at most about once a second. False when it could not be asked, or not at once: what is known stays, and
   * may not be all. Never fails.
   */
  readonly refresh: Effect.Effect<boolean>
}

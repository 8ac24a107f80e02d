/** The accepted signing secrets, as the receiver of deliveries uses them. */
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"

export interface SecretKeyring {
  /** From memory, so that a forgery costs no query; empty for an unknown company. */
  readonly of: (company: string) => ReadonlyArray<Redacted.Redacted>
  /** The largest number of secrets of one company. */
  readonly most: () => number
  /**
   * Reads secrets that other processes have stored. It runs before a delivery is refused as forged, and queries the database at
   * most about once a second. False when the database did not answer, or too many wait: secrets may be missing then.
   * Never fails.
   */
  readonly refresh: Effect.Effect<boolean>
}

/** The outcome of a request to the receiver of a route. */
import * as Duration from "effect/Duration"

export type Answer =
  | { readonly type: "accepted" }
  /** The receiver does not have it. */
  | { readonly type: "refused"; readonly error: string; readonly retryAfter: Duration.Duration | null }
  /** The receiver may have it. */
  | { readonly type: "unknown"; readonly error: string }

/** The maximum time of one request; shorter than the lease of a message, and than the stop of a process. */
export const requestTimeout = Duration.seconds(8)

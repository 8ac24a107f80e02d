/** The decision whether a request may see a page. */

/** The properties of a request that decide its access. */
export interface AccessRequest {
  readonly method: string
  /** The address of the peer. */
  readonly address: string | undefined
  readonly header: (name: string) => string | undefined
  /** `1.0` or `1.1`. */
  readonly httpVersion: string
  /** The session cookie; undefined when there is none. */
  readonly cookie: string | undefined
}

export type AccessDecision =
  /** Form tokens are bound to `session`. It is empty where there is no session; then nothing may be changed. */
  | { readonly _tag: "Granted"; readonly by: "loopback" | "session" | "bearer"; readonly session: string }
  /** The warehouse, which stores the sessions, does not answer. */
  | { readonly _tag: "Away" }
  | { readonly _tag: "LogIn" }
  | {
      readonly _tag: "Refused"
      readonly status: 401 | 403 | 429
      readonly message: string
      readonly retryAfterSeconds?: number
    }

export const refused = (status: 401 | 403, message: string): AccessDecision => ({ _tag: "Refused", status, message })

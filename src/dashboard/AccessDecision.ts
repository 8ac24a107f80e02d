/** The question whether a request may see a page, and its answer. */

/** What a request says of its sender. */
export interface AccessRequest {
  readonly method: string
  /** Of the connection. */
  readonly address: string | undefined
  readonly header: (name: string) => string | undefined
  /** Of HTTP: `1.1`. */
  readonly httpVersion: string
  /** Of the session; undefined when there is none. */
  readonly cookie: string | undefined
}

export type AccessDecision =
  /** `session` is what form tokens are bound to; empty where there is none, and nothing may be changed then. */
  | { readonly _tag: "Granted"; readonly by: "loopback" | "session" | "bearer"; readonly session: string }
  /** The warehouse, which has the sessions, does not answer. */
  | { readonly _tag: "Away" }
  | { readonly _tag: "LogIn" }
  | {
      readonly _tag: "Refused"
      readonly status: 401 | 403 | 429
      readonly message: string
      readonly retryAfterSeconds?: number
    }

export const refused = (status: 401 | 403, message: string): AccessDecision => ({ _tag: "Refused", status, message })

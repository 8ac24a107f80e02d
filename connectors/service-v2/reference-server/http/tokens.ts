/**
 * Tokens and their users.
 *
 * Promise: only the hash of a token is stored; a revoked token is refused from the next request on (AUTH-04). Checks
 * run in the order of C-02: unknown, revoked, expired, then the user.
 */
import { createHash } from "node:crypto"
import { ApiError } from "../ApiError.ts"

export interface Token {
  readonly id: number
  readonly company: number
  /** The company in which the user is a supervisor. */
  readonly userCompany: number
  readonly userId: number
  readonly login: string
  readonly scopes: ReadonlySet<string>
  readonly supervisor: boolean
  readonly active: boolean
  /** Microseconds since 1970; null means never. */
  readonly expires: number | null
  revoked: boolean
  lastUsed: number | null
  lastAddress: string | null
}

/** A token as it is stored: by the hash of its text. */
export interface StoredToken {
  /** SHA-256 of the token's text, in base64. */
  readonly digest: string
  readonly token: Token
}

const digest = (secret: string) => createHash("sha256").update(secret).digest("base64")

export class Tokens {
  private readonly byDigest: Map<string, Token>

  constructor(stored: ReadonlyArray<StoredToken> = []) {
    this.byDigest = new Map(stored.map(({ digest, token }) => [digest, { ...token }]))
  }

  /** Copies of all tokens, in the order of ids. */
  state(): ReadonlyArray<StoredToken> {
    return [...this.byDigest]
      .map(([digest, token]) => ({ digest, token: { ...token } }))
      .sort((a, b) => a.token.id - b.token.id)
  }

  byId(): ReadonlyMap<number, Token> {
    return new Map([...this.byDigest.values()].map((token) => [token.id, token]))
  }

  get size(): number {
    return this.byDigest.size
  }

  add(secret: string, token: Token): void {
    this.byDigest.set(digest(secret), token)
  }

  find(secret: string): Token | undefined {
    return this.byDigest.get(digest(secret))
  }

  /** All tokens, in the order in which they were issued. */
  all(): ReadonlyArray<Token> {
    return [...this.byDigest.values()]
  }
}

const challenge = { "WWW-Authenticate": 'Bearer realm="api", error="invalid_token"' }
const refuse = (code: string, message: string) => new ApiError(code, message, { headers: challenge })

/** The token of a request; throws 401, or 403 forbidden, when it is not accepted. */
export const authenticate = (
  tokens: Tokens,
  header: string | undefined,
  now: number,
  address: string | null
): Token => {
  const match = header === undefined ? null : /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(header)
  if (match === null) throw refuse("unauthorized", "send the header Authorization: Bearer <token>")
  const token = tokens.find(match[1]!)
  if (token === undefined) throw refuse("unauthorized", "the token is not known")
  if (token.revoked) throw refuse("token_revoked", "the token was revoked")
  if (token.expires !== null && now >= token.expires) throw refuse("token_expired", "the token is past its expiry")
  token.lastUsed = now
  token.lastAddress = address
  if (!token.active) throw new ApiError("forbidden", "the token's user is inactive")
  if (!token.supervisor || token.userCompany !== token.company) {
    throw new ApiError("forbidden", "the token's user is not a supervisor in the token's company")
  }
  return token
}

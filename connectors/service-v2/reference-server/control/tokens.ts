/**
 * Issuing and revocation of tokens, which the API does not offer (AUTH-08, C-06). Only the answer that issues a token
 * shows its text.
 */
import { tokenPrefix } from "../http/journal.ts"
import { insert } from "../rules/records.ts"
import { ensureCompany } from "../seed/install.ts"
import { readInstant } from "../time.ts"
import type { World } from "../World.ts"
import { ControlError } from "./Input.ts"

const accesses = ["read", "write", "cancel"]

const scopesOf = (world: World, scopes: ReadonlyArray<string>): ReadonlySet<string> => {
  const all = world.store.catalogue.areas.flatMap(({ name }) => accesses.map((access) => `${name}:${access}`))
  if (scopes.length === 1 && scopes[0] === "*") return new Set(all)
  const unknown = scopes.find((scope) => !all.includes(scope))
  if (unknown !== undefined) throw new ControlError(`scopes: there is no scope ${JSON.stringify(unknown)}`)
  return new Set(scopes)
}

/** The user with this login; created when the company has none. */
const userOf = (world: World, company: number, login: string, active: boolean): number => {
  const [user] = world.store.table(company, "users").where("login", login)
  if (user !== undefined) return user.id
  const context = world.context(company, 0, new Set())
  return world.store.transact(() => insert(context, "users", { login, name: login, active }).id)
}

export interface TokenInput {
  readonly company: number
  readonly scopes: ReadonlyArray<string>
  readonly user?: string
  readonly supervisor?: boolean
  readonly active?: boolean
  readonly usercompany?: number
  /** RFC 3339 in UTC. */
  readonly expires?: string | null
}

export const issueToken = (world: World, input: TokenInput): { readonly token: string; readonly tokenid: number } => {
  const { company, user: login = "api", supervisor = true, active = true, usercompany: userCompany = company } = input
  const scopes = scopesOf(world, input.scopes)
  ensureCompany(world, company)
  ensureCompany(world, userCompany)
  const token = `${tokenPrefix}${world.random.hex(40)}`
  const tokenid = world.store.draw("tokens")
  world.tokens.add(token, {
    id: tokenid,
    company,
    userCompany,
    userId: userOf(world, userCompany, login, active),
    login,
    scopes,
    supervisor,
    active,
    expires: readInstant(input.expires ?? ""),
    revoked: false,
    lastUsed: null,
    lastAddress: null
  })
  return { token, tokenid }
}

/** The token by its text or by its id. */
export const revokeToken = (
  world: World,
  { token: text, tokenid }: { readonly token?: string; readonly tokenid?: number }
): { readonly revoked: true; readonly tokenid: number } => {
  const named = text === undefined ? world.tokens.all().find(({ id }) => id === tokenid) : world.tokens.find(text)
  const token = text !== undefined && tokenid !== undefined && named?.id !== tokenid ? undefined : named
  if (token === undefined) throw new ControlError("the token is not known")
  token.revoked = true
  return { revoked: true, tokenid: token.id }
}

/**
 * Issuing and revocation of tokens, which the API does not offer (AUTH-08, C-06). Only the answer that issues a token
 * shows its text.
 */
import { tokenPrefix } from "../http/journal.ts"
import { print } from "../json.ts"
import { insert } from "../rules/records.ts"
import { ensureCompany } from "../seed/install.ts"
import { readInstant } from "../time.ts"
import type { World } from "../World.ts"
import { ControlError, companyOf, flag, only } from "./given.ts"
import type { CallInput } from "./given.ts"

const accesses = ["read", "write", "cancel"]

const scopesOf = (world: World, input: unknown): ReadonlySet<string> => {
  if (!Array.isArray(input)) throw new ControlError('scopes must be an array such as ["orders:read"] or ["*"]')
  const all = world.store.catalogue.areas.flatMap(({ name }) => accesses.map((access) => `${name}:${access}`))
  if (input.length === 1 && input[0] === "*") return new Set(all)
  const unknown: unknown = input.find((scope) => !all.includes(String(scope)))
  if (unknown !== undefined) throw new ControlError(`there is no scope ${print(unknown)}`)
  return new Set(input as Array<string>)
}

/** The user with this login; created when the company has none. */
const userOf = (world: World, company: number, login: string, active: boolean): number => {
  const [user] = world.store.table(company, "users").where("login", login)
  if (user !== undefined) return user.id
  const context = world.context(company, 0, new Set())
  return world.store.transact(() => insert(context, "users", { login, name: login, active }).id)
}

export const issueToken = (world: World, input: CallInput): { readonly token: string; readonly tokenid: number } => {
  only(input, ["company", "scopes", "user", "supervisor", "active", "usercompany", "expires"])
  const company = companyOf(input["company"])
  const scopes = scopesOf(world, input["scopes"])
  const { user, usercompany, expires } = input
  if (user !== undefined && (typeof user !== "string" || user === "" || user.length > 50)) {
    throw new ControlError("user must be a login name of at most 50 characters")
  }
  const supervisor = flag(input, "supervisor", true)
  const active = flag(input, "active", true)
  const userCompany = usercompany === undefined ? company : companyOf(usercompany)
  const instant = typeof expires === "string" ? readInstant(expires) : null
  if (expires !== undefined && expires !== null && instant === null) {
    throw new ControlError("expires must be RFC 3339 in UTC")
  }
  ensureCompany(world, company)
  ensureCompany(world, userCompany)
  const login = user ?? "api"
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
    expires: instant,
    revoked: false,
    lastUsed: null,
    lastAddress: null
  })
  return { token, tokenid }
}

export const revokeToken = (world: World, input: CallInput): { readonly revoked: true; readonly tokenid: number } => {
  only(input, ["token"])
  const token = typeof input["token"] === "string" ? world.tokens.find(input["token"]) : undefined
  if (token === undefined) throw new ControlError("the token is not known")
  token.revoked = true
  return { revoked: true, tokenid: token.id }
}

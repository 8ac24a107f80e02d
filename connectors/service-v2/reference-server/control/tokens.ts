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
import type { Given } from "./given.ts"

const accesses = ["read", "write", "cancel"]

const scopesOf = (world: World, given: unknown): ReadonlySet<string> => {
  if (!Array.isArray(given)) throw new ControlError('scopes must be an array such as ["orders:read"] or ["*"]')
  const all = world.store.catalogue.areas.flatMap(({ name }) => accesses.map((access) => `${name}:${access}`))
  if (given.length === 1 && given[0] === "*") return new Set(all)
  const unknown: unknown = given.find((scope) => !all.includes(String(scope)))
  if (unknown !== undefined) throw new ControlError(`there is no scope ${print(unknown)}`)
  return new Set(given as Array<string>)
}

/** The user with this login; created when the company has none. */
const userOf = (world: World, company: number, login: string, active: boolean): number => {
  const [found] = world.store.table(company, "users").where("login", login)
  if (found !== undefined) return found.id
  const context = world.context(company, 0, new Set())
  return world.store.transact(() => insert(context, "users", { login, name: login, active }).id)
}

export const issueToken = (world: World, given: Given): { readonly token: string; readonly tokenid: number } => {
  only(given, ["company", "scopes", "user", "supervisor", "active", "usercompany", "expires"])
  const company = companyOf(given["company"])
  const scopes = scopesOf(world, given["scopes"])
  const { user, usercompany, expires } = given
  if (user !== undefined && (typeof user !== "string" || user === "" || user.length > 50)) {
    throw new ControlError("user must be a login name of at most 50 characters")
  }
  const supervisor = flag(given, "supervisor", true)
  const active = flag(given, "active", true)
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

export const revokeToken = (world: World, given: Given): { readonly revoked: true; readonly tokenid: number } => {
  only(given, ["token"])
  const token = typeof given["token"] === "string" ? world.tokens.find(given["token"]) : undefined
  if (token === undefined) throw new ControlError("the token is not known")
  token.revoked = true
  return { revoked: true, tokenid: token.id }
}

/**
 * The address of the warehouse for other programs: a URL, and the environment of libpq.
 *
 * Promise: no password is an argument of a program, where other users of the machine could read it.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Configuration } from "../configuration/Configuration.ts"
import { Database } from "../postgres/Database.ts"
import { type Address, addressOfReader } from "../warehouse/ReaderAddress.ts"
import { switchFlag } from "./Command.ts"

export const owner = switchFlag(
  "owner",
  "As the owner of the tables, who may change them (default: the reader, who may not)"
)

/** The place of the warehouse, which with `--demo` is not the one of `DATABASE_URL`. */
type Location = Pick<Configuration, "databaseUrl">

/** The login of the reader, or of the owner. */
const addressOf = (asOwner: boolean) =>
  asOwner ? Effect.map(Database, ({ endpoint }): Address => ({ endpoint, url: null, options: [] })) : addressOfReader

/** The URL that names the server: its parameters, such as those of TLS, apply to every login. */
const givenUrl = ({ databaseUrl }: Location, { endpoint, url: own }: Address): URL => {
  const url = own ?? databaseUrl
  return new URL(
    url === null ? `postgres://${endpoint.host}:${endpoint.port}/${endpoint.database}` : Redacted.value(url)
  )
}

/** The URL for other programs, with the password. */
export const urlFor = Effect.fnUntraced(function* (location: Location, asOwner: boolean) {
  const address = yield* addressOf(asOwner)
  const url = givenUrl(location, address)
  url.username = encodeURIComponent(address.endpoint.user)
  url.password = encodeURIComponent(Redacted.value(address.endpoint.password))
  if (address.options.length > 0) url.searchParams.set("options", address.options.join(" "))
  // Programs read %20, and not each of them reads +.
  return Redacted.make(url.href.replaceAll("+", "%20"), { label: "the address of the warehouse" })
})

/** Parameters of a URL that libpq reads from an environment variable. */
const variables: Readonly<Record<string, string>> = {
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY",
  sslnegotiation: "PGSSLNEGOTIATION"
}

/** The environment by which psql and other programs of libpq connect. */
export const environmentFor = Effect.fnUntraced(function* (location: Location, asOwner: boolean) {
  const address = yield* addressOf(asOwner)
  const { endpoint } = address
  const parameters = givenUrl(location, address).searchParams
  return {
    PGHOST: endpoint.host,
    PGPORT: String(endpoint.port),
    PGUSER: endpoint.user,
    PGPASSWORD: Redacted.value(endpoint.password),
    PGDATABASE: endpoint.database,
    PGOPTIONS: [endpoint.options ?? "", ...address.options].join(" ").trim(),
    ...Object.fromEntries(
      Object.entries(variables).flatMap(([name, variable]) => {
        const value = parameters.get(name)
        return value === null ? [] : [[variable, value]]
      })
    )
  }
})

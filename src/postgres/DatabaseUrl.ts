/**
 * The parser of DATABASE_URL.
 *
 * Promise: every parameter of the URL is honoured, or refused with an error that names it. None is ignored, because an
 * ignored parameter may be the one that protects the connection. A server on another machine is reached without TLS only
 * if the URL says `sslmode=disable`. No error quotes the password.
 */
import { isIPv4 } from "node:net"
import type { ConnectionOptions } from "node:tls"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as ReadFile from "../files/ReadFile.ts"
import type { Endpoint } from "./Server.ts"
import { DatabaseError } from "./DatabaseError.ts"

/** The environment variables that hold such a URL. */
export type UrlVariable = "DATABASE_URL" | "DATABASE_READER_URL"

class BadUrl extends Error {}

const badUrl = (problem: string) => new BadUrl(problem)

export const parseUrl = (
  url: Redacted.Redacted,
  variable: UrlVariable = "DATABASE_URL"
): Effect.Effect<Endpoint, DatabaseError> =>
  Effect.try({
    try: () => readUrl(Redacted.value(url)),
    // The exceptions of URL and of decodeURIComponent quote their input: their text never leaves here.
    catch: (error) =>
      new DatabaseError({
        operation: `read ${variable}`,
        code: undefined,
        message:
          `${variable} ${error instanceof BadUrl ? error.message : "cannot be read"}; ` +
          "it has the form postgres://user:password@host:5432/database?sslmode=verify-full",
        isRetryable: false
      })
  })

/** The remedy for each unsupported parameter of libpq; the others are to be removed. */
const unsupported: Readonly<Record<string, string>> = {
  channel_binding: "is not supported: remove it, and set sslmode=verify-full, which protects the password as well",
  require_auth: "is not supported: remove it, and set sslmode=verify-full, which protects the password as well",
  target_session_attrs:
    "is supported with the values any, read-write and primary only: remove it, and name a server that can be written to"
}

/** Parameters without effect when they have this value, which is the one that applies here. */
const withoutEffect: Readonly<Record<string, ReadonlyArray<string>>> = {
  channel_binding: ["disable", "prefer"],
  sslnegotiation: ["postgres"],
  gssencmode: ["disable", "prefer"],
  client_encoding: ["UTF8", "utf8", "UTF-8", "utf-8", "auto"]
}

const supported = [
  "host",
  "port",
  "user",
  "password",
  "dbname",
  "connect_timeout",
  "application_name",
  "options",
  "target_session_attrs",
  "ssl",
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "sslpassword",
  "ssl_min_protocol_version"
] as const

type Parameters = Partial<Record<(typeof supported)[number], string>>

const isSupported = (name: string): name is (typeof supported)[number] => supported.some((one) => one === name)

const parametersOf = (search: URLSearchParams): Parameters => {
  const parameters: Parameters = {}
  for (const [name, value] of search) {
    if (isSupported(name)) {
      if (parameters[name] !== undefined) throw badUrl(`sets ${name} twice`)
      parameters[name] = value
    } else if (withoutEffect[name]?.includes(value) !== true) {
      throw badUrl(`sets ${shown(name)}, which ${unsupported[name] ?? "is not supported; remove it"}`)
    }
  }
  return parameters
}

/** A name from outside, cut so that nothing long can be hidden in it. */
const shown = (name: string): string => (/^\w{1,40}$/.test(name) ? name : "a parameter with an unknown name")

const manyHosts = "names more than one host, which is not supported; name the primary server"

const readUrl = (text: string): Endpoint => {
  // A list of hosts with ports cannot be parsed as a URL.
  if (/^\s*\w+:\/\/(?:[^/?#]*@)?([^/?#@]*)/.exec(text)?.[1]?.includes(",") === true) throw badUrl(manyHosts)
  // `postgres://user@/database?host=/folder` has no host, but a URL with a user needs one: a placeholder is inserted.
  const absent = "host.absent"
  const url = new URL(text.trim().replace(/^(postgres(?:ql)?:\/\/[^/?#]*@)(?=[/?]|$)/, `$1${absent}`))
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") throw badUrl("must begin with postgres://")
  if (url.hash !== "") throw badUrl("contains a #; write it as %23")
  const parameters = parametersOf(url.searchParams)
  const named = url.hostname === absent ? "" : decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1")
  const host = parameters.host ?? (named === "" ? "localhost" : named)
  if (host.includes(",")) throw badUrl(manyHosts)
  const user = parameters.user ?? decodeURIComponent(url.username)
  if (user === "") throw badUrl("names no user")
  const database = parameters.dbname ?? decodeURIComponent(url.pathname.slice(1))
  const password = parameters.password ?? decodeURIComponent(url.password)
  if ([host, user, password, database].some((part) => part.includes("\0")))
    throw badUrl("contains %00, which Postgres does not allow")
  const port = wholeNumber("port", parameters.port ?? (url.port === "" ? undefined : url.port)) ?? 5432
  if (port < 1 || port > 65_535) throw badUrl("has a port that is not between 1 and 65535")
  const seconds = wholeNumber("connect_timeout", parameters.connect_timeout)
  const sessionAttributes = sessionAttributesOf(parameters.target_session_attrs)
  return {
    host,
    port,
    user,
    password: Redacted.make(password),
    database: database === "" ? user : database,
    ssl: tlsOf(host, parameters),
    connectTimeout: seconds === undefined || seconds === 0 ? undefined : Duration.seconds(seconds),
    ...(parameters.application_name === undefined ? {} : { applicationName: parameters.application_name }),
    ...(parameters.options === undefined ? {} : { options: parameters.options }),
    ...(sessionAttributes === undefined ? {} : { sessionAttributes })
  }
}

/** Undefined for `any`. */
const sessionAttributesOf = (text: string | undefined): Endpoint["sessionAttributes"] => {
  if (text === undefined || text === "any") return undefined
  if (text === "read-write" || text === "primary") return text
  throw badUrl(`sets target_session_attrs, which ${unsupported["target_session_attrs"]}`)
}

const wholeNumber = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  if (!/^\d{1,5}$/.test(text)) throw badUrl(`has a ${name} that is no number`)
  return Number(text)
}

// ---------------------------------------------------------------------------------------------------------------- TLS

/** Whether the host is this machine. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."))

const modes = "disable, require, verify-ca, verify-full"

/** `ssl=true` is how Node programs write it; its meaning here is the safe one. */
const modeOf = ({ ssl, sslmode }: Parameters): string | undefined => {
  if (ssl === undefined) return sslmode
  if (sslmode !== undefined) throw badUrl("sets both ssl and sslmode; keep sslmode")
  if (ssl === "true" || ssl === "1") return "verify-full"
  if (ssl === "false" || ssl === "0") return "disable"
  throw badUrl(`has an ssl that is neither true nor false; use sslmode instead: allowed are ${modes}`)
}

/** As libpq reads sslmode, except that the modes that may or may not encrypt (allow, prefer) are refused. */
const tlsOf = (host: string, parameters: Parameters): ConnectionOptions | undefined => {
  const { sslrootcert, sslcert, sslkey, sslpassword, ssl_min_protocol_version: minVersion } = parameters
  const details = Object.entries({ sslrootcert, sslcert, sslkey, sslpassword, ssl_min_protocol_version: minVersion })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name)
  const mode = modeOf(parameters) ?? (details.length > 0 ? "verify-full" : undefined)
  const isSocket = host.startsWith("/")
  if (mode === undefined) {
    if (isSocket || isLoopback(host)) return undefined
    throw badUrl(
      `does not say whether the connection to ${host} is encrypted; add sslmode=verify-full, ` +
        "or sslmode=disable if the network is trusted"
    )
  }
  if (!["disable", "require", "verify-ca", "verify-full"].includes(mode)) {
    throw badUrl(`has an sslmode that is not supported; allowed are ${modes}`)
  }
  const [detail] = details
  if (mode === "disable") {
    if (detail !== undefined) throw badUrl(`sets ${detail}, which has no effect with sslmode=disable; remove one`)
    return undefined
  }
  // As libpq: a unix socket has no TLS, whatever sslmode is; parameters that need TLS are refused.
  if (isSocket) {
    if (mode === "require" && detail === undefined) return undefined
    throw badUrl("requests TLS on a unix socket, which has none; remove sslmode and the files of the certificate")
  }
  if ((sslcert === undefined) !== (sslkey === undefined)) throw badUrl("needs both sslcert and sslkey, or neither")
  if (sslpassword !== undefined && sslkey === undefined) throw badUrl("sets sslpassword without an sslkey")
  const options: ConnectionOptions = {
    ...(sslrootcert === undefined || sslrootcert === "system" ? {} : { ca: pem("sslrootcert", sslrootcert) }),
    ...(sslcert === undefined ? {} : { cert: pem("sslcert", sslcert) }),
    ...(sslkey === undefined ? {} : { key: pem("sslkey", sslkey) }),
    ...(sslpassword === undefined ? {} : { passphrase: sslpassword }),
    ...(minVersion === undefined ? {} : { minVersion: tlsVersion(minVersion) })
  }
  switch (mode) {
    case "require":
      return sslrootcert === undefined ? { ...options, rejectUnauthorized: false } : withoutHostName(options)
    case "verify-ca":
      return withoutHostName(options)
    default:
      return options
  }
}

const tlsVersion = (version: string): "TLSv1.2" | "TLSv1.3" => {
  if (version === "TLSv1.2" || version === "TLSv1.3") return version
  throw badUrl("has an ssl_min_protocol_version that is not supported; allowed are TLSv1.2, TLSv1.3")
}

const withoutHostName = (options: ConnectionOptions): ConnectionOptions => ({
  ...options,
  checkServerIdentity: () => undefined
})

const pem = (name: string, path: string): string => {
  try {
    return ReadFile.text(path)
  } catch (error) {
    throw badUrl(`names an ${name} that cannot be read (${ReadFile.problemOf(path, error).message})`)
  }
}

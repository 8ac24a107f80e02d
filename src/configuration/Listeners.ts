/** The listeners of `serve`: deliveries, dashboard, health and metrics. */
import { resolve } from "node:path"
import * as Redacted from "effect/Redacted"
import { hasControlCharacter } from "../delivery/Endpoint.ts"
import { type Inputs, secretVariable } from "./Inputs.ts"
import { listenPattern, type Webhooks } from "./ListenerSettings.ts"

interface ListenAddress {
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  /** 0 is any free port. */
  readonly port: number
}

/** TLS files in PEM form; null is plain HTTP. */
type TlsFiles = { readonly certificate: string; readonly key: string } | null

type ListenSettings = "listen" | "certificate" | "key" | "allowHttp"

/** How events of the source are received. */
export interface WebhookConfiguration extends ListenAddress, Readonly<Omit<typeof Webhooks.Type, ListenSettings>> {
  /** The https address in front of the listener, without a slash at its end. */
  readonly publicUrl: string | null
  readonly tls: TlsFiles
}

export interface DashboardConfiguration extends ListenAddress {
  readonly tls: TlsFiles
  /** Null only where no other machine reaches the listener. */
  readonly password: Redacted.Redacted | null
  /** The address that people use behind a proxy, without a slash at its end; null without a proxy. */
  readonly publicUrl: string | null
}

/** The listener of health and metrics. */
export interface MonitoringConfiguration {
  /** Null is the listener of the deliveries. */
  readonly listen: ListenAddress | null
  /** The bearer token of `/metrics`; null is none. */
  readonly token: Redacted.Redacted | null
}

const parseListen = (text: string): ListenAddress | null => {
  const [, host, port] = listenPattern.exec(text) ?? []
  return host === undefined ? null : { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) }
}

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host)

type Wrong = (key: string, mistake: string) => unknown

/** Adds a mistake at its place: the flag for `listen` where one is given, else the setting. */
const wrongIn =
  ({ flags, place, problems }: Inputs, section: string, flag: "listen" | "dashboard" | "monitoring"): Wrong =>
  (key, mistake) =>
    problems.push(`${key === "listen" && flags[flag] !== undefined ? `--${flag}` : place(section, key)}: ${mistake}`)

const tlsOf = (certificate: string | null, key: string | null, wrong: Wrong): TlsFiles => {
  if (certificate !== null && key === null) wrong("certificate", "set key too, or neither of the two")
  if (key !== null && certificate === null) wrong("key", "set certificate too, or neither of the two")
  return certificate === null || key === null ? null : { certificate: resolve(certificate), key: resolve(key) }
}

const checkPort = (port: number, wrong: Wrong): void => {
  if (port > 65_535) wrong("listen", `${port} is no port; expected 0 (any free one) to 65535`)
}

/** The mistake in the address that the source delivers to, or undefined. */
const wrongPublicUrl = (text: string): string | undefined => {
  if (hasControlCharacter(text)) return "has a space, a line break or another control character"
  if (!URL.canParse(text)) return "is no address"
  const url = new URL(text)
  if (url.protocol !== "https:") return "is not https, and the service delivers to nothing else"
  if (url.username !== "" || url.password !== "") return "carries credentials"
  if (url.search !== "" || url.hash !== "") return "carries a query or a fragment"
  return undefined
}

export const webhooksOf = (inputs: Inputs): WebhookConfiguration => {
  const { flags, problems, settings } = inputs
  const { listen, publicUrl, certificate, key, allowHttp, ...rest } = settings.webhooks
  const wrong = wrongIn(inputs, "webhooks", "listen")
  const parsed = parseListen(flags.listen ?? listen)
  if (parsed === null) problems.push("--listen: expected host:port, for example 127.0.0.1:8085")
  const { host, port } = parsed ?? { host: "127.0.0.1", port: 0 }
  checkPort(port, wrong)

  const tls = tlsOf(certificate, key, wrong)
  if (certificate === null && key === null && !isLoopback(host) && !settings.allowHttp && !allowHttp) {
    wrong(
      "listen",
      `${host} is reachable from other machines, over plain http; ` +
        "set certificate and key, or listen on 127.0.0.1 behind a proxy, or set webhooks.allow_http if you accept that"
    )
  }
  const problem = publicUrl === null ? undefined : wrongPublicUrl(publicUrl)
  if (problem !== undefined) {
    wrong(
      "public_url",
      `${problem}; expected the address before /hooks/<company>, for example https://hooks.example.com`
    )
  }
  return {
    ...rest,
    host,
    port,
    // As the source may write it: the host in lower case, no default port.
    publicUrl: publicUrl === null || problem !== undefined ? null : new URL(publicUrl).href.replace(/\/+$/, ""),
    tls
  }
}

const passwordVariableDefault = "TRIBUTARY_DASHBOARD_PASSWORD"

/** The dashboard's listener; null where it is off. */
export const dashboardOf = (inputs: Inputs): DashboardConfiguration | null => {
  const { flags, settings } = inputs
  const { certificate, key, publicUrl, passwordVariable, allowHttp } = settings.dashboard
  const wrong = wrongIn(inputs, "dashboard", "dashboard")
  const listen = flags.dashboard ?? settings.dashboard.listen
  if (listen === "off") return null
  const parsed = parseListen(listen)
  if (parsed === null) {
    wrong("listen", "expected off, or host:port, for example 127.0.0.1:8086")
    return null
  }
  const { host, port } = parsed
  checkPort(port, wrong)
  const password = secretVariable(inputs, "dashboard", "password_env", passwordVariable, passwordVariableDefault)
  if (password !== undefined && password.length < 8) wrong("password_env", "the password has fewer than 8 characters")
  const tls = tlsOf(certificate, key, wrong)
  if (!isLoopback(host) && password === undefined) {
    wrong(
      "listen",
      `${host} is reachable from other machines: set a password (dashboard.password_env, or ` +
        `${passwordVariableDefault}), or listen on 127.0.0.1`
    )
  }
  if (!isLoopback(host) && certificate === null && !settings.allowHttp && !allowHttp) {
    wrong(
      "listen",
      `${host} is reachable from other machines, which would send the password in clear text; set certificate and key, ` +
        "or listen on 127.0.0.1 behind a proxy, or set dashboard.allow_http if you accept that"
    )
  }
  if (publicUrl !== null && (!URL.canParse(publicUrl) || !/^https?:$/.test(new URL(publicUrl).protocol))) {
    wrong("public_url", "expected an address, for example https://tributary.example.com")
  } else if (publicUrl !== null && new URL(publicUrl).pathname !== "/") {
    wrong("public_url", "the dashboard must be at the root of its address; use a host name of its own")
  } else if (publicUrl !== null && password === undefined) {
    wrong("public_url", `set a password too (dashboard.password_env, or ${passwordVariableDefault})`)
  }
  return {
    host,
    port,
    tls,
    password: password === undefined ? null : Redacted.make(password, { label: "password of the dashboard" }),
    publicUrl: publicUrl === null ? null : publicUrl.replace(/\/+$/, "")
  }
}

export const monitoringOf = (inputs: Inputs): MonitoringConfiguration => {
  const { flags, settings } = inputs
  const { listen, tokenVariable } = settings.monitoring
  const wrong = wrongIn(inputs, "monitoring", "monitoring")
  const text = flags.monitoring ?? listen
  const parsed = text === null ? null : parseListen(text)
  if (text !== null && (parsed === null || parsed.port > 65_535)) {
    wrong("listen", "expected host:port, for example 127.0.0.1:8087")
  }
  const token = secretVariable(inputs, "monitoring", "token_env", tokenVariable, "TRIBUTARY_METRICS_TOKEN")
  return {
    listen: parsed,
    token: token === undefined ? null : Redacted.make(token, { label: "token of the metrics" })
  }
}

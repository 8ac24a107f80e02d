/** The listeners of `serve`: deliveries, dashboard, health and metrics. */
import { resolve } from "node:path"
import * as Duration from "effect/Duration"
import * as Redacted from "effect/Redacted"
import { type Inputs, secretVariable } from "./Inputs.ts"
import { listenPattern } from "./ListenerSettings.ts"

interface ListenAddress {
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  /** 0 is any free port. */
  readonly port: number
}

/** TLS files in PEM form; null is plain HTTP. */
type TlsFiles = { readonly certificate: string; readonly key: string } | null

/** How events of the source are received. */
export interface WebhookConfiguration extends ListenAddress {
  /** The https address in front of the listener, without a slash at its end. */
  readonly publicUrl: string | null
  readonly tls: TlsFiles
  /** Null is the source's default. */
  readonly events: ReadonlyArray<string> | null
  /** Maximum age of a delivery's signature. */
  readonly tolerance: Duration.Duration
  /** How far the sender's clock may be ahead. */
  readonly aheadMax: Duration.Duration
  readonly bodyBytesMax: number
  /** Slow requests of one address. */
  readonly connectionsPerAddressMax: number
  /** How long a processed event is kept. */
  readonly eventRetention: Duration.Duration
  /** How often subscriptions and delivery logs are checked. */
  readonly checkInterval: Duration.Duration
  /** The field that carries a new secret when one is rotated. */
  readonly rotateField: string
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

const parseListen = (text: string | undefined): ListenAddress | undefined => {
  const [, host, port] = listenPattern.exec(text ?? "") ?? []
  return host === undefined ? undefined : { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) }
}

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host)

type Wrong = (key: string, mistake: string) => unknown

/** Adds a mistake at its place: the flag for `listen` where one is given, else the setting. */
const wrongIn =
  ({ flags, place, problems }: Inputs, section: string, flag: "listen" | "dashboard" | "monitoring"): Wrong =>
  (key, mistake) =>
    problems.push(`${key === "listen" && flags[flag] !== undefined ? `--${flag}` : place(section, key)}: ${mistake}`)

const tlsOf = (certificate: string | undefined, key: string | undefined, wrong: Wrong): TlsFiles => {
  if (certificate !== undefined && key === undefined) wrong("certificate", "set key too, or neither of the two")
  if (key !== undefined && certificate === undefined) wrong("key", "set certificate too, or neither of the two")
  return certificate === undefined || key === undefined
    ? null
    : { certificate: resolve(certificate), key: resolve(key) }
}

const checkPort = (port: number, wrong: Wrong): void => {
  if (port > 65_535) wrong("listen", `${port} is no port; expected 0 (any free one) to 65535`)
}

const webhooksDefault = {
  listen: "127.0.0.1:8085",
  tolerance: Duration.seconds(300),
  aheadMax: Duration.seconds(60),
  bodyMaxKilobytes: 1024,
  connectionsPerAddress: 64,
  eventRetention: Duration.days(30),
  checkInterval: Duration.minutes(5),
  rotateField: "secret"
} as const

/** The mistake in the address that the source delivers to, or undefined. */
const wrongPublicUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return "is no address"
  const url = new URL(text)
  if (url.protocol !== "https:") return "is not https, and the service delivers to nothing else"
  if (url.username !== "" || url.password !== "") return "carries credentials"
  if (url.search !== "" || url.hash !== "") return "carries a query or a fragment"
  return undefined
}

export const webhooksOf = (inputs: Inputs): WebhookConfiguration => {
  const { flags, problems, settings } = inputs
  const { webhooks = {} } = settings
  const wrong = wrongIn(inputs, "webhooks", "listen")
  const parsed = parseListen(flags.listen ?? webhooks.listen ?? webhooksDefault.listen)
  if (parsed === undefined) problems.push("--listen: expected host:port, for example 127.0.0.1:8085")
  const { host, port } = parsed ?? { host: "127.0.0.1", port: 0 }
  checkPort(port, wrong)

  const { certificate, key, public_url: publicUrl } = webhooks
  const tls = tlsOf(certificate, key, wrong)
  const acceptsHttp = settings.allow_http === true || webhooks.allow_http === true
  if (certificate === undefined && key === undefined && !isLoopback(host) && !acceptsHttp) {
    wrong(
      "listen",
      `${host} is reachable from other machines, over plain http; ` +
        "set certificate and key, or listen on 127.0.0.1 behind a proxy, or set webhooks.allow_http if you accept that"
    )
  }
  const problem = publicUrl === undefined ? undefined : wrongPublicUrl(publicUrl)
  if (problem !== undefined) {
    wrong(
      "public_url",
      `${problem}; expected the address before /hooks/<company>, for example https://hooks.example.com`
    )
  }
  return {
    host,
    port,
    // As the source may write it: the host in lower case, no default port.
    publicUrl: publicUrl === undefined || problem !== undefined ? null : new URL(publicUrl).href.replace(/\/+$/, ""),
    tls,
    events: webhooks.events ?? null,
    tolerance: webhooks.tolerance_seconds ?? webhooksDefault.tolerance,
    aheadMax: webhooksDefault.aheadMax,
    bodyBytesMax: (webhooks.body_max_kilobytes ?? webhooksDefault.bodyMaxKilobytes) * 1024,
    connectionsPerAddressMax: webhooks.connections_per_address ?? webhooksDefault.connectionsPerAddress,
    eventRetention: webhooks.keep_days ?? webhooksDefault.eventRetention,
    checkInterval: webhooks.check_minutes ?? webhooksDefault.checkInterval,
    rotateField: webhooks.rotate_field ?? webhooksDefault.rotateField
  }
}

const dashboardDefault = { listen: "127.0.0.1:8086", passwordVariable: "TRIBUTARY_DASHBOARD_PASSWORD" } as const

/** The dashboard's listener; null where it is off. */
export const dashboardOf = (inputs: Inputs): DashboardConfiguration | null => {
  const { flags, settings } = inputs
  const { dashboard = {} } = settings
  const wrong = wrongIn(inputs, "dashboard", "dashboard")
  const listen = flags.dashboard ?? dashboard.listen ?? dashboardDefault.listen
  if (listen === "off") return null
  const parsed = parseListen(listen)
  if (parsed === undefined) {
    wrong("listen", "expected off, or host:port, for example 127.0.0.1:8086")
    return null
  }
  const { host, port } = parsed
  checkPort(port, wrong)
  const { certificate, key, public_url: publicUrl } = dashboard
  const password = secretVariable(
    inputs,
    "dashboard",
    "password_env",
    dashboard.password_env,
    dashboardDefault.passwordVariable
  )
  if (password !== undefined && password.length < 8) wrong("password_env", "the password has fewer than 8 characters")
  const tls = tlsOf(certificate, key, wrong)
  if (!isLoopback(host) && password === undefined) {
    wrong(
      "listen",
      `${host} is reachable from other machines: set a password (dashboard.password_env, or ` +
        `${dashboardDefault.passwordVariable}), or listen on 127.0.0.1`
    )
  }
  const acceptsHttp = settings.allow_http === true || dashboard.allow_http === true
  if (!isLoopback(host) && certificate === undefined && !acceptsHttp) {
    wrong(
      "listen",
      `${host} is reachable from other machines, which would send the password in clear text; set certificate and key, ` +
        "or listen on 127.0.0.1 behind a proxy, or set dashboard.allow_http if you accept that"
    )
  }
  if (publicUrl !== undefined && (!URL.canParse(publicUrl) || !/^https?:$/.test(new URL(publicUrl).protocol))) {
    wrong("public_url", "expected an address, for example https://tributary.example.com")
  } else if (publicUrl !== undefined && new URL(publicUrl).pathname !== "/") {
    wrong("public_url", "the dashboard must be at the root of its address; use a host name of its own")
  } else if (publicUrl !== undefined && password === undefined) {
    wrong("public_url", `set a password too (dashboard.password_env, or ${dashboardDefault.passwordVariable})`)
  }
  return {
    host,
    port,
    tls,
    password: password === undefined ? null : Redacted.make(password, { label: "password of the dashboard" }),
    publicUrl: publicUrl === undefined ? null : publicUrl.replace(/\/+$/, "")
  }
}

export const monitoringOf = (inputs: Inputs): MonitoringConfiguration => {
  const { flags, settings } = inputs
  const { listen, token_env } = settings.monitoring ?? {}
  const wrong = wrongIn(inputs, "monitoring", "monitoring")
  const text = flags.monitoring ?? listen
  const parsed = parseListen(text)
  if (text !== undefined && (parsed === undefined || parsed.port > 65_535)) {
    wrong("listen", "expected host:port, for example 127.0.0.1:8087")
  }
  const token = secretVariable(inputs, "monitoring", "token_env", token_env, "TRIBUTARY_METRICS_TOKEN")
  return {
    listen: parsed ?? null,
    token: token === undefined ? null : Redacted.make(token, { label: "token of the metrics" })
  }
}

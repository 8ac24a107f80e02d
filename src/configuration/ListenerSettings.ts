/** The settings of the listeners of `serve`: deliveries, dashboard, health and metrics. */
import * as Schema from "effect/Schema"
import {
  address,
  between,
  choice,
  days,
  eventNames,
  meaning,
  minutes,
  pattern,
  seconds,
  section,
  setting,
  variableName
} from "./SettingValues.ts"

/** A host (an IPv6 address in brackets) and a port. */
export const listenPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})$/u

const tlsSettings = {
  certificate: setting(
    "certificate",
    Schema.String,
    "file of the TLS certificate and its chain, PEM; without it a proxy ends TLS"
  ),
  key: setting("key", Schema.String, "file of the certificate's private key, PEM")
}

const allowHttp = (listener: string) =>
  setting(
    "allow_http",
    Schema.Boolean,
    `whether ${listener} may be plain http where other machines reach it, as in a container whose port a proxy guards`,
    false
  )

export const Webhooks = section({
  listen: setting(
    "listen",
    pattern(listenPattern, "Expected host:port, for example 127.0.0.1:8085 or [::1]:8085"),
    "where tributary serve receives deliveries; plain http on loopback, for a proxy in front of it, unless certificate " +
      "and key are set",
    "127.0.0.1:8085"
  ),
  publicUrl: setting(
    "public_url",
    address,
    "the https address at which the service reaches the listener, with the path before /hooks/<company> where the proxy " +
      "has one; needed by tributary webhooks ensure"
  ),
  ...tlsSettings,
  allowHttp: allowHttp("listen"),
  connectionsPerAddressMax: setting(
    "connections_per_address",
    between(1, 1024),
    "how many requests of one address may be incomplete after a second, before the slowest is cut; raise it for a " +
      "proxy that forwards requests before they are complete",
    64
  ),
  events: setting(
    "events",
    eventNames,
    "the events that companies subscribe to: their names, or all for every event of the synced resources, which proves " +
      "their freshness between polls; default: those that the service documents by name"
  ),
  tolerance: setting(
    "tolerance_seconds",
    seconds(between(300, 3600)),
    "how old the signature of a delivery may be",
    300
  ),
  aheadMax: setting(
    "ahead_seconds",
    seconds(between(0, 3600)),
    "how far in the future the signature of a delivery may be, where the sender's clock is ahead",
    300
  ),
  bodyBytesMax: setting(
    "body_max_kilobytes",
    meaning(between(16, 16_384), Schema.Int, (kilobytes) => kilobytes * 1024),
    "the largest delivery that is read",
    1024
  ),
  eventRetention: setting(
    "keep_days",
    days(between(8, 3650)),
    "how long a processed event is kept, longer than in the service's delivery log",
    30
  ),
  checkInterval: setting(
    "check_minutes",
    choice([minutes(between(1, 1440)), Schema.Literal("off")], "Expected off, or minutes from 1 to 1440"),
    "how often subscriptions and their delivery logs are checked for missed events; off: never, for companies without webhooks",
    5
  ),
  rotateField: setting(
    "rotate_field",
    pattern(/^[a-z_]{1,64}$/u, "Expected the name of a field"),
    "the field that carries the new secret when one is rotated",
    "secret"
  )
})

export const Dashboard = section({
  listen: setting(
    "listen",
    pattern(new RegExp(`^off$|${listenPattern.source}`, "u"), "Expected off, or host:port, for example 127.0.0.1:8086"),
    "where tributary serve shows the dashboard; off for none",
    "127.0.0.1:8086"
  ),
  passwordVariable: setting(
    "password_env",
    variableName,
    "the environment variable (or .env entry) that holds the password; " +
      "needed where other machines can reach the dashboard; default: TRIBUTARY_DASHBOARD_PASSWORD where it is set"
  ),
  publicUrl: setting("public_url", address, "the address at which people reach the dashboard behind a proxy"),
  ...tlsSettings,
  allowHttp: allowHttp("the dashboard")
})

export const Monitoring = section({
  listen: setting(
    "listen",
    pattern(listenPattern, "Expected host:port, for example 127.0.0.1:8087"),
    "an address of its own for /healthz, /readyz and /metrics, plain http; /metrics is then no longer answered at " +
      "webhooks.listen; default: webhooks.listen"
  ),
  tokenVariable: setting(
    "token_env",
    variableName,
    "the environment variable (or .env entry) that holds the bearer token for /metrics; default: TRIBUTARY_METRICS_TOKEN " +
      "where it is set, else no token"
  )
})

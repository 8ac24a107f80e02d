/** The settings of the listeners of `serve`: deliveries, dashboard, health and metrics. */
import * as Schema from "effect/Schema"
import { between, described, durationIn, eventName, pattern, variableName } from "./SettingValues.ts"

/** A host (an IPv6 address in brackets) and a port. */
export const listenPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})$/u

export const Webhooks = Schema.Struct({
  listen: described(
    pattern(listenPattern, "Expected host:port, for example 127.0.0.1:8085 or [::1]:8085"),
    "where tributary serve receives deliveries; plain http on loopback, for a proxy in front of it, unless certificate " +
      "and key are set; default 127.0.0.1:8085"
  ),
  public_url: described(
    Schema.String,
    "the https address at which the service reaches the listener, with the path before /hooks/<company> where the proxy " +
      "has one; needed by tributary webhooks ensure"
  ),
  certificate: described(Schema.String, "file of the TLS certificate and its chain, PEM; without it a proxy ends TLS"),
  key: described(Schema.String, "file of the certificate's private key, PEM"),
  allow_http: described(
    Schema.Boolean,
    "whether listen may be plain http where other machines reach it, as in a container whose port a proxy guards; " +
      "default false"
  ),
  connections_per_address: described(
    between(1, 1024),
    "how many requests of one address may be incomplete after a second, before the slowest is cut; raise it for a " +
      "proxy that forwards requests before they are complete; default 64"
  ),
  events: described(
    Schema.Array(eventName).check(
      Schema.isMinLength(1, { message: "Expected at least one event; leave the setting out for its default" })
    ),
    "the events that companies subscribe to; default: those that the service documents by name"
  ),
  tolerance_seconds: described(
    durationIn("seconds", between(300, 3600)),
    "how old the signature of a delivery may be; default 300"
  ),
  body_max_kilobytes: described(between(16, 16_384), "the largest delivery that is read; default 1024"),
  keep_days: described(
    durationIn("days", between(8, 3650)),
    "how long a processed event is kept, longer than in the service's delivery log; default 30"
  ),
  check_minutes: described(
    durationIn("minutes", between(1, 1440)),
    "how often subscriptions and their delivery logs are checked for missed events; default 5"
  ),
  rotate_field: described(
    pattern(/^[a-z_]{1,64}$/u, "Expected the name of a field"),
    "the field that carries the new secret when one is rotated; default secret"
  )
})

export const Dashboard = Schema.Struct({
  listen: described(
    Schema.Union([
      Schema.Literal("off"),
      pattern(listenPattern, "Expected off, or host:port, for example 127.0.0.1:8086")
    ]),
    "where tributary serve shows the dashboard; off for none; default 127.0.0.1:8086"
  ),
  password_env: described(
    variableName,
    "the environment variable (or .env entry) that holds the password, which is also the bearer token for programs; " +
      "needed where other machines can reach the dashboard; default: TRIBUTARY_DASHBOARD_PASSWORD where it is set"
  ),
  public_url: described(Schema.String, "the address at which people reach the dashboard behind a proxy"),
  certificate: described(Schema.String, "file of the TLS certificate and its chain, PEM; without it a proxy ends TLS"),
  key: described(Schema.String, "file of the certificate's private key, PEM"),
  allow_http: described(
    Schema.Boolean,
    "whether the dashboard may be plain http where other machines reach it, as in a container whose port a proxy guards; " +
      "default false"
  )
})

export const Monitoring = Schema.Struct({
  listen: described(
    pattern(listenPattern, "Expected host:port, for example 127.0.0.1:8087"),
    "an address of its own for /healthz, /readyz and /metrics, plain http; /metrics is then no longer answered at " +
      "webhooks.listen; default: webhooks.listen"
  ),
  token_env: described(
    variableName,
    "the environment variable (or .env entry) that holds the bearer token for /metrics; default: TRIBUTARY_METRICS_TOKEN " +
      "where it is set, else no token"
  )
})

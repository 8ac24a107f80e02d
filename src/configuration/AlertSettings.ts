/** The settings of alerts: routes, their receivers, and the times before a start and an end. */
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { alertKinds, endAfterDefault, type Kind, kindTraits, severities, startAfterOf } from "../status/ProblemKinds.ts"
import { interval } from "./ScheduleSettings.ts"
import { address, required, section, setting, variableName, pattern } from "./SettingValues.ts"

const routeName = pattern(/^[A-Za-z0-9_-]{1,64}$/u, "Expected letters, digits, _ or - (at most 64)")
const mailAddress = pattern(/^[^\s\p{Cc}@<>"]+@[^\s\p{Cc}@<>"]+$/u, "Expected an e-mail address")

const urlVariable = required(
  "url_env",
  variableName,
  "the environment variable (or .env entry) that holds the address, which is a secret"
)

const Slack = section({ urlVariable })

const Http = section({
  url: setting("url", address, "the address, where it holds no secret; else url_env"),
  urlVariable: setting("url_env", variableName, "the environment variable (or .env entry) that holds the address"),
  secretVariable: setting(
    "secret_env",
    variableName,
    "the environment variable (or .env entry) that holds the secret that signs each request; default: unsigned"
  )
})

const Email = section({
  to: required("to", Schema.Array(mailAddress).check(Schema.isMinLength(1)), "the recipients"),
  from: required("from", mailAddress, "the sender"),
  urlVariable: required(
    "url_env",
    variableName,
    "the environment variable (or .env entry) that holds the SMTP server: smtps://user:password@host:465, or smtp:// with STARTTLS"
  )
})

const AlertRoute = section({
  name: required("name", routeName, "the name of the route in output"),
  companies: setting("companies", Schema.Array(Schema.String), "only these companies; default: all"),
  kinds: setting("kinds", Schema.Array(Schema.Literals(alertKinds)), "only these kinds of conditions; default: all"),
  severityMin: setting("severity_min", Schema.Literals(severities), "the mildest severity that is sent", "warning"),
  slack: setting("slack", Slack, "an incoming webhook of Slack, or one that accepts the same (Mattermost, Teams)"),
  http: setting("http", Http, "an HTTP endpoint that accepts JSON"),
  email: setting("email", Email, "e-mail"),
  digest: setting(
    "digest",
    interval,
    "messages are gathered and sent together at this interval: 90s, 10m, 2h or 1d; default: each is sent at once"
  ),
  isCriticalAtOnce: setting(
    "critical_at_once",
    Schema.Boolean,
    "whether critical messages are sent at once in spite of the digest",
    true
  )
})
export type AlertRoute = typeof AlertRoute.Type

const minutesOf = (time: Duration.Duration) => `${Duration.toMinutes(time)}m`

const startAfterSetting = (kind: Kind) => {
  const time = startAfterOf(kind)
  const fallback = Duration.isZero(time) ? ": at once" : ` ${minutesOf(time)}`
  const description = `condition "${kindTraits[kind].title}"; default${fallback}`
  return Schema.optionalKey(interval.pipe(Schema.annotateEncoded({ description })))
}

export const Alerts = section({
  routes: setting("routes", Schema.Array(AlertRoute), "where alerts are sent, each with slack, http or email", []),
  startAfter: setting(
    "start_after",
    Schema.Struct(Object.fromEntries(alertKinds.map((kind) => [kind, startAfterSetting(kind)]))),
    "by kind: how long a condition is observed before it starts, for example { late: 10m }",
    {}
  ),
  endAfter: setting("end_after", interval, "how long a condition is absent before it ends", minutesOf(endAfterDefault))
})

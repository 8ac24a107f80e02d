/** The routes of alerts. An address that a variable holds is `Redacted` from the moment it is read. */
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import { type Kind, kindTraits, startAfterOf } from "../status/ProblemKinds.ts"
import type { AlertConfiguration, Receiver, Route } from "../alerts/Route.ts"
import type { AlertRoute } from "./AlertSettings.ts"
import { controlCharacterProblem, hasControlCharacter } from "../delivery/Endpoint.ts"
import { type Inputs, variableStatus } from "./Inputs.ts"
import { isLoopback } from "./Listeners.ts"

type Wrong = (key: string, mistake: string) => void

/** The value of a variable that a setting names. */
const secretOf = (
  { variable }: Inputs,
  wrong: Wrong,
  key: string,
  name: string,
  label: string
): Redacted.Redacted | null => {
  const value = variable(name)
  if (value === undefined) wrong(key, `${variableStatus(name)} is not set in the environment or .env`)
  return value === undefined ? null : Redacted.make(value, { label })
}

const hostOf = (url: URL | null): string => url?.hostname.replace(/^\[(.*)\]$/, "$1") ?? ""

/** Reports an address that cannot be used, without repeating it. */
const checkAddress = (url: Redacted.Redacted, protocols: ReadonlyArray<string>, allowHttp: boolean, wrong: Wrong) => {
  if (hasControlCharacter(Redacted.value(url))) return wrong("url_env", controlCharacterProblem)
  const parsed = URL.parse(Redacted.value(url))
  const expected = protocols.map((protocol) => `${protocol}//`).join(" or ")
  if (parsed === null || parsed.hostname === "")
    return wrong("url_env", `expected an address that begins with ${expected}`)
  if (parsed.protocol === "http:" && protocols.includes("https:") && (allowHttp || isLoopback(hostOf(parsed)))) return
  if (!protocols.includes(parsed.protocol)) {
    wrong("url_env", `expected an address that begins with ${expected}${allowHttp ? "" : "; allow_http accepts http"}`)
  }
}

const receiverOf = (inputs: Inputs, { name, slack, http, email }: AlertRoute, wrong: Wrong): Receiver | null => {
  const { allowHttp } = inputs.settings
  const label = `address of the route ${name}`
  const under =
    (section: string): Wrong =>
    (key, mistake) =>
      wrong(`${section}.${key}`, mistake)
  if ([slack, http, email].filter((one) => one !== null).length !== 1) {
    wrong("name", "set exactly one of slack, http and email")
    return null
  }
  if (slack !== null) {
    const url = secretOf(inputs, under("slack"), "url_env", slack.urlVariable, label)
    if (url === null) return null
    checkAddress(url, ["https:"], allowHttp, under("slack"))
    return { type: "slack", url }
  }
  if (email !== null) {
    const url = secretOf(inputs, under("email"), "url_env", email.urlVariable, label)
    if (url === null) return null
    checkAddress(url, ["smtp:", "smtps:"], allowHttp, under("email"))
    const allowPlain = allowHttp || isLoopback(hostOf(URL.parse(Redacted.value(url))))
    return { type: "email", url, from: email.from, to: email.to, allowPlain }
  }
  const { url: written, urlVariable, secretVariable } = http!
  if ((written === null) === (urlVariable === null)) {
    wrong("http", "set either url or url_env")
    return null
  }
  const url =
    urlVariable === null
      ? Redacted.make(written!, { label })
      : secretOf(inputs, under("http"), "url_env", urlVariable, label)
  const secret =
    secretVariable === null
      ? null
      : secretOf(inputs, under("http"), "secret_env", secretVariable, `secret of the route ${name}`)
  if (url === null) return null
  checkAddress(url, ["https:"], allowHttp, under("http"))
  return { type: "http", url, secret }
}

export const alertsOf = (inputs: Inputs): AlertConfiguration => {
  const { place, problems, settings } = inputs
  const { routes, startAfter, endAfter } = settings.alerts
  const names = routes.map(({ name }) => name)
  return {
    routes: routes.flatMap((route, index): ReadonlyArray<Route> => {
      const wrong: Wrong = (key, mistake) =>
        problems.push(`${place("alerts", "routes", index, ...key.split("."))}: ${mistake}`)
      const { name, companies, kinds, severityMin, digest, isCriticalAtOnce } = route
      if (names.indexOf(name) !== index) wrong("name", `another route has the name ${name}`)
      const receiver = receiverOf(inputs, route, wrong)
      return receiver === null ? [] : [{ name, companies, kinds, severityMin, digest, isCriticalAtOnce, receiver }]
    }),
    startAfter: Record.map(kindTraits, (_, kind: Kind) => startAfter[kind] ?? startAfterOf(kind)),
    endAfter
  }
}

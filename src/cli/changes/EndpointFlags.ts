/** What the commands of `tributary changes endpoints` share. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Argument from "effect/cli/Argument"
import * as ChangeFeed from "../../changes/ChangeFeed.ts"
import { companiesKeyVariable } from "../../configuration/Companies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { variables } from "../../configuration/Inputs.ts"
import { isRoute, isSecret } from "../../delivery/Endpoint.ts"
import * as EndpointSecrets from "../../delivery/EndpointSecrets.ts"
import * as EndpointStore from "../../delivery/EndpointStore.ts"
import { config, json, textFlag } from "../Command.ts"
import { CommandFailed, exitCode, usageError } from "../Exit.ts"

export const commonFlags = { config, json }

export const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name of the endpoint"))

export const refuse = (message: string) => new CommandFailed({ code: exitCode.configuration, message })

/** The key that seals the secrets. */
export const requireKey = ({ companiesKey }: Configuration) =>
  companiesKey === null
    ? Effect.fail(
        refuse(
          `${companiesKeyVariable} is not set: it seals the signing secret in the warehouse. Make a key with openssl rand ` +
            "-base64 32, keep a copy, and set it for every process of tributary; or put the endpoint into change_endpoints " +
            "of the configuration file, with its secret in the environment"
        )
      )
    : Effect.succeed(companiesKey)

/** An endpoint by its name. */
export const requireEndpoint = Effect.fnUntraced(function* (name: string) {
  const found = yield* EndpointStore.find(name)
  return found ?? (yield* refuse(`there is no endpoint ${name}; see them with tributary changes endpoints list`))
})

/** Refuses what an alert route does not have. */
export const requireChanges = (name: string, remedy: string) =>
  isRoute(name) ? Effect.fail(refuse(`${name} is an alert route of the configuration file: ${remedy}`)) : Effect.void

/** Refuses to change what the configuration file states. */
export const requireOwn = ({ changeEndpoints }: Configuration, name: string, what: string) =>
  isRoute(name) || changeEndpoints.some((one) => one.name === name)
    ? Effect.fail(
        refuse(
          `endpoint ${name} is in the configuration file: ${what} in ${isRoute(name) ? "alerts.routes" : "change_endpoints"}, and restart tributary serve`
        )
      )
    : Effect.void

export const secretFlag = textFlag(
  "secret-env",
  "VAR",
  "The environment variable (or .env entry) with the signing secret (default: a new one, which is shown once)"
)

/** The secret that the flag names, or a new one. */
export const readSecret = Effect.fnUntraced(function* (flag: Option.Option<string>) {
  if (Option.isNone(flag)) return yield* EndpointSecrets.generate
  const value = (yield* variables(process.env))(flag.value)
  if (value === undefined) return yield* refuse("the variable of --secret-env is not set in the environment or .env")
  return isSecret(value)
    ? Redacted.make(value, { label: "a signing secret" })
    : yield* refuse("the secret of --secret-env is not of Standard Webhooks: whsec_ and 24 to 64 bytes in base64")
})

export const fromFlag = (description: string) => textFlag("from", "POSITION", description)

/** The position of a flag: `now`, `beginning`, or one of the feed. */
export const positionOf = Effect.fnUntraced(function* (text: string) {
  if (text === "beginning") return ChangeFeed.beginning
  if (text === "now") {
    yield* ChangeFeed.order
    return yield* ChangeFeed.end
  }
  return (
    ChangeFeed.parse(text) ??
    (yield* usageError(`${text} is no position: give now, beginning, or a position of the change feed`))
  )
})

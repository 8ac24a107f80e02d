/** `tributary changes endpoints add` and `rotate`: the commands that show a new signing secret once. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import {
  batchMaxDefault,
  batchMaxMax,
  operations as operationNames,
  problemOfUrl,
  retryHoursDefault
} from "../../delivery/Endpoint.ts"
import * as EndpointSecrets from "../../delivery/EndpointSecrets.ts"
import * as EndpointStore from "../../delivery/EndpointStore.ts"
import { onWarehouse, onWarehouseOrNew, repeatedFlag, switchFlag, textFlag, withExamples } from "../Command.ts"
import { usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import {
  commonFlags,
  fromFlag,
  nameArgument,
  positionOf,
  readSecret,
  refuse,
  requireEndpoint,
  requireKey,
  requireOwn,
  secretFlag
} from "./EndpointFlags.ts"

const orNull = <A>(list: ReadonlyArray<A>) => (list.length === 0 ? null : list)

const numberFlag = (name: string, description: string, fallback: number) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withMetavar("NUMBER"), Flag.withDefault(fallback))

const addFlags = {
  name: nameArgument,
  url: Flag.String("url").pipe(
    Flag.withDescription("The https address that gets the changes"),
    Flag.withMetavar("ADDRESS")
  ),
  company: textFlag("company", "NAME", "Send the changes of this company only"),
  resource: repeatedFlag("resource", "RESOURCE", "Send the changes of this resource only (may be repeated)"),
  operation: repeatedFlag(
    "operation",
    "OPERATION",
    `Send this operation only (may be repeated): ${operationNames.join(", ")}`
  ),
  field: repeatedFlag("field", "FIELD", "Send an update only if this field changed (may be repeated)"),
  batch: numberFlag("batch", `Changes of one message at most, up to ${batchMaxMax} (default: 1)`, batchMaxDefault),
  retryHours: numberFlag(
    "retry-hours",
    `How long a failed change is sent again (default: ${retryHoursDefault})`,
    retryHoursDefault
  ),
  allowPrivate: switchFlag("allow-private", "Allow a private address, and plain http, within a network of your own"),
  from: fromFlag("Send the changes after this position: now, beginning, or a number (default: now)"),
  secretEnv: secretFlag,
  ...commonFlags
}

/** Checks what the flags say. */
const problemOfFlags = (
  flags: Readonly<Record<"name" | "url", string>> &
    Readonly<Record<"batch" | "retryHours", number>> & {
      readonly operation: ReadonlyArray<string>
      readonly allowPrivate: boolean
    }
): string | null => {
  const unknown = flags.operation.find((one) => !operationNames.some((name) => name === one))
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(flags.name)) return "a name has letters, digits, _ or - (at most 64)"
  if (unknown !== undefined) return `there is no operation ${unknown}; there are ${operationNames.join(", ")}`
  if (flags.batch < 1 || flags.batch > batchMaxMax) return `--batch must be from 1 to ${batchMaxMax}`
  if (flags.retryHours < 1) return "--retry-hours must be at least 1"
  return problemOfUrl(flags.url, flags.allowPrivate)
}

/** A generated secret, for people. */
const secretLines = (secret: string | null): ReadonlyArray<string> =>
  secret === null ? [] : [`  its signing secret, which is not shown again: ${secret}`]

export const addCommand = Command.make(
  "add",
  addFlags,
  Effect.fn(function* (flags) {
    const { name } = flags
    const result = yield* onWarehouseOrNew(
      flags,
      Effect.fnUntraced(function* (settings) {
        const problem = problemOfFlags(flags)
        if (problem !== null) return yield* usageError(problem)
        const key = yield* requireKey(settings)
        yield* requireOwn(settings, name, "change it")
        const secret = yield* readSecret(flags.secretEnv)
        const from = yield* positionOf(Option.getOrElse(flags.from, () => "now"))
        const isAdded = yield* EndpointStore.add(
          {
            name,
            url: flags.url,
            company: Option.getOrNull(flags.company),
            resources: orNull(flags.resource),
            operations: orNull(flags.operation),
            fields: orNull(flags.field),
            batchMax: flags.batch,
            allowPrivate: flags.allowPrivate,
            retryHours: flags.retryHours
          },
          yield* EndpointSecrets.seal(name, key, secret),
          from
        )
        if (!isAdded) {
          return yield* refuse(
            `there is an endpoint ${name} already; remove it first: tributary changes endpoints remove ${name}`
          )
        }
        return {
          endpoint: name,
          url: flags.url,
          from: from.number,
          secret: Option.isSome(flags.secretEnv) ? null : Redacted.value(secret)
        }
      })
    )
    yield* Output.printResult(flags.json, result, ({ url, from, secret }) => [
      `Added endpoint ${name}: ${url} gets the changes after position ${Output.count(from)}`,
      ...secretLines(secret),
      `  running processes of serve send to it within seconds; to try it: tributary changes endpoints test ${name}`
    ])
  })
).pipe(
  Command.withDescription("Add an endpoint that gets the changes of the warehouse"),
  withExamples({
    "tributary changes endpoints add app --url https://app.example.com/changes": "Every change, from now on",
    "tributary changes endpoints add app2 --url https://app.example.com/changes --resource RESOURCE --operation update --field status --batch 100 --from beginning":
      "Updates of one field, in batches, also those of the past"
  })
)

export const rotateCommand = Command.make(
  "rotate",
  { name: nameArgument, secretEnv: secretFlag, ...commonFlags },
  Effect.fn(function* (flags) {
    const { name } = flags
    const result = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        yield* requireOwn(settings, name, "list the variable of a second secret")
        const key = yield* requireKey(settings)
        const secret = yield* readSecret(flags.secretEnv)
        yield* requireEndpoint(name)
        if (!(yield* EndpointStore.rotate(name, yield* EndpointSecrets.seal(name, key, secret)))) {
          return yield* refuse(`endpoint ${name} is of a configuration file: its secrets are in the environment`)
        }
        return { endpoint: name, secret: Option.isSome(flags.secretEnv) ? null : Redacted.value(secret) }
      })
    )
    yield* Output.printResult(flags.json, result, ({ secret }) => [
      `Rotated the secret of endpoint ${name}: the earlier one signs too for ${Output.plural(EndpointStore.previousHours, "hour")}`,
      ...secretLines(secret)
    ])
  })
).pipe(
  Command.withDescription("Replace the signing secret; messages have both signatures for 24 hours"),
  withExamples({ "tributary changes endpoints rotate app": "A new secret, which is shown once" })
)

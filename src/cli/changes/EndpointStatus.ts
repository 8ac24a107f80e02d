/** `tributary changes endpoints list` and `test`. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as EndpointSecrets from "../../delivery/EndpointSecrets.ts"
import * as EndpointStore from "../../delivery/EndpointStore.ts"
import * as Message from "../../delivery/Message.ts"
import { isDelivered } from "../../delivery/RetryPolicy.ts"
import * as Transport from "../../delivery/Transport.ts"
import { onWarehouse, withExamples } from "../Command.ts"
import { endWith, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"
import { commonFlags, nameArgument, refuse, requireChanges, requireEndpoint } from "./EndpointFlags.ts"

/** What is sent, for people. */
const filterOf = ({ company, resources, operations, fields }: EndpointStore.EndpointStatus): string =>
  Output.list([
    company === null ? "" : `company ${company}`,
    ...[resources, operations, fields].map((names) => (names === null ? "" : Output.firstOf(names, 3)))
  ]) || "all"

export const listCommand = Command.make(
  "list",
  commonFlags,
  Effect.fn(function* (flags) {
    const endpoints = yield* onWarehouse(flags, () => EndpointStore.list)
    yield* Output.printResult(flags.json, { endpoints }, () =>
      endpoints.length === 0
        ? ["there is no endpoint; add one: tributary changes endpoints add NAME --url ADDRESS"]
        : [
            Output.table(
              ["endpoint", "from", "state", "changes", "behind", "waiting", "dead", "address"],
              endpoints.map((one) => [
                one.name,
                one.origin,
                one.state === "active" && one.failingSince !== null
                  ? "failing"
                  : EndpointStore.isUnproven(one)
                    ? "active, no delivery yet"
                    : one.state,
                filterOf(one),
                one.lagMs === null
                  ? ""
                  : `${Output.count(one.lag ?? 0n)}, ${Output.duration(Math.max(0, Math.round(one.lagMs)))}`,
                Output.count(one.waiting ?? 0n),
                Output.count(one.dead ?? 0n),
                one.url
              ]),
              ["left", "left", "left", "left", "right", "right", "right", "left"]
            ),
            ...endpoints.flatMap(({ name, reason }) => (reason === null ? [] : [`  ${name}: ${Output.shown(reason)}`]))
          ]
    )
  })
).pipe(
  Command.withDescription("Show the endpoints, and how far each of them is; never a secret"),
  withExamples({ "tributary changes endpoints list --json": "For programs" })
)

export const testCommand = Command.make(
  "test",
  { name: nameArgument, ...commonFlags },
  Effect.fn(function* (flags) {
    const { name } = flags
    const result = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        const { url, allowPrivate } = yield* requireEndpoint(name)
        yield* requireChanges(name, "test it with tributary alerts test")
        const row = yield* EndpointStore.readSecrets(name)
        const secrets = row === null ? [] : EndpointSecrets.secretsOf(EndpointSecrets.keysOf(settings), row)
        if (secrets.length === 0) {
          return yield* refuse(
            `the secret of endpoint ${name} cannot be opened with this key; tributary changes endpoints rotate ${name} makes another`
          )
        }
        const nowMs = yield* Clock.currentTimeMillis
        const at = new Date(nowMs).toISOString()
        const message = {
          id: `test_${nowMs}`,
          body: JSON.stringify({ type: "test", timestamp: at, data: { endpoint: name } })
        }
        const transport = yield* Transport.make(settings.proxies)
        return yield* transport
          .send({ url, allowPrivate, headers: Message.headersOf(message, secrets, nowMs), body: message.body })
          .pipe(
            Effect.match({
              onSuccess: ({ status }) => ({ endpoint: name, url, status, problem: null }),
              onFailure: ({ message: problem }) => ({ endpoint: name, url, status: null, problem })
            })
          )
      }, Effect.scoped)
    )
    const isOk = result.status !== null && isDelivered(result.status)
    yield* Output.printResult(flags.json, result, ({ url, status, problem }) => [
      isOk
        ? `Endpoint ${name} accepted a test message: ${url} answered ${status}`
        : `Endpoint ${name} did not accept a test message: ${url} ${status === null ? `failed: ${Output.shown(problem ?? "")}` : `answered ${status}`}`
    ])
    if (!isOk) yield* endWith(exitCode.fault)
  })
).pipe(
  Command.withDescription("Send a signed test message; exit code 5: it was not accepted"),
  withExamples({ "tributary changes endpoints test app": "Whether it answers 2xx" })
)

/** `tributary changes endpoints pause`, `resume`, `replay` and `remove`. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as EndpointStore from "../../delivery/EndpointStore.ts"
import { onWarehouse, textFlag, withExamples } from "../Command.ts"
import { operator } from "../company/Editing.ts"
import * as Output from "../Output.ts"
import {
  commonFlags,
  fromFlag,
  nameArgument,
  positionOf,
  requireChanges,
  requireEndpoint,
  requireOwn
} from "./EndpointFlags.ts"

export const pauseCommand = Command.make(
  "pause",
  { name: nameArgument, ...commonFlags },
  Effect.fn(function* (flags) {
    const { name } = flags
    const changed = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* () {
        yield* requireEndpoint(name)
        return yield* EndpointStore.pause(name, yield* operator)
      })
    )
    yield* Output.printResult(flags.json, { endpoint: name, changed }, () => [
      changed
        ? `Paused endpoint ${name}: its changes wait in the feed; to resume it: tributary changes endpoints resume ${name}`
        : `Endpoint ${name} was paused before`
    ])
  })
).pipe(
  Command.withDescription("Stop the deliveries of an endpoint; its changes wait in the feed"),
  withExamples({ "tributary changes endpoints pause app": "Until it is resumed" })
)

export const resumeCommand = Command.make(
  "resume",
  {
    name: nameArgument,
    from: fromFlag("Continue after this position: now, beginning, or a number (default: where it stopped)"),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    const { name } = flags
    const changed = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* () {
        yield* requireEndpoint(name)
        const from = Option.getOrNull(flags.from)
        if (from !== null) yield* requireChanges(name, "resume it without --from")
        return yield* EndpointStore.resume(name, from === null ? null : yield* positionOf(from))
      })
    )
    yield* Output.printResult(flags.json, { endpoint: name, changed }, () => [
      changed
        ? `Resumed endpoint ${name}; what waits is sent at once`
        : `Endpoint ${name} was active, and is not failing`
    ])
  })
).pipe(
  Command.withDescription("Continue the deliveries of a paused, failing or dead endpoint at once"),
  withExamples({
    "tributary changes endpoints resume app": "Where it stopped",
    "tributary changes endpoints resume app --from now": "Without the changes of the past"
  })
)

export const replayCommand = Command.make(
  "replay",
  {
    name: nameArgument,
    since: textFlag("since", "POSITION", "Only dead letters from this position of the feed on (default: all)"),
    ...commonFlags
  },
  Effect.fn(function* (flags) {
    const { name } = flags
    const changes = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* () {
        yield* requireEndpoint(name)
        const { number } = yield* positionOf(Option.getOrElse(flags.since, () => "beginning"))
        return yield* EndpointStore.replay(name, number)
      })
    )
    yield* Output.printResult(flags.json, { endpoint: name, changes }, () => [
      `${Output.plural(changes, "dead letter")} of endpoint ${name} ${changes === 1 ? "waits" : "wait"} to be sent again, in order`
    ])
  })
).pipe(
  Command.withDescription("Send dead letters again, under the same ids"),
  withExamples({
    "tributary changes endpoints replay app": "All of them",
    "tributary changes endpoints replay app --since 1200": "Those from a position on"
  })
)

export const removeCommand = Command.make(
  "remove",
  { name: nameArgument, ...commonFlags },
  Effect.fn(function* (flags) {
    const { name } = flags
    const changed = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        yield* requireOwn(settings, name, "remove it")
        yield* requireEndpoint(name)
        return yield* EndpointStore.remove(name)
      })
    )
    yield* Output.printResult(flags.json, { endpoint: name, changed }, () => [
      `Removed endpoint ${name}, with its log and what waited for it`
    ])
  })
).pipe(
  Command.withDescription("Remove an endpoint, its log and what waits for it"),
  withExamples({ "tributary changes endpoints remove app": "It gets no further change" })
)

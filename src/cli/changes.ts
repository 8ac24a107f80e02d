/** The command `changes`: the change feed as lines of JSON. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Option from "effect/Option"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import { endpointsCommand } from "./changes/endpoints.ts"
import {
  config,
  defaultFlag,
  demoWarehouse,
  onWarehouse,
  resources,
  switchFlag,
  textFlag,
  withExamples
} from "./Command.ts"
import { CommandFailed, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { companyIdOf } from "./schema/grants.ts"
import * as Targets from "./Targets.ts"

/** A change as a line of JSON. The records keep the digits that they have in the warehouse. */
export const lineOf = (change: ChangeFeed.Change): string => {
  const { before, after, ...others } = change
  return `${Output.toJson(others).slice(0, -1)},"before":${before ?? "null"},"after":${after ?? "null"}}`
}

const changesPerRead = 500
/** How often the end of the feed is read while it is followed. */
const followEvery = "250 millis"

/** The position that `--from` names. */
const positionOf = Effect.fnUntraced(function* (from: string) {
  if (from === "beginning") return ChangeFeed.beginning
  if (from === "now") return yield* ChangeFeed.end
  const position = ChangeFeed.parse(from)
  if (position !== null) return position
  return yield* usageError(
    `--from ${from}: expected now, beginning, or a position (the member resume or position of a line, such as 1200-1f3a9c)`
  )
})

/** Prints every change after the position; with `follow` for ever. */
const printFrom = Effect.fnUntraced(function* (
  from: ChangeFeed.Position,
  selection: ChangeFeed.Selection,
  follow: boolean
) {
  for (let position = from; ;) {
    yield* ChangeFeed.confirm(position)
    const changes = yield* ChangeFeed.readAfter(position, selection, changesPerRead)
    yield* Effect.forEach(changes, (change) => Output.print(lineOf(change)), { discard: true })
    const last = changes.at(-1)
    if (last !== undefined) position = ChangeFeed.positionOf(last)
    if (changes.length === changesPerRead) continue
    if (!follow) return
    yield* Effect.sleep(followEvery)
    yield* ChangeFeed.order
  }
})

export const command = Command.make(
  "changes",
  {
    resources: resources("read"),
    from: defaultFlag(
      "from",
      "POSITION|now|beginning",
      "Where to begin: beginning, now, or after a POSITION: the member resume of the last line",
      "beginning"
    ),
    follow: switchFlag("follow", "Go on with new changes until it is stopped"),
    company: textFlag("company", "NAME", "The changes of this company only"),
    demo: demoWarehouse,
    config
  },
  Effect.fn(function* (flags) {
    yield* onWarehouse(flags, (settings) =>
      Effect.gen(function* () {
        const chosen = yield* Effect.forEach(flags.resources, (path) => Targets.resourceOf(settings, path))
        const selection: ChangeFeed.Selection = {
          companyId: Option.isNone(flags.company) ? null : yield* companyIdOf(flags.company.value),
          resources: chosen.length === 0 ? null : chosen.map(({ path }) => path)
        }
        yield* ChangeFeed.order
        const from = yield* positionOf(flags.from)
        if (flags.follow)
          yield* Output.note(`Following the change feed after position ${ChangeFeed.textOf(from)}; Ctrl-C ends it`)
        yield* printFrom(from, selection, flags.follow)
      }).pipe(
        Effect.catchTags({
          PositionLost: ({ message }) => Effect.fail(new CommandFailed({ code: exitCode.configuration, message })),
          ViewDropped: ({ message }) => Effect.fail(new CommandFailed({ code: exitCode.configuration, message }))
        })
      )
    )
  })
).pipe(
  Command.withSubcommands([endpointsCommand]),
  Command.withDescription("Print every change of every record as lines of JSON, in the order of the feed"),
  withExamples({
    "tributary changes": "Every change so far, with the record before and after it",
    "tributary changes widgets --from now --follow": "New changes of one resource, as they land"
  })
)

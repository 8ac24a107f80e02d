/** `tributary reference-server`: a server of the whole API on this machine, with a control plane beside it. */
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { reported, textFlag, withExamples } from "./Command.ts"
import { CommandFailed, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"

const port = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withMetavar("PORT"), Flag.withDefault(0))

const readRecording = (file: string) =>
  Effect.try({
    try: () => readFileSync(file, "utf8"),
    catch: () => new CommandFailed({ code: exitCode.configuration, message: `${file} cannot be read` })
  })

export const command = Command.make(
  "reference-server",
  {
    port: port("port", "Port of the API (default: any free one)"),
    controlPort: port("control-port", "Port of the control plane, loopback only (default: any free one)"),
    data: Flag.Literals("data", ["empty", "demo", "scale"]).pipe(
      Flag.withDescription("Its records: only those that every install has, a small business, or many rows"),
      Flag.withDefault("demo" as const)
    ),
    rows: Flag.Int("rows").pipe(Flag.withDescription("Records of --data scale"), Flag.optional),
    like: textFlag(
      "like",
      "FILE",
      "Behave as the installation that tributary radar --record has recorded; what cannot be the same is noted"
    ),
    seed: Flag.Int("seed").pipe(Flag.withDescription("The same seed makes the same data"), Flag.optional)
  },
  Effect.fn(function* (flags) {
    return yield* reported(
      Effect.gen(function* () {
        const ports = [flags.port, flags.controlPort]
        if (ports.some((one) => one < 0 || one > 65_535)) {
          return yield* usageError("a port is a number from 0 to 65535")
        }
        const source = yield* Source
        const like = Option.isNone(flags.like) ? undefined : yield* readRecording(flags.like.value)
        const {
          baseUrl,
          controlUrl,
          differences = []
        } = yield* source.reference({
          port: flags.port,
          controlPort: flags.controlPort,
          data: flags.data,
          rows: Option.getOrUndefined(flags.rows),
          seed: Option.getOrUndefined(flags.seed),
          like
        })
        for (const difference of differences) yield* Output.note(`not as recorded: ${difference}`)
        yield* Output.print(Output.toJson({ ready: true, baseUrl, controlUrl }))
        return yield* Effect.never
      }).pipe(Effect.scoped)
    )
  })
).pipe(
  withExamples({
    "tributary reference-server --data demo": "A small business on free ports",
    "tributary reference-server --port 8080 --control-port 8081 --data empty": "Fixed ports",
    "tributary reference-server --like erp.radar.json": "As the installation that was recorded"
  })
)

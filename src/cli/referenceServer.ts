/** `tributary reference-server`: a server of the whole API on this machine, with a control plane beside it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { ReferenceOptions } from "../connector/Demo.ts"
import { company, config, configuration, reported, switchFlag, textFlag, withExamples } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Sandbox from "./Sandbox.ts"
import { Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

const port = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withMetavar("PORT"), Flag.withDefault(0))

/** Starts the server with the records of the warehouse, whose connection ends when they are read. */
const fromWarehouse = Effect.fnUntraced(function* (
  flags: {
    readonly asOf: Option.Option<string>
    readonly company: ReadonlyArray<string>
    readonly config: Option.Option<string>
  },
  server: Partial<ReferenceOptions>
) {
  const settings = yield* configuration(flags.config)
  const at = Option.map(flags.asOf, (moment) => ({ moment, mode: "warehouse" as const }))
  const { reference, companies } = yield* Warehouse.provide(
    Sandbox.start(settings, {
      companies: flags.company,
      server,
      ...(Option.isSome(at) ? { at: at.value } : {})
    }),
    settings
  )
  return {
    reference,
    companies: companies.map(({ name, companyId, records }) => ({ name, companyId, records }))
  }
})

export const command = Command.make(
  "reference-server",
  {
    port: port("port", "Port of the API (default: any free one)"),
    controlPort: port("control-port", "Port of the control plane, loopback only (default: any free one)"),
    data: Flag.Literals("data", ["empty", "demo", "scale"]).pipe(
      Flag.withDescription("Its records: only those that every install has, a small business (default), or many rows"),
      Flag.optional
    ),
    rows: Flag.Int("rows").pipe(Flag.withDescription("Records of --data scale"), Flag.optional),
    seed: Flag.Int("seed").pipe(Flag.withDescription("The same seed makes the same data"), Flag.optional),
    fromWarehouse: switchFlag("from-warehouse", "Its records are those of the warehouse; the source gets no request"),
    asOf: textFlag(
      "as-of",
      "MOMENT",
      "With --from-warehouse: the records as of this moment (2026-10-31 23:59:59+00) or position of the change feed (position 12345)"
    ),
    company,
    config
  },
  Effect.fn(function* (flags) {
    return yield* reported(
      Effect.gen(function* () {
        const ports = [flags.port, flags.controlPort]
        if (ports.some((one) => one < 0 || one > 65_535)) {
          return yield* usageError("a port is a number from 0 to 65535")
        }
        const source = yield* Source
        const server = {
          port: flags.port,
          controlPort: flags.controlPort,
          rows: Option.getOrUndefined(flags.rows),
          seed: Option.getOrUndefined(flags.seed)
        }
        if (flags.fromWarehouse) {
          if (Option.isSome(flags.data) || Option.isSome(flags.rows))
            return yield* usageError(
              "--from-warehouse takes its records from the warehouse: leave out --data and --rows"
            )
          const { reference, companies } = yield* fromWarehouse(flags, server)
          yield* Output.print(Output.toJson({ ready: true, ...reference, companies }))
          return yield* Effect.never
        }
        if (Option.isSome(flags.asOf) || flags.company.length > 0)
          return yield* usageError("--as-of and --company belong to --from-warehouse")
        const data = Option.getOrElse(flags.data, () => "demo" as const)
        const { baseUrl, controlUrl } = yield* source.reference({ ...server, data })
        yield* Output.print(Output.toJson({ ready: true, baseUrl, controlUrl }))
        return yield* Effect.never
      }).pipe(Effect.scoped)
    )
  })
).pipe(
  withExamples({
    "tributary reference-server --data demo": "A small business on free ports",
    "tributary reference-server --port 8080 --control-port 8081 --data empty": "Fixed ports",
    "tributary reference-server --from-warehouse": "A sandbox with the records of the warehouse"
  })
)

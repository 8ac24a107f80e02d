/** `tributary reference-server`: a server of the whole API, with a control plane beside it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { ReferenceOptions } from "../connector/Demo.ts"
import { unquoted } from "../configuration/Inputs.ts"
import * as ReadFile from "../files/ReadFile.ts"
import { company, config, configuration, switchFlag, textFlag, withExamples } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Sandbox from "./Sandbox.ts"
import { Source } from "./Source.ts"
import * as Warehouse from "./Warehouse.ts"

const port = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withMetavar("PORT"), Flag.withDefault(0))

const readRecording = (file: string) => ReadFile.attempt(file, () => ReadFile.text(file, Number.POSITIVE_INFINITY))

const networkFlags = {
  port: port("port", "Port of the API (default: any free one)"),
  controlPort: port("control-port", "Port of the control plane (default: any free one)"),
  host: textFlag("host", "ADDRESS", "Address of the API (default: 127.0.0.1)"),
  controlHost: textFlag(
    "control-host",
    "ADDRESS",
    "Address of the control plane (default: 127.0.0.1); others need REFERENCE_SERVER_CONTROL_TOKEN"
  ),
  tls: Flag.Literals("tls", ["self-signed"]).pipe(
    Flag.withDescription("HTTPS with a certificate of its own, which the ready line contains"),
    Flag.optional
  ),
  tlsCert: textFlag("tls-cert", "FILE", "HTTPS with this certificate, in PEM"),
  tlsKey: textFlag("tls-key", "FILE", "The key of --tls-cert, in PEM"),
  allowHttp: switchFlag("allow-http", "Allow tokens over plain HTTP beyond loopback, in a network that is trusted"),
  advertiseUrl: textFlag("advertise-url", "URL", "Address by which clients reach the API, for links in its answers")
}

const stateFlags = {
  data: Flag.Literals("data", ["empty", "demo", "scale"]).pipe(
    Flag.withDescription("Its records: only those that every install has, a small business (default), or many rows"),
    Flag.optional
  ),
  rows: Flag.Int("rows").pipe(Flag.withDescription("Records of --data scale"), Flag.withMetavar("N"), Flag.optional),
  like: textFlag(
    "like",
    "FILE",
    "Behave as the installation that tributary radar --record has recorded; what cannot be the same is noted"
  ),
  seed: Flag.Int("seed").pipe(
    Flag.withDescription("The same seed makes the same data"),
    Flag.withMetavar("N"),
    Flag.optional
  ),
  load: textFlag("load", "FILE", "Start with this snapshot; --data is then only what a reset makes"),
  saveOnExit: textFlag("save-on-exit", "FILE", "Save a snapshot when a signal ends the server; it contains secrets"),
  scenario: textFlag("scenario", "NAME", "Run a scenario before the server is ready; GET /scenarios lists them"),
  fromWarehouse: switchFlag("from-warehouse", "Its records are those of the warehouse; the source gets no request"),
  asOf: textFlag(
    "as-of",
    "MOMENT",
    "With --from-warehouse: the records as of this moment (2026-10-31 23:59:59+00) or position of the change feed (position 12345)"
  ),
  company,
  config
}

type Flags<Given extends Command.Command.Config> = Command.Command.Config.Infer<Given>

/** The variable with the token of the control plane. */
const tokenVariable = "REFERENCE_SERVER_CONTROL_TOKEN"

const controlToken = (): Redacted.Redacted | undefined => {
  const text = unquoted(process.env[tokenVariable])
  return text === undefined || text === "" ? undefined : Redacted.make(text, { label: tokenVariable })
}

const networkOptions = Effect.fnUntraced(function* (flags: Flags<typeof networkFlags>) {
  const { port, controlPort, allowHttp } = flags
  if ([port, controlPort].some((one) => one < 0 || one > 65_535)) {
    return yield* usageError("a port is a number from 0 to 65535")
  }
  const files = { cert: Option.getOrUndefined(flags.tlsCert), key: Option.getOrUndefined(flags.tlsKey) }
  const hasFiles = files.cert !== undefined || files.key !== undefined
  if (Option.isSome(flags.tls) && hasFiles) {
    return yield* usageError("--tls self-signed makes its own certificate: leave out --tls-cert and --tls-key")
  }
  return {
    port,
    controlPort,
    allowHttp,
    tls: hasFiles ? files : Option.getOrUndefined(flags.tls),
    controlToken: controlToken(),
    host: Option.getOrUndefined(flags.host),
    controlHost: Option.getOrUndefined(flags.controlHost),
    advertiseUrl: Option.getOrUndefined(flags.advertiseUrl)
  } satisfies Partial<ReferenceOptions>
})

/** An option that fills the server by plain calls to its control plane. */
const refuseProtected = (option: string, { tls, controlToken }: Partial<ReferenceOptions>) =>
  tls === undefined && controlToken === undefined
    ? Effect.void
    : usageError(`${option} fills the server over plain HTTP on this machine: leave out TLS and ${tokenVariable}`)

/** Starts the server with the records of the warehouse, whose connection ends when they are read. */
const fromWarehouse = Effect.fnUntraced(function* (flags: Flags<typeof stateFlags>, server: Partial<ReferenceOptions>) {
  const given: ReadonlyArray<Option.Option<unknown>> = [flags.data, flags.rows, flags.load, flags.scenario, flags.like]
  if (given.some(Option.isSome)) {
    return yield* usageError(
      "--from-warehouse takes its records from the warehouse: leave out --data, --rows, --load, --scenario and --like"
    )
  }
  yield* refuseProtected("--from-warehouse", server)
  const settings = yield* configuration(flags.config)
  const at = Option.map(flags.asOf, (moment) => ({ moment, mode: "warehouse" as const }))
  const { reference, companies } = yield* Warehouse.provide(
    Sandbox.start(settings, {
      companies: flags.company,
      server,
      ...(Option.isSome(at) ? { at: at.value } : {})
    }),
    { ...settings, mustExist: true }
  )
  const { baseUrl, controlUrl } = reference
  return {
    baseUrl,
    controlUrl,
    companies: companies.map(({ name, companyId, records }) => ({ name, companyId, records }))
  }
})

/** Starts the server with invented records or those of a snapshot. */
const invented = Effect.fnUntraced(function* (flags: Flags<typeof stateFlags>, server: Partial<ReferenceOptions>) {
  if (Option.isSome(flags.asOf) || flags.company.length > 0) {
    return yield* usageError("--as-of and --company belong to --from-warehouse")
  }
  if (Option.isSome(flags.like)) yield* refuseProtected("--like", server)
  const source = yield* Source
  const {
    baseUrl,
    controlUrl,
    certificate,
    differences = []
  } = yield* source.reference({
    port: 0,
    controlPort: 0,
    ...server,
    data: Option.getOrElse(flags.data, () => "demo" as const),
    rows: Option.getOrUndefined(flags.rows),
    load: Option.getOrUndefined(flags.load),
    scenario: Option.getOrUndefined(flags.scenario),
    seed: server.seed,
    like: Option.isNone(flags.like) ? undefined : yield* readRecording(flags.like.value)
  })
  for (const difference of differences) yield* Output.note(`not as recorded: ${difference}`)
  return { baseUrl, controlUrl, ...(typeof certificate === "string" ? { certificate } : {}) }
})

export const command = Command.make(
  "reference-server",
  { ...networkFlags, ...stateFlags },
  Effect.fn(function* (flags) {
    const server = {
      ...(yield* networkOptions(flags)),
      seed: Option.getOrUndefined(flags.seed),
      saveOnExit: Option.getOrUndefined(flags.saveOnExit)
    }
    const started = yield* flags.fromWarehouse ? fromWarehouse(flags, server) : invented(flags, server)
    yield* Output.print(Output.toJson({ ready: true, ...started }))
    return yield* Effect.never
  }, Effect.scoped)
).pipe(
  withExamples({
    "tributary reference-server --data demo": "A small business on free ports",
    "tributary reference-server --port 8080 --control-port 8081 --data empty": "Fixed ports",
    "tributary reference-server --like erp.radar.json": "As the installation that was recorded",
    "tributary reference-server --save-on-exit state.ndjson": "Keep the state for another run, with --load",
    "tributary reference-server --host 0.0.0.0 --tls self-signed": "An API for other machines, over HTTPS",
    "tributary reference-server --from-warehouse": "A sandbox with the records of the warehouse"
  })
)

/** `tributary reference-server`: a server of the whole API, with a control plane beside it. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { reported, switchFlag, textFlag, withExamples } from "./Command.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { Source } from "./Source.ts"

const port = (name: string, description: string) =>
  Flag.Int(name).pipe(Flag.withDescription(description), Flag.withMetavar("PORT"), Flag.withDefault(0))

const flags = {
  port: port("port", "Port of the API (default: any free one)"),
  controlPort: port("control-port", "Port of the control plane (default: any free one)"),
  data: Flag.Literals("data", ["empty", "demo", "scale"]).pipe(
    Flag.withDescription("Its records: only those that every install has, a small business, or many rows"),
    Flag.withDefault("demo" as const)
  ),
  rows: Flag.Int("rows").pipe(Flag.withDescription("Records of --data scale"), Flag.optional),
  seed: Flag.Int("seed").pipe(Flag.withDescription("The same seed makes the same data"), Flag.optional),
  load: textFlag("load", "FILE", "Start with this snapshot; --data is then only what a reset makes"),
  saveOnExit: textFlag("save-on-exit", "FILE", "Save a snapshot when a signal ends the server; it contains secrets"),
  scenario: textFlag("scenario", "NAME", "Run a scenario before the server is ready; GET /scenarios lists them"),
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

/** The name of the variable with the token of the control plane. */
const tokenVariable = "REFERENCE_SERVER_CONTROL_TOKEN"

const controlToken = (): Redacted.Redacted | undefined => {
  const text = process.env[tokenVariable]
  return text === undefined || text === "" ? undefined : Redacted.make(text, { label: tokenVariable })
}

export const command = Command.make(
  "reference-server",
  flags,
  Effect.fn(function* ({ port, controlPort, data, allowHttp, tls, tlsCert, tlsKey, ...options }) {
    return yield* reported(
      Effect.gen(function* () {
        if ([port, controlPort].some((one) => one < 0 || one > 65_535)) {
          return yield* usageError("a port is a number from 0 to 65535")
        }
        const files = { cert: Option.getOrUndefined(tlsCert), key: Option.getOrUndefined(tlsKey) }
        const hasFiles = files.cert !== undefined || files.key !== undefined
        if (Option.isSome(tls) && hasFiles) {
          return yield* usageError("--tls self-signed makes its own certificate: leave out --tls-cert and --tls-key")
        }
        const source = yield* Source
        const { baseUrl, controlUrl, certificate } = yield* source.reference({
          port,
          controlPort,
          data,
          allowHttp,
          tls: hasFiles ? files : Option.getOrUndefined(tls),
          controlToken: controlToken(),
          rows: Option.getOrUndefined(options.rows),
          seed: Option.getOrUndefined(options.seed),
          load: Option.getOrUndefined(options.load),
          saveOnExit: Option.getOrUndefined(options.saveOnExit),
          scenario: Option.getOrUndefined(options.scenario),
          host: Option.getOrUndefined(options.host),
          controlHost: Option.getOrUndefined(options.controlHost),
          advertiseUrl: Option.getOrUndefined(options.advertiseUrl)
        })
        const trusted = typeof certificate === "string" ? { certificate } : {}
        yield* Output.print(Output.toJson({ ready: true, baseUrl, controlUrl, ...trusted }))
        return yield* Effect.never
      }).pipe(Effect.scoped)
    )
  })
).pipe(
  withExamples({
    "tributary reference-server --data demo": "A small business on free ports",
    "tributary reference-server --port 8080 --control-port 8081 --data empty": "Fixed ports",
    "tributary reference-server --load state.ndjson --save-on-exit state.ndjson": "Continue where the last run ended",
    "tributary reference-server --host 0.0.0.0 --tls self-signed": "An API for other machines, over HTTPS"
  })
)

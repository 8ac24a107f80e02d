/**
 * The log of the program, and the export of traces and logs over OTLP.
 *
 * The log: `TRIBUTARY_LOG_FORMAT` (text or json) and `TRIBUTARY_LOG_LEVEL`. OTLP: the usual variables of OpenTelemetry,
 * of which an endpoint is enough; metrics are served at `/metrics` instead.
 *
 * Promise: an invalid value is reported before anything starts (code 2). Without an endpoint the exporter is not loaded.
 * An unreachable collector delays no work and logs nothing; at its end a command waits for it for at most a second. No
 * token, secret or query parameter is exported.
 */
import type { RequestInit } from "undici"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import { variableEntries } from "../configuration/EnvironmentVariables.ts"
import type { Proxies } from "../http/Proxies.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"

type Environment = Readonly<Record<string, string | undefined>>

const levels: Readonly<Record<string, LogLevel.LogLevel>> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
  fatal: "Fatal",
  off: "None"
}

const endpoints = [
  "OTEL_EXPORTER_OTLP_ENDPOINT",
  "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
  "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"
]

/** The value of a variable; an empty one counts as unset. */
const valueOf = (environment: Environment, name: string): string | null => {
  const value = environment[name]?.trim()
  return value === undefined || value === "" ? null : value
}

const isAddress = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "")

interface TelemetryOptions {
  readonly format: "text" | "json"
  readonly level: LogLevel.LogLevel
  /** Null exports nothing. */
  readonly otlp: "http/json" | "http/protobuf" | null
}

/** The options of the environment, or its mistakes. They repeat no value: it may be a secret in the wrong place. */
const readOptions = (environment: Environment): TelemetryOptions | ReadonlyArray<string> => {
  const problems: Array<string> = []
  const one = <A>(name: string, allowed: Readonly<Record<string, A>>, otherwise: A): A => {
    const value = valueOf(environment, name)?.toLowerCase() ?? null
    if (value === null) return otherwise
    const found = Object.hasOwn(allowed, value) ? allowed[value] : undefined
    if (found === undefined) problems.push(`${name} must be one of: ${Object.keys(allowed).join(", ")}`)
    return found ?? otherwise
  }
  const format = one("TRIBUTARY_LOG_FORMAT", { text: "text", json: "json" } as const, "text")
  const level = one("TRIBUTARY_LOG_LEVEL", levels, "Info")
  const isOff = valueOf(environment, "OTEL_SDK_DISABLED")?.toLowerCase() === "true"
  const named = endpoints.filter((name) => valueOf(environment, name) !== null)
  if (isOff || named.length === 0) return problems.length > 0 ? problems : { format, level, otlp: null }
  for (const name of named) {
    if (!isAddress(valueOf(environment, name) ?? "")) {
      problems.push(`${name} must be an address such as http://localhost:4318`)
    }
  }
  const otlp = one(
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    { "http/protobuf": "http/protobuf", "http/json": "http/json" } as const,
    "http/protobuf"
  )
  return problems.length > 0 ? problems : { format, level, otlp }
}

/** The defaults of the exporter's variables. */
const defaults: Environment = Object.fromEntries(
  variableEntries.flatMap(([name, { default: fallback }]) =>
    name.startsWith("OTEL_") && fallback !== undefined ? [[name, fallback]] : []
  )
)

/**
 * Whether a span is a statement outside a run, which is not exported: workers poll every second. The `SqlClient` names
 * its spans by the database; the name of a request begins with its method.
 */
const isNoise = ({ name, kind, parent }: Parameters<Tracer.Tracer["span"]>[0]): boolean =>
  Option.isNone(parent) && (name === "sql.transaction" || (kind === "client" && !/^[A-Z]+ \//.test(name)))

const quiet: Layer.Layer<never> = Layer.effect(
  Tracer.Tracer,
  Effect.map(Tracer.Tracer, (tracer) =>
    Tracer.make({
      span: (options) => tracer.span(isNoise(options) ? { ...options, sampled: false } : options)
    })
  )
)

/** The time limit of one export with its whole answer, as the specification of the exporter has it. */
const exportTimeoutMs = 10_000

/** The fetch of the exporter, until the end of the scope. */
const makeFetch = Effect.fnUntraced(function* (proxies: Proxies | null) {
  const [Client, { fetch }] = yield* Effect.promise(() => Promise.all([import("../http/Client.ts"), import("undici")]))
  const dispatcher = yield* Client.makeDispatcher({ proxies, connectTimeout: Duration.millis(exportTimeoutMs) })
  const fetchInTime = (input: string | URL, init: RequestInit = {}) => {
    const limit = AbortSignal.timeout(exportTimeoutMs)
    const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit
    return fetch(input, { ...init, dispatcher, signal })
  }
  // undici's types of an answer are not those of Node, whose fetch is undici's.
  return fetchInTime as unknown as typeof globalThis.fetch
})

/** The proxies of the environment and `.env`. */
const readProxies = Effect.fnUntraced(function* (environment: Environment) {
  const [{ variables }, { proxiesOfVariables }] = yield* Effect.promise(() =>
    Promise.all([import("../configuration/Inputs.ts"), import("../http/Proxies.ts")])
  )
  const problems: Array<string> = []
  const proxies = proxiesOfVariables(yield* variables(environment), problems)
  return problems.length > 0 ? yield* new ConfigurationError({ problems }) : proxies
})

/** The exporter. Its modules are loaded only here. */
const exporting = Effect.fnUntraced(function* (
  environment: Environment,
  protocol: NonNullable<TelemetryOptions["otlp"]>,
  proxies: Proxies | null
) {
  const [provider, http, logs, traces, serialization] = yield* Effect.promise(() =>
    Promise.all([
      import("effect/ConfigProvider"),
      import("effect/http/FetchHttpClient"),
      import("effect/observability/OtlpLogger"),
      import("effect/observability/OtlpTracer"),
      import("effect/observability/OtlpSerialization")
    ])
  )
  const given = Object.entries(environment).filter(([name]) => valueOf(environment, name) !== null)
  const env = { ...defaults, ...Object.fromEntries(given) }
  return Layer.mergeAll(logs.layerFromConfig(), quiet.pipe(Layer.provideMerge(traces.layerFromConfig()))).pipe(
    Layer.provide(protocol === "http/json" ? serialization.layerJson : serialization.layerProtobuf),
    Layer.provide(http.layer),
    Layer.provide(Layer.effect(http.Fetch)(makeFetch(proxies))),
    Layer.provide(provider.layer(provider.fromEnvRecord(env)))
  )
})

const failed = Effect.fnUntraced(function* (problems: ReadonlyArray<string>) {
  for (const problem of problems) yield* Output.note(`tributary: ${problem}`, "Error")
  return yield* new CommandFailed({ code: exitCode.configuration, message: "" })
})

/** The logger and the exporter that the environment configures. */
export const layer = (environment: Environment): Layer.Layer<never, CommandFailed> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const options = readOptions(environment)
      if (!("format" in options)) return yield* failed(options)
      const { format, level, otlp } = options
      const log = Layer.mergeAll(
        Logger.layer([format === "json" ? Output.jsonLogger : Output.logger]),
        Layer.succeed(Output.LogFormat, format),
        Layer.succeed(References.MinimumLogLevel, level)
      )
      if (otlp === null) return log
      const proxies = yield* readProxies(environment).pipe(Effect.catch(({ problems }) => failed(problems)))
      const exported = (yield* exporting(environment, otlp, proxies)).pipe(
        // The cause is not printed: it may contain the headers, and these may contain a key.
        Layer.catchCause(() =>
          Layer.effectDiscard(
            failed(["a variable OTEL_... cannot be read; unset it, or write it as OpenTelemetry describes"])
          )
        )
      )
      return exported.pipe(Layer.provideMerge(log))
    })
  )

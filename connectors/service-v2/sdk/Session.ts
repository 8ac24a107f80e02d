/**
 * The running part of a client: one transport, one rate budget and one context for all calls, and calls as promises.
 *
 * Promise: a promise resolves with the result, or rejects with a {@link ServiceApiError}. An aborted call ends at once;
 * its error says whether a write may have an effect. Nothing starts before the first call, and {@link Session.close}
 * ends everything.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Budget from "../../../src/budget/Budget.ts"
import { RequestInFlight } from "../../../src/connector/Connector.ts"
import type { SourceError } from "../../../src/connector/SourceError.ts"
import * as MonotonicClock from "../../../src/time/MonotonicClock.ts"
import { limits } from "../catalogue/limits.ts"
import { serviceV2 } from "../catalogue/index.ts"
import { ClientConfigError } from "../client/BaseAddress.ts"
import type { ClientContext } from "../client/ClientContext.ts"
import * as ServiceClient from "../client/ServiceClient.ts"
import * as Transport from "../client/Transport.ts"
import type { ClientOptions, ClientUsage, LogEntry } from "./Api.ts"
import { defined } from "./Defined.ts"
import { AbortedError, ConfigurationError, ServiceApiError } from "./Errors.ts"
import { errorOf } from "./Failures.ts"
import { decoders } from "./RecordDecoder.ts"

/** A call of the program. */
export interface Call {
  readonly signal?: AbortSignal | undefined
  /** The key of a write that the caller can repeat; absent for a read. */
  readonly idempotencyKey?: string
  /** Whether it changes something; default: whether it has a key. */
  readonly isWrite?: boolean
}

export interface Session {
  readonly run: <A>(use: (context: ClientContext) => Effect.Effect<A, SourceError>, call: Call) => Promise<A>
  readonly usage: () => ClientUsage
  readonly close: () => Promise<void>
}

const defaults = { maxRetryWaitMs: 120_000, maxAttempts: 5, userAgent: "tributary-service-v2" }
const backoff = { backoffBase: Duration.millis(250), backoffMax: Duration.seconds(10) }

const wrong = (setting: string, problem: string, remedy: string) =>
  new ConfigurationError(`${setting} ${problem}: ${remedy}`, { code: "configuration", field: setting, remedy })

const numberOptions = [
  "requestsPerMinute",
  "maxRetryWaitMs",
  "maxAttempts",
  "requestTimeoutMs",
  "maxAnswerBytes",
  "pageSize"
] as const

/** The options of the connector; throws the first problem. */
const connectorOptions = (options: ClientOptions): ServiceClient.ServiceClientOptions => {
  for (const name of numberOptions) {
    const value = options[name]
    const isRight = value === undefined || (value === null && name === "requestsPerMinute")
    if (!isRight && !(Number.isSafeInteger(value) && Number(value) >= (name === "maxRetryWaitMs" ? 0 : 1))) {
      throw wrong(name, `is ${String(value)}`, "give a whole number, or leave it out")
    }
  }
  for (const name of ["token", "baseUrl"] as const) {
    if (typeof options[name] !== "string") throw wrong(name, "is not text", "give it as text")
  }
  const retryWait = Duration.millis(options.maxRetryWaitMs ?? defaults.maxRetryWaitMs)
  const { requestTimeoutMs } = options
  const connector: ServiceClient.ServiceClientOptions = {
    baseUrl: options.baseUrl,
    token: Redacted.make(options.token),
    catalogue: serviceV2,
    pageSize: options.pageSize ?? "discover",
    paging: defined(options.paging ?? {}),
    includeCustomFields: options.includeCustomFields,
    requestTimeout: requestTimeoutMs === undefined ? undefined : Duration.millis(requestTimeoutMs),
    retry: { attemptsMax: options.maxAttempts ?? defaults.maxAttempts, ...backoff },
    retryAfterMax: retryWait,
    rateLimitedWaitMax: retryWait,
    answerBytesMax: options.maxAnswerBytes,
    allowHttp: options.allowHttp,
    precondition: options.precondition,
    rotateField: options.rotateSecretField
  }
  const base = ServiceClient.checkOptions(connector)
  if (base instanceof ClientConfigError) throw wrong(base.setting, base.problem, base.remedy)
  return connector
}

/** Requests by the caller's fetch. The answer must come as it was sent: without redirects and compression. */
const makeFetch = (fetch: typeof globalThis.fetch) =>
  Effect.map(Layer.build(FetchHttpClient.layer), (services) =>
    Context.get(services, HttpClient.HttpClient).pipe(
      HttpClient.mapRequest(HttpClientRequest.setHeader("accept-encoding", "identity")),
      HttpClient.transformResponse((response) =>
        response.pipe(
          Effect.provideService(FetchHttpClient.Fetch, fetch),
          Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
          Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
        )
      )
    )
  )

const makeTransport = ({ fetch, transport = {}, maxAnswerBytes }: ClientOptions) => {
  if (fetch !== undefined) return makeFetch(fetch)
  const { connectTimeoutMs, ...rest } = transport
  return Transport.makeUndici(
    defined({
      ...rest,
      connectTimeout: connectTimeoutMs === undefined ? undefined : Duration.millis(connectTimeoutMs),
      answerBytesMax: maxAnswerBytes
    })
  )
}

/** The caller's log. What it throws must not fail a request that was answered. */
const safely =
  (log: (entry: LogEntry) => void) =>
  (entry: LogEntry): void => {
    try {
      log(entry)
    } catch {
      // The log is the caller's, and has no place for its own errors.
    }
  }

/** Reports each answered attempt. */
const logged = (client: HttpClient.HttpClient, log: (entry: LogEntry) => void, basePath: string) =>
  HttpClient.transform(client, (response, { method, url }) =>
    Effect.clockWith((clock) => {
      const startMs = MonotonicClock.nowMs(clock)
      const path = new URL(url).pathname.slice(basePath.length)
      const report = (status: number | null) =>
        Effect.sync(() => {
          const durationMs = Math.round(MonotonicClock.nowMs(clock) - startMs)
          const message = `${method} ${path}: ${status ?? "no answer"} after ${durationMs} ms`
          log({ level: "debug", message, method, path, status, durationMs })
        })
      return response.pipe(
        Effect.tap(({ status }) => report(status)),
        Effect.tapError(() => report(null))
      )
    })
  )

const makeContext = (options: ClientOptions, connector: ServiceClient.ServiceClientOptions) =>
  Effect.gen(function* () {
    const transport = yield* makeTransport(options)
    const named = HttpClient.mapRequest(
      transport,
      HttpClientRequest.setHeader("user-agent", options.userAgent ?? defaults.userAgent)
    )
    const basePath = new URL(connector.baseUrl).pathname.replace(/\/+$/, "")
    const client = options.log === undefined ? named : logged(named, safely(options.log), basePath)
    const perMinute = options.requestsPerMinute === undefined ? limits.requestsPerMinute : options.requestsPerMinute
    const pauseWaitMax = Duration.millis(options.maxRetryWaitMs ?? defaults.maxRetryWaitMs)
    return yield* ServiceClient.makeContext(connector, decoders()).pipe(
      Effect.provideService(HttpClient.HttpClient, client),
      Effect.provideService(Budget.Budget, yield* Budget.makeOwn(perMinute, { pauseWaitMax }))
    )
  })

/** Warnings of the connector go to the caller's log, or nowhere. */
const loggersOf = ({ log = () => {} }: ClientOptions) =>
  new Set<Logger.Logger<unknown, void>>([
    Logger.make(({ logLevel, message }) => {
      const text = (Array.isArray(message) ? message : [message]).map(String).join(" ")
      if (logLevel === "Warn" || logLevel === "Error" || logLevel === "Fatal")
        safely(log)({ level: "warn", message: text })
    })
  ])

const aborted = (signal: AbortSignal, idempotencyKey: string | null, isOutcomeUnknown: boolean) => {
  const how = idempotencyKey === null ? "" : "repeat it under the same idempotency key, or "
  const remedy = isOutcomeUnknown
    ? `the write may have an effect: ${how}look the record up`
    : "repeat the call when it is needed"
  const facts = { code: "aborted", remedy, isOutcomeUnknown, idempotencyKey } as const
  return new AbortedError(`the call was aborted: ${remedy}`, facts, signal.reason)
}

/** The program waits for its requests: they may use the whole limit at once. */
const urgent: Budget.Priority = { class: "urgent", dueAt: 0 }

const noUsage: ClientUsage = { requests: 0, retries: 0, rateLimited: 0, bytes: 0 }

/** Makes the session; throws a {@link ConfigurationError} for wrong options. */
export const make = (options: ClientOptions): Session => {
  const connector = connectorOptions(options)
  const scope = Scope.makeUnsafe()
  const closing = new AbortController()
  const loggers = loggersOf(options)
  let context: ClientContext | null = null
  let starting: Promise<ClientContext> | null = null
  const start = () =>
    (starting ??= Effect.runPromise(
      makeContext(options, connector).pipe(
        Scope.provide(scope),
        Effect.provideService(Logger.CurrentLoggers, loggers),
        Effect.tap((made) => Effect.sync(() => (context = made)))
      )
    ))

  const run: Session["run"] = async (use, call) => {
    const idempotencyKey = call.idempotencyKey ?? null
    const isWrite = call.isWrite ?? idempotencyKey !== null
    const signal = AbortSignal.any([
      closing.signal,
      ...(options.signal === undefined ? [] : [options.signal]),
      ...(call.signal === undefined ? [] : [call.signal])
    ])
    if (signal.aborted) throw aborted(signal, idempotencyKey, false)
    const started = await start()
    let wasSent = false
    const observe = (isOnItsWay: boolean) => {
      if (isOnItsWay) wasSent = true
    }
    const exit = await Effect.runPromiseExit(
      use(started).pipe(
        Effect.provideService(RequestInFlight, observe),
        Effect.provideService(Budget.Priority, urgent),
        Effect.provideService(Logger.CurrentLoggers, loggers)
      ),
      { signal }
    )
    if (Exit.isSuccess(exit)) return exit.value
    const failure = Cause.findErrorOption(exit.cause)
    if (Option.isSome(failure)) {
      throw errorOf(failure.value, { idempotencyKey, isWrite })
    }
    if (signal.aborted) throw aborted(signal, idempotencyKey, isWrite && wasSent)
    const defect = Cause.squash(exit.cause)
    // A client error that the call made itself.
    if (defect instanceof ServiceApiError) throw defect
    const detail = (defect instanceof Error ? defect.message : "").replaceAll(options.token, "[token]")
    const remedy = "report it to the maintainers of this client"
    throw new ServiceApiError(`internal failure: ${detail}: ${remedy}`, {
      code: "internal",
      remedy,
      isOutcomeUnknown: isWrite && wasSent,
      idempotencyKey
    })
  }

  return {
    run,
    usage: () => (context === null ? noUsage : Effect.runSync(context.exchange.usage)),
    close: async () => {
      closing.abort(new Error("the client was closed"))
      await starting?.catch(() => {})
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}

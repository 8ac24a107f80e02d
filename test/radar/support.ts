/** A comparison of the radar with a reference server in process. */
import { Clock, Duration, Effect, Fiber, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as TestClock from "effect/testing/TestClock"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { run } from "../../connectors/service-v2/radar/index.ts"
import type { RadarOptions } from "../../connectors/service-v2/radar/Radar.ts"
import * as Budget from "../../src/budget/Budget.ts"
import type { RadarReport } from "../../src/connector/Radar.ts"
import { beginning, type Json, server, type Server } from "../reference-server/support.ts"

export interface JournalEntry {
  readonly method: string
  readonly path: string
  readonly status: number
}

/** The source of time of the shared server: the clock of the test that runs. */
let running: Clock.Clock
let shared: Server | undefined
let worlds = 0

/**
 * A server whose clock is the test's. The demo data is made once: each test has a world of it, which shares the records
 * that it does not change.
 */
export const installation = Effect.fnUntraced(function* (data: "demo" | "empty") {
  running = yield* Clock.Clock
  const start = Date.parse(beginning)
  const now = () => (start + running.currentTimeMillisUnsafe()) * 1000
  const main = data === "empty" ? server({ now }) : (shared ??= server({ data, now }))
  const name = `radar-${++worlds}`
  main.control("POST", "/worlds", { name })
  const control: Server["control"] = (method, path, body) => main.control(method, `/worlds/${name}${path}`, body)
  const token: Server["token"] = (options) =>
    String(control("POST", "/tokens", { company: 1, scopes: ["*"], ...options }).body["token"])
  control("POST", "/clock", { manual: false })
  return { served: main.served, control, token, baseUrl: `http://127.0.0.1/worlds/${name}/!/api/v2` }
})

export type Installation = Effect.Success<ReturnType<typeof installation>>

/** Calls the control plane; anything but a success is a mistake of the test. */
export const change = ({ control }: Installation, method: string, path: string, body: Json): void => {
  const { status, text } = control(method, path, body)
  if (status !== 200) throw new Error(`${method} ${path}: ${status} ${text}`)
}

export const journalOf = ({ control }: Installation): ReadonlyArray<JournalEntry> =>
  control("GET", "/requests").body["requests"] as ReadonlyArray<JournalEntry>

/** Stands between the radar and the server: an answer of its own, or null to pass the request on. */
export type Intercept = (
  path: string
) => { readonly status: number; readonly headers: Record<string, string>; readonly body: string } | null

/** An HTTP client without sockets. */
export const clientOf = ({ served }: Installation, intercept: Intercept = () => null) =>
  HttpClient.make((request, url) =>
    Effect.sync(() => {
      const path = url.pathname + url.search
      const own = intercept(path)
      if (own !== null) return HttpClientResponse.fromWeb(request, new Response(own.body, own))
      const answer = served.handle({ method: request.method, url: path, headers: request.headers, body: null })
      const body = answer.bytes === undefined ? answer.body : Buffer.from(answer.bytes)
      return HttpClientResponse.fromWeb(request, new Response(body, { status: answer.status, headers: answer.headers }))
    })
  )

export interface Compared extends Effect.Success<ReturnType<typeof run>> {
  readonly secret: string
}

/** Runs a comparison; the clock of the test moves while it waits. */
export const compare = Effect.fnUntraced(function* (
  one: Installation,
  options: Partial<RadarOptions> & {
    readonly token?: never
    readonly secret?: string
    readonly scopes?: ReadonlyArray<string>
    readonly intercept?: Intercept
  } = {}
) {
  const { scopes, intercept, secret: given, ...rest } = options
  const secret = given ?? one.token(scopes === undefined ? {} : { scopes })
  const comparison = Effect.gen(function* () {
    const result = yield* run({
      baseUrl: one.baseUrl,
      catalogue: serviceV2,
      allowHttp: false,
      requestTimeout: Duration.seconds(30),
      retryAfterMax: Duration.minutes(2),
      requestsMax: 300,
      requestsPerMinute: 10_000,
      ...rest,
      token: Redacted.make(secret)
    }).pipe(
      Effect.provideService(HttpClient.HttpClient, clientOf(one, intercept)),
      Effect.provideServiceEffect(Budget.Budget, Budget.makeOwn(null))
    )
    return { ...result, secret } satisfies Compared
  })
  const fiber = yield* Effect.forkChild(comparison)
  while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
  return yield* Fiber.join(fiber)
})

/** The differences, as text that a failed test shows. */
export const shown = ({ differences }: RadarReport): ReadonlyArray<string> =>
  differences.map(({ check, subject, seen }) => `${check} ${subject}: ${seen}`)

/** The names of the switches that were recognised. */
export const variantsOf = ({ differences }: RadarReport): ReadonlyArray<string> => [
  ...new Set(differences.flatMap(({ variant }) => (variant === null ? [] : [`${variant.name}=${variant.value}`])))
]

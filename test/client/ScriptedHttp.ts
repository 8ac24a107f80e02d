/** An HTTP client without a network. Each request gets the next step of a script and is recorded. */
import { Duration, Effect, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import { assert } from "vitest"
import * as Budget from "../../src/budget/Budget.ts"
import { SourceError } from "../../src/connector/SourceError.ts"
import * as ServiceClient from "../../connectors/service-v2/client/ServiceClient.ts"
import { tiny } from "../support/tiny.ts"
import { watchPauses } from "./ServerHttp.ts"

/** A recorded request. */
export interface SentRequest {
  readonly method: string
  /** Path and query, relative to the base address. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** Time of the test clock, in milliseconds. */
  readonly at: number
}

/** The response or failure of one request. */
export type Step = (
  request: HttpClientRequest.HttpClientRequest
) => Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

export const baseUrl = "https://erp.test/install/!/api/v2"
export const token = "canary-9f2b7c"

type Body = ConstructorParameters<typeof Response>[0]

/** Answers with this body. A body that is a value is sent as JSON. */
export const answers =
  (status: number, body: unknown = null, headers: Readonly<Record<string, string>> = {}): Step =>
  (request) => {
    const isRaw =
      body === null || typeof body === "string" || body instanceof ReadableStream || body instanceof Uint8Array
    const sent = (isRaw ? body : JSON.stringify(body)) as Body
    return Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(sent ?? null, { status, headers })))
  }

/** Answers with an error in the form of the API. */
export const refuses = (
  status: number,
  code: string,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {}
): Step => answers(status, { error: { code, message: `about ${code}`, ...more } }, headers)

/** The connection fails before a response. */
export const fails =
  (code: string): Step =>
  (request) => {
    const cause = Object.assign(new Error(`${code} while talking to the test`), { code })
    return Effect.fail(
      new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })
    )
  }

/** No response ever arrives. */
export const hangs: Step = () => Effect.never

/** A body that begins with this text. `pull` produces the rest. */
const begins =
  (
    begin: string,
    pull: (controller: ReadableStreamDefaultController<Uint8Array>) => void | Promise<void>,
    status = 200,
    headers: Readonly<Record<string, string>> = {}
  ): Step =>
  (request) => {
    let begun = false
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        if (begun) return pull(controller)
        begun = true
        controller.enqueue(new TextEncoder().encode(begin))
      }
    })
    return answers(status, body, headers)(request)
  }

/** The connection is reset after the beginning of the body. */
export const resetsInBody = (begin: string, status?: number, headers?: Readonly<Record<string, string>>): Step =>
  begins(
    begin,
    (controller) => controller.error(Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" })),
    status,
    headers
  )

/** No bytes follow the beginning of the body. */
export const hangsInBody = (begin: string, status?: number, headers?: Readonly<Record<string, string>>): Step =>
  begins(begin, () => new Promise(() => {}), status, headers)

/** The body never ends. */
export const neverEnds: Step = begins(" ", (controller) => controller.enqueue(new Uint8Array(300)))

/** A list response in the documented form. */
export const list = (
  items: ReadonlyArray<unknown>,
  meta: Readonly<Record<string, unknown>> = { has_more: false },
  headers: Readonly<Record<string, string>> = {}
): Step => answers(200, { data: items, _meta: meta }, headers)

/** A client whose network follows the script. A request after the last step fails the test. */
export const make = Effect.fnUntraced(function* (
  steps: ReadonlyArray<Step>,
  options: Partial<ServiceClient.ServiceClientOptions> = {}
) {
  const sent: Array<SentRequest> = []
  const pausesMs: Array<number> = []
  const left = [...steps]
  const http = HttpClient.make((request, url) =>
    Effect.clockWith((clock) => {
      sent.push({
        method: request.method,
        path: url.href.startsWith(baseUrl) ? url.href.slice(baseUrl.length) : url.href,
        headers: { ...request.headers },
        body: request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : null,
        at: clock.currentTimeMillisUnsafe()
      })
      const step = left.shift()
      return step === undefined
        ? Effect.die(new Error(`unexpected request: ${request.method} ${url.href}`))
        : step(request)
    })
  )
  const budget = yield* Budget.makeOwn(null, { pauseWaitMax: options.retryAfterMax ?? Duration.minutes(10) })
  const connector = yield* ServiceClient.make({
    baseUrl,
    token: Redacted.make(token),
    catalogue: tiny,
    ...options
  }).pipe(
    Effect.provideService(HttpClient.HttpClient, http),
    Effect.provideService(Budget.Budget, watchPauses(budget, pausesMs))
  )
  return { connector, sent, pausesMs, left }
})

/** The failure of a request. */
export const failureOf = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<SourceError, A, R> =>
  Effect.map(Effect.flip(effect), (error) => {
    assert(error instanceof SourceError)
    return error
  })

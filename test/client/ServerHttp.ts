/** Clients of a reference server in this process, without a network. */
import { Duration, Effect, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import * as ServiceClient from "../../connectors/service-v2/client/ServiceClient.ts"
import type { Core } from "../../connectors/service-v2/reference-server/Core.ts"
import * as Budget from "../../src/budget/Budget.ts"

const basePath = "/!/api/v2"

interface ReceivedRequest {
  readonly method: string
  /** Path and query below the base address. */
  readonly path: string
  readonly key: string | undefined
}

/** The network to a server, and the requests of all clients so far. `before` may answer in the server's place. */
export const networkOf = (served: Core, before: (path: string, method: string) => Effect.Effect<Response | null>) => {
  const requests: Array<ReceivedRequest> = []
  const http = HttpClient.make((request, url) =>
    Effect.gen(function* () {
      const { method, body } = request
      const headers = { ...request.headers }
      const path = (url.pathname + url.search).slice(basePath.length)
      requests.push({ method, path, key: headers["idempotency-key"] })
      const own = yield* before(path, method)
      if (own !== null) return HttpClientResponse.fromWeb(request, own)
      const sent = body._tag === "Uint8Array" ? body.body : null
      const reply = served.handle({ method, url: basePath + path, headers, body: sent })
      const answer = reply.pending === undefined ? reply : yield* Effect.promise(() => reply.pending!)
      const { status, chunks } = answer
      const whole = chunks === undefined ? answer.body : [...chunks].join("")
      const text = answer.wire?.kind === "dropResponse" ? '{"half' : whole
      return HttpClientResponse.fromWeb(
        request,
        new Response(status === 204 ? null : text, { status, headers: answer.headers })
      )
    })
  )
  return { http, requests }
}

/** Adds the length of each pause to the list. */
export const watchPauses = (budget: Budget.BudgetShape, pausesMs: Array<number>) =>
  Budget.Budget.of({
    ...budget,
    pause: (duration, cause, by) =>
      Effect.andThen(
        Effect.sync(() => pausesMs.push(Duration.toMillis(duration))),
        budget.pause(duration, cause, by)
      )
  })

/** A client with a budget without a limit. */
export const clientOf = Effect.fnUntraced(function* (
  http: HttpClient.HttpClient,
  token: string,
  options: Partial<ServiceClient.ServiceClientOptions> = {},
  pausesMs: Array<number> = []
) {
  return yield* ServiceClient.make({
    baseUrl: `http://127.0.0.1${basePath}`,
    token: Redacted.make(token),
    catalogue: serviceV2,
    ...options
  }).pipe(
    Effect.provideService(HttpClient.HttpClient, http),
    Effect.provideService(Budget.Budget, watchPauses(yield* Budget.makeOwn(null), pausesMs))
  )
})

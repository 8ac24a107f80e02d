/**
 * A company on a reference server in process, a receiver that checks signatures, and a real Postgres, for tests of
 * subscriptions and their secrets.
 */
import { assert } from "@effect/vitest"
import { Deferred, Duration, Effect, Layer, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as ServiceClient from "../../../connectors/service-v2/client/ServiceClient.ts"
import * as Signature from "../../../connectors/service-v2/client/Signature.ts"
import type { Outgoing } from "../../../connectors/service-v2/reference-server/events/Network.ts"
import * as Budget from "../../../src/budget/Budget.ts"
import type { SecretKeyring } from "../../../src/subscriptions/SecretCache.ts"
import * as Secrets from "../../../src/subscriptions/SigningSecrets.ts"
import * as SubscriptionStore from "../../../src/subscriptions/SubscriptionStore.ts"
import * as Subscriptions from "../../../src/subscriptions/Subscriptions.ts"
import { server } from "../../reference-server/support.ts"
import { flowing } from "../../support/until.ts"
import { layerWarehouse } from "../../support/postgres.ts"

export const warehouse = layerWarehouse

let companies = 0
let people = 0

/** A fault of a request: lost before it is processed, or processed with its response lost or never sent. */
export type Trouble = "before" | "after" | "never" | undefined

/** A response that replaces the source's own. */
interface Instead {
  readonly status: number
  readonly body: unknown
}

export const refusal = (status: number, code: string, more: Readonly<Record<string, unknown>> = {}): Instead => ({
  status,
  body: { error: { code, message: `about ${code}`, ...more } }
})

interface Options {
  /** Whether the receiver is another process, which reads the secrets only from the database. */
  readonly apart?: boolean
  readonly scopes?: ReadonlyArray<string>
  readonly configured?: ReadonlyArray<Redacted.Redacted>
}

/** A company on its own server, and a receiver that checks the signatures of its deliveries. */
export const stand = Effect.fnUntraced(function* ({ scopes = ["*"], configured = [], apart = false }: Options = {}) {
  const name = `company-${(companies += 1)}`
  const url = `https://hooks.example.com/hooks/${name}`
  const attempts: Array<{ readonly accepted: boolean; readonly signatures: number }> = []
  let keyring: SecretKeyring = { of: () => [], most: () => 0, refresh: Effect.succeed(false) }
  const receive = async ({ url: to, headers, body }: Outgoing) => {
    const signature = headers["Svc-Signature"]
    const isGenuine = () =>
      Signature.verify(
        { signature, body, receivedAt: Number(/^t=(\d+)/.exec(signature ?? "")?.[1]) * 1000 },
        { secrets: keyring.of(name), tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) }
      )._tag === "Genuine"
    let accepted = isGenuine()
    if (!accepted && state.refreshesSecrets && (await Effect.runPromise(keyring.refresh))) accepted = isGenuine()
    if (to !== state.receivesAt || state.isDown)
      return { status: 503, body: new Uint8Array(), durationms: 3, failure: null }
    attempts.push({ accepted, signatures: signature?.match(/v1=/g)?.length ?? 0 })
    return { status: accepted ? 204 : 401, body: new Uint8Array(), durationms: 3, failure: null }
  }
  const running = server({ network: { send: receive } })
  const token = running.token({ scopes })
  running.control("PUT", "/limits", { testCallsPerMinute: 1000, requestsPerMinute: 100_000 })

  const requests: Array<string> = []
  /** Completes when a request meets its fault. */
  const troubled = yield* Deferred.make<void>()
  const state: {
    isDown: boolean
    /** Whether the receiver reads the secrets again if none matches, at most once a second. */
    refreshesSecrets: boolean
    /** The address of the receiver. */
    receivesAt: string
    trouble: (request: string) => Trouble
    /** A response in place of the server's. The server does not get the request. */
    instead: (request: string, body: string) => Instead | undefined
    before: Effect.Effect<void>
  } = {
    isDown: false,
    refreshesSecrets: true,
    receivesAt: url,
    trouble: () => undefined,
    instead: () => undefined,
    before: Effect.void
  }
  const http = HttpClient.make((request, address) =>
    Effect.gen(function* () {
      const at = `${request.method} ${address.pathname.replace("/!/api/v2", "")}`
      requests.push(at)
      const trouble = state.trouble(at)
      if (trouble === "before") yield* Deferred.succeed(troubled, undefined)
      const lost = new HttpClientError.HttpClientError({
        reason: new HttpClientError.TransportError({ request, description: "the connection was cut" })
      })
      if (trouble === "before") return yield* lost
      const body = request.body._tag === "Uint8Array" ? request.body.body : null
      if (request.method !== "GET") yield* state.before
      const instead = state.instead(at, body === null ? "" : Buffer.from(body).toString())
      if (instead !== undefined) {
        return HttpClientResponse.fromWeb(
          request,
          new Response(JSON.stringify(instead.body), { status: instead.status })
        )
      }
      const answer = running.served.handle({
        method: request.method,
        url: address.pathname + address.search,
        headers: request.headers,
        body: body === null ? null : Buffer.from(body)
      })
      const whole = answer.pending === undefined ? answer : yield* Effect.promise(() => answer.pending!)
      if (trouble !== undefined) yield* Deferred.succeed(troubled, undefined)
      if (trouble === "after") return yield* lost
      if (trouble === "never") return yield* Effect.never
      const text = whole.chunks === undefined ? whole.body : [...whole.chunks].join("")
      return HttpClientResponse.fromWeb(request, new Response(text, { status: whole.status, headers: whole.headers }))
    })
  )
  const budget = yield* Layer.build(Budget.Budget.layerUnlimited)
  const connect = Effect.fnUntraced(function* (key: string) {
    return yield* ServiceClient.make({
      baseUrl: "http://127.0.0.1/!/api/v2",
      token: Redacted.make(key),
      catalogue: serviceV2,
      retry: { attemptsMax: 1 }
    }).pipe(Effect.provideService(HttpClient.HttpClient, http), Effect.provide(budget))
  })
  const keys = [{ name, token: Redacted.make(token), configured }]
  const secrets = yield* Effect.map(Secrets.SigningSecrets, (one) => one).pipe(Effect.provide(Secrets.layer(keys)))
  keyring = apart ? yield* Secrets.keyring(keys) : secrets.keyring
  const desired: Subscriptions.DesiredSubscription = { url, events: ["salesmen.created", "salesmen.updated"] }
  const company = { name, connector: yield* connect(token) }
  const rows = Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ id: string; subscription: string; state: string; hours: number | null }>`
      select s.id::text as id, subscription_id as subscription, state,
             round(extract(epoch from accepted_until - tributary.now()) / 3600)::int as hours
        from tributary.webhook_secrets s where company = ${name} order by s.id`
  )
  const call = running.caller(token)
  return {
    name,
    url,
    token,
    desired,
    company,
    secrets,
    attempts,
    requests,
    state,
    troubled,
    call,
    running,
    connect,
    keyring: () => keyring,
    /** Runs an effect with the secrets of this process. */
    act: <A, E, R>(effect: Effect.Effect<A, E, R | Secrets.SigningSecrets>) =>
      Effect.provideService(effect, Secrets.SigningSecrets, secrets),
    ensure: (more: Partial<Subscriptions.DesiredSubscription> = {}) =>
      Effect.provideService(Subscriptions.ensure(company, { ...desired, ...more }), Secrets.SigningSecrets, secrets),
    /** Subscriptions at the source that are not cancelled. */
    listed: () => call("GET", "/webhooks").body["data"] as ReadonlyArray<Record<string, unknown>>,
    /** Fires an event and delivers it. Returns whether each attempt was accepted. */
    deliver: Effect.fnUntraced(function* () {
      const from = attempts.length
      assert.strictEqual(call("POST", "/salesmen", { name: `Ann ${(people += 1)}` }).status, 201)
      const cycle = running.served.control({ method: "POST", url: "/cycle", headers: {}, body: null })
      yield* flowing(Effect.promise(async () => void (await cycle.pending)))
      return attempts.slice(from).map(({ accepted }) => accepted)
    }),
    rows,
    /** The states of the secrets, oldest first; and the hours for which each is accepted. */
    states: Effect.map(rows, (all) => all.map(({ state }) => state)),
    statesFor: Effect.map(rows, (all) => all.map(({ state, hours }) => `${state} ${hours}`)),
    /** The stored snapshot of the subscriptions. */
    seen: SubscriptionStore.read(name, desired.events)
  }
})

/** The kind of an error. */
export const kindOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect), (error): string =>
    error instanceof Subscriptions.SubscriptionError ? error.kind : error._tag
  )

export const did = ({ deeds }: Subscriptions.EnsureReport) => deeds.map((deed) => deed.did)

/**
 * Connectors that exist while they are used: a company without requests has no client, no sockets and no budget.
 *
 * Promise: a connector is made for the first request, serves all requests of its company, and is closed some minutes
 * after the last one. Its counts continue in the next one.
 */
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import type { Resource } from "../catalogue/Resource.ts"
import type { ConnectorShape, ConnectorUsage, PageRequest, SourceDescription, WriteRequest } from "./Connector.ts"
import type { Subscriptions } from "./Subscriptions.ts"

type Connect = Effect.Effect<ConnectorShape, never, Scope.Scope>

/** Longer than the pause between two requests of one run, and between two looks at a delivery log. */
const idleTimeToLive = "10 minutes"

const noUsage: ConnectorUsage = { requests: 0, retries: 0, rateLimited: 0, bytes: 0 }

const sum = (one: ConnectorUsage, other: ConnectorUsage): ConnectorUsage => ({
  requests: one.requests + other.requests,
  retries: one.retries + other.retries,
  rateLimited: one.rateLimited + other.rateLimited,
  bytes: one.bytes + other.bytes
})

type Use = <A, E>(one: OnDemand, request: (connector: ConnectorShape) => Effect.Effect<A, E>) => Effect.Effect<A, E>

/** A class, so that thousands of companies share its functions. */
class OnDemand implements ConnectorShape {
  readonly key: string
  readonly catalogue: ConnectorShape["catalogue"]
  readonly keyScope?: string
  readonly source?: SourceDescription
  readonly connect: Connect
  /** Null while there is none. */
  connected: ConnectorShape | null = null
  /** The counts of earlier connectors. */
  earlier: ConnectorUsage = noUsage
  readonly #use: Use
  readonly #subscriptions: Subscriptions | undefined

  constructor(
    key: string,
    sample: ConnectorShape,
    subscriptions: Subscriptions | undefined,
    connect: Connect,
    use: Use
  ) {
    this.key = key
    this.catalogue = sample.catalogue
    if (sample.keyScope !== undefined) this.keyScope = sample.keyScope
    if (sample.source !== undefined) this.source = sample.source
    this.connect = connect
    this.#use = use
    this.#subscriptions = subscriptions
  }

  get identify() {
    return this.#use(this, ({ identify }) => identify)
  }

  page(request: PageRequest) {
    return this.#use(this, (connector) => connector.page(request))
  }

  rawPage(request: PageRequest) {
    return this.#use(this, (connector) => connector.rawPage(request))
  }

  get(resource: Resource, id: string) {
    return this.#use(this, (connector) => connector.get(resource, id))
  }

  write(request: WriteRequest) {
    return this.#use(this, (connector) => connector.write(request))
  }

  get usage(): Effect.Effect<ConnectorUsage> {
    return this.connected === null
      ? Effect.succeed(this.earlier)
      : Effect.map(this.connected.usage, (usage) => sum(this.earlier, usage))
  }

  // An optional property of the contract: a getter cannot be absent.
  get subscriptions(): Subscriptions {
    const described = this.#subscriptions
    if (described === undefined) return undefined as never
    const use = <A, E>(request: (subscriptions: Subscriptions) => Effect.Effect<A, E>) =>
      this.#use(this, ({ subscriptions }) => request(subscriptions!))
    return {
      ...described,
      list: use(({ list }) => list),
      get: (id) => use((subscriptions) => subscriptions.get(id)),
      create: (given) => use((subscriptions) => subscriptions.create(given)),
      update: (id, change) => use((subscriptions) => subscriptions.update(id, change)),
      cancel: (id) => use((subscriptions) => subscriptions.cancel(id)),
      test: (id) => use((subscriptions) => subscriptions.test(id)),
      deliveries: (request) => use((subscriptions) => subscriptions.deliveries(request))
    }
  }
}

export interface Connectors {
  /** What the effect makes, with a connector that is made again when it is used. Fails where it cannot be made. */
  readonly of: <A extends { readonly connector: ConnectorShape }, E>(
    connect: Effect.Effect<A, E, Scope.Scope>
  ) => Effect.Effect<A & { readonly close: Effect.Effect<void> }, E>
}

/** The connectors of one source, until the end of the scope. */
export const make = Effect.gen(function* () {
  const used = new Map<string, OnDemand>()
  const connectors = yield* RcMap.make({
    lookup: Effect.fnUntraced(function* (key: string) {
      const one = used.get(key)!
      const connector = yield* one.connect
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          one.connected = connector
        }),
        () =>
          Effect.map(connector.usage, (usage) => {
            one.connected = null
            one.earlier = sum(one.earlier, usage)
            used.delete(key)
          })
      )
      return connector
    }),
    idleTimeToLive
  })
  const use: Use = (one, request) =>
    Effect.suspend(() => {
      used.set(one.key, one)
      return RcMap.get(connectors, one.key)
    }).pipe(Effect.flatMap(request), Effect.scoped)
  let made = 0
  /** What is the same for all companies; kept once, because its functions hold the connector that they come from. */
  let subscriptions: Subscriptions | undefined
  return {
    of: (connect) =>
      Effect.map(Effect.scoped(connect), (sample) => {
        subscriptions ??= sample.connector.subscriptions
        const again = Effect.orDie(Effect.map(connect, ({ connector }) => connector))
        const one = new OnDemand(String(made++), sample.connector, subscriptions, again, use)
        return { ...sample, connector: one, close: RcMap.invalidate(connectors, one.key) }
      })
  } satisfies Connectors
})

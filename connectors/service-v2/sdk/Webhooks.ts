/** The webhook subscriptions of a token, as promises over `client/Subscriptions.ts`. */
import type * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { LogPage, Subscription, Subscriptions as Connector } from "../../../src/connector/Subscriptions.ts"
import type { SourceError } from "../../../src/connector/SourceError.ts"
import { serviceV2 } from "../catalogue/index.ts"
import type { ClientContext } from "../client/ClientContext.ts"
import * as Subscriptions from "../client/Subscriptions.ts"
import type { CallOptions, ClientOptions, DeliveryFilters, RecordId, WebhookDelivery, Webhooks } from "./Api.ts"
import { defined } from "./Defined.ts"
import { NotFoundError } from "./Errors.ts"
import type { Session } from "./Session.ts"
import { idText } from "./Writes.ts"

const shown = ({ id, ...subscription }: Subscription) => ({ ...subscription, id: Number(id) })

/** One connector for each context, so that it remembers the secrets that it must hide. */
const connectors = (rotateField: string) => {
  const known = new WeakMap<ClientContext, Connector>()
  return (context: ClientContext): Connector => {
    const { exchange, listing } = context
    const made = known.get(context) ?? Subscriptions.make(exchange, listing, { rotateField, catalogue: serviceV2 })
    known.set(context, made)
    return made
  }
}

const missing = (id: RecordId) => {
  const remedy = "check the id; a token sees only its own subscriptions"
  const message = `GET /webhooks/${id}: not found (404): ${remedy}`
  return new NotFoundError(message, { code: "not_found", status: 404, remedy })
}

/** The client of the subscriptions. */
export const make = (session: Session, { rotateSecretField }: ClientOptions): Webhooks => {
  const connectorOf = connectors(rotateSecretField ?? Subscriptions.rotateFieldDefault)
  const run = <A>(
    use: (connector: Connector) => Effect.Effect<A, SourceError>,
    { signal }: CallOptions = {},
    isWrite = false
  ) => session.run((context) => use(connectorOf(context)), { signal, isWrite })
  const change = <A>(use: (connector: Connector) => Effect.Effect<A, SourceError>, options?: CallOptions) =>
    run(use, options, true)

  async function* deliveries(
    id: RecordId,
    filters: DeliveryFilters = {},
    options: CallOptions = {}
  ): AsyncGenerator<WebhookDelivery, void, undefined> {
    const text = idText(id)
    let token: string | null = null
    do {
      const request = { ...defined(filters), id: text, token }
      const page: LogPage = await run((connector) => connector.deliveries(request), options)
      for (const { resource: _resource, disables: _disables, ...attempt } of page.attempts) yield attempt
      token = page.next
    } while (token !== null)
  }

  return {
    list: async (options) => (await run(({ list }) => list, options)).map(shown),
    get: async (id, options) => {
      const found = await run((connector) => connector.get(idText(id)), options)
      if (found === null) throw missing(id)
      return shown(found)
    },
    create: async ({ description = "", ...given }, options) => {
      const created = await change((connector) => connector.create({ ...defined(given), description }), options)
      return { subscription: shown(created.subscription), secret: Redacted.value(created.secret) }
    },
    update: async (id, changes, options) =>
      shown(await change((one) => one.update(idText(id), defined(changes)), options)),
    rotateSecret: async (id, secret, options) =>
      shown(await change((one) => one.update(idText(id), { secret: Redacted.make(secret) }), options)),
    cancel: async (id, options) => shown(await change((one) => one.cancel(idText(id)), options)),
    test: async (id, options) => {
      const { eventId, responseCode, responseBody, durationMs, delivered } = await change(
        (one) => one.test(idText(id)),
        options
      )
      return { eventId, responseCode, responseBody, durationMs, delivered }
    },
    deliveries
  }
}

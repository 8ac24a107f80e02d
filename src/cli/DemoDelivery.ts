/**
 * The demo's change endpoint: a receiver of another program that gets a change of the warehouse as a signed webhook.
 *
 * Promise: the sender is the one that `tributary serve` runs. The receiver verifies each signature with the library of
 * Standard Webhooks, as any receiver does.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { Webhook } from "standardwebhooks"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { batchMaxDefault, everything, retryHoursDefault } from "../delivery/Endpoint.ts"
import * as EndpointSecrets from "../delivery/EndpointSecrets.ts"
import * as EndpointStore from "../delivery/EndpointStore.ts"
import * as Sender from "../delivery/Sender.ts"
import * as Server from "../http/Server.ts"
import { failed } from "./DemoWebhook.ts"
import type { CommandFailed } from "./Exit.ts"

/** A change as an endpoint received it. */
export interface ReceivedChange {
  /** The header `webhook-id`. */
  readonly messageId: string
  /** `orders.update`. */
  readonly type: string
  readonly position: number
  readonly resource: string
  readonly id: number
  readonly op: string
  readonly changed: ReadonlyArray<string>
}

interface Envelope {
  readonly type: string
  readonly data: Omit<ReceivedChange, "messageId" | "type">
}

const endpoint = "demo"
const deliveryMaxMs = 15_000
const bodyBytesMax = 1_000_000

/** Listens until the scope ends. The first message with a valid signature is the result of `received`. */
const listen = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
  const received = yield* Deferred.make<ReceivedChange>()
  const webhook = new Webhook(Redacted.value(secret))
  const { url } = yield* Server.listen({
    purpose: "receive changes",
    host: "127.0.0.1",
    port: 0,
    tls: null,
    bodyBytesMax,
    handle: (request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        try {
          const { type, data } = webhook.verify(
            Buffer.concat(parts).toString("utf8"),
            request.headers as Record<string, string>
          ) as Envelope
          const { position, resource, id, op, changed } = data
          const messageId = String(request.headers["webhook-id"])
          Deferred.doneUnsafe(received, Effect.succeed({ messageId, type, position, resource, id, op, changed }))
          response.writeHead(204).end()
        } catch {
          response.writeHead(400).end()
        }
      })
    }
  }).pipe(Effect.mapError(({ message }) => failed(message)))
  return { url: `${url}/changes`, received }
})

/** Adds an endpoint, and sends to it until the scope ends. The effect waits for the first change from now on. */
export const begin = Effect.fn("DemoDelivery.begin")(function* (): Effect.fn.Return<
  { readonly url: string; readonly received: Effect.Effect<ReceivedChange, CommandFailed> },
  CommandFailed | DatabaseError,
  SqlClient | Scope.Scope
> {
  const secret = yield* EndpointSecrets.generate
  const { url, received } = yield* listen(secret)
  yield* EndpointStore.apply([
    {
      name: endpoint,
      url,
      ...everything,
      batchMax: batchMaxDefault,
      // The receiver is on this machine.
      allowPrivate: true,
      retryHours: retryHoursDefault,
      secrets: [secret]
    }
  ])
  yield* Effect.addFinalizer(() => Effect.ignore(EndpointStore.remove(endpoint)))
  yield* Effect.forkScoped(
    Sender.run({
      processId: "demo",
      keys: { key: null, file: new Map([[endpoint, [secret]]]) },
      proxies: null,
      routes: new Map()
    })
  )
  const message = `no change arrived at ${url} within ${deliveryMaxMs / 1000} s`
  return {
    url,
    received: Deferred.await(received).pipe(
      Effect.timeoutOrElse({ duration: deliveryMaxMs, orElse: () => Effect.fail(failed(message)) })
    )
  }
})

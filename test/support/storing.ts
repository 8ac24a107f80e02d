/** The inbox writer and the receiver, whose callbacks are the ends of effects. */
import * as Effect from "effect/Effect"
import type { InboxUnavailable, InboxWriter, InsertResult, NewEvent } from "../../src/inbox/InboxWriter.ts"
import type { Answer, IncomingDelivery, Ingest } from "../../src/ingest/Ingest.ts"

/** Offers an event; answers once it is stored or refused. */
export const store = (
  inbox: Pick<InboxWriter, "put">,
  event: NewEvent
): Effect.Effect<InsertResult, InboxUnavailable> =>
  Effect.callback((resume) =>
    inbox.put(event, (outcome) => resume(typeof outcome === "string" ? Effect.succeed(outcome) : Effect.fail(outcome)))
  )

/** The answer to a delivery. */
export const answer = (receiver: Pick<Ingest, "receive">, arrival: IncomingDelivery): Effect.Effect<Answer> =>
  Effect.callback((resume) => receiver.receive(arrival, (one) => resume(Effect.succeed(one))))

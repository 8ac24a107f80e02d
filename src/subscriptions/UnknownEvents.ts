/** Events that the source refuses as unknown: the request is sent again without them. */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import { SubscriptionError } from "./SubscriptionError.ts"

/** Sends the events; returns the subscription and the events that were left out as unknown. */
export const withoutUnknownEvents = Effect.fnUntraced(function* <R>(
  company: string,
  { unknownEvents }: Subscriptions,
  events: ReadonlyArray<string>,
  send: (events: ReadonlyArray<string>) => Effect.Effect<Subscription, SourceError | DatabaseError, R>
): Effect.fn.Return<
  { readonly subscription: Subscription; readonly refused: ReadonlyArray<string> },
  SourceError | DatabaseError | SubscriptionError,
  R
> {
  const refused: Array<string> = []
  while (true) {
    const known = events.filter((event) => !refused.includes(event))
    if (known.length === 0) {
      return yield* new SubscriptionError({
        kind: "events",
        company,
        detail:
          events.length === 0 ? "no event is wanted" : `the source knows none of the events ${refused.join(", ")}`,
        remedy: "name events of the source in webhooks.events of the configuration"
      })
    }
    const result = yield* Effect.result(send(known))
    if (result._tag === "Success") return { subscription: result.success, refused }
    const error = result.failure
    const unknown = error._tag === "SourceError" ? unknownEvents(error, known) : []
    if (unknown.length === 0) return yield* error
    refused.push(...unknown)
  }
})

/** Creation of a subscription together with its stored secret. */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Subscription, Subscriptions } from "../connector/Subscriptions.ts"
import { takeSnapshot, takeSnapshotAfter, webhooksOf, withCompanyLock } from "./ChangeSubscription.ts"
import * as HookUrl from "./HookUrl.ts"
import { SigningSecrets } from "./SigningSecrets.ts"
import {
  commandFor,
  type DesiredSubscription,
  noAddress,
  type SubscribeError,
  type SubscribeNeeds,
  type Subscriber,
  SubscriptionError
} from "./SubscriptionError.ts"
import { withoutUnknownEvents } from "./UnknownEvents.ts"

/** Length of a description at the source. */
const descriptionMax = 100

export const descriptionOf = (company: string): string => `Tributary, company ${company}`.slice(0, descriptionMax)

/** Creates a subscription and stores its secret, uninterruptibly. When the secret cannot be stored, it is cancelled. */
export const createWithSecret = (
  { name }: Subscriber,
  wanted: DesiredSubscription,
  source: Subscriptions,
  request: { readonly url: string; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.Effect<Subscription, SourceError | DatabaseError, SigningSecrets> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const secrets = yield* SigningSecrets
      const { subscription, secret } = yield* restore(source.create(request))
      if (!HookUrl.isOurs(name, wanted.url, request.url)) return subscription
      yield* secrets
        .store(name, subscription.id, secret, "current")
        .pipe(Effect.tapError(() => Effect.ignore(source.cancel(subscription.id))))
      return subscription
    })
  )

const alreadyExists = (company: string, wanted: DesiredSubscription, { id, url, paused }: Subscription) =>
  new SubscriptionError({
    kind: "exists",
    company,
    detail: `subscription ${id} is for ${url} already${paused ? ", and paused" : ""}`,
    remedy: HookUrl.isOurs(company, wanted.url, url)
      ? `${commandFor(company, "ensure")} changes the subscription of this company`
      : paused
        ? `${commandFor(company, `resume ${id}`)} resumes it`
        : `${commandFor(company, `delete ${id}`)} deletes it, if the source offers that`
  })

/** Creates a subscription at the request of a person. There is at most one at an address. */
export const create = Effect.fn("Subscriptions.create")(function* (
  company: Subscriber,
  wanted: DesiredSubscription,
  request: { readonly url: string | null; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.fn.Return<
  {
    readonly subscription: Subscription
    readonly refused: ReadonlyArray<string>
    /** Whether it delivers to us, so that its secret is stored here. */
    readonly ours: boolean
  },
  SubscribeError,
  SubscribeNeeds
> {
  const { name } = company
  const source = yield* webhooksOf(company)
  const { url, description } = request
  if (url === null) return yield* noAddress(name)
  return yield* withCompanyLock(
    name,
    Effect.gen(function* () {
      const { listed } = yield* takeSnapshot(company, source, wanted)
      const existing = listed.find((one) => HookUrl.isSame(one.url, url))
      if (existing !== undefined) return yield* alreadyExists(name, wanted, { ...existing, url })
      const { subscription, refused } = yield* withoutUnknownEvents(name, source, request.events, (events) =>
        createWithSecret(company, wanted, source, { url, events, description })
      )
      const ours = HookUrl.isOurs(name, wanted.url, url)
      yield* takeSnapshotAfter(company, source, wanted, ours ? refused : null)
      return { subscription, refused, ours }
    })
  )
})

/**
 * Rotation of a subscription's signing secret.
 *
 * Promise: no delivery is refused because of a rotation. A secret is stored before the source receives it, and is
 * discarded only when the source cannot sign with it. When the source's answer is lost, both secrets stay accepted. Every
 * step may be repeated, and a process may stop anywhere.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { SourceError } from "../connector/SourceError.ts"
import { type Subscription, type Subscriptions, testErrorOf } from "../connector/Subscriptions.ts"
import { isOurs, type SecretAction } from "./DesiredState.ts"
import { changeOne, did, joined, type Managed, nothing, type StepResult, warned } from "./ManagedSubscriptions.ts"
import { acceptedHoursOf } from "./SecretRows.ts"
import { type StoredSecrets, SigningSecrets } from "./SigningSecrets.ts"
import { commandFor, type DesiredSubscription, type Subscriber, SubscriptionError } from "./SubscriptionError.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"

/** Whether the source rejected the request for good. */
export const isFinal = ({ reason: { _tag } }: SourceError): boolean =>
  _tag === "Refused" || _tag === "NotFound" || _tag === "NotImplemented"

/** Whether the source certainly did not apply the request: it received it once, and rejected it. */
const isUndone = (error: SourceError): boolean =>
  isFinal(error) || (error.reason._tag === "Forbidden" && (error.request.attempts ?? 1) <= 1)

type StoredSecret = NonNullable<StoredSecrets["next"]>

/**
 * Sends a stored secret to the source and makes it the current one. The secrets before it stay accepted for some hours,
 * since the source signs with both for a while.
 */
const sendSecret = Effect.fnUntraced(function* (
  { name, source }: Managed,
  subscriptionId: string,
  { id, secret }: StoredSecret
): Effect.fn.Return<void, SourceError | DatabaseError, SigningSecrets> {
  yield* source.update(subscriptionId, { secret })
  yield* (yield* SigningSecrets).promote(name, subscriptionId, id, source.secretOverlap)
})

/** Names the setting that helps when the source does not know the field. */
const rotationProblem =
  (company: string) =>
  <E>(error: E): E | SubscriptionError =>
    error instanceof SourceError && error.reason._tag === "Refused" && error.reason.kind === "unknownField"
      ? new SubscriptionError({
          kind: "field",
          company,
          detail: `its secret is unchanged: ${error.message}`,
          remedy: "set webhooks.rotate_field in the configuration to the field in which the source accepts a new secret"
        })
      : error

/**
 * Rotates to the requested secret, or to a new one. The secret of an interrupted rotation is sent first: the source may
 * sign with it already, and repeated failures leave one secret, not many.
 */
const rotateTo = Effect.fnUntraced(
  function* (
    subscriptions: Managed,
    subscriptionId: string,
    requested: Redacted.Redacted | null
  ): Effect.fn.Return<void, SourceError | DatabaseError | SubscriptionError, SigningSecrets> {
    const { name } = subscriptions
    const secrets = yield* SigningSecrets
    const interrupted = (yield* secrets.stored(name)).get(subscriptionId)?.next ?? null
    if (
      interrupted !== null &&
      (requested === null || Redacted.value(requested) === Redacted.value(interrupted.secret))
    ) {
      const sent = yield* Effect.result(sendSecret(subscriptions, subscriptionId, interrupted))
      if (sent._tag === "Success") return
      // It stays accepted: the source may have accepted it at an earlier attempt.
      if (requested !== null || sent.failure._tag !== "SourceError" || !isFinal(sent.failure))
        return yield* sent.failure
    }
    const secret = requested ?? (yield* secrets.draw)
    const id = yield* secrets.store(name, subscriptionId, secret, "next")
    yield* sendSecret(subscriptions, subscriptionId, { id, secret }).pipe(
      Effect.tapErrorTag("SourceError", (error) =>
        isUndone(error) ? Effect.ignore(secrets.discard(name, id)) : Effect.void
      )
    )
  },
  (effect, { name }) => Effect.mapError(effect, rotationProblem(name))
)

/**
 * Rotates to the requested secret, or to a new one. A subscription that delivers to another receiver needs a requested
 * secret, which is not stored here.
 */
export const rotate = (
  company: Subscriber,
  desired: DesiredSubscription,
  id: string | null,
  requested: Redacted.Redacted | null = null
) =>
  changeOne(
    company,
    desired,
    id,
    Effect.fnUntraced(function* (subscriptions, subscription) {
      const { name, source } = subscriptions
      const ours = isOurs(name, desired.url, subscription.url)
      if (ours) yield* rotateTo(subscriptions, subscription.id, requested)
      else if (requested !== null) {
        yield* Effect.mapError(source.update(subscription.id, { secret: requested }), rotationProblem(name))
      } else {
        return yield* new SubscriptionError({
          kind: "foreign",
          company: name,
          detail: `subscription ${subscription.id} delivers to ${subscription.url}, whose receiver would not know a new secret`,
          remedy: `give the source and the receiver the same secret: ${commandFor(name, `rotate ${subscription.id}`)} --secret-env NAME`
        })
      }
      // How long the earlier secret is accepted; null when it delivers to another receiver.
      return { subscription, acceptedHours: ours ? acceptedHoursOf(source.secretOverlap) : null }
    })
  ).pipe(Effect.withSpan("Subscriptions.rotate"))

// ------------------------------------------------------------------------------------------------- the desired state

/**
 * Whether the last delivery was answered 401, the answer to a signature that fits no secret. Only the log shows which
 * secret the source signs with: a restored warehouse has an older one.
 */
export const isLastUnauthorized = (source: Subscriptions, { id, failCount }: Subscription): Effect.Effect<boolean> =>
  failCount === 0
    ? Effect.succeed(false)
    : source.deliveries({ id, token: null }).pipe(
        Effect.map(({ attempts: [last] }) => last !== undefined && !last.delivered && last.responseCode === 401),
        Effect.orElseSucceed(() => false)
      )

/** Tests that the source signs with a new secret. The test is an entry in the log, which the next check reads. */
const testSecret = Effect.fnUntraced(function* ({ name, source }: Managed, subscription: Subscription) {
  const { id } = subscription
  const tested = yield* Effect.result(source.test(id))
  if (tested._tag === "Failure") return nothing
  yield* SubscriptionStore.recordTest(name, subscription, testErrorOf(tested.success))
  if (tested.success.responseCode !== 401) return nothing
  return warned(
    `a test delivery of subscription ${id} is still answered 401: check the clocks with tributary doctor; ` +
      "if they are right, set webhooks.rotate_field to the field in which the source accepts a new secret"
  )
})

/**
 * Makes the source sign with a stored secret. When the source refuses the secret of an interrupted rotation, it is kept:
 * the source may have accepted it at the first attempt.
 */
export const applySecretAction = Effect.fnUntraced(function* (
  subscriptions: Managed,
  action: SecretAction
): Effect.fn.Return<StepResult, SourceError | DatabaseError | SubscriptionError, SigningSecrets | SqlClient.SqlClient> {
  if (action._tag === "Warn") return warned(action.warning)
  const { name } = subscriptions
  const { subscription } = action
  const { id } = subscription
  if (action._tag === "Rotate") {
    yield* rotateTo(subscriptions, id, null)
    const tested = action.isTested ? yield* testSecret(subscriptions, subscription) : nothing
    return joined([did("rotated", id, action.reason), tested])
  }
  const sent = yield* Effect.result(sendSecret(subscriptions, id, action.secret))
  if (sent._tag === "Success") return did("rotated", id, "an interrupted rotation has been finished")
  if (sent.failure._tag !== "SourceError" || !isFinal(sent.failure)) return yield* sent.failure
  const { message } = rotationProblem(name)(sent.failure)
  const refused =
    `a rotation of subscription ${id} was interrupted, and is refused now: ${message}; both secrets stay accepted, ` +
    `and ${commandFor(name, `rotate ${id}`)} makes another`
  const others = yield* Effect.forEach(action.otherwise, (other) => applySecretAction(subscriptions, other))
  return joined([warned(refused), ...others])
})

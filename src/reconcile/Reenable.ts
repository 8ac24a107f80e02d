/**
 * The re-enabling of a disabled subscription, after a test delivery that arrived.
 *
 * Promise: a subscription is enabled only if a test delivery to it is in the inbox. Failed attempts follow each other in
 * growing pauses. A process that started since the last attempt is a reason for the next one.
 */
import { readInstant } from "../postgres/Now.ts"
import * as Effect from "effect/Effect"
import {
  describeAnswer,
  type SubscriptionChange,
  type Subscriptions,
  type TestResult
} from "../connector/Subscriptions.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import * as SubscriptionStore from "../subscriptions/SubscriptionStore.ts"
import { backoff } from "./DeliveryGaps.ts"

/** Maximum characters of a receiver's answer that are shown. */
const shownMax = 200

export const isDueStatement = Statement.make({
  name: "find out whether a subscription is to be enabled",
  params: ["text", "text"],
  columns: { isDue: "bool" },
  text: `select s.reenable_next_attempt_at is null or s.reenable_next_attempt_at <= tributary.now() or exists (
                  select 1 from tributary.processes p
                   where $1 = any(p.companies) and p.stopped_at is null and p.started_at > s.reenable_last_attempt_at) as "isDue"
           from tributary.subscriptions s where s.company = $1 and s.subscription_id = $2`
})

/** Whether the next attempt is due. */
export const isDue = (company: string, subscriptionId: string): Sql.Query<boolean> =>
  Effect.map(Statement.run(isDueStatement, [company, subscriptionId]), ([row]) => row?.isDue === true)

/** Stores why the subscription stays disabled and its gap open, and the pause until the next attempt. */
export const recordFailure = Statement.make({
  name: "store why a subscription stays disabled",
  params: ["text", "text", "text"],
  text: `with tried as (
           update tributary.subscriptions
              set reenable_attempts = reenable_attempts + 1, reenable_last_attempt_at = tributary.now(),
                  reenable_next_attempt_at = tributary.now() + ${backoff(5, "reenable_attempts")}
            where company = $1 and subscription_id = $2
           returning reenable_attempts, reenable_last_attempt_at, reenable_next_attempt_at)
         update tributary.delivery_gaps
            set last_error = $3, attempts = tried.reenable_attempts, last_attempt_at = tried.reenable_last_attempt_at,
                next_attempt_at = tried.reenable_next_attempt_at
           from tried
          where company = $1 and subscription_id = $2 and cause = 'subscription_inactive' and closed_at is null and ended_at is null`
})

/** Whether the event is in the inbox; if its id is unknown, any event since then. */
const isReceived = (company: string, event_id: string | null, since: string) => {
  const events = control.selectFrom("tributary.inbox").select("event_id").where("company", "=", company).limit(1)
  return Query.hasRows(
    event_id === null ? events.where("received_at", ">=", Query.at(since)) : events.where("event_id", "=", event_id)
  )
}

const describeTest = (result: TestResult): string => {
  const { responseCode, responseBody, isSilent } = result
  if (isSilent)
    return "a test delivery got no answer: check that a receiver is running and that the address leads to it"
  const body = responseBody === null || responseBody === "" ? "" : `: ${responseBody.slice(0, shownMax)}`
  if (responseCode === null) return `a test delivery was not acknowledged: ${describeAnswer(result)}`
  const remedy =
    responseCode === 401 ? "; if the secret does not fit, tributary webhooks ensure creates another one" : ""
  return `a test delivery was answered ${responseCode}${body}${remedy}`
}

/** Tests a disabled subscription and enables it by this change. Returns why it stays disabled; null when it was enabled. */
export const reenable = Effect.fnUntraced(function* (
  company: string,
  subscriptions: Subscriptions,
  id: string,
  change: SubscriptionChange
) {
  const since = yield* readInstant
  const tested = yield* Effect.result(subscriptions.test(id))
  if (tested._tag === "Failure") return `it cannot be tested: ${tested.failure.message}; ${tested.failure.remedy}`
  const { eventId, delivered } = tested.success
  const record = (error: string | null) => SubscriptionStore.recordTest(company, { id, lastDeliveryAt: null }, error)
  // The stored event is the proof, however the source describes the answer.
  const isStored = (eventId !== null || delivered) && (yield* isReceived(company, eventId, since))
  if (!isStored) {
    const error = delivered
      ? "a test delivery was acknowledged, but did not arrive here: its address leads to another receiver"
      : describeTest(tested.success)
    yield* record(error)
    return error
  }
  yield* record(null)
  const updated = yield* Effect.result(subscriptions.update(id, change))
  return updated._tag === "Success"
    ? null
    : `it cannot be enabled: ${updated.failure.message}; ${updated.failure.remedy}`
})

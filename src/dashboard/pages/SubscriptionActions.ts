/**
 * The delivery log of a subscription, and the actions pause, resume and test.
 *
 * Promise: requests are sent to the source only when a person opens the log or confirms an action.
 */
import * as Effect from "effect/Effect"
import type { SourceError } from "../../connector/SourceError.ts"
import { describeAnswer, type Attempt } from "../../connector/Subscriptions.ts"
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import * as Subscriptions from "../../subscriptions/Subscriptions.ts"
import { type Action, routesOf } from "../Action.ts"
import { companyNamed, ofPath, withPagePriority, sourceTimeout } from "../Params.ts"
import {
  html,
  type Html,
  page,
  PageError,
  pageRoute,
  type PageRequest,
  type Route,
  type ShownCompany
} from "../Page.ts"
import { badge, count, duration, table } from "../../web/Components.ts"
import { truncated, visible } from "../../web/Escape.ts"
import { exactInstant } from "../../web/Times.ts"
import { eventAddress } from "../Addresses.ts"

/** Events of the delivery log. */
const logShown = 50
/** Characters of an answer in a table. */
const answerMax = 240
const subscriptionIdMax = 255
const back = "/webhooks"

// -------------------------------------------------------------------------------------------------- the delivery log

const hasAnswers = (attempts: ReadonlyArray<Attempt>): boolean =>
  attempts.some(({ responseBody }) => responseBody !== "")

const logTable = (company: string, attempts: ReadonlyArray<Attempt>): Html =>
  attempts.length === 0
    ? html`<p>There is no delivery in the source’s log.</p>`
    : table(
        `The last ${attempts.length} events in the source’s log, newest first; times by its clock`,
        `Event, Outcome, #Attempts, #Status, #Took, At${hasAnswers(attempts) ? ", Answer" : ""}`,
        attempts.map((one) => [
          html`<a href="${eventAddress(company, one.eventId)}"
            >${visible(one.eventType)} <span class="detail">${visible(one.eventId)}</span></a
          >`,
          one.delivered
            ? badge("good", "delivered")
            : one.abandoned
              ? badge("bad", "abandoned")
              : badge("warn", "failed"),
          count(one.attempts),
          one.responseCode === null ? "none" : String(one.responseCode),
          one.durationMs === null ? "" : duration(one.durationMs),
          exactInstant(one.at),
          ...(hasAnswers(attempts) ? [truncated(one.responseBody, answerMax)] : [])
        ])
      )

const problemOf = (error: Subscriptions.SubscriptionError | SourceError): string =>
  `${visible(error.message)}. What to do: ${visible(error.remedy)}.`

const timedOut =
  "The source has not answered within 10 seconds. Reload the page in a moment, or repeat the action, which is safe."

/** The company, and the subscription that the configuration wants for it. */
const subscriberOf = (request: PageRequest, name: string | null) =>
  Effect.map(companyNamed(request, name), (company) => ({
    company,
    wanted: { url: company.receivesAt, events: company.events } satisfies Subscriptions.DesiredSubscription
  }))

type SourceAnswer<A> = { readonly answer: A } | { readonly problem: string }

/** Sends requests to the source; answers a sentence where they fail or take too long. */
const askSource = <A, R>(work: Effect.Effect<A, Subscriptions.SubscribeError, R>) =>
  withPagePriority(work).pipe(
    Effect.map((answer): SourceAnswer<A> => ({ answer })),
    Effect.catchTags({
      SubscriptionError: (error) => Effect.succeed<SourceAnswer<A>>({ problem: problemOf(error) }),
      SourceError: (error) => Effect.succeed<SourceAnswer<A>>({ problem: problemOf(error) })
    }),
    Effect.timeoutOrElse({
      duration: sourceTimeout,
      orElse: () => Effect.succeed<SourceAnswer<A>>({ problem: timedOut })
    })
  )

export interface Model {
  readonly company: string
  readonly subscription: string
  readonly log: SourceAnswer<{ readonly attempts: ReadonlyArray<Attempt> }>
}

const load = Effect.fn("page.deliveries")(function* (request: PageRequest) {
  const { company, wanted } = yield* subscriberOf(request, ofPath(request, "company"))
  const subscription = ofPath(request, "subscription")
  const log = yield* askSource(Subscriptions.deliveries(company, wanted, subscription, { limit: logShown }))
  return { company: company.name, subscription, log } satisfies Model
})

export const view = ({ company, subscription, log }: Model) =>
  page({
    title: "Delivery log",
    section: "webhooks",
    // Every view costs requests.
    isLive: false,
    body: html`<h1>Delivery log of subscription ${visible(subscription)}, company ${visible(company)}</h1>
      <p>
        The log as the source has it now; each view of this page costs requests. Each event is shown with its last
        attempt.
      </p>
      ${"answer" in log ? logTable(company, log.answer.attempts) : html`<p class="problem" role="alert">${log.problem}</p>`}`
  })

// ------------------------------------------------------------------------------------------------------------- actions

interface Target {
  readonly company: ShownCompany
  readonly wanted: Subscriptions.DesiredSubscription
  readonly id: string
}

interface SubscriptionAction extends Pick<Action<Target>, "name" | "heading" | "consequences" | "button"> {
  /** Performs the action at the source, and answers a sentence about the result. */
  readonly change: (target: Target) => Effect.Effect<string, Subscriptions.SubscribeError, Subscriptions.ChangeNeeds>
}

const subscriptionActions: ReadonlyArray<SubscriptionAction> = [
  {
    name: "subscription-pause",
    heading: ({ id, company }) => `Pause subscription ${visible(id)} of company ${visible(company.name)}?`,
    consequences: () => [
      "The source delivers nothing to it until it is resumed, and drops the events that fire meanwhile.",
      "Nothing is lost: syncing by schedule continues, and the resources are read again once it is resumed."
    ],
    button: "Pause",
    change: ({ company, wanted, id }) =>
      Effect.as(Subscriptions.pause(company, wanted, id), `Subscription ${visible(id)} is paused.`)
  },
  {
    name: "subscription-resume",
    heading: ({ id, company }) => `Resume subscription ${visible(id)} of company ${visible(company.name)}?`,
    consequences: () => [
      "The source delivers to it again, whether it was paused or disabled by the source.",
      "It is resumed even if deliveries do not arrive. If you are not sure that they do, send a test first.",
      "Events that fired meanwhile were dropped, so that the resources are read again."
    ],
    button: "Resume",
    change: ({ company, wanted, id }) =>
      Effect.map(
        Subscriptions.resume(company, wanted, id),
        (one) => `Subscription ${visible(id)} is ${SubscriptionStore.stateOf(one)}.`
      )
  },
  {
    name: "subscription-test",
    heading: ({ id, company }) =>
      `Send a test delivery through subscription ${visible(id)} of company ${visible(company.name)}?`,
    consequences: () => [
      "The source sends a test event to the subscription’s address now, and reports the result.",
      "The test event names no record, so that no row changes."
    ],
    button: "Send a test",
    change: ({ company, wanted, id }) =>
      Effect.map(Subscriptions.test(company, wanted, id), ({ result }) => {
        const took = result.durationMs === null ? "" : ` after ${duration(result.durationMs)}`
        return `The test event was ${result.delivered ? "delivered" : "not delivered"}: ${visible(describeAnswer(result))}${took}.`
      })
  }
]

const targetOf: Action<Target>["target"] = Effect.fnUntraced(function* (request, field) {
  const { company, wanted } = yield* subscriberOf(request, field("company"))
  const id = field("subscription")
  if (id === null || id.length > subscriptionIdMax) {
    return yield* new PageError({ status: 400, message: "No subscription was named." })
  }
  return { company, wanted, id }
})

export const routes: ReadonlyArray<Route> = [
  pageRoute({ path: "/webhooks/:company/:subscription/deliveries", asksSource: true, load, view }),
  ...subscriptionActions.flatMap(({ change, ...action }) =>
    routesOf({
      ...action,
      section: "webhooks",
      target: targetOf,
      fields: ({ company, id }) => ({ company: company.name, subscription: id }),
      title: action.button,
      back: () => back,
      act: (target) =>
        Effect.map(askSource(change(target)), (result) => ("answer" in result ? result.answer : result.problem))
    })
  )
]

/**
 * The output of `tributary webhooks` for people.
 *
 * Promise: no line holds a signing secret. Texts of the source or of a receiver are escaped.
 */
import { type Attempt, describeAnswer, type Subscription, type TestResult } from "../../connector/Subscriptions.ts"
import type * as Subscriptions from "../../subscriptions/Subscriptions.ts"
import * as Output from "../Output.ts"
import type { CommandLine } from "./CompanyResults.ts"

const { shown } = Output

const instantText = (instant: string | null): string =>
  instant === null ? "never" : shown(instant).replace("T", " ").replace(/\.\d+/, "")

export const subscriptionLine = ({ id, url, events }: Subscription): string =>
  `subscription ${shown(id)} delivers ${events.map(shown).join(", ")} to ${shown(url)}`

export const secretLines = ({ id }: Subscription, isOurs: boolean, commandLine: CommandLine): ReadonlyArray<string> => [
  ...(isOurs
    ? [
        "  Its signing secret is stored in the warehouse, encrypted, and never shown: tributary serve accepts its deliveries.",
        "  To use a secret of your own instead, put 16 to 255 characters into an environment variable:"
      ]
    : [
        "  Its signing secret is neither shown nor stored, since it does not deliver to tributary serve.",
        "  To set the secret that its receiver knows, put 16 to 255 characters into an environment variable:"
      ]),
  `    ${commandLine(`rotate ${shown(id)} --secret-env NAME`)}`
]

const secretStates: Readonly<Record<Subscriptions.Listing["secret"], string>> = {
  stored: "stored",
  configured: "configured",
  unreadable: "of another token",
  none: "unknown"
}

const remarks = (
  { subscription, state, delivery, isAtOurAddress, ours, missingEvents, secret, lastTest }: Subscriptions.Listing,
  commandLine: CommandLine
): ReadonlyArray<string> => {
  const { id, events, disabledAt } = subscription
  const ensure = commandLine("ensure")
  const resume = commandLine(`resume ${shown(id)}`)
  return [
    `  ${shown(id)} delivers ${events.map(shown).join(", ")}`,
    ...(missingEvents.length === 0 ? [] : [`    it lacks ${missingEvents.map(shown).join(", ")}: ${ensure}`]),
    ...(disabledAt === null
      ? []
      : [`    the source disabled it at ${instantText(disabledAt)}: ${ours ? ensure : resume}`]),
    ...(state === "paused" ? [`    events are dropped while it is paused: ${resume}`] : []),
    ...(delivery === "unproven"
      ? [`    nothing was delivered yet; to prove that deliveries arrive: ${commandLine(`test ${shown(id)}`)}`]
      : []),
    ...(lastTest.testedAt === null
      ? []
      : [
          `    the last test ${lastTest.testError === null ? "succeeded" : "failed"} at ${instantText(lastTest.testedAt)}` +
            (lastTest.testError === null ? "" : `: ${shown(lastTest.testError)}`) +
            (delivery === "test_failed" ? `; when that is repaired: ${commandLine(`test ${shown(id)}`)}` : "")
        ]),
    ...(delivery === "failing" ? [`    its last deliveries failed: ${commandLine("deliveries")}`] : []),
    ...(isAtOurAddress && (secret === "none" || secret === "unreadable")
      ? [
          `    this warehouse does not know its secret: it may be that of another warehouse; if its deliveries arrive here, they are refused: ${ensure}`
        ]
      : [])
  ]
}

export const listLines = (
  listings: ReadonlyArray<Subscriptions.Listing>,
  commandLine: CommandLine
): ReadonlyArray<string> => {
  if (listings.length === 0) return [`There is no subscription. Create one with: ${commandLine("ensure")}`]
  return [
    Output.table(
      ["id", "state", "ours", "secret", "failures", "last delivery", "healthy until", "address"],
      listings.map(({ subscription, delivery, ours, secret, healthyAt }) => [
        shown(subscription.id),
        delivery.replaceAll("_", " "),
        ours ? "yes" : "no",
        secretStates[secret],
        subscription.failCount === null ? "" : Output.count(subscription.failCount),
        instantText(subscription.lastDeliveryAt),
        ours ? instantText(healthyAt) : "",
        shown(subscription.url)
      ]),
      ["right", "left", "left", "left", "right"]
    ),
    "",
    ...listings.flatMap((listing) => remarks(listing, commandLine))
  ]
}

export const ensureLines = ({ subscription, deeds }: Subscriptions.EnsureReport): ReadonlyArray<string> => [
  ...deeds.map(({ did, id, detail }) => `subscription ${shown(id)} ${did}: ${shown(detail)}`),
  ...(deeds.length === 0 ? ["nothing to do"] : []),
  subscriptionLine(subscription)
]

const answerCharactersMax = 60

export const logLines = (attempts: ReadonlyArray<Attempt>): ReadonlyArray<string> =>
  attempts.length === 0
    ? ["There is no such delivery in the source's log."]
    : [
        Output.table(
          ["event", "type", "attempts", "outcome", "status", "ms", "at", "answer"],
          attempts.map((one) => [
            shown(one.eventId),
            shown(one.eventType),
            String(one.attempts),
            one.delivered ? "delivered" : one.abandoned ? "abandoned" : "failed",
            one.responseCode === null ? "none" : String(one.responseCode),
            one.durationMs === null ? "" : Output.count(one.durationMs),
            instantText(one.at),
            shown(one.responseBody).slice(0, answerCharactersMax)
          ]),
          ["left", "left", "right", "left", "right", "right"]
        )
      ]

const answerBytesMax = 500

export const testLines = ({ id, url }: Subscription, result: TestResult): ReadonlyArray<string> => {
  const { delivered, durationMs, responseBody, eventId } = result
  return [
    `subscription ${shown(id)}, ${shown(url)}: ${delivered ? "delivered" : "not delivered"}, ` +
      shown(describeAnswer(result)) +
      (durationMs === null ? "" : ` after ${Output.duration(durationMs)}`) +
      (eventId === null ? "" : `, event ${shown(eventId)}`),
    ...(responseBody === null || responseBody === ""
      ? []
      : [`  ${shown(Buffer.from(responseBody).subarray(0, answerBytesMax).toString("utf8"))}`])
  ]
}

/** A subscription that the source has disabled is enabled again only when deliveries arrive. */
import { type CheckerOf } from "./Checker.ts"

export const proven: CheckerOf = () => {
  /** When the latest test delivery fired that arrived, by company; the inbox may have forgotten it since. */
  const tested = new Map<number, number>()
  return {
    name: "proven",
    holds: "no process revives a disabled subscription before a test delivery has arrived since it was disabled",
    stored: ({ entries }) => {
      for (const { company, type, occurredAt } of entries) {
        if (type !== "webhooks.test" || occurredAt === null) continue
        tested.set(company, Math.max(tested.get(company) ?? 0, occurredAt))
      }
      return null
    },
    revived: ({ company, disabledAt }) =>
      (tested.get(company) ?? 0) >= disabledAt
        ? null
        : `the subscription of company ${company} is revived, and no test delivery has arrived since it was disabled`
  }
}

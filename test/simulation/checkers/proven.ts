/** A subscription that the source has disabled is enabled again only after a test delivery has arrived. */
import { type CheckerOf } from "./Checker.ts"

export const proven: CheckerOf = () => {
  /** The time when the latest test delivery that arrived was fired, by company. The inbox may have removed it since. */
  const tested = new Map<number, number>()
  return {
    name: "proven",
    holds: "no process enables a disabled subscription before a test delivery has arrived since it was disabled",
    stored: ({ entries }) => {
      for (const { company, type, occurredAt } of entries) {
        if (type !== "webhooks.test" || occurredAt === null) continue
        tested.set(company, Math.max(tested.get(company) ?? 0, occurredAt))
      }
      return null
    },
    reenabled: ({ company, disabledAt }) =>
      (tested.get(company) ?? 0) >= disabledAt
        ? null
        : `the subscription of company ${company} is enabled again, and no test delivery has arrived since it was disabled`
  }
}

/** After healing, webhooks have delivered every announced change, and no gap is open. */
import { type CheckerOf, keyOf } from "./Checker.ts"
import { differences } from "./equal.ts"

export const drained: CheckerOf = (setting) => ({
  name: "drained",
  holds:
    "I7, I12 of webhooks: after healing nothing is pending, only records that can never be read are dead letters, no gap is open, every subscription delivers; and where webhooks are alone, the warehouse is equal",
  drained: (moment) => {
    const { entries, gaps, subscriptions, alone, poison, excused } = moment
    for (const { eventId, type, company, resource, recordId, state, reason } of entries) {
      const what = `${eventId} (${type} of ${company}/${resource}/${recordId})`
      if (state === "pending") return `${what} still waits: ${reason}`
      if (state !== "dead_letter") continue
      if (resource !== null && recordId !== null && poison.has(keyOf(company, resource, recordId))) continue
      return `${what} is a dead letter, and can be read: ${reason}`
    }
    if (gaps.length > 0) return `a gap is open: ${gaps[0]}`
    const { companies } = setting.plan
    for (let company = 1; company <= companies; company++) {
      const own = subscriptions.filter(({ url, cancelled }) => !cancelled && url.endsWith(`/company-${company}`))
      if (own.length !== 1) return `company ${company} has ${own.length} subscriptions`
      if (own[0]!.paused) return `the subscription of company ${company} is left paused`
      if (own[0]!.disabled !== null) return `the subscription of company ${company} is left disabled`
    }
    if (!alone) return null
    for (const [key, what] of differences(setting, moment)) {
      if (excused.has(key) || poison.has(key)) continue
      return `${key} ${what} (by webhooks alone)`
    }
    return null
  }
})

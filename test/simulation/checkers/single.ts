/** There is at most one subscription for each company. */
import { type CheckerOf } from "./Checker.ts"

export const single: CheckerOf = () => ({
  name: "single",
  holds: "no second subscription is created while the warehouse knows an existing one, whatever a list shows",
  doubled: ({ company, by }) => `${by} creates a second subscription for company ${company}`
})

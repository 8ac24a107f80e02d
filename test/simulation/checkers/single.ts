/** There is one subscription for each company. */
import { type CheckerOf } from "./Checker.ts"

export const single: CheckerOf = () => ({
  name: "single",
  holds: "no second subscription is made while the warehouse knows of one that stands, whatever a list shows",
  doubled: ({ company, by }) => `${by} makes a second subscription for company ${company}`
})

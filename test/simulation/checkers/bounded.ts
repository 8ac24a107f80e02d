/** I15: no sessions, transactions or working rows are left behind. */
import { type CheckerOf } from "./Checker.ts"

export const bounded: CheckerOf = () => ({
  name: "bounded",
  holds: "I15: after healing no session is in use or in a transaction, and the working tables are empty",
  healed: ({ leftovers }) => {
    for (const [what, count] of Object.entries(leftovers)) if (count !== 0) return `${count} ${what} are left`
    return null
  }
})

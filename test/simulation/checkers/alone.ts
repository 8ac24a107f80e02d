/** What one request met never changes the state of another resource. */
import { type CheckerOf } from "./Checker.ts"

/** Failures of one request whose cause may be the token or the address. */
const suspicions = new Set(["Unauthorized", "Forbidden", "Redirected"])
/** Answers to `/me` that refuse the identity. */
const refusals = new Set([302, 401, 403])

export const alone: CheckerOf = () => ({
  name: "alone",
  holds:
    "a resource whose request is refused or redirected fails alone: unless the source refuses the identity to that process, no other resource fails with it or is skipped",
  reported: ({ results, attempts }) => {
    for (const { resource, company, status, failure } of results) {
      if (failure === null) continue
      const isRefused = attempts.some(
        (attempt) => attempt.company === company && attempt.path === "/me" && refusals.has(attempt.status ?? 0)
      )
      if (isRefused) continue
      if (failure.stops === "company" && suspicions.has(failure.kind))
        return `${company}/${resource} is ${status}, and the company stopped, although the source accepted the identity: ${failure.message}`
      const met = /^[A-Z]+ \/([a-z0-9]+)/.exec(failure.message)?.[1]
      if (suspicions.has(failure.kind) && met !== resource)
        return `${company}/${resource} is ${status} by what another request met: ${failure.message}`
    }
    return null
  }
})

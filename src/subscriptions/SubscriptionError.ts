/** Types that all operations on a company's subscriptions share, and the reasons why one is not possible. */
import * as Data from "effect/Data"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SourceError } from "../connector/SourceError.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Company } from "../sync/Company.ts"
import type { SigningSecrets } from "./SigningSecrets.ts"

/** The company that owns the subscriptions. */
export type Subscriber = Pick<Company, "name" | "connector">

/** The subscription that the configuration wants for a company. */
export interface DesiredSubscription {
  /** The address that receives deliveries; null when the configuration has no public address. */
  readonly url: string | null
  readonly events: ReadonlyArray<string>
}

export type ProblemKind =
  /** The source has no webhooks. */
  | "unsupported"
  /** There is no such subscription, or none of ours. */
  | "unknown"
  /** Several subscriptions fit. */
  | "ambiguous"
  /** It delivers to another receiver, which needs the new secret too. */
  | "foreign"
  /** There is one at this address already. */
  | "exists"
  /** The source knows none of the events. */
  | "events"
  /** The configuration has no public address. */
  | "address"
  /** The source accepts a new secret in another field. */
  | "field"
  /** Another process changes the company's subscriptions. */
  | "busy"

/** An operation that changed nothing, with what a person can do. */
export class SubscriptionError extends Data.TaggedError("SubscriptionError")<{
  readonly kind: ProblemKind
  readonly company: string
  readonly detail: string
  readonly remedy: string
}> {
  override get message(): string {
    return `company ${this.company}: ${this.detail}`
  }
}

export type SubscribeError = SubscriptionError | SourceError | DatabaseError

/** The services that a change of a subscription requires, without its secret. */
export type ChangeNeeds = Database | SqlClient.SqlClient
/** The services that a change of a subscription and its secret requires. */
export type SubscribeNeeds = ChangeNeeds | SigningSecrets

/** The command that a remedy names. */
export const commandFor = (company: string, command: string): string =>
  `tributary webhooks ${command} --company ${company}`

export const subscriptionNotFound = (company: string, id: string | null, url: string | null = null) =>
  new SubscriptionError({
    kind: "unknown",
    company,
    detail:
      id === null
        ? `there is no subscription for ${url ?? `an address that ends in /hooks/${company}`}`
        : `there is no subscription ${id} of this token`,
    remedy: `list the subscriptions with ${commandFor(company, "list")}, or create one with ${commandFor(company, "ensure")}`
  })

export const noAddress = (company: string) =>
  new SubscriptionError({
    kind: "address",
    company,
    detail: "the configuration has no public address for deliveries",
    remedy: "set webhooks.public_url in the configuration, for example https://hooks.example.com"
  })

/** A route of alerts: which conditions go to which receiver, and when. */
import * as Duration from "effect/Duration"
import type * as Redacted from "effect/Redacted"
import { type Kind, severities, type Severity } from "../status/ProblemKinds.ts"

/** The receiver of a route. Its address may contain a secret. */
export type Receiver =
  | { readonly type: "slack"; readonly url: Redacted.Redacted }
  | { readonly type: "http"; readonly url: Redacted.Redacted; readonly secret: Redacted.Redacted | null }
  | {
      readonly type: "email"
      readonly url: Redacted.Redacted
      readonly from: string
      readonly to: ReadonlyArray<string>
      /** Whether the message may cross a network unencrypted. */
      readonly allowPlain: boolean
    }

export interface Route {
  readonly name: string
  /** Null is every company, and the conditions of the warehouse. */
  readonly companies: ReadonlyArray<string> | null
  /** Null is every kind. */
  readonly kinds: ReadonlyArray<Kind> | null
  readonly severityMin: Severity
  readonly receiver: Receiver
  /** The interval at which messages are sent together; null sends each at once. */
  readonly digest: Duration.Duration | null
  /** Whether a digest leaves critical messages out, which are sent at once. */
  readonly isCriticalAtOnce: boolean
}

/** The alerts of a configuration. */
export interface AlertConfiguration {
  readonly routes: ReadonlyArray<Route>
  readonly startAfter: Readonly<Record<Kind, Duration.Duration>>
  readonly endAfter: Duration.Duration
}

interface Routed {
  readonly kind: Kind
  /** Empty for the whole warehouse, which concerns every company. */
  readonly company: string
  readonly severity: Severity
}

export const matches = ({ companies, kinds, severityMin }: Route, { kind, company, severity }: Routed): boolean =>
  (companies === null || company === "" || companies.includes(company)) &&
  (kinds === null || kinds.includes(kind)) &&
  severities.indexOf(severity) >= severities.indexOf(severityMin)

/** When a message is sent: at once, or at the end of the current interval of the digest, the same for every process. */
export const dueAtMs = ({ digest, isCriticalAtOnce }: Route, severity: Severity, nowMs: number): number => {
  if (digest === null || (isCriticalAtOnce && severity === "critical")) return nowMs
  const intervalMs = Duration.toMillis(digest)
  return (Math.floor(nowMs / intervalMs) + 1) * intervalMs
}

/**
 * The drift radar of a connector: it compares a live installation with the documentation by reading only.
 *
 * Promise: a report names no value of a record, only its shape, its resource, its field and its id. It never contains the
 * token.
 */
import type { SourceError } from "./SourceError.ts"

/** The bounds of one comparison. */
export interface RadarBounds {
  /** Requests of the whole comparison, retries included. */
  readonly requestsMax: number
  /** Requests in any minute. */
  readonly requestsPerMinute: number
}

/** One fact about the API, and what follows where an installation differs from it. Data, without behaviour. */
export interface RadarCheck {
  readonly id: string
  /** What the documents state, or what was decided where they are silent. */
  readonly fact: string
  /** The id of the fact or the decision. */
  readonly basis: string
  /** The requests that show it. */
  readonly request: string
  /** The setting by which Tributary works with a difference, as its path in the configuration; null for none. */
  readonly setting: string | null
  /** What a person does about a difference. */
  readonly advice: string
}

/** A setting with its recommended value. */
export interface RadarSetting {
  readonly path: string
  readonly value: string | number
}

/** One deviation of the installation from one fact. */
export interface RadarDifference {
  readonly check: string
  /** A resource, or a field as `resource.field`; empty for the whole installation. */
  readonly subject: string
  /** What was seen, without a value of a record. */
  readonly seen: string
  /** The first request that shows it, without the values of its parameters. */
  readonly request: string
  readonly requestId: string | null
  readonly setting: RadarSetting | null
  /** What a person does about it. */
  readonly advice: string
  /** The switch of the reference server that behaves the same, with its value; null for none. */
  readonly variant: { readonly name: string; readonly value: string | number | boolean | null } | null
}

/** How far a check was possible. */
export interface RadarCoverage {
  readonly check: string
  /** Number of answers, records or values that were compared. */
  readonly checked: number
  /** Why something could not be compared, each reason once. */
  readonly unchecked: ReadonlyArray<string>
}

/** One change of the catalogue that describes the installation as it is. */
export interface CataloguePatch {
  readonly resource: string
  /** Null for the resource itself. */
  readonly field: string | null
  readonly change:
    | "add"
    | "type"
    | "length"
    | "scale"
    | "values"
    | "operations"
    | "modifiedSince"
    | "filters"
    | "remove"
  readonly from: string
  readonly to: string
  /** The command that applies it in the warehouse alone; null where only the catalogue can state it. */
  readonly command: string | null
}

/** Resources that could not be read, by the reason. */
export interface RadarAccess {
  readonly read: number
  readonly empty: ReadonlyArray<string>
  /** Refusals for rights, which are no differences: the missing scope or module, and the resources. */
  readonly refused: ReadonlyArray<{ readonly reason: string; readonly resources: ReadonlyArray<string> }>
}

export interface RadarReport {
  readonly address: string
  readonly companyId: bigint | null
  readonly requests: number
  readonly rateLimited: number
  readonly checks: ReadonlyArray<RadarCheck>
  readonly differences: ReadonlyArray<RadarDifference>
  readonly coverage: ReadonlyArray<RadarCoverage>
  readonly access: RadarAccess
  readonly settings: ReadonlyArray<RadarSetting>
  readonly patch: ReadonlyArray<CataloguePatch>
  /** Why the comparison ended early; null when it was complete. */
  readonly ended: SourceError | null
}

/** The report, and the answers with every value replaced by one of the same shape, as JSON text. */
export interface RadarResult {
  readonly report: RadarReport
  readonly recording: string
}

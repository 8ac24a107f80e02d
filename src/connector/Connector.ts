/**
 * The contract of a connector: how the engine reads and writes a source. `README.md` explains how to write one.
 *
 * Promise: a connector returns records as exact text in the catalogue's field order, one page at a time, and loses none. A
 * record that does not fit its fields is a {@link Rejected} with its bytes and the reason. A failure is retried within
 * bounds where that is safe; every other failure is a {@link SourceError}.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Catalogue } from "../catalogue/Catalogue.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { SourceError } from "./SourceError.ts"
import type { Rejected, SourceRecord } from "./SourceRecord.ts"
import type { Subscriptions } from "./Subscriptions.ts"
import type { WriteResult } from "./WriteResult.ts"

export type { Rejected, SourceRecord } from "./SourceRecord.ts"

/** The company and the rights of a token. */
export interface Identity {
  /** The number of the company in the warehouse; a connector answers `sourceNumber`, and `SourceGuard` replaces it. */
  readonly companyId: bigint
  /** The number of the company at the source. */
  readonly sourceNumber: bigint
  readonly user: string | null
  /** Scopes in `area:access` form; null when the source does not report them. */
  readonly scopes: ReadonlyArray<string> | null
  /** Licensed modules; null when the source does not report them. */
  readonly features: ReadonlyArray<string> | null
}

/** A request for a page of a scan. */
export interface PageRequest {
  readonly resource: Resource
  /** The cursor, byte for byte; null reads every record. */
  readonly since: string | null
  /** {@link Page.next} of the page before; null is the first page. */
  readonly token: string | null
  /** Only the records that pass all of these; default: no filter. */
  readonly where?: ReadonlyArray<Where>
}

/** A filter that the source offers for the field, with its value. */
export interface Where {
  readonly field: string
  readonly value: string
}

/** A record that is not kept, since it does not pass the filters of its resource. */
export interface Unselected {
  readonly id: string
  /** When it changed last; null where the record does not say it. */
  readonly changedAt: string | null
}

/** One response of a scan. */
export interface Page {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
  /** Records of the answer that are not kept; a row of one becomes a tombstone. Absent: none. */
  readonly unselected?: ReadonlyArray<Unselected>
  /** The token of the next page, opaque text; null on the last page. */
  readonly next: string | null
  /** The incremental position that a completed scan may store, byte for byte; null when the page carries none. */
  readonly syncedThrough: string | null
  /**
   * When the answered attempt began, in milliseconds on the program's monotonic clock. No wall clock decides which of two
   * reads is the later one.
   */
  readonly beganAt: number
  /** The source's own time when it answered, RFC 3339 in UTC; null when it does not report it. */
  readonly answeredAt?: string | null
  /** The request and its id, for people. */
  readonly source: string
  /** Size of the response. */
  readonly bytes: number
  /** Requests with retries, at least 1. */
  readonly attempts: number
}

/** The records that a page names, in any way. */
export const namedBy = ({ records, rejected, unselected = [] }: Page) => [...records, ...rejected, ...unselected]

/** A page as it was sent, for a comparison that does not rely on the decoding of records. */
export interface RawPage {
  /** JSON text of each record, byte for byte. */
  readonly records: ReadonlyArray<string>
  readonly next: string | null
  readonly attempts: number
}

/** One record that was read by its key, under the same rules as a page. */
export interface FetchedRecord {
  readonly record: SourceRecord | null
  readonly rejected: Rejected | null
  /** The record exists and is not kept; `record` and `rejected` are null. */
  readonly unselected?: Unselected
  /** Precondition for a later update; null when the source gives none. */
  readonly version: string | null
  /** As {@link Page.beganAt}. */
  readonly beganAt: number
  readonly source: string
}

/** Whether the source does not have the record. */
export const isMissing = ({ record, rejected, unselected }: FetchedRecord): boolean =>
  record === null && rejected === null && unselected === undefined

/** A write of one or many records. The idempotency key makes it safe to send the same bytes again. */
export interface WriteRequest {
  readonly resource: Resource
  readonly operation: "create" | "batch" | "update" | "cancel"
  /** The record's key, for update and cancel. */
  readonly id: string | null
  /** JSON text; null for cancel. */
  readonly body: string | null
  readonly idempotencyKey: string
  /** From {@link FetchedRecord.version}, for update. */
  readonly ifMatch: string | null
  /**
   * Evaluated before each attempt; false cancels the write. A source that has forgotten the key would write again, and a
   * process that lost its fence may not send. Default: true.
   */
  readonly mayBeSent?: Effect.Effect<boolean>
}

/** The answer to a write. */
export interface WriteAnswer {
  readonly status: number
  /** The body, as text. */
  readonly body: string
  /**
   * The result of each record: one item for every index that the answer names, in its order. The answer to a batch may
   * leave records out. A write of one record has exactly one item, with index 0.
   */
  readonly items: ReadonlyArray<WriteResult>
  readonly source: string
}

/**
 * An observer of the fiber's requests: true when one is in flight, false when it has ended or waits for a permit or a
 * pause. It measures the time that the source takes.
 */
export const RequestInFlight = Context.Reference<(isOnItsWay: boolean) => void>("tributary/connector/RequestInFlight", {
  defaultValue: () => () => {}
})

/**
 * An observer of the times of the fiber's requests: the wait for a permit, an attempt with its answer, and the pause before
 * a retry with the answer that caused it. Times are on the monotonic clock, in milliseconds. An answer is its status, or
 * the kind of the failure with its status.
 */
export type RequestObserver = (
  phase: "budget" | "request" | "retry",
  fromMs: number,
  toMs: number,
  answer: string | null
) => void
export const RequestTimes = Context.Reference<RequestObserver>("tributary/connector/RequestTimes", {
  defaultValue: () => () => {}
})

/** Counts since the connector was made. */
export interface ConnectorUsage {
  readonly requests: number
  readonly retries: number
  readonly rateLimited: number
  readonly bytes: number
}

/** The identity of a source. */
export interface SourceDescription {
  /** Scheme, host, port and path, normalised; carries no credential. */
  readonly address: string
  /** Settings that shape records, by name. After a change of one, every record is read again. */
  readonly settings: Readonly<Record<string, string>>
}

/** One company of one source. */
export interface ConnectorShape {
  readonly catalogue: Catalogue
  /**
   * The scope in which the source recognises idempotency keys, such as a fingerprint of the token; it reveals no secret.
   * Absent where the source recognises a key from every sender.
   */
  readonly keyScope?: string
  /** Absent where there is only one source. */
  readonly source?: SourceDescription
  readonly identify: Effect.Effect<Identity, SourceError>
  readonly page: (request: PageRequest) => Effect.Effect<Page, SourceError>
  /** The same page as bytes; no field is decoded. */
  readonly rawPage: (request: PageRequest) => Effect.Effect<RawPage, SourceError>
  /** A record by its key; `record` and `rejected` are null when the company has no such record, or it is not kept. */
  readonly get: (resource: Resource, id: string) => Effect.Effect<FetchedRecord, SourceError>
  readonly write: (request: WriteRequest) => Effect.Effect<WriteAnswer, SourceError>
  /** Absent where the source has no webhooks. */
  readonly subscriptions?: Subscriptions
  readonly usage: Effect.Effect<ConnectorUsage>
}

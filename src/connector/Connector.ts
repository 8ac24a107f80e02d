/**
 * What a connector must do, so that the pipeline can read and write any source.
 *
 * Promise: a connector answers records as exact text in the catalogue's field order, one page at a time, and never
 * loses one: a record that does not fit its fields is answered as a {@link Rejected} with its bytes and the reason.
 * It retries what may be retried within its bounds, and tells everything else as a {@link SourceError}.
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

/** Who a token is. */
export interface Identity {
  readonly companyId: bigint
  readonly user: string | null
  /** Scopes in `area:access` form; null when the source does not tell. */
  readonly scopes: ReadonlyArray<string> | null
  /** Licensed modules; null when the source does not tell. */
  readonly features: ReadonlyArray<string> | null
}

/** Which page of which scan. */
export interface PageRequest {
  readonly resource: Resource
  /** The cursor, byte for byte; null reads every record. */
  readonly since: string | null
  /** The mark of the page as the page before gave it; null is the first page. */
  readonly token: string | null
  /** Only the records whose field has this value exactly: the children of a parent. Null is no filter. */
  readonly where?: Where | null
}

/** A filter that the source offers for the field. */
export interface Where {
  readonly field: string
  readonly value: string
}

/** One response of a scan. */
export interface Page {
  readonly records: ReadonlyArray<SourceRecord>
  readonly rejected: ReadonlyArray<Rejected>
  /** The mark of the next page, opaque text; null when this is the last one. */
  readonly next: string | null
  /** The incremental position that a completed scan may store, byte for byte; null when the page carries none. */
  readonly syncedThrough: string | null
  /**
   * When the read began (the attempt that was answered), in milliseconds on the program's monotonic clock: nobody's
   * wall clock decides which of two reads is the later one.
   */
  readonly beganAt: number
  /** The source's own time when it answered, RFC 3339 in UTC; null when it does not tell. */
  readonly answeredAt?: string | null
  /** What brought the records, for people: the request and its id. */
  readonly source: string
  /** Size of the answer. */
  readonly bytes: number
  /** Requests that it took, retries included; at least 1. */
  readonly attempts: number
}

/** A page as it was sent, for comparing without trusting what reads records. */
export interface RawPage {
  /** JSON text of each record, byte for byte. */
  readonly records: ReadonlyArray<string>
  readonly next: string | null
  readonly attempts: number
}

/** One record read by its number, under the same rules as a page. */
export interface FetchedRecord {
  readonly record: SourceRecord | null
  readonly rejected: Rejected | null
  /** Precondition for a later update; null when the source gives none. */
  readonly version: string | null
  /** As {@link Page.beganAt}. */
  readonly beganAt: number
  readonly source: string
}

/** A write of one or many records. The key makes it safe to send the same bytes again. */
export interface WriteRequest {
  readonly resource: Resource
  readonly operation: "create" | "batch" | "update" | "cancel"
  /** The record's number, for update and cancel. */
  readonly id: string | null
  /** JSON text; null for cancel. */
  readonly body: string | null
  readonly idempotencyKey: string
  /** From {@link FetchedRecord.version}, for update. */
  readonly ifMatch: string | null
  /**
   * Asked before each attempt: a source that has forgotten the key takes the same bytes for news, and whoever was taken
   * over has no say any more. Absent: always.
   */
  readonly mayBeSent?: Effect.Effect<boolean>
}

/** The answer to a write. */
export interface WriteAnswer {
  readonly status: number
  /** The body, as text. */
  readonly body: string
  /**
   * What became of each record: one item for every index that the answer names, in its order; of a batch not
   * necessarily one for each record sent. A write of one record has exactly one, with index 0.
   */
  readonly items: ReadonlyArray<WriteResult>
  /** Whether the source gave the answer of an earlier request with the same key. */
  readonly replayed: boolean
  readonly source: string
}

/**
 * Told that a request of the fiber has gone to the source (true), and that it has ended or waits for a permit or a pause
 * before it is sent again (false): for whoever wants to know how long the source takes.
 */
export const RequestInFlight = Context.Reference<(isOnItsWay: boolean) => void>("tributary/connector/RequestInFlight", {
  defaultValue: () => () => {}
})

/** Counts of what the connector did since it was made. */
export interface ConnectorUsage {
  readonly requests: number
  readonly retries: number
  readonly rateLimited: number
  readonly bytes: number
}

/** What tells one source from another, and how it is read. */
export interface SourceDescription {
  /** Scheme, host, port and path, normalised; carries no credential. */
  readonly address: string
  /** Settings that shape what a record holds, by name: a change of one makes every record be read again. */
  readonly settings: Readonly<Record<string, string>>
}

/** One company of one source. */
export interface ConnectorShape {
  readonly catalogue: Catalogue
  /**
   * By whom the source knows idempotency keys: for a connector that tells another one, the keys of this one are news.
   * Says nothing of a secret. Absent where a key is known whoever sends it.
   */
  readonly keyScope?: string
  /** Which source it is; absent where there is only one. */
  readonly source?: SourceDescription
  readonly identify: Effect.Effect<Identity, SourceError>
  readonly page: (request: PageRequest) => Effect.Effect<Page, SourceError>
  /** The same page as its bytes say it: no field is looked at. */
  readonly rawPage: (request: PageRequest) => Effect.Effect<RawPage, SourceError>
  /** A record by its number; `record` is null when the source has none in this company. */
  readonly get: (resource: Resource, id: string) => Effect.Effect<FetchedRecord, SourceError>
  readonly write: (request: WriteRequest) => Effect.Effect<WriteAnswer, SourceError>
  /** Absent where the source has no webhooks. */
  readonly subscriptions?: Subscriptions
  readonly usage: Effect.Effect<ConnectorUsage>
}

export class Connector extends Context.Service<Connector, ConnectorShape>()("tributary/connector/Connector") {}

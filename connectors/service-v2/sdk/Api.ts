/** The client as types: what {@link createClient} returns, its options and its results. Nothing here runs. */
import type { ServiceApiError } from "./Errors.ts"
import type { Resources } from "./records/index.ts"
import type { Decimal, JsonObject, ResourceShape } from "./Values.ts"

/** The path of a resource: `invoices`. */
export type ResourceName = keyof Resources

/** A record's number. */
export type RecordId = number | string

export interface LogEntry {
  readonly level: "debug" | "warn"
  readonly message: string
  /** For an answered attempt of a request. */
  readonly method?: string
  /** Below the base address, without the query. */
  readonly path?: string
  /** Null when no answer arrived. */
  readonly status?: number | null
  readonly durationMs?: number
}

/** Options of the client's own HTTP transport. */
export interface TransportOptions {
  /** Sockets; default 8. */
  readonly connections?: number | undefined
  /** Default 10,000. */
  readonly connectTimeoutMs?: number | undefined
  /** Certificates to trust instead of the usual ones, PEM. */
  readonly ca?: string | undefined
}

/** How an installation pages: its documents do not show it. */
export interface PagingOptions {
  /** `auto` follows `_meta.next_cursor`, `_meta.next` or `Link: rel=next`, whichever is present. */
  readonly mode?: "auto" | "cursor" | "page" | "offset" | "link" | "none" | undefined
  readonly limitParameter?: string | undefined
  readonly cursorParameter?: string | undefined
  readonly pageParameter?: string | undefined
  /** Number of the first page. */
  readonly pageFirst?: number | undefined
  readonly offsetParameter?: string | undefined
}

export interface ClientOptions {
  /** Up to the API's own path: `https://erp.example.com/!/api/v2`. Plain http is accepted for this machine only. */
  readonly baseUrl: string
  /** The access token. It decides the company. It is sent only to `baseUrl`, and is in no error and no log. */
  readonly token: string
  /** The rate of this client; default 600, the documented limit. Null: only Retry-After slows it down. */
  readonly requestsPerMinute?: number | null | undefined
  /** The longest wait for Retry-After, and the longest sum of such waits of one request; default 120,000. */
  readonly maxRetryWaitMs?: number | undefined
  /** Attempts of one request, the first included; a 429 does not count. Default 5. */
  readonly maxAttempts?: number | undefined
  /** For one attempt with its whole answer; default 60,000. */
  readonly requestTimeoutMs?: number | undefined
  /** The largest answer; default 64 MiB. */
  readonly maxAnswerBytes?: number | undefined
  /** Records of a page; default: as many as the service accepts. */
  readonly pageSize?: number | undefined
  /** How the installation pages, where it differs from `auto`. */
  readonly paging?: PagingOptions | undefined
  /** Reads `custom_fields` with each record. */
  readonly includeCustomFields?: boolean | undefined
  /** Accepts plain http to other machines: the token is readable on the way. */
  readonly allowHttp?: boolean | undefined
  /** The source of the value of `If-Match`; default `auto`: the ETag, else lastchangedate. */
  readonly precondition?: "auto" | "etag" | "lastchangedate" | undefined
  /** The field that takes a new signing secret, which the documents do not name; default `secret`. */
  readonly rotateSecretField?: string | undefined
  /** Requests are sent by it instead of the client's own transport. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Options of the client's own transport; without effect beside `fetch`. */
  readonly transport?: TransportOptions | undefined
  /** Ends all calls of the client when it is aborted. */
  readonly signal?: AbortSignal | undefined
  /** The User-Agent of each request. */
  readonly userAgent?: string | undefined
  /** Receives warnings and each answered attempt. Entries contain no token and no record. */
  readonly log?: ((entry: LogEntry) => void) | undefined
}

export interface CallOptions {
  /** Ends the call: its promise rejects with an `AbortedError`. */
  readonly signal?: AbortSignal | undefined
}

export interface WriteOptions extends CallOptions {
  /**
   * A key that the service remembers for 24 hours: the same call under the same key has one effect. Without one the client
   * makes one, so that its own retries are safe. To repeat a call after a crash, give your own.
   */
  readonly idempotencyKey?: string | undefined
}

export interface UpdateOptions extends WriteOptions {
  /** The `version` of `getVersioned`: the update fails with `stale_record` when the record changed since. */
  readonly ifMatch?: string | undefined
}

export interface ListOptions extends CallOptions {
  /** The `next` of an earlier page, to continue there. */
  readonly from?: string | undefined
  /** Receives the records that do not fit the catalogue. Without it such a record ends the iteration with an error. */
  readonly onInvalid?: ((record: InvalidRecord) => void) | undefined
}

/** A record that does not fit the catalogue. */
export interface InvalidRecord {
  /** Its number where it is readable. */
  readonly id: string | null
  readonly field: string | null
  readonly reason: string
  /** Its JSON text as sent. */
  readonly json: string
}

export interface Page<Record> {
  readonly records: ReadonlyArray<Record>
  readonly invalid: ReadonlyArray<InvalidRecord>
  /** `_meta.synced_through`, byte for byte; null where the service sends none. */
  readonly syncedThrough: string | null
  /** Continues the list after this page, for `from`; null on the last page. */
  readonly next: string | null
}

/** A list, requested page by page while it is iterated. Each iteration begins again. */
export interface RecordList<Record> extends AsyncIterable<Record> {
  /** The pages with their positions. */
  readonly pages: () => AsyncIterable<Page<Record>>
  /** All records. For lists that fit into memory. */
  readonly toArray: () => Promise<ReadonlyArray<Record>>
  /**
   * The position for the next `modifiedsince`, byte for byte: the earliest of the pages of the last iteration that reached
   * the end. Null before, and where the service sends none.
   */
  readonly syncedThrough: string | null
}

/** A record with the version that an update can require. */
export interface Versioned<Record> {
  readonly record: Record
  /** For `ifMatch`; null when the service gives none. */
  readonly version: string | null
}

/** The answer to a write: the fields that the service shows. */
export type Written<Shape extends ResourceShape> = { readonly id: number } & Partial<Shape["record"]> & {
    readonly [Name in Shape["answers"]]?: Decimal | null
  }

/** The result of one record of a batch. */
export type BatchItem<Shape extends ResourceShape> =
  | { readonly index: number; readonly status: "created"; readonly record: Written<Shape> }
  /** The service refused this record; the others are independent. */
  | { readonly index: number; readonly status: "rejected"; readonly error: ServiceApiError }
  /** The answer does not say: repeat the batch under the same key, or look the record up. */
  | { readonly index: number; readonly status: "unknown"; readonly error: ServiceApiError }
  /** Only in `IncompleteBatchError.results`. */
  | { readonly index: number; readonly status: "notSent" }

export interface BatchResult<Shape extends ResourceShape> {
  /** A result for each record, in the order given. */
  readonly items: ReadonlyArray<BatchItem<Shape>>
  /** The key of the batch. */
  readonly idempotencyKey: string
  /** The items that were not created. */
  readonly failures: ReadonlyArray<Exclude<BatchItem<Shape>, { readonly status: "created" }>>
}

/** All operations; a resource has those of its shape. */
export interface Operations<Shape extends ResourceShape> {
  /** The records that match the filters. Nothing is requested before the iteration. */
  readonly list: (filters?: Shape["filters"], options?: ListOptions) => RecordList<Shape["record"]>
  /** One record. Rejects with a `NotFoundError` when the company has no such record. */
  readonly get: (id: RecordId, options?: CallOptions) => Promise<Shape["record"]>
  /** One record with its version, for a conditional update. */
  readonly getVersioned: (id: RecordId, options?: CallOptions) => Promise<Versioned<Shape["record"]>>
  readonly create: (input: Shape["create"], options?: WriteOptions) => Promise<Written<Shape>>
  /**
   * Creates many records: one request for each 250, one after the other, the nth under the key `<key>-<n>`. A refused record
   * is a result and no rejection.
   */
  readonly batch: (inputs: ReadonlyArray<Shape["create"]>, options?: WriteOptions) => Promise<BatchResult<Shape>>
  /** Changes the given fields only. */
  readonly update: (id: RecordId, changes: Shape["update"], options?: UpdateOptions) => Promise<Written<Shape>>
  /** Cancels the record. Most resources keep it, with `cancel` true. */
  readonly cancel: (id: RecordId, options?: WriteOptions) => Promise<Written<Shape>>
  /** Reads a path below the record, such as the balance of a customer. The documents do not state its members. */
  readonly read: (name: Shape["reads"], id: RecordId, options?: CallOptions) => Promise<JsonObject>
  /** Reads a file below the record, such as the PDF of an invoice. */
  readonly download: (name: Shape["reads"], id: RecordId, options?: CallOptions) => Promise<Uint8Array>
  /** Runs an action of the record, such as `post` of an invoice. The documents do not state the members of the answer. */
  readonly perform: (
    name: Shape["actions"],
    id: RecordId,
    input?: JsonObject,
    options?: WriteOptions
  ) => Promise<JsonObject>
}

/** The operations that the resource has. */
export type ResourceClient<Shape extends ResourceShape> = Pick<
  Operations<Shape>,
  Shape["operations"] & keyof Operations<Shape>
>

/** The company and the rights of the token. */
export interface Me {
  readonly companyId: number
  readonly user: string | null
  /** Scopes in `area:access` form; null when the service does not report them. */
  readonly scopes: ReadonlyArray<string> | null
  /** Licensed modules; null when the service does not report them. */
  readonly features: ReadonlyArray<string> | null
}

export interface ClientUsage {
  readonly requests: number
  readonly retries: number
  /** Answers 429. */
  readonly rateLimited: number
  readonly bytes: number
}

/** A webhook subscription of the token. */
export interface WebhookSubscription {
  readonly id: number
  readonly url: string
  readonly events: ReadonlyArray<string>
  readonly description: string | null
  /** While true, the service drops the events that fire. */
  readonly paused: boolean
  /** Consecutive failed deliveries; null when the service does not report them. */
  readonly failCount: number | null
  /** As sent; null when there was none. */
  readonly lastDeliveryAt: string | null
  /** When the service disabled it, as sent; null when it did not. */
  readonly disabledAt: string | null
  readonly cancelled: boolean
}

/** An event name that a subscription can list. */
export type EventName = Resources[ResourceName]["events"] | "webhooks.test"

export interface NewWebhook {
  /** https only, at most 500 characters. */
  readonly url: string
  readonly events: ReadonlyArray<EventName>
  /** At most 100 characters. */
  readonly description?: string | undefined
  /** Events that fire while it is paused are dropped. Default false. */
  readonly paused?: boolean | undefined
}

export interface WebhookChanges {
  readonly url?: string | undefined
  readonly events?: ReadonlyArray<EventName> | undefined
  readonly description?: string | undefined
  readonly paused?: boolean | undefined
  /** Enables a disabled subscription again. */
  readonly enabled?: true | undefined
}

/** An entry of the delivery log. */
export interface WebhookDelivery {
  readonly eventId: string
  readonly eventType: string
  readonly attempts: number
  readonly delivered: boolean
  readonly abandoned: boolean
  readonly responseCode: number | null
  readonly responseBody: string
  readonly durationMs: number | null
  /** As sent. */
  readonly at: string
}

export interface WebhookTest {
  readonly eventId: string | null
  /** Null when no answer arrived, or the service does not report it. */
  readonly responseCode: number | null
  readonly responseBody: string | null
  readonly durationMs: number | null
  readonly delivered: boolean
}

export interface DeliveryFilters {
  readonly delivered?: boolean | undefined
  readonly abandoned?: boolean | undefined
  readonly eventType?: string | undefined
}

/** The subscriptions of the token. */
export interface Webhooks {
  /** Those that are not cancelled. */
  readonly list: (options?: CallOptions) => Promise<ReadonlyArray<WebhookSubscription>>
  readonly get: (id: RecordId, options?: CallOptions) => Promise<WebhookSubscription>
  /** The service shows `secret` only here: store it. */
  readonly create: (
    webhook: NewWebhook,
    options?: CallOptions
  ) => Promise<{ readonly subscription: WebhookSubscription; readonly secret: string }>
  readonly update: (id: RecordId, changes: WebhookChanges, options?: CallOptions) => Promise<WebhookSubscription>
  /** Sends a new secret. The service signs with both for a while: accept both until then. */
  readonly rotateSecret: (id: RecordId, secret: string, options?: CallOptions) => Promise<WebhookSubscription>
  /** Final. Where the service offers no cancelling, the subscription is paused. */
  readonly cancel: (id: RecordId, options?: CallOptions) => Promise<WebhookSubscription>
  /** Requests a test delivery and waits for its result; ten a minute. */
  readonly test: (id: RecordId, options?: CallOptions) => Promise<WebhookTest>
  /** The delivery log, newest first. */
  readonly deliveries: (
    id: RecordId,
    filters?: DeliveryFilters,
    options?: CallOptions
  ) => AsyncIterable<WebhookDelivery>
}

/** A client of one token, and therefore of one company. */
export type ServiceClient = { readonly [Path in ResourceName]: ResourceClient<Resources[Path]> } & {
  /** The resource with that path. */
  readonly resource: <Path extends ResourceName>(path: Path) => ResourceClient<Resources[Path]>
  /** The company and the rights of the token. */
  readonly me: (options?: CallOptions) => Promise<Me>
  readonly webhooks: Webhooks
  /** Counts since the client was made. */
  readonly usage: () => ClientUsage
  /** Closes the connections. Calls in flight end with an error. */
  readonly close: () => Promise<void>
} & AsyncDisposable

/** The types of webhook deliveries. */
import type { ResourceName } from "./Api.ts"
import type { Resources } from "./records/index.ts"
import type { JsonValue } from "./Values.ts"

interface EventFacts {
  /** Stable across attempts: the same id again is the same event. */
  readonly id: string
  readonly companyId: number | null
  /** When it fired by the service's clock, RFC 3339 in UTC; null when it cannot be read. */
  readonly createdAt: string | null
  /** 1 at the first attempt; null without the header. */
  readonly attempt: number | null
}

/** An event about a record of a resource. */
export interface RecordEvent<Path extends ResourceName> extends EventFacts {
  readonly resource: Path
  /** `orders.created` */
  readonly type: Resources[Path]["events"]
  /** Null where the event does not name the record: then read what changed since. */
  readonly recordId: number | null
  /** The record when the event fired; it may be old. Null where it does not fit the catalogue. */
  readonly data: Resources[Path]["record"] | null
}

/** An event that is about no known resource, such as `webhooks.test`. */
export interface OtherEvent extends EventFacts {
  readonly resource: null
  readonly type: string
  readonly recordId: null
  readonly data: JsonValue
}

/** `event.resource === "orders"` decides the type of `data`. */
export type WebhookEvent = { readonly [Path in ResourceName]: RecordEvent<Path> }[ResourceName] | OtherEvent

/** A delivery as a web server received it. */
export interface WebhookDeliveryInput {
  /** The raw body. A body that was parsed and printed again has other bytes, and is refused. */
  readonly body: Uint8Array | string
  readonly headers: Headers | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** Every signing secret in use. */
  readonly secrets: string | ReadonlyArray<string>
  /** The highest age; default 300, as documented. */
  readonly toleranceSeconds?: number | undefined
  /** How far the sender's clock may be ahead; default 300. */
  readonly aheadSeconds?: number | undefined
  /** When it arrived, as a Date or in milliseconds since 1970; default now. */
  readonly now?: Date | number | undefined
}

/**
 * A webhook delivery, its verification, and the event that it carries.
 *
 * Promise: only a delivery whose {@link Verification} is `Genuine` changes anything; the raw bytes are verified. An
 * {@link Event} says which record to read; no value of it is landed.
 */
import type * as Duration from "effect/Duration"
import type * as Redacted from "effect/Redacted"

/** One delivery as it arrived. */
export interface Delivery {
  /** The signature header; undefined when it is absent. */
  readonly signature: string | undefined
  /** The raw bytes of the body. */
  readonly body: Uint8Array
  /** When it arrived, in milliseconds since 1970 by the receiver's clock. */
  readonly receivedAt: number
}

export type Verification =
  /** Signed with one of the secrets, and recently. `sentAt` is in seconds since 1970. */
  | { readonly _tag: "Genuine"; readonly sentAt: number }
  /** The header has a wrong form. */
  | { readonly _tag: "Malformed"; readonly detail: string }
  /** Too old, or too far in the future. `ageSeconds` is negative for the future. */
  | { readonly _tag: "Stale"; readonly ageSeconds: number }
  /** No signature fits any of the secrets. */
  | { readonly _tag: "Forged" }

export interface VerifySettings {
  /** Every secret that may be in use; two while one is being rotated. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** The highest age of a delivery. */
  readonly tolerance: Duration.Duration
  /** How far the sender's clock may be ahead. */
  readonly aheadMax: Duration.Duration
}

/** An event as its body describes it. */
export interface Event {
  /** Stable across attempts. */
  readonly id: string
  readonly type: string
  /** The path of the resource that the type is about, in the catalogue or not; null for none. */
  readonly resource: string | null
  /** The record's key where the body carries the record; null requests the whole resource. */
  readonly recordId: string | null
  /** The record's time of change, byte for byte; null when the event has none, or may be about a removal, which keeps it. */
  readonly stamp: string | null
  /** Null when the event names no company. */
  readonly companyId: bigint | null
  /** When it fired by the source's clock, RFC 3339 in UTC; null when that cannot be read. */
  readonly occurredAt: string | null
  /** A plain field of the record as exact text (numerals as sent); null when it has none of that name. */
  readonly value: (field: string) => string | null
}

/** A genuine delivery whose body is no event. */
export interface InvalidEvent {
  readonly _tag: "NoEvent"
  readonly detail: string
}

/** Verification and decoding of a source's deliveries. */
export interface DeliveryReader {
  /** The name of the header that holds the signature, in lower case. */
  readonly signatureHeader: string
  /** The events of a subscription where the configuration names none. */
  readonly eventsDefault: ReadonlyArray<string>
  /** Every event of these resources; null is all resources. */
  readonly eventsOf: (resources: ReadonlyArray<string> | null) => ReadonlyArray<string>
  readonly verify: (delivery: Delivery, settings: VerifySettings) => Verification
  /** Reads the body of a genuine delivery. Never throws. */
  readonly read: (body: Uint8Array) => Event | InvalidEvent
  /** The body as it is stored: with the privacy rules of its resource. Absent: as it arrived. */
  readonly kept?: (event: Event, body: Uint8Array) => Uint8Array
}

export const isEvent = (read: Event | InvalidEvent): read is Event => !("_tag" in read)

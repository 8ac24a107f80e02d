/**
 * A webhook delivery, and what is thought of it before anything else is.
 *
 * Promise: only a delivery that is {@link Verdict} `Genuine` may change anything, and the verdict is about its raw bytes.
 * What an {@link Event} says is a hint of what to read; nothing of it is ever loaded.
 */
import type * as Redacted from "effect/Redacted"

/** One delivery as it arrived. */
export interface Delivery {
  /** The signature header, as it came; undefined when there was none. */
  readonly signature: string | undefined
  /** The body's bytes, before anybody read them. */
  readonly body: Uint8Array
  /** When it arrived, in milliseconds since 1970 by the receiver's clock. */
  readonly receivedAt: number
}

export type Verdict =
  /** Signed with one of the secrets, and recently. `sentAt` is in seconds since 1970. */
  | { readonly _tag: "Genuine"; readonly sentAt: number }
  /** The header does not have its form. */
  | { readonly _tag: "Malformed"; readonly detail: string }
  /** Too old, or too far in the future. `ageSeconds` is negative for the future. */
  | { readonly _tag: "Stale"; readonly ageSeconds: number }
  /** No signature fits any of the secrets. */
  | { readonly _tag: "Forged" }

export interface VerifySettings {
  /** Every secret that may be in use; two while one is being rotated. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  /** How old a delivery may be; the documents say five minutes. */
  readonly toleranceSeconds: number
  /** How far the sender's clock may be ahead. */
  readonly aheadSeconds: number
}

/** What an event says of itself. */
export interface Event {
  /** Stable across attempts. */
  readonly id: string
  readonly type: string
  /** What the type is about: the path of a resource, whether the catalogue knows it or not; null when it is about none. */
  readonly resource: string | null
  /** The record's number, where the type is known to carry the record; null asks for the whole resource. */
  readonly recordId: string | null
  /** The record's own time of change as the event shows it, byte for byte; null when it shows none, or one that a removal leaves. */
  readonly stamp: string | null
  /** The company that the source says it is of; null when it does not say. */
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

/** How a source's deliveries are checked and read. */
export interface DeliveryReader {
  /** The name of the header that holds the signature, in lower case. */
  readonly signatureHeader: string
  /** The names that are subscribed to when nobody says otherwise. */
  readonly eventsDefault: ReadonlyArray<string>
  readonly verify: (delivery: Delivery, settings: VerifySettings) => Verdict
  /** Reads the body of a genuine delivery. Never throws. */
  readonly read: (body: Uint8Array) => Event | InvalidEvent
}

export const isEvent = (read: Event | InvalidEvent): read is Event => !("_tag" in read)

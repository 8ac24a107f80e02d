/** A record as a connector returns it. */

/**
 * One record, every value as exact text: integers and decimals as plain numerals, booleans `true` or `false`, dates
 * `YYYY-MM-DD`, instants RFC 3339, lists as JSON.
 */
export interface SourceRecord {
  /** The record's key as text. */
  readonly id: string
  /** In the order of `resource.fields`; null is empty, undefined is a field that the record does not have. */
  readonly columns: ReadonlyArray<string | null | undefined>
  /** True when any of `columns` is undefined. */
  readonly partial: boolean
  /** The install's own fields as JSON text; null when not sent. */
  readonly customFields: string | null
  /** Fields that the catalogue does not know, and digits that a column cannot hold, as JSON text; null when none. */
  readonly extra: string | null
}

/** A record that does not fit the catalogue, kept as it was sent. */
export interface Rejected {
  /** The record's key where it is readable. */
  readonly id: string | null
  /** The field that does not fit; null when it is the record as a whole. */
  readonly field: string | null
  readonly reason: string
  /** The record's JSON text exactly as sent. */
  readonly bytes: string
}

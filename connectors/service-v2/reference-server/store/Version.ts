/**
 * One version of one record.
 *
 * Promise: a version never changes once it is in the store (its rendered text is a cache), so that a reader may keep it
 * while the record moves on.
 */
import type { Value } from "../json.ts"
import type { Table } from "./Table.ts"

/**
 * What the fields hold, by name; a field that is absent is empty. Names beginning with `_` are the server's own notes
 * and are never shown.
 */
export type Values = Readonly<Record<string, Value>>

export interface Version {
  readonly table: Table
  readonly id: number
  /** Counts the versions of the record, from 1. */
  readonly version: number
  /** Place in the order of commits; changes whenever the record does. */
  readonly seq: number
  /** lastchangedate in microseconds; null when the record carries none that can be read. */
  readonly stamp: number | null
  /** When the version was committed, in microseconds. */
  readonly at: number
  readonly cancelled: boolean
  readonly values: Values
  /** Fields that the catalogue does not know, as JSON text by name. */
  readonly extra: ReadonlyMap<string, string> | null
  /** The install's own fields, as JSON text by name. */
  readonly custom: ReadonlyMap<string, string> | null
  /** Rendered text, and the rendering that it belongs to. */
  cache: string | null
  cacheEpoch: number
}

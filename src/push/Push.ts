/**
 * The words that the parts of pushing share.
 *
 * Promise: what is done to a record, what became of it and what is wrong with it are said in these terms everywhere: in
 * the outbox, in files that are written for people and on the screen.
 */

/** What is done to a record of the source. */
export type Operation = "create" | "update" | "cancel"

/** What became of it; `adopted` was there already, `unchanged` was so already. */
export type Outcome = "created" | "adopted" | "updated" | "cancelled" | "unchanged"

/** Why a record cannot be pushed as it was given. */
export interface Problem {
  /** Where it stands in what was given, from 1; null when the problem is not one of a place. */
  readonly line: number | null
  /** The field, `lines[0].quantity` inside a line; null when it is the record as a whole. */
  readonly field: string | null
  readonly message: string
}

/** A field in which the source holds something else than what was given. */
export interface Difference {
  readonly field: string
  readonly given: string | null
  readonly held: string | null
}

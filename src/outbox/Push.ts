/**
 * The types of a push: operations, outcomes, counts and rejected rows.
 *
 * Promise: an operation, an outcome and a problem have the same names everywhere.
 */

/** The effect of a row on a record of the source. */
export type Operation = "create" | "update" | "cancel"

/** How a row was done: an `adopted` record existed already, an `unchanged` one had the values already. */
export type Outcome = "created" | "adopted" | "updated" | "cancelled" | "unchanged"

export const outcomes: ReadonlyArray<Outcome> = ["created", "adopted", "updated", "cancelled", "unchanged"]

/** A reason why a record cannot be pushed. */
export interface Problem {
  /** The line of the input, from 1; null when the problem has none. */
  readonly line: number | null
  /** The field, `lines[0].quantity` inside a line; null is the record as a whole. */
  readonly field: string | null
  readonly message: string
}

/** A field of which the source has another value than was given. */
export interface Difference {
  readonly field: string
  readonly given: string | null
  readonly current: string | null
}

/** Rows by state and outcome; of `different` rows the source has other values than were given. */
export type Counts = Readonly<Record<"waiting" | "sending" | "rejected" | "different" | Outcome, number>>

/** The state of a push: in the report of the command, in `push status` and on the pages. */
export type PushState = `${"unfinished" | "finished"}${"" | " with rejections"}`

export const pushStateOf = (isFinished: boolean, rejected: number): PushState =>
  `${isFinished ? "finished" : "unfinished"}${rejected > 0 ? " with rejections" : ""}`

/** A record that the source, or the validation before it, rejected. */
export interface RejectedRow {
  readonly id: bigint
  readonly line: number | null
  readonly operation: Operation
  readonly externalid: string | null
  readonly recordId: string | null
  readonly code: string
  readonly field: string | null
  readonly reason: string
  readonly problems: ReadonlyArray<Pick<Problem, "field" | "message">>
  /** The record's JSON text. */
  readonly record: string
}

/** The rows of a push, or the rows of a resource that belong to none. */
export type Rows = { readonly push: bigint } | { readonly company: string; readonly resource: string }

/** Rows of a resource that belong to no push, as a condition of SQL. */
export const isInserted = (company: string, resource: string) =>
  `push_id is null and company = ${company} and resource = ${resource}`

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

export const outcomes: ReadonlyArray<Outcome> = ["created", "adopted", "updated", "cancelled", "unchanged"]

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

/** What became of records so far; `different` are those of which the source holds something else than was given. */
export type Counts = Readonly<Record<"waiting" | "sending" | "refused" | "different" | Outcome, number>>

/** A record that the source, or the check before it, refused. */
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

/** The rows that are meant: those of a push, or those of a resource that belong to none. */
export type Rows = { readonly push: bigint } | { readonly company: string; readonly resource: string }

/** The rows that are meant, as a condition with its parameters. */
export const whereOf = (rows: Rows): readonly [string, ReadonlyArray<string>] =>
  "push" in rows
    ? ["push_id = $1::bigint", [rows.push.toString()]]
    : ["push_id is null and company = $1 and resource = $2", [rows.company, rows.resource]]

/**
 * The change feed: every version that landed, under one position for all resources of all companies.
 *
 * Promise: positions have no gaps and follow the order of the commits. A change keeps its position. A reader that stores its
 * position, and reads on from it, gets every later change once, whatever is killed meanwhile. Where that cannot hold, reading fails
 * and says what to do: the changes were removed with the history, or the warehouse was restored. A table that was replaced
 * begins again: `truncate`, then an `insert` for each of its records.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

export const orderStatement = Statement.make({
  name: "give positions to changes",
  columns: { positions: "int8?" },
  text: `select tributary.order_changes() as positions`
})

/** Gives a position to every change that was committed before. */
export const order: Sql.Query<void> = Effect.flatMap(Statement.run(orderStatement), ([row]) =>
  (row!.positions ?? 0n) > 0n ? order : Effect.void
)

/** A place in the feed: after the change with this number. The token belongs to the number in this feed only. */
export interface Position {
  readonly number: bigint
  /** Null where it is not known: then a restore is found only while the number is too high. */
  readonly token: string | null
}

/** Before every change that is still in the feed. */
export const beginning: Position = { number: 0n, token: null }

/** Parses `1200` or `1200-1f3a9c`; null for any other text. */
export const parse = (text: string): Position | null => {
  const match = /^(\d{1,18})(?:-([0-9a-f]{1,8}))?$/.exec(text)
  return match === null ? null : { number: BigInt(match[1]!), token: match[2] ?? null }
}

/** The text that {@link parse} reads. */
export const textOf = ({ number, token }: Position): string => (token === null ? `${number}` : `${number}-${token}`)

/** The reader cannot go on from its position without missing changes. */
export class PositionLost extends Data.TaggedError("PositionLost")<{
  readonly position: string
  readonly reason: string
}> {
  override get message(): string {
    return (
      `the change feed cannot be read on from position ${this.position}: ${this.reason}; load the records again (tributary ` +
      `export, whose manifest has a position), and read on from there`
    )
  }
}

/** The view of a resource was dropped, so that its changes cannot be read until it exists again. */
export class ViewDropped extends Data.TaggedError("ViewDropped")<{ readonly reason: string }> {
  override get message(): string {
    return `the change feed waits: ${this.reason}; run tributary schema apply, which creates it again, or leave the resource out`
  }
}

/** The kinds of changes; `missing`: the version is no longer stored, because its row was deleted by hand or its table replaced. */
export type Operation = "insert" | "update" | "delete" | "truncate" | "missing"

export const changeColumns = {
  position: "int8",
  resume: "text",
  companyId: "int8",
  resource: "text",
  id: "int8?",
  version: "int8?",
  op: Statement.as<Operation>("text"),
  /** JSON; the record before the change, of an update or delete. */
  before: "text?",
  /** JSON; the record after the change. */
  after: "text?",
  changed: "text[]?",
  origin: "text?",
  source: "text?",
  runId: "int8?",
  observedAt: "timestamptz?",
  landedAt: "timestamptz?"
} as const

/** The columns of a change; `c` is a row of `tributary.changes_after`. */
export const changeSql = `c."position", c.resume, c.company_id as "companyId", c.resource, c.id, c.version, c.op, c.before::text, c.after::text,
                c.changed, c.origin, c.source, c.run_id as "runId", c.observed_at as "observedAt", c.landed_at as "landedAt"`

export const readStatement = Statement.make({
  name: "read the change feed",
  params: ["int8", "int4", "int8?", "text[]?"],
  columns: changeColumns,
  text: `select ${changeSql}
           from tributary.changes_after($1, $2, $3, $4) c order by c."position"`
})

export type Change = Statement.RowOf<typeof readStatement>

/** The position of a change. */
export const positionOf = ({ resume }: Pick<Change, "resume">): Position => parse(resume)!

export const tokenStatement = Statement.make({
  name: "look for a position of the change feed",
  params: ["int8"],
  columns: { token: "text?", newest: "int8", isRemoved: "bool" },
  text: `select to_hex(b.token) as token, f.last_position as newest, $1 > 0 and $1 < f.removed_through as "isRemoved"
           from tributary.change_feed f left join lateral (
             select token from tributary.change_batches
              where last_position >= $1 and last_position - changes < $1 order by last_position limit 1) b on true`
})

/** Fails where the feed cannot be read on from the position: its changes were removed, or it has another change there. */
export const confirm = Effect.fnUntraced(function* (
  position: Position
): Effect.fn.Return<void, PositionLost | DatabaseError, SqlClient> {
  const { number, token } = position
  const [found] = yield* Statement.run(tokenStatement, [number])
  const lost = (reason: string) => new PositionLost({ position: textOf(position), reason })
  if (found!.isRemoved) return yield* lost("later changes were removed with the history")
  // Without a batch, the change was removed with its company or with the history.
  const isOther = token !== null && found!.token !== null && found!.token !== token
  const { newest } = found!
  // A person may type any number. A position with a token is one that this warehouse has returned.
  if (number > newest && token === null) {
    return yield* lost(`it is after the newest one, ${newest.toLocaleString("en-US")}`)
  }
  if (number > newest || isOther) return yield* lost("the warehouse was restored")
})

/** Which changes are read. */
export interface Selection {
  /** Null reads those of all companies. */
  readonly companyId: bigint | null
  /** Paths; null reads those of all resources. */
  readonly resources: ReadonlyArray<string> | null
}

/** The codes with which `tributary.changes_after` rejects a position. */
const lostCodes: ReadonlySet<string | undefined> = new Set(["TB001", "TB002"])

/** At most `max` changes after the position, in their order; none at the end of the feed. */
export const readAfter = (
  position: Position,
  { companyId, resources }: Selection,
  max: number
): Effect.Effect<ReadonlyArray<Change>, PositionLost | ViewDropped | DatabaseError, SqlClient> =>
  Effect.catchTag(
    Statement.run(readStatement, [position.number, max, companyId, resources]),
    "DatabaseError",
    (error): Effect.Effect<never, PositionLost | ViewDropped | DatabaseError> => {
      const { code, message } = error
      if (code === "TB003") return Effect.fail(new ViewDropped({ reason: message }))
      return Effect.fail(
        lostCodes.has(code) ? new PositionLost({ position: textOf(position), reason: message }) : error
      )
    }
  )

export const endStatement = Statement.make({
  name: "read the end of the change feed",
  columns: { number: "int8", token: "text?" },
  text: `select f.last_position as number, to_hex(b.token) as token
           from tributary.change_feed f left join tributary.change_batches b on b.last_position = f.last_position`
})

/** The position of the latest change that has one. */
export const end: Sql.Query<Position> = Effect.map(Statement.run(endStatement), ([row]) => row!)

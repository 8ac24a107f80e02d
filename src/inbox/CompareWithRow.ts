/** A comparison of pending events with the rows of their records. */
import * as Effect from "effect/Effect"
import * as Sql from "../postgres/Sql.ts"
import { roleColumn, type Table } from "../warehouse/Table.ts"
import type { PendingEvent } from "./InboxStore.ts"
import { unitSecondsOf } from "./ModifiedAt.ts"

/** The row of the record that an event concerns. */
export interface RowState {
  /** Whether there is a row that is no tombstone. */
  readonly isLive: boolean
  /** Time since the read began that brought the row's version; null where there is no row. */
  readonly observedMsAgo: number | null
  /** Whether the row has the event's version or a newer one, by their stamps. */
  readonly isCurrent: boolean
  /** Why the event needs no read; null when it does. */
  readonly skipReason: string | null
  /** Whether a scan of the whole resource began after the event was due. */
  readonly isCovered: boolean
}

/**
 * Compares events with their rows. A row answers an event in three cases:
 * it is newer than the event; it was read after the event was due;
 * or it has the event's stamp, and a completed scan began after the event was due.
 * A read in the future was made before the warehouse's clock was set back, and does not count.
 */
export const compareWithRow = (
  table: Table,
  companyId: bigint,
  events: ReadonlyArray<PendingEvent>
): Sql.Query<ReadonlyMap<bigint, RowState>> => {
  if (events.length === 0) return Effect.succeed(new Map())
  const column = roleColumn(table, "modifiedAt")
  const stamp = column === undefined ? "null::timestamptz" : `t.${column.sql}`
  const compared = Sql.rows<
    Omit<RowState, "skipReason"> & { readonly id: bigint; readonly newer: boolean; readonly readSince: boolean }
  >(
    `select e.id, t."id" is not null and t."_deleted_at" is null as "isLive",
            (extract(epoch from tributary.now() - t."_observed_at") * 1000)::float8 as "observedMsAgo",
            coalesce(${stamp} >= e.stamp + e.unit * interval '1 second', false) as newer,
            coalesce(${stamp} >= e.stamp, true) as "isCurrent",
            coalesce(t."_observed_at" > i.next_attempt_at and t."_observed_at" <= tributary.now(), false) as "readSince",
            coalesce(greatest(c.cursor_read_at, c.full_scan_at) > i.next_attempt_at
                     and greatest(c.cursor_read_at, c.full_scan_at) <= tributary.now(), false) as "isCovered"
       from jsonb_to_recordset($2::text::jsonb) as e(id bigint, record bigint, stamp timestamptz, unit float8)
       join tributary.inbox i on i.id = e.id
       left join lateral (
         select * from ${table.current} k where k."_company_id" = $1 and k."id" = e.record
         -- Forces a look-up per event, also while the table has no statistics yet.
         offset 0 limit 1) t on true
       left join tributary.checkpoints c on c.company_id = $1 and c.resource = $3 and c.lane = 'live'`,
    [
      companyId,
      JSON.stringify(
        events.map(({ id, recordId, stamp: eventStamp }) => ({
          id: String(id),
          record: recordId,
          stamp: eventStamp,
          unit: eventStamp === null ? null : unitSecondsOf(eventStamp)
        }))
      ),
      table.resource.path
    ]
  )
  const stamped = new Set(events.filter((event) => event.stamp !== null).map(({ id }) => id))
  return Effect.map(
    compared,
    (rows) =>
      new Map(
        rows.map(({ id, newer, readSince, ...row }) => {
          const { isLive, isCovered } = row
          const isCurrent = isLive && row.isCurrent
          const skipReason = !isLive
            ? null
            : newer
              ? "the warehouse holds a newer version"
              : isCurrent && readSince
                ? "the record was read after the event had come"
                : isCurrent && isCovered && stamped.has(id)
                  ? "a scan that began after the event had come has read what changed"
                  : null
          return [id, { ...row, isCurrent, skipReason }]
        })
      )
  )
}

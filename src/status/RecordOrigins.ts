/**
 * The events and the rows of the outbox that brought versions of a record.
 *
 * Promise: an event or a row is looked up in the time between the begin of the version's read and the end of its run, by
 * the index of resolved events and that of resolved rows, and at most {@link scannedMax} of them for one version.
 */
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"

/** Events that are looked at for one version. */
const scannedMax = 2_000
/** Of one version. */
const shownMax = 3

export interface VersionKey {
  readonly version: bigint
  readonly validFrom: string
  /** The end of the run; null while it runs or is not stored. */
  readonly endedAt: string | null
}

const versions = `unnest($4::bigint[], $5::timestamptz[], $6::timestamptz[]) as v (version, began_at, ended_at)`
const until = "coalesce(v.ended_at, v.began_at + interval '10 minutes')"

export const eventsStatement = Statement.make({
  name: "look for the events of versions",
  params: ["text", "text", "text", "int8[]", "timestamptz[]", "timestamptz[]"],
  columns: { version: "int8", eventId: "text", eventType: "text", receivedAt: "timestamptz" },
  text: `select v.version, e.event_id as "eventId", e.event_type as "eventType", e.received_at as "receivedAt" from ${versions}
    cross join lateral (
      select n.* from (
        select event_id, event_type, received_at, company, resource, record_id from tributary.inbox
         where state in ('done', 'skipped') and resolved_at >= v.began_at and resolved_at <= ${until}
         order by resolved_at limit ${scannedMax}) n
       where n.company = $1 and n.resource = $2 and n.record_id = $3 limit ${shownMax}) e`
})

export const pushedStatement = Statement.make({
  name: "look for the pushed rows of versions",
  params: ["text", "text", "text", "int8[]", "timestamptz[]", "timestamptz[]"],
  columns: { version: "int8", row: "int8", push: "int8?", line: "int8?", operation: "text", outcome: "text?" },
  text: `select v.version, o.id as row, o.push_id as push, o.line, o.operation, o.outcome from ${versions}
    cross join lateral (
      select * from tributary.outbox
       where resolved_at >= v.began_at and resolved_at <= ${until} and state = 'done'
         and company = $1 and resource = $2 and record_id = $3 limit ${shownMax}) o`
})

export type VersionEvent = Statement.RowOf<typeof eventsStatement>
export type PushedRow = Statement.RowOf<typeof pushedStatement>

export interface Origins {
  readonly events: ReadonlyArray<VersionEvent>
  readonly pushed: ReadonlyArray<PushedRow>
}

/** The origins of versions from webhooks, and of those from pushes. */
export const readOrigins = Effect.fnUntraced(function* (
  record: { readonly company: string; readonly resource: string; readonly id: string },
  webhooks: ReadonlyArray<VersionKey>,
  pushes: ReadonlyArray<VersionKey>
) {
  const valuesOf = (keys: ReadonlyArray<VersionKey>) =>
    [
      record.company,
      record.resource,
      record.id,
      keys.map(({ version }) => version),
      keys.map(({ validFrom }) => validFrom),
      // The types of arrays of parameters have no null.
      keys.map(({ endedAt }) => endedAt) as ReadonlyArray<string>
    ] as const
  return {
    events: webhooks.length === 0 ? [] : yield* Statement.run(eventsStatement, valuesOf(webhooks)),
    pushed: pushes.length === 0 ? [] : yield* Statement.run(pushedStatement, valuesOf(pushes))
  } satisfies Origins
})

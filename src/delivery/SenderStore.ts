/**
 * Statements of the sender: leases, what waits, and the result of a round.
 *
 * Promise: only the process with the newest fence of an endpoint stores results. A round is stored as a whole or not at
 * all. All times are the warehouse's. An alert route is an endpoint whose feed is `tributary.alert_messages`.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { changeColumns, changeSql, type Position } from "../changes/ChangeFeed.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { previousSecret, retriesOf, update } from "./EndpointStore.ts"
import type { Resolution, Wait } from "./Resolve.ts"

/** Another process may send after a silence of this length. */
const leaseSeconds = 6

/** The lease of a process that waits for the answer of an alert route. */
const requestSeconds = 20

/** Another process sends to the endpoint now, or it was paused or removed. */
export class LeaseLost extends Data.TaggedError("LeaseLost")<{ readonly endpoint: string }> {
  override get message(): string {
    return `endpoint ${this.endpoint} is sent to by another process, or was changed`
  }
}

/** The right of one process to send to an endpoint, as long as no other one has a newer fence. */
export interface Lease {
  readonly name: string
  readonly fence: bigint
}

export const leaseStatement = Statement.make({
  name: "lease the endpoints",
  params: ["text", "text[]", "bool"],
  text: `with free as (
           select name from tributary.change_endpoints
            where state = 'active' and case origin when 'file' then name = any($2) else $3 end
              and (process_id = $1 or leased_until is null or leased_until < tributary.now())
            order by name for update skip locked)
         update tributary.change_endpoints e
            set leased_until = greatest(tributary.now() + interval '${leaseSeconds} seconds', case when e.process_id = $1 then e.leased_until end),
                process_id = $1,
                fence = e.fence + case when e.process_id = $1 then 0 else 1 end
           from free where e.name = free.name`
})

/** Leases endpoints that no other process sends to: those whose secrets the process has, of the file and of the warehouse. */
export const lease = (processId: string, fileNames: ReadonlyArray<string>, hasKey: boolean) =>
  Statement.run(leaseStatement, [processId, fileNames, hasKey])

/** The endpoints that this process sends to. */
export const readLeased = (processId: string) =>
  Query.run(
    control
      .selectFrom("tributary.change_endpoints")
      .select(["name", "fence", "kind"])
      .where((is) => is.and({ process_id: processId, state: "active" }))
      .orderBy("name")
  )

export type LeasedEndpoint = Effect.Success<ReturnType<typeof readLeased>>[number]

export const release = (processId: string) =>
  Query.run(update.where("process_id", "=", processId).set({ leased_until: null, process_id: null }))

/** The newest alert message. */
const alertsEnd = control
  .selectFrom("tributary.alert_messages")
  .select((of) => of.fn.coalesce(of.fn.max("id"), of.val(0n)).as("id"))

/** The ends of the feeds and the time. */
export const readEnds = Query.first(
  control
    .selectFrom("tributary.change_feed")
    .select(["last_position as changes", alertsEnd.as("alerts"), Query.epochMs(Query.now).as("nowMs")])
)

/** The endpoint, as long as the process with this fence sends to it. */
export const load = Effect.fnUntraced(function* ({ name, fence }: Lease) {
  // One snapshot: the number of a company is stored before its first change.
  const row = yield* Query.first(
    control
      .selectFrom("tributary.change_endpoints as e")
      .crossJoin("tributary.change_feed as f")
      .leftJoin("tributary.change_batches as b", "b.last_position", "f.last_position")
      .leftJoin("tributary.companies as c", "c.company", "e.only_company")
      .select(["e.name", "e.kind", "e.url", "e.only_company as onlyCompany", "c.company_id as companyId"])
      .select(["e.resources", "e.operations", "e.fields", "e.batch_max as batchMax", "e.retry_hours as retryHours"])
      .select(["e.failures", "e.allow_private as allowPrivate", "e.secret", previousSecret])
      .select(["e.last_position as lastPosition", "e.attempts", "e.last_token as lastToken"])
      .select((of) => [
        Query.epochMs(of.ref("e.failing_since")).as("failingSinceMs"),
        Query.epochMs(of.ref("e.next_attempt_at")).as("nextAttemptMs"),
        Query.epochMs(of.ref("e.succeeded_at")).as("succeededMs"),
        Query.epochMs(Query.now).as("nowMs"),
        of.case("e.kind").when("changes").then(of.ref("f.last_position")).else(alertsEnd).end().as("end"),
        of.fn<string | null>("to_hex", ["b.token"]).as("endToken"),
        of
          .exists(
            of
              .selectFrom("tributary.change_retries as r")
              .whereRef("r.endpoint", "=", "e.name")
              .where("r.state", "=", "waiting")
          )
          .as("hasWaiting")
      ])
      .where((is) => is.and({ "e.name": name, "e.fence": fence, "e.state": "active" }))
  )
  return row ?? (yield* new LeaseLost({ endpoint: name }))
})

export type EndpointRow = Effect.Success<ReturnType<typeof load>>

/** Whether the endpoint is tried by one message, since it failed as a whole. */
export const isProbed = ({ nextAttemptMs, failures }: EndpointRow): boolean => nextAttemptMs !== null && failures > 0

/** The changes that wait. */
export const readWaiting = (name: string) =>
  Query.run(
    control
      .selectFrom("tributary.change_retries")
      .select(["position", "company_number as companyId", "resource", "record_id as recordId", "attempts"])
      .select((of) => [
        Query.epochMs(of.ref("failed_at")).as("failedMs"),
        Query.epochMs(of.ref("next_attempt_at")).as("nextAttemptMs")
      ])
      .where((is) => is.and({ endpoint: name, state: "waiting" }))
      .orderBy("position")
  )

export const changesStatement = Statement.make({
  name: "read single changes of the feed",
  params: ["int8[]"],
  columns: changeColumns,
  text: `select ${changeSql}
           from unnest($1::bigint[]) p(place) cross join tributary.change_feed f
          cross join lateral tributary.changes_after(p.place - 1, 1) c
          where p.place > f.removed_through and p.place <= f.last_position and c."position" = p.place order by 1`
})

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms))

const heldBy = ({ name, fence }: Lease) => update.where((is) => is.and({ name, fence }))

const orLost = <A>({ name }: Lease, found: Sql.Query<A | null>) =>
  Effect.flatMap(found, (row) => (row === null ? new LeaseLost({ endpoint: name }) : Effect.succeed(row)))

/**
 * Stores the position before a message is sent whose outcome a crash would leave unknown. The lease outlasts its request,
 * also that of a process that stops.
 */
export const hold = (lease: Lease, position: bigint) =>
  orLost(
    lease,
    Query.first(
      heldBy(lease)
        .where("state", "=", "active")
        .set({ last_position: position, leased_until: Query.nowPlus(requestSeconds * 1000) })
    )
  )

/** Stores the position and the progress of an endpoint. Answers the number of attempts before. */
export const advance = (lease: Lease, position: Position, resolution: Resolution, attempts: number) =>
  Effect.map(
    orLost(
      lease,
      Query.first(
        heldBy(lease)
          .set((of) => ({
            last_position: position.number,
            last_token: position.token,
            failing_since: dateOf(resolution.failingSinceMs),
            failures: resolution.failures,
            next_attempt_at: dateOf(resolution.nextAttemptMs),
            ...(resolution.hasSuccess && { succeeded_at: Query.now }),
            attempts: of("attempts", "+", BigInt(attempts)),
            delivered: of("delivered", "+", BigInt(resolution.delivered.length))
          }))
          .returning("attempts")
      )
    ),
    (row) => row.attempts - BigInt(attempts)
  )

/** Ends the deliveries of an endpoint. One that was paused meanwhile stays paused. */
export const end = (lease: Lease, reason: string) =>
  Query.run(heldBy(lease).where("state", "=", "active").set({ state: "dead", state_since: Query.now, reason }))

/** Deletes changes that wait no longer, where they wait. */
export const deleteWaiting = (name: string, positions: ReadonlyArray<bigint>) =>
  Query.run(
    control
      .deleteFrom("tributary.change_retries")
      .where("endpoint", "=", name)
      .where("position", "=", Query.anyOf(positions))
  )

export const waitStatement = Statement.make({
  name: "store changes that wait",
  params: ["text", "jsonb"],
  text: `insert into tributary.change_retries
                (endpoint, "position", company_number, resource, record_id, state, attempts, failed_at, next_attempt_at, error)
         select $1, w."position", w."companyId", w.resource, w."recordId", w.state, w.attempts, to_timestamp(w."failedMs" / 1000),
                to_timestamp(w."nextAttemptMs" / 1000), w.error
           from jsonb_to_recordset($2) w("position" bigint, "companyId" bigint, resource text, "recordId" bigint, state text,
                attempts integer, "failedMs" float8, "nextAttemptMs" float8, error text)
         on conflict (endpoint, "position") do update
            set state = excluded.state, attempts = excluded.attempts, failed_at = excluded.failed_at,
                next_attempt_at = excluded.next_attempt_at, error = excluded.error`
})

const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? item.toString() : item))

/** Stores what waits, or replaces it. */
export const storeWaits = (name: string, waits: ReadonlyArray<Wait>) =>
  waits.length === 0 ? Effect.void : Statement.run(waitStatement, [name, toJson(waits)])

/** Makes what failed due at once. A message of a digest keeps its time. */
export const makeDue = (name: string) =>
  Query.run(retriesOf(name, "waiting").where("attempts", ">", 0).set({ next_attempt_at: Query.now }))

/** Dead letters that are kept for each endpoint. */
const deadMax = 10_000

/** Deletes the oldest dead letters. */
export const deleteOldDead = (name: string) =>
  Query.run(
    control
      .deleteFrom("tributary.change_retries")
      .where((is) => is.and({ endpoint: name, state: "dead" }))
      .where("position", "<=", (of) =>
        of
          .selectFrom("tributary.change_retries")
          .select("position")
          .where((is) => is.and({ endpoint: name, state: "dead" }))
          .orderBy("position", "desc")
          .offset(deadMax)
          .limit(1)
      )
  )

/** The length of the log of an endpoint. */
const logMax = 1000

export const logStatement = Statement.make({
  name: "write the delivery log",
  params: ["text", "int8", "jsonb"],
  text: `insert into tributary.change_attempts
                (endpoint, slot, number, message_id, first_position, changes, result, status, error, duration_ms)
         select $1, (($2 + l.place) % ${logMax})::integer, $2 + l.place, l.id, l.first, l.changes, l.result, l.status, l.error, l.ms
           from jsonb_to_recordset($3) l(place bigint, id text, first bigint, changes integer, result text, status integer,
                error text, ms integer)
         on conflict (endpoint, slot) do update
            set number = excluded.number, message_id = excluded.message_id, first_position = excluded.first_position,
                changes = excluded.changes, result = excluded.result, status = excluded.status, error = excluded.error,
                duration_ms = excluded.duration_ms, at = excluded.at`
})

/** Writes entries after so many. Of too many entries the first ones are left out. */
export const writeLog = (name: string, before: bigint, entries: ReadonlyArray<object>) => {
  const kept = entries.slice(-logMax).map((entry, place) => ({ ...entry, place }))
  return kept.length === 0 ? Effect.void : Statement.run(logStatement, [name, before, toJson(kept)])
}

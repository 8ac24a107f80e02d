/**
 * Statements of the sender: leases, what waits, and the result of a round.
 *
 * Promise: only the process with the newest fence of an endpoint stores results. A round is stored as a whole or not at
 * all. All times are the warehouse's.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { changeColumns, changeSql } from "../changes/ChangeFeed.ts"
import { epochMs, type Query } from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"

/** Another process may send after a silence of this length. */
const leaseSeconds = 6

/** Another process sends to the endpoint now, or it was paused or removed. */
export class LeaseLost extends Data.TaggedError("LeaseLost")<{ readonly endpoint: string }> {
  override get message(): string {
    return `endpoint ${this.endpoint} is sent to by another process, or was changed`
  }
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
            set leased_until = tributary.now() + interval '${leaseSeconds} seconds', process_id = $1,
                fence = e.fence + case when e.process_id = $1 then 0 else 1 end
           from free where e.name = free.name`
})

export const leasedStatement = Statement.make({
  name: "list the leased endpoints",
  params: ["text"],
  columns: { name: "text", fence: "int8" },
  text: "select name, fence from tributary.change_endpoints where process_id = $1 and state = 'active' order by name"
})

export const releaseStatement = Statement.make({
  name: "release the endpoints",
  params: ["text"],
  text: "update tributary.change_endpoints set leased_until = null, process_id = null where process_id = $1"
})

export const endStatement = Statement.make({
  name: "read the end of the feed and the time",
  columns: { end: "int8", nowMs: "float8" },
  text: `select last_position as "end", ${epochMs("tributary.now()")} as "nowMs" from tributary.change_feed`
})

export const loadStatement = Statement.make({
  name: "read an endpoint",
  params: ["text", "int8"],
  columns: {
    ...Statement.columns("text", "name", "url"),
    onlyCompany: "text?",
    companyId: "int8?",
    ...Statement.columns("text[]?", "resources", "operations", "fields"),
    ...Statement.columns("int4", "batchMax", "retryHours", "failures"),
    allowPrivate: "bool",
    ...Statement.columns("bytea?", "secret", "previousSecret"),
    ...Statement.columns("int8", "lastPosition", "attempts"),
    lastToken: "text?",
    ...Statement.columns("float8?", "failingSinceMs", "nextAttemptMs", "succeededMs"),
    nowMs: "float8",
    end: "int8",
    endToken: "text?",
    hasWaiting: "bool?"
  },
  // One snapshot: the number of a company is stored before its first change.
  text: `select e.name, e.url, e.only_company as "onlyCompany",
                (select company_id from tributary.companies where company = e.only_company) as "companyId",
                e.resources, e.operations, e.fields, e.batch_max as "batchMax", e.retry_hours as "retryHours", e.failures,
                e.allow_private as "allowPrivate", e.secret,
                case when e.previous_until > tributary.now() then e.previous_secret end as "previousSecret",
                e.last_position as "lastPosition", e.attempts, e.last_token as "lastToken",
                ${epochMs("e.failing_since")} as "failingSinceMs", ${epochMs("e.next_attempt_at")} as "nextAttemptMs",
                ${epochMs("e.succeeded_at")} as "succeededMs", ${epochMs("tributary.now()")} as "nowMs",
                f.last_position as "end", to_hex(b.token) as "endToken",
                exists (select from tributary.change_retries r where r.endpoint = e.name and r.state = 'waiting') as "hasWaiting"
           from tributary.change_endpoints e cross join tributary.change_feed f
           left join tributary.change_batches b on b.last_position = f.last_position
          where e.name = $1 and e.fence = $2 and e.state = 'active'`
})

export type EndpointRow = Statement.RowOf<typeof loadStatement>

/** The endpoint, as long as the process with this fence sends to it. */
export const load = Effect.fnUntraced(function* (name: string, fence: bigint) {
  const [row] = yield* Statement.run(loadStatement, [name, fence])
  return row ?? (yield* new LeaseLost({ endpoint: name }))
})

export const waitingStatement = Statement.make({
  name: "read the changes that wait",
  params: ["text"],
  columns: {
    ...Statement.columns("int8", "position", "companyId"),
    resource: "text",
    recordId: "int8?",
    attempts: "int4",
    failedMs: "float8?",
    nextAttemptMs: "float8"
  },
  text: `select "position", company_number as "companyId", resource, record_id as "recordId", attempts,
                ${epochMs("failed_at")} as "failedMs", ${epochMs("next_attempt_at")}::float8 as "nextAttemptMs"
           from tributary.change_retries where endpoint = $1 and state = 'waiting' order by "position"`
})

/** A change that waits. */
export type Waiting = Statement.RowOf<typeof waitingStatement>

export const readWaiting = (name: string): Query<ReadonlyArray<Waiting>> => Statement.run(waitingStatement, [name])

export const changesStatement = Statement.make({
  name: "read single changes of the feed",
  params: ["int8[]"],
  columns: changeColumns,
  text: `select ${changeSql}
           from unnest($1::bigint[]) p(place) cross join tributary.change_feed f
          cross join lateral tributary.changes_after(p.place - 1, 1) c
          where p.place > f.removed_through and p.place <= f.last_position and c."position" = p.place order by 1`
})

export const companiesStatement = Statement.make({
  name: "read the names of companies",
  params: ["int8[]"],
  columns: { companyId: "int8", company: "text?" },
  text: `select company_id as "companyId", min(company) as company from tributary.companies where company_id = any($1) group by 1`
})

export const advanceStatement = Statement.make({
  name: "store the position of an endpoint",
  params: [
    ...(["text", "int8", "int8", "text?", "text?", "text?"] as const),
    ...(["float8?", "int4", "float8?", "bool", "int8", "int8"] as const)
  ],
  columns: { attempts: "int8" },
  text: `update tributary.change_endpoints
            set last_position = $3, last_token = $4,
                state = case when state = 'active' then coalesce($5, state) else state end,
                state_since = case when state = 'active' and $5::text is not null then tributary.now() else state_since end,
                reason = case when state = 'active' then $6 else reason end,
                failing_since = to_timestamp($7::float8 / 1000), failures = $8, next_attempt_at = to_timestamp($9::float8 / 1000),
                succeeded_at = case when $10 then tributary.now() else succeeded_at end,
                attempts = attempts + $11, delivered = delivered + $12
          where name = $1 and fence = $2 returning attempts`
})

export const deleteStatement = Statement.make({
  name: "delete changes that wait no longer",
  params: ["text", "int8[]"],
  text: `delete from tributary.change_retries where endpoint = $1 and "position" = any($2)`
})

export const waitStatement = Statement.make({
  name: "store changes that wait",
  params: ["text", "jsonb"],
  text: `insert into tributary.change_retries
                (endpoint, "position", company_number, resource, record_id, state, attempts, failed_at, next_attempt_at, error)
         select $1, w."position", w.company, w.resource, w.record, w.state, w.attempts, to_timestamp(w.failed / 1000),
                to_timestamp(w.next / 1000), w.error
           from jsonb_to_recordset($2) w("position" bigint, company bigint, resource text, record bigint, state text,
                attempts integer, failed float8, next float8, error text)
         on conflict (endpoint, "position") do update
            set state = excluded.state, attempts = excluded.attempts, failed_at = excluded.failed_at,
                next_attempt_at = excluded.next_attempt_at, error = excluded.error`
})

export const dueStatement = Statement.make({
  name: "make waiting changes due",
  params: ["text"],
  text: "update tributary.change_retries set next_attempt_at = tributary.now() where endpoint = $1 and state = 'waiting'"
})

/** Dead letters that are kept for each endpoint. */
const deadMax = 10_000

export const forgetStatement = Statement.make({
  name: "delete the oldest dead letters",
  params: ["text"],
  text: `delete from tributary.change_retries r where r.endpoint = $1 and r.state = 'dead' and r."position" <= (
           select o."position" from tributary.change_retries o where o.endpoint = $1 and o.state = 'dead'
            order by o."position" desc offset ${deadMax} limit 1)`
})

/** The length of the log of an endpoint. */
export const logMax = 1000

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

export const endEndpointStatement = Statement.make({
  name: "end the deliveries of an endpoint",
  params: ["text", "int8", "text"],
  text: `update tributary.change_endpoints set state = 'dead', state_since = tributary.now(), reason = $3
          where name = $1 and fence = $2 and state = 'active'`
})

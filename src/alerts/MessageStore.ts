/**
 * The outbox of alert messages: claims with a lease, and the results.
 *
 * Promise: a message is in the batch of one process at a time, and a batch keeps its messages and its idempotency key over
 * all attempts. A message about a condition is not sent before an earlier one of the same condition and route. A process
 * that is killed before its request began leaves a batch that another process sends when the lease has ended. A process
 * that is killed during the request leaves an unknown outcome: a receiver that knows idempotency keys gets the batch again
 * with the same key; for any other receiver the messages become `uncertain` and are not sent again.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import type { Kind, Severity } from "./Kinds.ts"
import type { Event } from "./Transitions.ts"

/** More messages of a route that are due together are sent as one. */
export const apartMax = 5
/** The maximum number of messages in a batch. */
export const batchMax = 50

const leaseSeconds = 30

const messageColumns = {
  id: "int8",
  event: Statement.as<Event>("text"),
  kind: Statement.as<Kind | "test">("text"),
  ...Statement.columns("text", "company", "subject"),
  severity: Statement.as<Severity>("text"),
  ...Statement.columns("timestamptz", "since", "at"),
  ...Statement.columns("text", "what", "remedy")
} as const
const messageFields = "id, event, kind, company, subject, severity, since, at, what, remedy"

export type AlertMessage = Statement.RowOf<Statement.Statement<[], typeof messageColumns>>

/** Messages that one request sends. */
export interface Batch {
  readonly id: bigint
  /** Attempts, this one included. */
  readonly attempts: number
  readonly firstAttemptAt: Date
  readonly messages: ReadonlyArray<AlertMessage>
}

export const lockStatement = Statement.make({
  name: "lock a route of alerts",
  params: ["text"],
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(hashtextextended('tributary:alerts:' || $1, 0))"
})

const isDue = (alias: string, now: string) =>
  `${alias}.state in ('pending', 'sending') and ${alias}.due_at <= ${now} and (${alias}.state = 'pending' or ${alias}.lease_expires_at <= ${now})`

export const dueStatement = Statement.make({
  name: "look for messages of alerts that are due",
  params: ["text"],
  columns: { isDue: "bool" },
  text: `select exists (select from tributary.alert_messages m cross join (select tributary.now() as at) now
      where m.route = $1 and ${isDue("m", "now.at")}) as "isDue"`
})

export const uncertainStatement = Statement.make({
  name: "give up messages of alerts with an unknown outcome",
  params: ["text"],
  text: `update tributary.alert_messages set state = 'uncertain', resolved_at = tributary.now(), lease_owner = null, lease_expires_at = null,
           last_error = 'the process ended during the request; the receiver may have the message'
    where route = $1 and state = 'sending' and sending_at is not null and lease_expires_at <= tributary.now()`
})

export const claimStatement = Statement.make({
  name: "claim messages of alerts",
  params: ["text", "text", "bool"],
  columns: { ...messageColumns, batch: "int8", attempts: "int4", firstAttemptAt: "timestamptz" },
  text: `with now as materialized (select tributary.now() as at),
    due as materialized (
      select m.id, m.batch, coalesce(m.batch, m.id) as place
        from tributary.alert_messages m cross join now
       where m.route = $1 and ${isDue("m", "now.at")}
         and not exists (select from tributary.alert_messages e
               where e.condition = m.condition and e.route = m.route and e.id < m.id and e.state in ('pending', 'sending')
                 and e.batch is distinct from m.batch and (e.batch is not null or e.due_at > now.at))
       order by 3, 1 limit ${batchMax}),
    first as (select id, batch from due order by place, id limit 1),
    chosen as (
      select d.id from due d cross join first f
       where case when f.batch is not null then d.batch = f.batch
                  else d.batch is null and (d.id = f.id or $3::bool or (select count(*) from due where batch is null) > ${apartMax}) end),
    claimed as (
      update tributary.alert_messages m
         set state = 'sending', batch = coalesce(m.batch, (select min(id) from chosen)), attempts = m.attempts + 1, lease_owner = $2,
             lease_expires_at = now.at + interval '${leaseSeconds} seconds', sending_at = null,
             first_attempt_at = coalesce(m.first_attempt_at, now.at)
        from now where m.id in (select id from chosen)
      returning m.*)
    select ${messageFields}, coalesce(batch, id) as batch, attempts, coalesce(first_attempt_at, at) as "firstAttemptAt"
      from claimed order by id`
})

/** The next batch of a route; null while none is due. A digest takes all messages that are due. */
export const claim = Effect.fnUntraced(function* (
  route: string,
  owner: string,
  { isDigest, isIdempotent }: { readonly isDigest: boolean; readonly isIdempotent: boolean }
) {
  const [due] = yield* Statement.run(dueStatement, [route])
  if (due?.isDue !== true) return null
  const rows = yield* transaction(
    Effect.gen(function* () {
      yield* Statement.run(lockStatement, [route])
      if (!isIdempotent) yield* Statement.run(uncertainStatement, [route])
      return yield* Statement.run(claimStatement, [route, owner, isDigest])
    })
  )
  const [first] = rows
  if (first === undefined) return null
  const { batch: id, attempts, firstAttemptAt } = first
  return { id, attempts, firstAttemptAt, messages: rows } satisfies Batch
})

/** The rows of a batch that this process still has. */
const isClaim = "batch = $1 and route = $2 and lease_owner = $3 and state = 'sending'"
const claimParams = ["int8", "text", "text"] as const

export const beginStatement = Statement.make({
  name: "begin a request with messages of alerts",
  params: claimParams,
  columns: { id: "int8" },
  text: `update tributary.alert_messages
       set sending_at = tributary.now(), lease_expires_at = tributary.now() + interval '${leaseSeconds} seconds'
     where ${isClaim} and lease_expires_at > tributary.now() returning id`
})

/** Stores that the request begins. Answers false, and nothing may be sent, when the lease has ended. */
export const begin = (batch: Batch, route: string, owner: string): Sql.Query<boolean> =>
  Effect.map(Statement.run(beginStatement, [batch.id, route, owner]), (rows) => rows.length === batch.messages.length)

export const finishStatement = Statement.make({
  name: "store the result of messages of alerts",
  params: [...claimParams, "text", "text?", "float8"],
  text: `update tributary.alert_messages
       set state = $4, last_error = $5, sending_at = null, lease_owner = null, lease_expires_at = null,
           due_at = case when $4 = 'pending' then tributary.now() + make_interval(secs => $6::float8) else due_at end,
           resolved_at = case when $4 <> 'pending' then tributary.now() end
     where ${isClaim}`
})

export interface Result {
  readonly state: "pending" | "sent" | "failed" | "uncertain"
  readonly error: string | null
  /** Until the next attempt of a pending batch. */
  readonly delaySeconds?: number
}

export const finish = (batch: Batch, route: string, owner: string, { state, error, delaySeconds = 0 }: Result) =>
  Effect.asVoid(Statement.run(finishStatement, [batch.id, route, owner, state, error, delaySeconds]))

export const historyStatement = Statement.make({
  name: "read the messages of alerts",
  params: ["int4"],
  columns: {
    ...messageColumns,
    route: "text",
    state: Statement.as<"sending" | Result["state"]>("text"),
    dueAt: "timestamptz",
    attempts: "int4",
    resolvedAt: "timestamptz?",
    error: "text?"
  },
  text: `select ${messageFields}, route, state, due_at as "dueAt", attempts, resolved_at as "resolvedAt", last_error as error
    from tributary.alert_messages order by id desc limit $1::int`
})
export type HistoryMessage = Statement.RowOf<typeof historyStatement>

/** The newest messages of all routes. */
export const readHistory = (messagesMax: number) => Statement.run(historyStatement, [messagesMax])

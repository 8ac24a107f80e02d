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
import { expressionBuilder } from "kysely"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control, type ControlTables } from "../postgres/Tables.ts"
import { transaction } from "../postgres/Transaction.ts"
import type { Kind } from "./Kinds.ts"

/** More messages of a route that are due together are sent as one. */
export const apartMax = 5
/** The maximum number of messages in a batch. */
export const batchMax = 50

const leaseSeconds = 30

const messageColumns = [
  "id",
  "event",
  "kind",
  "company",
  "subject",
  "severity",
  "since",
  "at",
  "what",
  "remedy"
] as const

/** The kind, for the types: a person can ask for a test of a route. */
interface Kinds {
  readonly kind: Kind | "test"
}

/** The newest messages of all routes. */
export const readHistory = (messagesMax: number) =>
  Query.run(
    control
      .selectFrom("tributary.alert_messages")
      .select(messageColumns)
      .select(["route", "state", "attempts", "due_at as dueAt", "resolved_at as resolvedAt", "last_error as error"])
      .orderBy("id", "desc")
      .limit(messagesMax)
      .$narrowType<Kinds>()
  )
export type HistoryMessage = Effect.Success<ReturnType<typeof readHistory>>[number]
export type AlertMessage = Pick<HistoryMessage, (typeof messageColumns)[number]>

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
  columns: { batch: "int8" },
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
      returning m.batch, m.id)
    select coalesce(batch, id) as batch from claimed limit 1`
})

/** The next batch of a route; null while none is due. A digest takes all messages that are due. */
export const claim = Effect.fnUntraced(function* (
  route: string,
  owner: string,
  { isDigest, isIdempotent }: { readonly isDigest: boolean; readonly isIdempotent: boolean }
) {
  const [due] = yield* Statement.run(dueStatement, [route])
  if (due?.isDue !== true) return null
  return yield* transaction(
    Effect.gen(function* () {
      yield* Statement.run(lockStatement, [route])
      if (!isIdempotent) yield* Statement.run(uncertainStatement, [route])
      const [claimed] = yield* Statement.run(claimStatement, [route, owner, isDigest])
      return claimed === undefined ? null : yield* readBatch(claimed.batch, owner)
    })
  )
})

/** The messages of a batch that this process still has. */
const isClaim = (batch: bigint, owner: string) =>
  expressionBuilder<ControlTables, "tributary.alert_messages">().and({ batch, lease_owner: owner, state: "sending" })

const readBatch = Effect.fnUntraced(function* (id: bigint, owner: string) {
  const messages = yield* Query.run(
    control
      .selectFrom("tributary.alert_messages")
      .select([...messageColumns, "attempts", "first_attempt_at as firstAttemptAt"])
      .where(isClaim(id, owner))
      .orderBy("id")
      .$narrowType<Kinds>()
  )
  const { attempts, firstAttemptAt } = messages[0]!
  return { id, attempts, firstAttemptAt: firstAttemptAt!, messages } satisfies Batch
})

const updateBatch = (batch: Batch, owner: string) =>
  control.updateTable("tributary.alert_messages").where(isClaim(batch.id, owner)).returning("id")

/** Stores that the request begins. Answers false, and nothing may be sent, when the lease has ended. */
export const begin = (batch: Batch, owner: string) =>
  Effect.map(
    Query.run(
      updateBatch(batch, owner)
        .where("lease_expires_at", ">", Query.now)
        .set({ sending_at: Query.now, lease_expires_at: Query.nowPlus(leaseSeconds * 1000) })
    ),
    (rows) => rows.length === batch.messages.length
  )

export interface Result {
  readonly state: "pending" | "sent" | "failed" | "uncertain"
  readonly error: string | null
  /** Until the next attempt of a pending batch. */
  readonly delaySeconds?: number
}

export const finish = (batch: Batch, owner: string, { state, error, delaySeconds = 0 }: Result) =>
  Query.run(
    updateBatch(batch, owner).set({
      state,
      last_error: error,
      sending_at: null,
      lease_owner: null,
      lease_expires_at: null,
      ...(state === "pending"
        ? { due_at: Query.nowPlus(delaySeconds * 1000), resolved_at: null }
        : { resolved_at: Query.now })
    })
  )

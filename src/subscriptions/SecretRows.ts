/** Statements on `tributary.webhook_secrets`. A row never changes its secret. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** How long an earlier secret is accepted: an hour longer than the source signs with it. */
export const acceptedHoursOf = (overlap: Duration.Duration): number => Math.ceil(Duration.toHours(overlap)) + 1
/** A process with another token may receive what that token subscribed to, and does not report when it stops. */
const otherTokenDays = 30

export interface SecretRow {
  readonly id: string
  readonly company: string
  readonly subscription: string | null
  /** Base64. */
  readonly sealed: string
  readonly state: "next" | "current" | "previous"
}

/** The accepted secrets of these companies; those in use first, then the newest. */
export const select = (
  sql: SqlClient.SqlClient,
  companies: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<SecretRow>, SqlError> =>
  sql.unsafe<SecretRow>(
    `select s.id::text as id, company, subscription_id as subscription, encode(sealed, 'base64') as sealed, state
       from tributary.webhook_secrets s
      where company in (select jsonb_array_elements_text($1::jsonb))
        and (state <> 'previous' or accepted_until > tributary.now())
      order by array_position(array['current', 'next', 'previous'], state), s.id desc`,
    [JSON.stringify(companies)]
  )

/** Answers the id of the row. */
export const insert = (
  sql: SqlClient.SqlClient,
  company: string,
  subscriptionId: string,
  sealed: Uint8Array,
  state: "next" | "current"
): Effect.Effect<string, SqlError> =>
  Effect.map(
    sql<{ id: string }>`
      insert into tributary.webhook_secrets (company, subscription_id, sealed, state)
      values (${company}, ${subscriptionId}, decode(${Buffer.from(sealed).toString("base64")}, 'base64'), ${state})
      returning id::text as id`,
    ([row]) => row!.id
  )

/** Makes a secret the current one, and those before it the previous ones; deletes previous ones that have expired. */
export const promote = (
  sql: SqlClient.SqlClient,
  company: string,
  subscriptionId: string,
  id: string,
  overlap: Duration.Duration
): Effect.Effect<unknown, SqlError> =>
  sql.unsafe(
    `with expired as (
       delete from tributary.webhook_secrets
        where company = $1 and state = 'previous' and accepted_until <= tributary.now()
     )
     update tributary.webhook_secrets
        set state = case when id = $3::bigint then 'current' else 'previous' end,
            accepted_until = case when id <> $3::bigint
                                  then tributary.now() + make_interval(hours => ${acceptedHoursOf(overlap)}) end
      where company = $1 and subscription_id = $2 and (state <> 'previous' or id = $3::bigint)`,
    [company, subscriptionId, id]
  )

/** Makes these secrets previous ones; those of another token (not in `ownIds`) expire later. */
export const expire = (
  sql: SqlClient.SqlClient,
  company: string,
  ids: ReadonlyArray<string>,
  ownIds: ReadonlyArray<string>,
  overlap: Duration.Duration
): Effect.Effect<unknown, SqlError> =>
  sql.unsafe(
    `update tributary.webhook_secrets
        set state = 'previous',
            accepted_until = tributary.now() + case when id in (select jsonb_array_elements_text($3::jsonb)::bigint)
              then make_interval(hours => ${acceptedHoursOf(overlap)}) else make_interval(days => ${otherTokenDays}) end
      where company = $1 and state <> 'previous'
        and id in (select jsonb_array_elements_text($2::jsonb)::bigint)`,
    [company, JSON.stringify(ids), JSON.stringify(ownIds)]
  )

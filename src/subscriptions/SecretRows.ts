/** Statements on `tributary.webhook_secrets`. A row never changes its secret. */
import * as Duration from "effect/Duration"
import * as Statement from "../postgres/Statement.ts"

/** How long an earlier secret is accepted: an hour longer than the source signs with it. */
export const acceptedHoursOf = (overlap: Duration.Duration): number => Math.ceil(Duration.toHours(overlap)) + 1
/** How long secrets of another token are accepted: its processes may still receive deliveries. */
const otherTokenDays = 30

/** The accepted secrets of these companies; those in use first, then the newest. */
export const select = Statement.make({
  name: "read the accepted secrets",
  params: ["jsonb"],
  columns: {
    id: "text",
    company: "text",
    subscription: "text?",
    /** Base64. */
    sealed: "text",
    state: Statement.as<"next" | "current" | "previous">("text")
  },
  text: `select s.id::text as id, company, subscription_id as subscription, encode(sealed, 'base64') as sealed, state
           from tributary.webhook_secrets s
          where company in (select jsonb_array_elements_text($1::jsonb))
            and (state <> 'previous' or accepted_until > tributary.now())
          order by array_position(array['current', 'next', 'previous'], state), s.id desc`
})

export type SecretRow = Statement.RowOf<typeof select>

export const insert = Statement.make({
  name: "store a secret",
  params: ["text", "text", "text", "text"],
  columns: { id: "text" },
  text: `insert into tributary.webhook_secrets (company, subscription_id, sealed, state)
         values ($1, $2, decode($3, 'base64'), $4) returning id::text as id`
})

export const replaceSealed = Statement.make({
  name: "store a secret under another token",
  params: ["int8", "text"],
  text: "update tributary.webhook_secrets set sealed = decode($2, 'base64') where id = $1"
})

/** Makes a secret the current one, and those before it the previous ones; deletes previous ones that have expired. */
export const promote = Statement.make({
  name: "promote a secret",
  params: ["text", "text", "int8", "int4"],
  text: `with expired as (
           delete from tributary.webhook_secrets
            where company = $1 and state = 'previous' and accepted_until <= tributary.now()
         )
         update tributary.webhook_secrets
            set state = case when id = $3 then 'current' else 'previous' end,
                accepted_until = case when id <> $3 then tributary.now() + make_interval(hours => $4) end
          where company = $1 and subscription_id = $2 and (state <> 'previous' or id = $3)`
})

/** Makes the secrets $2 previous ones; those of another token (not in $3) expire later. */
export const expire = Statement.make({
  name: "expire secrets",
  params: ["text", "jsonb", "jsonb", "int4"],
  text: `update tributary.webhook_secrets
            set state = 'previous',
                accepted_until = tributary.now() + case when id in (select jsonb_array_elements_text($3::jsonb)::bigint)
                  then make_interval(hours => $4) else make_interval(days => ${otherTokenDays}) end
          where company = $1 and state <> 'previous'
            and id in (select jsonb_array_elements_text($2::jsonb)::bigint)`
})

export const discard = Statement.make({
  name: "discard a refused secret",
  params: ["text", "int8"],
  text: "delete from tributary.webhook_secrets where company = $1 and id = $2 and state = 'next'"
})

export const forget = Statement.make({
  name: "delete the secrets of a subscription",
  params: ["text", "text"],
  text: "delete from tributary.webhook_secrets where company = $1 and subscription_id = $2"
})

export const inUse = Statement.make({
  name: "list the subscriptions with a secret",
  params: ["text"],
  columns: { id: "text?" },
  text: "select subscription_id as id from tributary.webhook_secrets where company = $1 and state in ('current', 'next')"
})

/**
 * The endpoints as a person changes them. Each function may run while a process sends: it sees the change within a
 * second.
 */
import * as Effect from "effect/Effect"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type { Position } from "../changes/ChangeFeed.ts"
import { type Query } from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import type { Definition, FileEndpoint } from "./Endpoint.ts"

/** How long an earlier secret signs too. */
export const previousHours = 24

export type EndpointState = "active" | "paused" | "dead"

/** What a reader of the warehouse may see of an endpoint. */
export const listStatement = Statement.make({
  name: "list the endpoints",
  columns: {
    ...Statement.columns("text", "name", "url"),
    origin: Statement.as<"file" | "command">("text"),
    company: "text?",
    ...Statement.columns("text[]?", "resources", "operations", "fields"),
    ...Statement.columns("int4", "batchMax", "retryHours", "failures"),
    allowPrivate: "bool",
    state: Statement.as<EndpointState>("text"),
    stateSince: "timestamptz",
    reason: "text?",
    lastPosition: "int8",
    ...Statement.columns("timestamptz?", "failingSince", "nextAttemptAt", "succeededAt"),
    ...Statement.columns("int8", "attempts", "delivered"),
    ...Statement.columns("int8?", "lag", "waiting", "dead"),
    lagMs: "float8?"
  },
  text: `select e.name, e.url, e.origin, e.only_company as company, e.resources, e.operations, e.fields, e.batch_max as "batchMax",
                e.retry_hours as "retryHours", e.failures, e.allow_private as "allowPrivate", e.state, e.state_since as "stateSince",
                e.reason, e.last_position as "lastPosition", e.failing_since as "failingSince",
                e.next_attempt_at as "nextAttemptAt", e.succeeded_at as "succeededAt", e.attempts, e.delivered,
                greatest(f.last_position - e.last_position, 0) as lag, r.waiting, r.dead,
                (extract(epoch from tributary.now() - least(r.since, b.landed_at)) * 1000)::float8 as "lagMs"
           from tributary.change_endpoints e cross join tributary.change_feed f
          cross join lateral (
            select count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'dead') as dead,
                   min(failed_at) filter (where state = 'waiting') as since
              from tributary.change_retries where endpoint = e.name) r
           left join lateral (
             select landed_at from tributary.change_batches where last_position > e.last_position order by last_position limit 1) b on true
          order by e.name`
})

/** An endpoint with its progress. `lag` counts the changes of the feed after its position, also those of no concern. */
export type EndpointStatus = Statement.RowOf<typeof listStatement>

/** Whether nothing proves yet that it accepts changes: it is active, and none was delivered. */
export const isUnproven = ({ state, failingSince, delivered }: EndpointStatus): boolean =>
  state === "active" && failingSince === null && delivered === 0n

export const list: Query<ReadonlyArray<EndpointStatus>> = Statement.run(listStatement)

export const find = (name: string): Query<EndpointStatus | undefined> =>
  Effect.map(list, (all) => all.find((one) => one.name === name))

const definitionParams = ["text", "text", "text?", "text[]?", "text[]?", "text[]?", "int4", "bool", "int4"] as const

const valuesOf = (one: Definition) =>
  [
    one.name,
    one.url,
    one.company,
    one.resources,
    one.operations,
    one.fields,
    one.batchMax,
    one.allowPrivate,
    one.retryHours
  ] as const

const definitionColumns =
  "name, url, only_company, resources, operations, fields, batch_max, allow_private, retry_hours"

export const addStatement = Statement.make({
  name: "add an endpoint",
  params: [...definitionParams, "bytea", "int8", "text?"],
  columns: { name: "text" },
  text: `insert into tributary.change_endpoints (${definitionColumns}, origin, secret, last_position, last_token)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'command', $10, $11, $12) on conflict (name) do nothing returning name`
})

/** Adds an endpoint, which gets the changes after the position. False: the name is used. */
export const add = (definition: Definition, sealed: Uint8Array, from: Position): Query<boolean> =>
  Effect.map(
    Statement.run(addStatement, [...valuesOf(definition), sealed, from.number, from.token]),
    (rows) => rows.length > 0
  )

/** The reason of a pause, for an endpoint that the file names no more. */
export const leftFile = "it is not in the configuration file any more"

export const applyStatement = Statement.make({
  name: "store an endpoint of the file",
  params: [...definitionParams, "int8", "text?"],
  text: `insert into tributary.change_endpoints as e (${definitionColumns}, origin, last_position, last_token)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'file', $10, $11)
         on conflict (name) do update
            set url = excluded.url, only_company = excluded.only_company, resources = excluded.resources,
                operations = excluded.operations, fields = excluded.fields, batch_max = excluded.batch_max,
                allow_private = excluded.allow_private, retry_hours = excluded.retry_hours, origin = 'file', secret = null,
                previous_secret = null, previous_until = null,
                state = case when e.reason = '${leftFile}' then 'active' else e.state end,
                reason = case when e.reason = '${leftFile}' then null else e.reason end`
})

export const leaveStatement = Statement.make({
  name: "pause the endpoints that left the file",
  params: ["text[]"],
  text: `update tributary.change_endpoints set state = 'paused', state_since = tributary.now(), reason = '${leftFile}'
          where origin = 'file' and state = 'active' and name <> all($1)`
})

/** Stores the endpoints of the file. A new one gets the changes from now on. One that the file names no more is paused. */
export const apply = (endpoints: ReadonlyArray<FileEndpoint>) =>
  transaction(
    Effect.gen(function* () {
      const end = yield* ChangeFeed.end
      for (const one of endpoints) {
        yield* Statement.run(applyStatement, [...valuesOf(one), end.number, end.token])
      }
      yield* Statement.run(leaveStatement, [endpoints.map(({ name }) => name)])
    })
  )

export const removeStatement = Statement.make({
  name: "remove an endpoint",
  params: ["text"],
  columns: { name: "text" },
  text: "delete from tributary.change_endpoints where name = $1 returning name"
})

/** Removes an endpoint with what waits and its log. False: there is none. */
export const remove = (name: string): Query<boolean> =>
  Effect.map(Statement.run(removeStatement, [name]), (rows) => rows.length > 0)

export const pauseStatement = Statement.make({
  name: "pause an endpoint",
  params: ["text", "text"],
  columns: { name: "text" },
  text: `update tributary.change_endpoints set state = 'paused', state_since = tributary.now(), reason = $2
          where name = $1 and state <> 'paused' returning name`
})

/** Stops the deliveries; changes wait in the feed. False: it was paused before. */
export const pause = (name: string, by: string): Query<boolean> =>
  Effect.map(Statement.run(pauseStatement, [name, `paused by ${by}`]), (rows) => rows.length > 0)

export const resumeStatement = Statement.make({
  name: "resume an endpoint",
  params: ["text", "int8?", "text?"],
  columns: { name: "text" },
  text: `update tributary.change_endpoints e
            set state = 'active', state_since = tributary.now(), reason = null, failing_since = null, failures = 0,
                next_attempt_at = null, fence = fence + 1, last_position = coalesce($2, last_position),
                last_token = case when $2::bigint is null then last_token else $3 end
          where name = $1 and (state <> 'active' or failing_since is not null or $2::bigint is not null) returning name`
})

export const dropStatement = Statement.make({
  name: "delete what waits after a position",
  params: ["text", "int8"],
  text: `delete from tributary.change_retries where endpoint = $1 and "position" > $2`
})

export const retryStatement = Statement.make({
  name: "retry what waits at once",
  params: ["text"],
  text: "update tributary.change_retries set next_attempt_at = tributary.now(), failed_at = null where endpoint = $1 and state = 'waiting'"
})

/** Sends again, at once, from the stored position or from another one. False: it was active and not failing. */
export const resume = (name: string, from: Position | null) =>
  transaction(
    Effect.gen(function* () {
      const rows = yield* Statement.run(resumeStatement, [name, from?.number ?? null, from?.token ?? null])
      if (rows.length === 0) return false
      if (from !== null) yield* Statement.run(dropStatement, [name, from.number])
      yield* Statement.run(retryStatement, [name])
      return true
    })
  )

export const replayStatement = Statement.make({
  name: "replay dead letters",
  params: ["text", "int8"],
  columns: { position: "int8" },
  text: `update tributary.change_retries
            set state = 'waiting', attempts = 0, failed_at = null, next_attempt_at = tributary.now()
          where endpoint = $1 and state = 'dead' and "position" >= $2 returning "position"`
})

/** Makes the dead letters from a position on wait again. Returns their number. */
export const replay = (name: string, since: bigint): Query<number> =>
  Effect.map(Statement.run(replayStatement, [name, since]), (rows) => rows.length)

export const rotateStatement = Statement.make({
  name: "replace the secret of an endpoint",
  params: ["text", "bytea"],
  columns: { name: "text" },
  text: `update tributary.change_endpoints
            set previous_secret = secret, previous_until = tributary.now() + interval '${previousHours} hours', secret = $2
          where name = $1 and origin = 'command' returning name`
})

/** Replaces the secret; the earlier one signs too for {@link previousHours}. */
export const rotate = (name: string, sealed: Uint8Array): Query<boolean> =>
  Effect.map(Statement.run(rotateStatement, [name, sealed]), (rows) => rows.length > 0)

export const secretsStatement = Statement.make({
  name: "read the sealed secrets of an endpoint",
  params: ["text"],
  columns: { name: "text", ...Statement.columns("bytea?", "secret", "previousSecret") },
  text: `select name, secret, case when previous_until > tributary.now() then previous_secret end as "previousSecret"
           from tributary.change_endpoints where name = $1`
})

export const attemptsStatement = Statement.make({
  name: "read the delivery log",
  params: ["text?", "int8"],
  columns: {
    endpoint: "text",
    number: "int8",
    messageId: "text",
    firstPosition: "int8",
    changes: "int4",
    result: Statement.as<"delivered" | "failed" | "dead" | "obsolete">("text"),
    status: "int4?",
    error: "text?",
    durationMs: "int4",
    at: "timestamptz"
  },
  text: `select endpoint, number, message_id as "messageId", first_position as "firstPosition", changes, result, status, error,
                duration_ms as "durationMs", at
           from tributary.change_attempts where $1::text is null or endpoint = $1 order by at desc, number desc limit $2`
})

/** The latest attempts, of one endpoint or of all. */
export const readLog = (
  endpoint: string | null,
  max: number
): Query<ReadonlyArray<Statement.RowOf<typeof attemptsStatement>>> => Statement.run(attemptsStatement, [endpoint, max])

/**
 * The endpoints as a person changes them. Each function may run while a process sends: it sees the change within a
 * second.
 */
import * as Effect from "effect/Effect"
import { expressionBuilder } from "kysely"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type { Position } from "../changes/ChangeFeed.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control, type ControlTables } from "../postgres/Tables.ts"
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
    kind: Statement.as<"changes" | "alerts">("text"),
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
  text: `select e.name, e.url, e.kind, e.origin, e.only_company as company, e.resources, e.operations, e.fields, e.batch_max as "batchMax",
                e.retry_hours as "retryHours", e.failures, e.allow_private as "allowPrivate", e.state, e.state_since as "stateSince",
                e.reason, e.last_position as "lastPosition", e.failing_since as "failingSince",
                e.next_attempt_at as "nextAttemptAt", e.succeeded_at as "succeededAt", e.attempts, e.delivered,
                case e.kind when 'changes' then greatest(f.last_position - e.last_position, 0)
                  else (select count(*) from tributary.alert_messages where endpoint = e.name and id > e.last_position) end as lag,
                r.waiting, r.dead,
                (extract(epoch from tributary.now() - least(r.since, b.landed_at)) * 1000)::float8 as "lagMs"
           from tributary.change_endpoints e cross join tributary.change_feed f
          cross join lateral (
            select count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'dead') as dead,
                   min(failed_at) filter (where state = 'waiting') as since
              from tributary.change_retries where endpoint = e.name) r
           left join lateral (
             select landed_at from tributary.change_batches
              where e.kind = 'changes' and last_position > e.last_position order by last_position limit 1) b on true
          order by e.name`
})

/** An endpoint with its progress. `lag` counts the changes of the feed after its position, also those of no concern. */
export type EndpointStatus = Statement.RowOf<typeof listStatement>

/** Whether nothing proves yet that it accepts changes: it is active, and none was delivered. Alerts are rare. */
export const isUnproven = ({ kind, state, failingSince, delivered }: EndpointStatus): boolean =>
  kind === "changes" && state === "active" && failingSince === null && delivered === 0n

export const list = Statement.run(listStatement)

export const find = (name: string) => Effect.map(list, (all) => all.find((one) => one.name === name))

/** Updates endpoints. */
export const update = control.updateTable("tributary.change_endpoints").returning("name")

/** Updates the changes that wait, or the dead letters. */
export const retriesOf = (name: string, state: "waiting" | "dead") =>
  control
    .updateTable("tributary.change_retries")
    .where((is) => is.and({ endpoint: name, state }))
    .returning("position")

const columnsOf = ({ company, batchMax, allowPrivate, retryHours, ...one }: Definition) => ({
  name: one.name,
  url: one.url,
  only_company: company,
  resources: one.resources,
  operations: one.operations,
  fields: one.fields,
  batch_max: batchMax,
  allow_private: allowPrivate,
  retry_hours: retryHours
})

/** Adds an endpoint, which gets the changes after the position. False: the name is used. */
export const add = (definition: Definition, secret: Uint8Array, from: Position) =>
  Query.hasRows(
    control
      .insertInto("tributary.change_endpoints")
      .values({
        ...columnsOf(definition),
        origin: "command",
        secret,
        last_position: from.number,
        last_token: from.token
      })
      .onConflict((conflict) => conflict.column("name").doNothing())
      .returning("name")
  )

/** The reason of a pause, for an endpoint that the file names no more. */
export const leftFile = "it is not in the configuration file any more"

const paused = (reason: string) => ({ state: "paused", state_since: Query.now, reason }) as const

/** Stores an endpoint of the file. A new one gets what its feed has after the position. */
const storeOfFile = (kind: EndpointStatus["kind"], definition: Definition, from: Position) =>
  control
    .insertInto("tributary.change_endpoints")
    .values({ ...columnsOf(definition), kind, origin: "file", last_position: from.number, last_token: from.token })
    .onConflict((conflict) =>
      conflict.column("name").doUpdateSet((of) => ({
        ...columnsOf(definition),
        origin: "file",
        secret: null,
        previous_secret: null,
        previous_until: null,
        state: of
          .case("tributary.change_endpoints.reason")
          .when(leftFile)
          .then("active" as const)
          .else(of.ref("tributary.change_endpoints.state"))
          .end(),
        reason: of.fn("nullif", ["tributary.change_endpoints.reason", of.val(leftFile)])
      }))
    )

/**
 * Stores the endpoints and the alert routes of the file. A new endpoint gets the changes from now on, a new route every
 * message that was written for it. One that the file names no more is paused.
 */
export const apply = (endpoints: ReadonlyArray<FileEndpoint>, routes: ReadonlyArray<Definition> = []) =>
  transaction(
    Effect.gen(function* () {
      const end = yield* ChangeFeed.end
      for (const one of endpoints) yield* Query.run(storeOfFile("changes", one, end))
      for (const one of routes) yield* Query.run(storeOfFile("alerts", one, ChangeFeed.beginning))
      const names = [...endpoints, ...routes].map(({ name }) => name)
      const others = update.where((is) => is.not(is("name", "=", Query.anyOf(names))))
      yield* Query.run(others.where((is) => is.and({ origin: "file", state: "active" })).set(paused(leftFile)))
    })
  )

/** Removes an endpoint with what waits and its log. False: there is none. */
export const remove = (name: string) =>
  Query.hasRows(control.deleteFrom("tributary.change_endpoints").where("name", "=", name).returning("name"))

/** Stops the deliveries; changes wait in the feed. False: it was paused before. */
export const pause = (name: string, by: string) =>
  Query.hasRows(
    update
      .where("name", "=", name)
      .where("state", "<>", "paused")
      .set(paused(`paused by ${by}`))
  )

/** Sends again, at once, from the stored position or from another one. False: it was active and not failing. */
export const resume = (name: string, from: Position | null) =>
  transaction(
    Effect.gen(function* () {
      const resumed = update.where("name", "=", name).set((of) => ({
        state: "active",
        state_since: Query.now,
        reason: null,
        failing_since: null,
        failures: 0,
        next_attempt_at: null,
        fence: of("fence", "+", 1n),
        ...(from !== null && { last_position: from.number, last_token: from.token })
      }))
      const stopped = resumed.where((is) => is.or([is("state", "<>", "active"), is("failing_since", "is not", null)]))
      if (!(yield* Query.hasRows(from === null ? stopped : resumed))) return false
      if (from !== null) {
        yield* Query.run(
          control
            .deleteFrom("tributary.change_retries")
            .where("endpoint", "=", name)
            .where("position", ">", from.number)
        )
      }
      yield* Query.run(retriesOf(name, "waiting").set({ next_attempt_at: Query.now, failed_at: null }))
      return true
    })
  )

/** Makes the dead letters from a position on wait again. Returns their number. */
export const replay = (name: string, since: bigint) =>
  Effect.map(
    Query.run(
      retriesOf(name, "dead")
        .where("position", ">=", since)
        .set({ state: "waiting", attempts: 0, failed_at: null, next_attempt_at: Query.now })
    ),
    (rows) => rows.length
  )

/** Replaces the secret; the earlier one signs too for {@link previousHours}. */
export const rotate = (name: string, secret: Uint8Array) =>
  Query.hasRows(
    update
      .where((is) => is.and({ name, origin: "command" }))
      .set((of) => ({
        previous_secret: of.ref("secret"),
        previous_until: Query.nowPlus(previousHours * 3_600_000),
        secret
      }))
  )

/** The earlier secret, as long as it signs too. */
export const previousSecret = expressionBuilder<ControlTables, "tributary.change_endpoints">()
  .case()
  .when("previous_until", ">", Query.now)
  .thenRef("previous_secret")
  .end()
  .as("previousSecret")

/** The sealed secrets of an endpoint. */
export const readSecrets = (name: string) =>
  Query.first(
    control.selectFrom("tributary.change_endpoints").select(["name", "secret", previousSecret]).where("name", "=", name)
  )

/** The latest attempts, of one endpoint or of all. */
export const readLog = (endpoint: string | null, max: number) =>
  Query.run(
    control
      .selectFrom("tributary.change_attempts")
      .select(["endpoint", "number", "message_id as messageId", "first_position as firstPosition", "changes"])
      .select(["result", "status", "error", "duration_ms as durationMs", "at"])
      .$if(endpoint !== null, (log) => log.where("endpoint", "=", endpoint))
      .orderBy("at", "desc")
      .orderBy("number", "desc")
      .limit(max)
  )

/**
 * Enqueueing of records into the outbox.
 *
 * Promise: all records of an input are enqueued in one transaction, or none: one problem anywhere and nothing is stored,
 * with every problem reported. The same input again continues what is not finished, also when two programs give it at
 * the same moment. A record to create has one row in the outbox, however often and in whatever files it is given.
 * Memory does not grow with the input.
 */
import * as Effect from "effect/Effect"
import type pg from "pg"
import { execute } from "../postgres/Connection.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import {
  addRecords,
  findDuplicates,
  flush,
  type InputTable,
  openInputTable,
  operationName,
  runQuery
} from "./InputTable.ts"
import { isOpen } from "./OutboxStore.ts"
import type { Problem } from "./Push.ts"
import { emptyInput, type EnqueueRejected, type InputOptions, rejectedFor, validateInput } from "./ValidateInput.ts"

export interface EnqueueOptions<E, R> extends InputOptions<E, R> {
  /** Where the records came from, for people. */
  readonly source: string
}

export interface EnqueueResult {
  readonly pushId: bigint
  /** Records of the input. */
  readonly given: number
  /** Rows of the push; some of them may be done already when it was resumed. */
  readonly enqueued: number
  /** Duplicates: an earlier push, or a row without one, has the record with the same values. */
  readonly known: number
  /** Absent when all duplicates are done as given. */
  readonly knownOpen?: OpenDuplicates
  /** Whether the same input was given before and is not finished. */
  readonly resumed: boolean
}

/** Counts of duplicates that are not done as given: a person should know of them. */
export interface OpenDuplicates {
  /** In a request whose outcome is not known yet. */
  readonly sending: number
  readonly refused: number
  /** The source has other values than were given. */
  readonly different: number
  /** The pushes that they belong to. */
  readonly pushes: ReadonlyArray<bigint>
}

/** What the steps of an enqueue share. */
interface EnqueueContext {
  readonly client: pg.Client
  readonly table: InputTable
  readonly company: string
  readonly resource: string
  readonly operation: string
  readonly source: string
  readonly onProblem: (problem: Problem) => Effect.Effect<void>
}

/** Attempts to join existing rows, which another process may have locked in another order. */
const attemptsMax = 5

/** One process enqueues records of a resource at a time: the next one finds the rows of the first. */
const lockSql = "select pg_advisory_xact_lock(hashtextextended('tributary push ' || $1::text || ' ' || $2::text, 0))"

const findOpenSql = `
  select id from tributary.pushes
  where company = $1 and resource = $2 and operation = $3 and content_hash = $4 and finished_at is null`

const insertPushSql = `
  insert into tributary.pushes (company, resource, operation, content_hash, source, record_count)
  values ($1, $2, $3, $4, $5, $6) returning id`

const insertRowsSql = `
  insert into tributary.outbox (company, resource, operation, externalid, record_id, record, push_id, line, validated)
  select $1, $2, $3, g.externalid, g.record_id, g.record::json, $4, g.line, true
  from push_input g order by g.line
  on conflict (company, resource, externalid) where operation = 'create' and externalid is not null do nothing`

/** Whatever the planner expects of the outbox, each row is found by its key from either side. */
const indexSql = "create index on push_input (externalid)"

/** Existing rows of other pushes or of none. */
const isExisting = `
  o.company = $1 and o.resource = $2 and o.operation = 'create' and o.externalid = g.externalid
    and o.push_id is distinct from $3::bigint`

const existing = `push_input g join tributary.outbox o on ${isExisting}`

/** Locks existing rows in the order in which other processes lock them, and returns their pushes. */
const lockExistingSql = `
  select distinct push_id from (select o.id, o.push_id, o.state from ${existing} order by o.id for update of o) locked
  where push_id is not null and state in ('pending', 'rejected')`

const joinSameSql = `
  update tributary.outbox o set push_id = $3, line = g.line
  from push_input g where ${isExisting} and o.state = 'pending' and o.record::text = g.record`

/** A row with other values of which nothing was sent: the values that were given last count. */
const replaceOtherSql = `
  update tributary.outbox o set
    record = g.record::json, push_id = $3, line = g.line, state = 'pending', outcome = null, validated = true,
    absence_confirmed_at = null, request_id = null, request_index = null, attempts = 0, conflict_retries = 0,
    expected_values = null, code = null, field = null, reason = null, problems = null, differences = null,
    resolved_at = null
  from push_input g where ${isExisting} and o.state in ('pending', 'rejected') and o.record::text <> g.record`

const pushedWithOtherValuesSql = `
  select g.line, o.push_id from ${existing}
  where o.state in ('done', 'in_flight') and o.record::text <> g.record order by g.line`

const openDuplicatesSql = `
  select count(*) filter (where o.state = 'in_flight')::float8 as sending,
    count(*) filter (where o.state = 'rejected')::float8 as refused,
    count(*) filter (where o.differences is not null)::float8 as different,
    coalesce(array_agg(distinct o.push_id::text) filter (where o.push_id is not null), '{}') as pushes
  from ${existing} where o.state in ('in_flight', 'rejected') or o.differences is not null`

const countRowsSql = "select count(*) as rows from tributary.outbox where push_id = $1"

const saveDuplicatesSql = "update tributary.pushes set duplicates = $2 where id = $1"

/** Finishes earlier pushes that have no open row any more. */
const finishEmptiedSql = `
  update tributary.pushes set finished_at = tributary.now()
  where id = any($1::bigint[]) and finished_at is null
    and not exists (select from tributary.outbox o where o.push_id = pushes.id and ${isOpen("o")})`

/** Moves existing open rows to this push; rejects the input when a row was sent with other values. */
const joinExisting = Effect.fnUntraced(function* (
  { client, company, onProblem, resource }: EnqueueContext,
  pushId: bigint
): Effect.fn.Return<void, EnqueueRejected | DatabaseError> {
  const parameters = [company, resource, pushId]
  const earlier = yield* runQuery<{ push_id: bigint }>(client, lockExistingSql, parameters)
  yield* runQuery(client, joinSameSql, parameters)
  yield* runQuery(client, replaceOtherSql, parameters)
  const others = yield* runQuery<{ line: bigint; push_id: bigint | null }>(client, pushedWithOtherValuesSql, parameters)
  yield* Effect.forEach(
    others,
    ({ line, push_id: push }) => {
      const message = `was pushed before${push === null ? "" : ` (push ${push})`} with other values; change it with --update`
      return onProblem({ line: Number(line), field: null, message })
    },
    { discard: true }
  )
  if (others.length > 0) return yield* rejectedFor(others.length)
  if (earlier.length > 0) yield* runQuery(client, finishEmptiedSql, [earlier.map((row) => row.push_id)])
})

/** {@link OpenDuplicates} of a push; null when there are none. */
const findOpenDuplicates = Effect.fnUntraced(function* (
  { client, company, resource }: EnqueueContext,
  pushId: bigint
): Effect.fn.Return<OpenDuplicates | null, DatabaseError> {
  const [row] = yield* runQuery<Omit<OpenDuplicates, "pushes"> & { pushes: ReadonlyArray<string> }>(
    client,
    openDuplicatesSql,
    [company, resource, pushId]
  )
  const { sending, refused, different, pushes } = row!
  return sending + refused + different === 0 ? null : { sending, refused, different, pushes: pushes.map(BigInt) }
})

/** Inserts the rows of a push, or joins those that exist. */
const insertRows = Effect.fnUntraced(function* (
  context: EnqueueContext,
  digest: string
): Effect.fn.Return<EnqueueResult, EnqueueRejected | DatabaseError> {
  const { client, company, operation, resource, source, table } = context
  const identity = [company, resource, operation, digest]
  const given = table.records
  const [open] = yield* runQuery<{ id: bigint }>(client, findOpenSql, identity)
  const resumed = open !== undefined
  const [push] = resumed ? [open] : yield* runQuery<{ id: bigint }>(client, insertPushSql, [...identity, source, given])
  const pushId = push!.id
  // Updates and cancels have no key by which a second row would be noticed.
  if (!resumed || operation === "create") {
    const values = [company, resource, operation, pushId]
    const { affected } = yield* execute(client, operationName, insertRowsSql, values)
    if (affected < given) yield* joinExisting(context, pushId)
  }
  const [count] = yield* runQuery<{ rows: bigint }>(client, countRowsSql, [pushId])
  const enqueued = Number(count!.rows)
  const known = given - enqueued
  yield* runQuery(client, saveDuplicatesSql, [pushId, known])
  const knownOpen = known === 0 ? null : yield* findOpenDuplicates(context, pushId)
  return { pushId, given, enqueued, known, resumed, ...(knownOpen === null ? {} : { knownOpen }) }
})

const isDeadlock = (error: EnqueueRejected | DatabaseError): boolean =>
  error instanceof DatabaseError && error.code === "40P01"

/** Enqueues the records of the table in one transaction. */
const enqueueTable = Effect.fnUntraced(function* (
  context: EnqueueContext
): Effect.fn.Return<EnqueueResult, EnqueueRejected | DatabaseError> {
  const { client, company, operation, resource, table } = context
  if (operation === "create") yield* runQuery(client, indexSql)
  yield* runQuery(client, "analyze push_input")
  yield* runQuery(client, "begin")
  yield* runQuery(client, lockSql, [company, resource])
  const digest = table.hash.digest("hex")
  const result = yield* runQuery(client, "savepoint joining").pipe(
    Effect.andThen(insertRows(context, digest)),
    Effect.tapError((error) => (isDeadlock(error) ? runQuery(client, "rollback to savepoint joining") : Effect.void)),
    Effect.retry({ while: isDeadlock, times: attemptsMax - 1 })
  )
  yield* runQuery(client, "commit")
  return result
})

/** Validates an input and enqueues all of its records; none of them when there is any problem. */
export const enqueue = <E, R>(
  options: EnqueueOptions<E, R>
): Effect.Effect<EnqueueResult, E | EnqueueRejected | DatabaseError, R | Database> =>
  Effect.gen(function* () {
    const { company, operation, source, externalidFrom = null, onProblem } = options
    const resource = options.resource.path
    const client: pg.Client = yield* (yield* Database).connect
    const table = yield* openInputTable(client, [company, resource, operation, externalidFrom])
    const invalid = yield* validateInput(options, (records) => addRecords(table, records))
    yield* flush(table)
    // Changes of one record may follow each other; they are made in their order.
    const duplicates = operation === "create" ? yield* findDuplicates(table, company, options.resource) : []
    yield* Effect.forEach(duplicates, onProblem, { discard: true })
    const problems = invalid + duplicates.length
    if (problems > 0) return yield* rejectedFor(problems)
    if (table.records === 0) return yield* emptyInput
    return yield* enqueueTable({ client, table, company, resource, operation, source, onProblem })
  }).pipe(Effect.scoped)

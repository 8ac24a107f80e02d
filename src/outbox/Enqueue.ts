/**
 * Enqueueing of records into the outbox.
 *
 * Promise: all records of an input are enqueued in one transaction, or none: with one problem nothing is stored, and every
 * problem is reported. The same input again continues the unfinished rows, also when two programs give it at
 * the same moment. A record to create has one row in the outbox, however often and in whatever files it is given.
 * Memory does not grow with the input.
 */
import * as Effect from "effect/Effect"
import { type Client, execute, queryNamed } from "../postgres/driver/Connection.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { addRecords, findDuplicates, flush, type InputTable, openInputTable, runText } from "./InputTable.ts"
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
  readonly rejected: number
  /** The source has other values than were given. */
  readonly different: number
  /** The pushes that they belong to. */
  readonly pushes: ReadonlyArray<bigint>
}

/** The context that the steps of an enqueue share. */
interface EnqueueContext {
  readonly client: Client
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
export const lockStatement = Statement.make({
  name: "lock the enqueueing of a resource",
  params: ["text", "text"],
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(hashtextextended('tributary push ' || $1::text || ' ' || $2::text, 0))"
})

export const findOpenStatement = Statement.make({
  name: "find the unfinished push of an input",
  params: ["text", "text", "text", "text"],
  columns: { id: "int8" },
  text: `select id from tributary.pushes
  where company = $1 and resource = $2 and operation = $3 and content_hash = $4 and finished_at is null`
})

export const insertPushStatement = Statement.make({
  name: "insert a push",
  params: ["text", "text", "text", "text", "text", "int8"],
  columns: { id: "int8" },
  text: `insert into tributary.pushes (company, resource, operation, content_hash, source, record_count)
  values ($1, $2, $3, $4, $5, $6) returning id`
})

export const insertRowsStatement = Statement.make({
  name: "insert the rows of a push",
  params: ["text", "text", "text", "int8"],
  text: `insert into tributary.outbox (company, resource, operation, externalid, record_id, record, push_id, line, validated)
  select $1, $2, $3, g.externalid, g.record_id, g.record::json, $4, g.line, true
  from push_input g order by g.line
  on conflict (company, resource, externalid) where operation = 'create' and externalid is not null do nothing`
})

/** An index, so that each row is found by its key from either side, whatever the planner expects of the outbox. */
const indexSql = "create index on push_input (externalid)"

/** Existing rows of other pushes or of none. */
const isExisting = `
  o.company = $1 and o.resource = $2 and o.operation = 'create' and o.externalid = g.externalid
    and o.push_id is distinct from $3::bigint`

const existing = `push_input g join tributary.outbox o on ${isExisting}`
const existingParams = ["text", "text", "int8"] as const

/** Locks existing rows in the order in which other processes lock them, and returns their pushes. */
export const lockExistingStatement = Statement.make({
  name: "lock the existing rows of an input",
  params: existingParams,
  columns: { push_id: "int8?" },
  text: `select distinct push_id from (select o.id, o.push_id, o.state from ${existing} order by o.id for update of o) locked
  where push_id is not null and state in ('pending', 'rejected')`
})

export const joinSameStatement = Statement.make({
  name: "join the same rows to a push",
  params: existingParams,
  text: `update tributary.outbox o set push_id = $3, line = g.line
  from push_input g where ${isExisting} and o.state = 'pending' and o.record::text = g.record`
})

/** Replaces the values of rows that were not sent: the values that were given last count. */
export const replaceOtherStatement = Statement.make({
  name: "replace the values of rows that were not sent",
  params: existingParams,
  text: `update tributary.outbox o set
    record = g.record::json, push_id = $3, line = g.line, state = 'pending', outcome = null, validated = true,
    absence_confirmed_at = null, request_id = null, request_index = null, attempts = 0, conflict_retries = 0,
    expected_values = null, code = null, field = null, reason = null, problems = null, differences = null,
    resolved_at = null
  from push_input g where ${isExisting} and o.state in ('pending', 'rejected') and o.record::text <> g.record`
})

export const pushedWithOtherValuesStatement = Statement.make({
  name: "find rows that were sent with other values",
  params: existingParams,
  columns: { line: "int8", push: "int8?" },
  text: `select g.line, o.push_id as push from ${existing}
  where o.state in ('done', 'in_flight') and o.record::text <> g.record order by g.line`
})

export const openDuplicatesStatement = Statement.make({
  name: "count the duplicates that are not done",
  params: existingParams,
  columns: { ...Statement.columns("float8", "sending", "rejected", "different"), pushes: "text[]" },
  text: `select count(*) filter (where o.state = 'in_flight')::float8 as sending,
    count(*) filter (where o.state = 'rejected')::float8 as rejected,
    count(*) filter (where o.differences is not null)::float8 as different,
    coalesce(array_agg(distinct o.push_id::text) filter (where o.push_id is not null), '{}') as pushes
  from ${existing} where o.state in ('in_flight', 'rejected') or o.differences is not null`
})

export const saveDuplicatesStatement = Statement.make({
  name: "save the duplicates of a push",
  params: ["int8", "int8"],
  columns: { known: "float8" },
  text: `update tributary.pushes set duplicates = $2 - (select count(*) from tributary.outbox where push_id = $1)
  where id = $1 returning duplicates::float8 as known`
})

/** Finishes earlier pushes that have no open row any more. */
export const finishEmptiedStatement = Statement.make({
  name: "finish emptied pushes",
  params: ["int8[]"],
  text: `update tributary.pushes set finished_at = tributary.now()
  where id = any($1::bigint[]) and finished_at is null
    and not exists (select from tributary.outbox o where o.push_id = pushes.id and ${isOpen("o")})`
})

/** Moves existing open rows to this push; rejects the input when a row was sent with other values. */
const joinExisting = Effect.fnUntraced(function* (
  { client, company, onProblem, resource }: EnqueueContext,
  pushId: bigint
): Effect.fn.Return<void, EnqueueRejected | DatabaseError> {
  const parameters = [company, resource, pushId] as const
  const earlier = yield* queryNamed(client, lockExistingStatement, parameters)
  yield* queryNamed(client, joinSameStatement, parameters)
  yield* queryNamed(client, replaceOtherStatement, parameters)
  const others = yield* queryNamed(client, pushedWithOtherValuesStatement, parameters)
  yield* Effect.forEach(
    others,
    ({ line, push }) => {
      const message = `was pushed before${push === null ? "" : ` (push ${push})`} with other values; change it with --update`
      return onProblem({ line: Number(line), field: null, message })
    },
    { discard: true }
  )
  if (others.length > 0) return yield* rejectedFor(others.length)
  if (earlier.length > 0) yield* queryNamed(client, finishEmptiedStatement, [earlier.map((row) => row.push_id)])
})

/** {@link OpenDuplicates} of a push; null when there are none. */
const findOpenDuplicates = Effect.fnUntraced(function* (
  { client, company, resource }: EnqueueContext,
  pushId: bigint
): Effect.fn.Return<OpenDuplicates | null, DatabaseError> {
  const [row] = yield* queryNamed(client, openDuplicatesStatement, [company, resource, pushId])
  const { sending, rejected, different, pushes } = row!
  return sending + rejected + different === 0 ? null : { sending, rejected, different, pushes: pushes.map(BigInt) }
})

/** Inserts the rows of a push, or joins those that exist. */
const insertRows = Effect.fnUntraced(function* (
  context: EnqueueContext,
  digest: string
): Effect.fn.Return<EnqueueResult, EnqueueRejected | DatabaseError> {
  const { client, company, operation, resource, source, table } = context
  const identity = [company, resource, operation, digest] as const
  const given = table.records
  const [open] = yield* queryNamed(client, findOpenStatement, identity)
  const resumed = open !== undefined
  const [push] = resumed ? [open] : yield* queryNamed(client, insertPushStatement, [...identity, source, given])
  const pushId = push!.id
  // Updates and cancels have no key by which a second row would be noticed.
  if (!resumed || operation === "create") {
    const { name, text } = insertRowsStatement
    const { affected } = yield* execute(client, name, text, [company, resource, operation, pushId])
    if (affected < given) yield* joinExisting(context, pushId)
  }
  const [saved] = yield* queryNamed(client, saveDuplicatesStatement, [pushId, given])
  const { known } = saved!
  const knownOpen = known === 0 ? null : yield* findOpenDuplicates(context, pushId)
  return { pushId, given, enqueued: given - known, known, resumed, ...(knownOpen === null ? {} : { knownOpen }) }
})

const isDeadlock = (error: EnqueueRejected | DatabaseError): boolean =>
  error instanceof DatabaseError && error.code === "40P01"

/** Enqueues the records of the table in one transaction. */
const enqueueTable = Effect.fnUntraced(function* (
  context: EnqueueContext
): Effect.fn.Return<EnqueueResult, EnqueueRejected | DatabaseError> {
  const { client, company, operation, resource, table } = context
  if (operation === "create") yield* runText(client, indexSql)
  yield* runText(client, "analyze push_input")
  yield* runText(client, "begin")
  yield* queryNamed(client, lockStatement, [company, resource])
  const digest = table.hash.digest("hex")
  const result = yield* runText(client, "savepoint joining").pipe(
    Effect.andThen(insertRows(context, digest)),
    Effect.tapError((error) => (isDeadlock(error) ? runText(client, "rollback to savepoint joining") : Effect.void)),
    Effect.retry({ while: isDeadlock, times: attemptsMax - 1 })
  )
  yield* runText(client, "commit")
  return result
})

/** Validates an input and enqueues all of its records; none of them when there is any problem. */
export const enqueue = <E, R>(
  options: EnqueueOptions<E, R>
): Effect.Effect<EnqueueResult, E | EnqueueRejected | DatabaseError, R | Database> =>
  Effect.gen(function* () {
    const { company, operation, source, externalidFrom = null, onProblem } = options
    const resource = options.resource.path
    const client: Client = yield* (yield* Database).connect
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

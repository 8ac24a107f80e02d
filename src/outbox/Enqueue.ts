/**
 * Taking records into the outbox.
 *
 * Promise: all of what was given is taken, in one transaction, or none of it: one problem anywhere and nothing is stored,
 * with every problem told. Giving the same again goes on with what is not finished, also when two programs give it at
 * the same moment. A record to create is taken once, however often and in whatever files it is given: the outbox holds
 * one row for it. Memory does not grow with what is given.
 */
import { createHash } from "node:crypto"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type pg from "pg"
import type { Resource } from "../catalogue/Resource.ts"
import { copyValue } from "../land/CopyText.ts"
import { execute, query } from "../postgres/Connection.ts"
import { copyIn } from "../postgres/Copy.ts"
import { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { type ValidRecord, makeValidator, foldedExternalid, isOffered, isInvalid } from "./Validate.ts"
import { folded } from "./OutboxStore.ts"
import type { InputRecord } from "./input/InputRecord.ts"
import type { Operation, Problem } from "./Push.ts"

export interface EnqueueContext<E, R> {
  /** As the configuration calls it. */
  readonly company: string
  readonly resource: Resource
  readonly operation: Operation
  readonly records: Stream.Stream<InputRecord, E, R>
  /** The column or member that holds the externalid; null is `externalid`. */
  readonly externalidFrom?: string | null
  /** Every problem, as it is found. */
  readonly onProblem: (problem: Problem) => Effect.Effect<void>
}

export interface EnqueueOptions<E, R> extends EnqueueContext<E, R> {
  /** Where the records came from, for people. */
  readonly source: string
}

export interface EnqueueResult {
  readonly pushId: bigint
  /** Records that were given. */
  readonly given: number
  /** Those that belong to this push now; some of them may be done already when it was resumed. */
  readonly taken: number
  /** Those that were given before with the same values and belong to an earlier push, or to none. */
  readonly known: number
  /** Of those that are known; absent when all of them are done as given. */
  readonly knownOpen?: ExistingRow
  /** Whether the same was given before and is not finished. */
  readonly resumed: boolean
}

/** Known records of which a person should hear. */
export interface ExistingRow {
  /** In a request whose outcome is not known yet. */
  readonly sending: number
  readonly refused: number
  /** The source holds something else than was given. */
  readonly different: number
  /** Whose they are. */
  readonly pushes: ReadonlyArray<bigint>
}

/** Nothing was stored. */
export class EnqueueRejected extends Data.TaggedError("EnqueueRejected")<{
  /** How many problems were told. */
  readonly problems: number
  readonly message: string
}> {}

const refused = (problems: number) =>
  new EnqueueRejected({
    problems,
    message: `${problems === 1 ? "there is a problem" : `there are ${problems} problems`} in what was given: nothing was stored`
  })

const empty = new EnqueueRejected({ problems: 0, message: "nothing was given" })

interface Fit extends ValidRecord {
  readonly line: number
}

/** Checks what is given and hands on what fits, in pieces; answers how many problems there were. */
const check = <E, R, E2, R2>(
  options: EnqueueContext<E, R>,
  keep: (fits: ReadonlyArray<Fit>) => Effect.Effect<void, E2, R2>
): Effect.Effect<number, E | E2 | EnqueueRejected, R | R2> =>
  Effect.gen(function* () {
    const { resource, operation, externalidFrom, onProblem } = options
    const made = makeValidator(resource, operation, { externalidFrom: externalidFrom ?? null })
    if (!isOffered(made)) {
      yield* onProblem(made)
      return yield* new EnqueueRejected({ problems: 1, message: made.message })
    }
    let count = 0
    yield* Stream.runForEachArray(options.records, (given) =>
      Effect.gen(function* () {
        const fits: Array<Fit> = []
        for (const one of given) {
          const answer = made.given(one)
          if (answer === null) continue
          if (!isInvalid(answer)) {
            fits.push({ ...answer, line: one.line })
            continue
          }
          count += answer.length
          yield* Effect.forEach(answer, onProblem, { discard: true })
        }
        if (fits.length > 0) yield* keep(fits)
      })
    )
    return count
  })

const twice = (line: number, externalid: string, first: number): Problem => ({
  line,
  field: "externalid",
  message: `"${externalid}" is given twice: in line ${first} and in line ${line}`
})

const alike = (line: number, externalid: string, other: string, first: number | null): Problem => ({
  line,
  field: "externalid",
  message:
    `"${externalid}" differs from "${other}" ${first === null ? "of the outbox" : `in line ${first}`} in case or Unicode form alone: ` +
    "the service may take them for one; give one of them another externalid"
})

// ---------------------------------------------------------------------------------------------------------------------
// Into the outbox
// ---------------------------------------------------------------------------------------------------------------------

/** How much is copied at once, in characters. */
const copySize = 512 * 1024

/** Attempts to join what stands in the outbox while others change it, too. */
const attemptsMax = 5

const operationName = "take what is to be pushed"

const createGiven =
  "create temporary table push_given (line bigint not null, externalid text, record_id text, record text not null)"

const copyGiven = "copy push_given (line, externalid, record_id, record) from stdin"

const givenTwice = `
  select line, externalid, first, other
  from (select line, externalid, min(line) over same as first, first_value(externalid) over (same order by line) as other
          from push_given window same as (partition by ${folded("externalid")})) g
  where line <> first order by line`

/** Open rows whose externalid a source may take for one that is given. */
const standingAlike = `
  select g.line, g.externalid, o.externalid as other
  from push_given g join tributary.outbox o on ${folded("o.externalid")} = ${folded("g.externalid")} and o.externalid <> g.externalid
  where o.company = $1 and o.resource = $2 and o.operation = 'create' and o.state in ('waiting', 'sending', 'refused')
  order by g.line`

/** One intake of a resource at a time: who gives the same at the same moment waits, and finds it. */
const takeTurn = "select pg_advisory_xact_lock(hashtextextended('tributary push ' || $1::text || ' ' || $2::text, 0))"

const findOpen = `
  select id from tributary.pushes
  where company = $1 and resource = $2 and operation = $3 and digest = $4 and finished_at is null`

const openPush = `
  insert into tributary.pushes (company, resource, operation, digest, source, records)
  values ($1, $2, $3, $4, $5, $6) returning id`

const insertRows = `
  insert into tributary.outbox (company, resource, operation, externalid, record_id, record, push_id, line, checked)
  select $1, $2, $3, g.externalid, g.record_id, g.record::json, $4, g.line, true
  from push_given g order by g.line
  on conflict (company, resource, externalid) where operation = 'create' and externalid is not null do nothing`

/** However the planner errs about the outbox, each row is found by its key from either side. */
const indexGiven = "create index on push_given (externalid)"

/** Rows that stood already, of other pushes or of none. */
const isStanding = `
  o.company = $1 and o.resource = $2 and o.operation = 'create' and o.externalid = g.externalid
    and o.push_id is distinct from $3::bigint`

const standing = `push_given g join tributary.outbox o on ${isStanding}`

/** Holds them still, in the order in which others lock them, and tells which pushes they belong to. */
const lockStanding = `
  select distinct push_id from (select o.id, o.push_id, o.state from ${standing} order by o.id for update of o) locked
  where push_id is not null and state in ('waiting', 'refused')`

const joinSame = `
  update tributary.outbox o set push_id = $3, line = g.line
  from push_given g where ${isStanding} and o.state = 'waiting' and o.record::text = g.record`

/** Other values, and nothing was done yet: what is given last counts. */
const replaceOther = `
  update tributary.outbox o set
    record = g.record::json, push_id = $3, line = g.line, state = 'waiting', outcome = null, checked = true,
    looked_up_at = null, call_id = null, position = null, attempts = 0, merges = 0, base = null,
    code = null, field = null, reason = null, problems = null, differences = null, settled_at = null
  from push_given g where ${isStanding} and o.state in ('waiting', 'refused') and o.record::text <> g.record`

const pushedOtherwise = `
  select g.line, o.push_id from ${standing}
  where o.state in ('done', 'sending') and o.record::text <> g.record order by g.line`

const knownOpen = `
  select count(*) filter (where o.state = 'sending')::float8 as sending,
    count(*) filter (where o.state = 'refused')::float8 as refused,
    count(*) filter (where o.differences is not null)::float8 as different,
    coalesce(array_agg(distinct o.push_id::text) filter (where o.push_id is not null), '{}') as pushes
  from ${standing} where o.state in ('sending', 'refused') or o.differences is not null`

/** An earlier push of which no row is left that waits. */
const finishEmptied = `
  update tributary.pushes set finished_at = tributary.now()
  where id = any($1::bigint[]) and finished_at is null
    and not exists (select from tributary.outbox o where o.push_id = pushes.id and o.state in ('waiting', 'sending'))`

/** Checks what is given and takes all of it into the outbox; nothing when there is any problem. */
export const enqueue = <E, R>(
  options: EnqueueOptions<E, R>
): Effect.Effect<EnqueueResult, E | EnqueueRejected | DatabaseError, R | Database> =>
  Effect.gen(function* () {
    const { company, resource, operation, source, externalidFrom, onProblem } = options
    const client: pg.Client = yield* (yield* Database).connect
    const run = <Row extends pg.QueryResultRow>(text: string, values?: ReadonlyArray<unknown>) =>
      query<Row>(client, operationName, text, values)

    yield* run(createGiven)
    const digest = createHash("sha256")
    digest.update(JSON.stringify([company, resource.path, operation, externalidFrom ?? null]))
    let given = 0
    let waiting = ""
    const copy = Effect.suspend(() => {
      const chunk = waiting
      waiting = ""
      return chunk === "" ? Effect.void : copyIn(client, copyGiven, [chunk])
    })
    let problems = yield* check(options, (fits) => {
      let identities = ""
      for (const { line, externalid, recordId, text } of fits) {
        identities += `\n${JSON.stringify([externalid, recordId])}${text}`
        waiting += `${line}\t${copyValue(externalid)}\t${copyValue(recordId)}\t${copyValue(text)}\n`
      }
      digest.update(identities)
      given += fits.length
      return waiting.length < copySize ? Effect.void : Effect.asVoid(copy)
    })
    yield* copy
    const tell = (problem: Problem) => {
      problems++
      return onProblem(problem)
    }
    // Changes of one record may follow each other; they are made in order.
    if (operation === "create") {
      const rows = yield* run<{ line: bigint; externalid: string; first: bigint; other: string }>(givenTwice)
      yield* Effect.forEach(
        rows,
        ({ externalid, first, line, other }) =>
          tell(
            externalid === other
              ? twice(Number(line), externalid, Number(first))
              : alike(Number(line), externalid, other, Number(first))
          ),
        { discard: true }
      )
      const standing = yield* run<{ line: bigint; externalid: string; other: string }>(standingAlike, [
        company,
        resource.path
      ])
      yield* Effect.forEach(
        standing,
        ({ externalid, line, other }) => tell(alike(Number(line), externalid, other, null)),
        { discard: true }
      )
    }
    if (problems > 0) return yield* refused(problems)
    if (given === 0) return yield* empty

    if (operation === "create") yield* run(indexGiven)
    yield* run("analyze push_given")
    yield* run("begin")
    yield* run(takeTurn, [company, resource.path])
    const identity = [company, resource.path, operation, digest.digest("hex")]

    const join = Effect.gen(function* () {
      const [open] = yield* run<{ id: bigint }>(findOpen, identity)
      const pushId = open?.id ?? (yield* run<{ id: bigint }>(openPush, [...identity, source, given]))[0]!.id
      // Changes and cancels have no key by which a second row would be noticed.
      if (open === undefined || operation === "create") {
        const { affected } = yield* execute(client, operationName, insertRows, [
          company,
          resource.path,
          operation,
          pushId
        ])
        if (affected < given) yield* joinStanding(pushId)
      }
      const [count] = yield* run<{ taken: bigint }>(
        "select count(*) as taken from tributary.outbox where push_id = $1",
        [pushId]
      )
      const taken = Number(count!.taken)
      const known = given - taken
      yield* run("update tributary.pushes set known = $2 where id = $1", [pushId, known])
      const taking: EnqueueResult = { pushId, given, taken, known, resumed: open !== undefined }
      if (known === 0) return taking
      const [stands] = yield* run<Omit<ExistingRow, "pushes"> & { pushes: ReadonlyArray<string> }>(knownOpen, [
        company,
        resource.path,
        pushId
      ])
      const { sending, refused, different, pushes } = stands!
      if (sending + refused + different === 0) return taking
      return { ...taking, knownOpen: { sending, refused, different, pushes: pushes.map(BigInt) } }
    })

    const joinStanding = Effect.fnUntraced(function* (pushId: bigint) {
      const parameters = [company, resource.path, pushId]
      const earlier = yield* run<{ push_id: bigint }>(lockStanding, parameters)
      yield* run(joinSame, parameters)
      yield* run(replaceOther, parameters)
      const others = yield* run<{ line: bigint; push_id: bigint | null }>(pushedOtherwise, parameters)
      yield* Effect.forEach(
        others,
        (other) => {
          const before = other.push_id === null ? "" : ` (push ${other.push_id})`
          const message = `was pushed before${before} with other values; change it with --update`
          return tell({ line: Number(other.line), field: null, message })
        },
        { discard: true }
      )
      if (problems > 0) return yield* refused(problems)
      if (earlier.length > 0) yield* run(finishEmptied, [earlier.map((row) => row.push_id)])
    })

    // Whoever changes the same rows in another order may be in our way: then we give way, and try again.
    const taken = yield* run("savepoint joining").pipe(
      Effect.andThen(join),
      Effect.tapError((error) => (isDeadlock(error) ? run("rollback to savepoint joining") : Effect.void)),
      Effect.retry({ while: isDeadlock, times: attemptsMax - 1 })
    )
    yield* run("commit")
    return taken
  }).pipe(Effect.scoped)

const isDeadlock = (error: EnqueueRejected | DatabaseError): boolean =>
  error instanceof DatabaseError && error.code === "40P01"

// ---------------------------------------------------------------------------------------------------------------------
// Without the outbox
// ---------------------------------------------------------------------------------------------------------------------

export interface DryRunOptions<E, R> extends EnqueueContext<E, R> {
  /** Records in one call, where the resource takes several. */
  readonly batchRecordsMax: number
  readonly useBatch: boolean
}

/** What would be sent. */
export interface DryRunReport {
  /** Records that fit. */
  readonly given: number
  readonly problems: number
  /** Size of the bodies together, in bytes of UTF-8. */
  readonly bytes: number
  /** Calls that write, when nothing fails: of several records, and of a single one. */
  readonly calls: { readonly batch: number; readonly single: number }
  /** The first records as they would be sent. */
  readonly first: ReadonlyArray<ValidRecord>
}

const firstMax = 3

/** Checks what is given, as {@link enqueue} does, and says what would be sent; needs no warehouse and changes nothing. */
export const dryRun = <E, R>(options: DryRunOptions<E, R>): Effect.Effect<DryRunReport, E | EnqueueRejected, R> =>
  Effect.gen(function* () {
    const { resource, operation, batchRecordsMax, useBatch, onProblem } = options
    const lines = new Map<string, { readonly line: number; readonly externalid: string }>()
    const first: Array<ValidRecord> = []
    let given = 0
    let bytes = 0
    let doubled = 0
    const problems = yield* check(options, (fits) => {
      const doubles: Array<Problem> = []
      for (const { line, externalid, recordId, text } of fits) {
        given++
        bytes += Buffer.byteLength(text)
        if (first.length < firstMax) first.push({ externalid, recordId, text })
        if (operation !== "create" || externalid === null) continue
        const form = foldedExternalid(externalid)
        const before = lines.get(form)
        if (before === undefined) lines.set(form, { line, externalid })
        else if (before.externalid === externalid) doubles.push(twice(line, externalid, before.line))
        else doubles.push(alike(line, externalid, before.externalid, before.line))
      }
      doubled += doubles.length
      return Effect.forEach(doubles, onProblem, { discard: true })
    })
    if (given === 0 && problems === 0) return yield* empty
    const isBatch = operation === "create" && useBatch && batchRecordsMax > 1 && resource.operations.includes("B")
    // What is left over for the last call goes alone when it is one.
    const last = given % batchRecordsMax
    const calls = isBatch
      ? { batch: Math.ceil(given / batchRecordsMax) - (last === 1 ? 1 : 0), single: last === 1 ? 1 : 0 }
      : { batch: 0, single: given }
    return { given, problems: problems + doubled, bytes, calls, first }
  })

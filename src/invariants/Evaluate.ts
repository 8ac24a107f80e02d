/**
 * The evaluation of invariants after the tables that they read changed.
 *
 * Promise: a rule changes nothing, whatever its SQL is: it runs as the reader, as one statement of a read-only
 * transaction with a time limit. A rule that fails is stored as failed, with the reason, and stops neither a sync nor
 * another rule. One statement evaluates a rule for many companies, and reads only companies that changed. When it reaches
 * its time limit, it is divided, down to one company, so that a slow company fails alone.
 *
 * A mark is cleared only by a snapshot that has what was committed before the round began: a replica that is behind clears
 * none, and the rule is stored as failed, with the reason.
 *
 * A violation opens when every resource of its rule has been read to its end since it was first seen, and its detail is
 * still the same. Resources are read one after another: a violation that only shows a moment between two reads ends or
 * changes before that.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import { type Client, query, queryNamed } from "../postgres/driver/Connection.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { literal } from "../warehouse/Identifier.ts"
import { modelsDatasetDefault } from "../warehouse/Model.ts"
import * as Reader from "../warehouse/Reader.ts"
import * as ReaderMark from "../warehouse/ReaderMark.ts"
import { type Invariant, queryOf } from "./Invariant.ts"
import * as InvariantStore from "./InvariantStore.ts"
import { repeatResting } from "../time/Resting.ts"

export interface EvaluationOptions {
  readonly invariants: ReadonlyArray<Invariant>
  /** The dataset of the current records. */
  readonly current: string
  /** The time limit of one statement; default 30 s. */
  readonly timeout?: Duration.Duration
}

const timeoutDefault = Duration.seconds(30)
/** Violations of a rule that are stored for a company. */
const storedMax = 1_000
/** Rows of a rule that are read and counted for a company. */
const readMax = 1_000_000
const detailCharactersMax = 300
const errorCharactersMax = 1_000
/** Companies of one statement. */
const companiesMax = 50
/** How long changes are gathered before a rule is evaluated. */
const debounce = Duration.seconds(30)
const everyMs = 10_000
/** The rest after an evaluation, as a multiple of its time. */
const restShare = 4
const restMsMax = 5 * 60_000
/** The statements of a rule that reach their time limits take at most this multiple of the full limit in a round. */
const timeoutsMax = 3
/**
 * The part of the time limit of several companies, once the rule has reached the full limit in the round: so the halves of
 * a statement, down to the one company that is too slow, fit into {@link timeoutsMax}.
 */
const dividedShare = 1 / 5

/** The violations of some companies, some of each, with the number of all. A company is a parameter of its own subquery. */
const violationsSql = (rule: string) => `
  select c.company_id, v.resource, v.id, v.detail, v.total
    from unnest($1::bigint[]) c(company_id)
   cross join lateral (
     select w.resource, w.id, left(min(w.detail), ${detailCharactersMax}) as detail, count(*) over () as total
       from (select * from (${rule}) r where r.company_id = c.company_id limit ${readMax}) w
      group by w.resource, w.id order by w.resource collate "C", w.id limit ${storedMax}) v`

const Rows = Schema.Array(
  Schema.Struct({
    company_id: Schema.BigInt,
    resource: Schema.String,
    id: Schema.BigInt,
    detail: Schema.String,
    total: Schema.BigInt
  })
)
const decodeRows = Schema.decodeUnknownResult(Rows)

/** The reader's session, outside of a transaction, which sees what was committed before. */
const openReader = Effect.fnUntraced(function* (current: string, timeout: Duration.Duration) {
  // The marks that are cleared later were read before.
  const mark = yield* ReaderMark.make
  const client = yield* Reader.connect
  const settings = {
    search_path: `${current}, ${modelsDatasetDefault}, public`,
    statement_timeout: `${Duration.toMillis(timeout)}ms`
  }
  yield* queryNamed(client, Reader.settingsStatement, [JSON.stringify(settings)])
  yield* query(client, "end the transaction", "commit")
  yield* ReaderMark.begin(client, "evaluate invariants", mark)
  yield* query(client, "end the transaction", "rollback")
  return { client, mark }
})

interface ReaderSession {
  readonly client: Client
  readonly mark: ReaderMark.Mark
}

/** The violations of the rule, or why it failed. Fails only when the connection is lost, or does not see the mark. */
const readViolations = Effect.fnUntraced(function* (
  { client, mark }: ReaderSession,
  rule: InvariantStore.StoredRule,
  companies: ReadonlyArray<bigint>,
  timeoutMs: number
): Effect.fn.Return<Result.Result<ReadonlyArray<InvariantStore.Violation>, string>, DatabaseError> {
  const limit = literal(`${Math.ceil(timeoutMs)}ms`)
  yield* ReaderMark.begin(client, "begin to read", mark)
  yield* query(client, "begin to read", `set local statement_timeout = ${limit}`)
  const read = yield* Effect.result(
    // A statement with parameters is a single one.
    query(client, `evaluate ${rule.name}`, violationsSql(rule.query), [companies.map(String)])
  )
  // It also undoes what the rule set in its session.
  yield* query(client, "end to read", "rollback")
  if (Result.isFailure(read)) return Result.fail(read.failure.message)
  const decoded = decodeRows(read.success)
  if (Result.isFailure(decoded)) return Result.fail("it answered a row without resource, id or detail")
  const other = decoded.success.find(({ resource }) => !rule.resources.includes(resource))
  if (other !== undefined) return Result.fail(`it answered the resource ${other.resource}, which it does not read`)
  return Result.succeed(decoded.success.map(({ company_id: companyId, ...row }) => ({ companyId, ...row })))
})

/** The first evaluations for one statement. A company for which the rule failed is evaluated alone, so that it fails alone. */
const nextOf = (rest: ReadonlyArray<InvariantStore.Due>, companies: number): ReadonlyArray<InvariantStore.Due> => {
  const failed = rest.findIndex(({ hasFailed }) => hasFailed)
  return rest.slice(0, failed === -1 ? companies : Math.max(1, Math.min(companies, failed)))
}

/** Evaluates a rule where it is due. Statements that reach their time limits keep the other rules waiting for a bounded time. */
const evaluateRule = Effect.fnUntraced(function* (
  session: ReaderSession,
  rule: InvariantStore.StoredRule,
  due: ReadonlyArray<InvariantStore.Due>,
  timeout: Duration.Duration
) {
  const timeoutMs = Duration.toMillis(timeout)
  let rest = [...due.filter(({ hasFailed }) => !hasFailed), ...due.filter(({ hasFailed }) => hasFailed)]
  let companies = companiesMax
  let leftMs = timeoutMs * timeoutsMax
  let failure = ""
  while (rest.length > 0 && leftMs > 0) {
    const some = nextOf(rest, companies)
    const isDivided = leftMs < timeoutMs * timeoutsMax && some.length > 1
    const limitMs = Math.min(leftMs, isDivided ? timeoutMs * dividedShare : timeoutMs)
    const ids = some.map(({ companyId }) => companyId)
    const [took, found] = yield* Effect.timed(readViolations(session, rule, ids, limitMs)).pipe(
      // A rule that ends its own connection is not evaluated again at once.
      Effect.tapError((error) => fail(rule, some, error.message))
    )
    if (Result.isSuccess(found)) yield* InvariantStore.save(rule.name, some, found.success, storedMax)
    else {
      failure = found.failure
      const isTimeout = Duration.toMillis(took) >= limitMs
      if (isTimeout) leftMs -= limitMs
      if (isTimeout && some.length > 1) {
        companies = Math.floor(some.length / 2)
        continue
      }
      yield* fail(rule, some, failure)
    }
    rest = rest.slice(some.length)
  }
  if (rest.length > 0) yield* fail(rule, rest, failure)
})

const fail = (rule: InvariantStore.StoredRule, some: ReadonlyArray<InvariantStore.Due>, message: string) =>
  InvariantStore.fail(rule.name, some, message.slice(0, errorCharactersMax))

/**
 * Evaluates what is due; `isNow` does not wait until no more changes arrive. Answers the number of evaluations. Without a
 * change it is one statement.
 */
export const evaluateOnce = Effect.fnUntraced(function* (
  { invariants, current, timeout = timeoutDefault }: EvaluationOptions,
  { isNow }: { readonly isNow: boolean }
): Effect.fn.Return<number, DatabaseError, Database | SqlClient.SqlClient> {
  const rules = invariants.map((one): InvariantStore.StoredRule => {
    const { name, severity, statement, comment, resources } = one
    return { name, severity, statement, comment, resources, query: queryOf(one, { current }) }
  })
  const digest = InvariantStore.digestOf(rules)
  if (!(yield* InvariantStore.hasWork(digest))) return 0
  yield* InvariantStore.mark(rules, digest, debounce, !isNow)
  const all = yield* InvariantStore.due(isNow)
  const unread = all.filter(({ isRead }) => !isRead)
  if (unread.length > 0) yield* InvariantStore.wait(unread)
  const byRule = Map.groupBy(
    all.filter(({ isRead }) => isRead),
    ({ invariant }) => invariant
  )
  if (byRule.size === 0) return 0
  const evaluated = Effect.gen(function* () {
    const reader = yield* Effect.result(openReader(current, timeout))
    // Without a reader no rule can be evaluated, and the reason has the remedy.
    if (Result.isFailure(reader) && reader.failure.isRetryable) return yield* reader.failure
    for (const rule of rules) {
      const due = byRule.get(rule.name) ?? []
      if (Result.isSuccess(reader)) yield* evaluateRule(reader.success, rule, due, timeout)
      else if (due.length > 0) yield* fail(rule, due, reader.failure.message)
    }
    return all.length - unread.length
  })
  return yield* Effect.scoped(evaluated)
})

/** Evaluates until it is interrupted. */
export const evaluateForever = (
  options: EvaluationOptions
): Effect.Effect<never, DatabaseError, Database | SqlClient.SqlClient> =>
  repeatResting(evaluateOnce(options, { isNow: false }), () => ({
    times: restShare,
    leastMs: everyMs,
    mostMs: restMsMax
  }))

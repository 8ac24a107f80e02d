/**
 * The rows of the outbox: which of them are next, and what became of them.
 *
 * Promise: every statement here belongs to a transaction under the fence of the one who pushes. A row leaves `waiting`
 * and `sending` by a {@link RowResolution} only, and a verdict changes no row that is not where it was when it was judged. Rows
 * of one record go in the order of their numbers: a later one is not shown before the earlier ones are settled.
 */
import * as Effect from "effect/Effect"
import type { QueryResultRow } from "pg"
import { planForAll } from "../land/MergeSql.ts"
import type { ResourceLock } from "../land/ResourceLock.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { sanitizeText } from "../postgres/Text.ts"
import { isInvalid, type Validator } from "./Validate.ts"
import type { Difference, Operation, Outcome, Problem } from "./Push.ts"
import type { Counts } from "./Push.ts"

export type Run = ResourceLock["run"]

/** Values as they were held when a change was first looked at, by field. */
export type Base = Readonly<Record<string, string | null>>

/** A record to be written. */
export interface Row {
  readonly id: bigint
  readonly operation: Operation
  readonly externalid: string | null
  readonly recordId: string | null
  /** The body, byte for byte. */
  readonly text: string
  /** Whether it belongs to what is pushed, and not to a call or a record that stood in its way. */
  readonly isOwn: boolean
  /** Its index in the call; null while it is in none. */
  readonly position: number | null
  readonly attempts: number
  readonly merges: number
  readonly base: Base | null
}

/** What becomes of a row. */
export type RowResolution =
  | {
      readonly state: "done"
      readonly outcome: Outcome
      readonly recordId: string | null
      readonly differences: ReadonlyArray<Difference>
    }
  | {
      readonly state: "refused"
      readonly code: string
      readonly field: string | null
      readonly reason: string
      readonly problems: ReadonlyArray<Pick<Problem, "field" | "message">>
      readonly attempts?: number
    }
  | {
      /** It goes again, in another call. */
      readonly state: "waiting"
      readonly reason: string | null
      /** How many attempts and merges it has behind it, more than before. */
      readonly attempts?: number
      readonly merges?: number
      /** The source was seen not to have it. */
      readonly isAbsent?: boolean
    }

export interface ResolvedRow {
  readonly row: Row
  readonly verdict: RowResolution
}

/** A verdict on a row of a call, or on one that waits. */
export interface GivenRow extends ResolvedRow {
  readonly callId: bigint | null
}

/** Whose rows: a push, or null for those that belong to none; and single rows beside. */
export interface OutboxScope {
  readonly company: string
  readonly resource: string
  readonly push: bigint | null
  /** Rows of others that stand in the way of ours. */
  readonly beside: ReadonlyArray<bigint>
}

const reasonLengthMax = 1_000
/** For how long it is believed that the source does not have a record. */
const absentFor = "interval '10 minutes'"

interface RowRow extends QueryResultRow {
  readonly id: bigint
  readonly operation: Operation
  readonly externalid: string | null
  readonly record_id: string | null
  readonly record: string
  readonly own: boolean
  readonly position: number | null
  readonly attempts: number
  readonly merges: number
  readonly base: Base | null
}

const rowOf = (row: RowRow): Row => ({
  id: row.id,
  operation: row.operation,
  externalid: row.externalid,
  recordId: row.record_id,
  text: row.record,
  isOwn: row.own,
  position: row.position,
  attempts: row.attempts,
  merges: row.merges,
  base: row.base
})

const rowsOf = ({ rows }: { readonly rows: ReadonlyArray<RowRow> }) => rows.map(rowOf)

/** `$3` is the push. */
const columns =
  "o.id, o.operation, o.externalid, o.record_id, o.record::text as record, o.push_id is not distinct from $3::bigint as own, " +
  "o.position, o.attempts, o.merges, o.base"

/** Waiting rows that are meant: `$1` company, `$2` resource, `$3` push, `$4` rows beside. */
const waiting = `o.company = $1 and o.resource = $2 and o.state in ('waiting', 'sending') and o.state = 'waiting'
   and (o.push_id is not distinct from $3::bigint or o.id = any($4::bigint[]))`

const parametersOf = ({ company, resource, push, beside }: OutboxScope) => [company, resource, push, beside]

/** What an open row of the same record with a lower number is, each looked up in an index of its own. */
const earlier = [
  "e.state in ('waiting', 'sending') and e.operation <> 'create' and e.externalid = o.externalid",
  "e.state in ('waiting', 'sending') and e.operation = 'create' and o.operation <> 'create' and e.externalid = o.externalid",
  "e.state in ('waiting', 'sending') and e.record_id is not null and e.record_id = o.record_id"
].map((same) => `e.company = o.company and e.resource = o.resource and e.id < o.id and ${same}`)

/** The earlier row of the same record; null when there is none. Never a join: there is an index for each look. */
const blocker = `coalesce(${earlier
  .map((same) => `(select e.id from tributary.outbox e where ${same} order by e.id limit 1)`)
  .join(", ")})`

/** Rows that the source was found not to have, by a scan; of this session. */
export const absentTable = "pg_temp.push_absent"

/**
 * Readies the session. Nothing is known of a table that was just filled, and Postgres guesses the rows that wait to be
 * few; but rows are looked up by their keys here, except where all of them are compared.
 */
export const prepare = (run: Run) =>
  run(
    "prepare the push of",
    `create temp table if not exists push_absent (id bigint primary key, externalid text); truncate ${absentTable};
     set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off; set jit = off`
  )

/** The state of a row that is looked up by its number, and by nothing else. */
export const stateIs = (state: string) => `o.state || '' = ${state}`

/** The highest number among the rows that wait; null when none does. */
export const last = (run: Run, place: OutboxScope): Effect.Effect<bigint | null, DatabaseError> =>
  Effect.map(
    run<{ last: bigint | null }>(
      "look what waits for",
      `select max(o.id) as last from tributary.outbox o where ${waiting}`,
      parametersOf(place)
    ),
    ({ rows }) => rows[0]?.last ?? null
  )

/** Waiting rows of others that stand in the way of rows that are meant. */
export const blockers = (run: Run, place: OutboxScope): Effect.Effect<ReadonlyArray<bigint>, DatabaseError> =>
  Effect.map(
    run<{ id: bigint }>(
      "look what stands in the way of",
      `select distinct b.id from (select ${blocker} as id from tributary.outbox o where ${waiting}) b
        where b.id is not null limit 1000`,
      parametersOf(place)
    ),
    ({ rows }) => rows.map(({ id }) => id)
  )

/** The next rows that nobody has checked yet. */
export const pendingValidation = (run: Run, place: OutboxScope, through: bigint, atMost: number) =>
  Effect.map(
    run<RowRow>(
      "look for unchecked rows of",
      `select ${columns} from tributary.outbox o where ${waiting} and not o.checked and o.id <= $5
        order by o.id limit $6 for update of o`,
      [...parametersOf(place), through, atMost]
    ),
    rowsOf
  )

/** Checks rows that were inserted by SQL: they get the text that will be sent, or are refused. */
export const saveValidation = Effect.fnUntraced(function* (
  run: Run,
  rows: ReadonlyArray<Row>,
  checkers: (operation: Operation) => Validator | Problem
) {
  const judged: Array<GivenRow> = []
  const fit: Array<{
    readonly id: string
    readonly text: string
    readonly record_id: string | null
    readonly externalid: string | null
  }> = []
  for (const row of rows) {
    const one = checkers(row.operation)
    const checked = "text" in one ? one.text(row.text, { externalid: row.externalid, recordId: row.recordId }) : [one]
    if (!isInvalid(checked)) {
      fit.push({ id: String(row.id), text: checked.text, record_id: checked.recordId, externalid: checked.externalid })
      continue
    }
    const [first] = checked
    judged.push({
      row,
      callId: null,
      verdict: {
        state: "refused",
        code: "invalid",
        field: first?.field ?? null,
        reason: first?.message ?? "it does not fit",
        problems: checked.map(({ field, message }) => ({ field, message }))
      }
    })
  }
  yield* run(
    "keep the checked rows of",
    `update tributary.outbox o set checked = true, record = v.text::json, record_id = coalesce(v.record_id, o.record_id),
            externalid = case when o.operation = 'create' then o.externalid else v.externalid end
       from jsonb_to_recordset($1::text::jsonb) as v(id bigint, text text, record_id text, externalid text) where o.id = v.id`,
    [JSON.stringify(fit)]
  )
  return yield* resolveRows(run, judged)
})

/** Creates of which it is not known whether the source has them already. */
const unknown = `${waiting} and o.operation = 'create' and o.checked and o.id <= $5
   and (o.looked_up_at is null or o.looked_up_at < tributary.now() - ${absentFor})
   and not exists (select 1 from ${absentTable} a where a.id = o.id)`

export const unknownCreates = (run: Run, place: OutboxScope, through: bigint, atMost: number) =>
  Effect.map(
    run<RowRow>(
      "look for new rows of",
      `select ${columns} from tributary.outbox o where ${unknown} order by o.id limit $6`,
      [...parametersOf(place), through, atMost]
    ),
    rowsOf
  )

/**
 * Remembers which creates are to be compared with a scan that begins after this: what becomes visible later is not
 * among them.
 */
export const assumeNew = (run: Run, place: OutboxScope, through: bigint) =>
  run(
    "compare the new rows of",
    `insert into ${absentTable} (id, externalid) select o.id, o.externalid from tributary.outbox o where ${unknown}`,
    [...parametersOf(place), through]
  )

/** Forgets what was supposed since, where no scan has confirmed it. */
export const clearAssumedNew = (run: Run) => run("forget the new rows of", `truncate ${absentTable}`)

/** As `foldedExternalid` of Check.ts: what a source may take for the same. */
export const folded = (text: string): string => `lower(btrim(normalize(${text}), E' \\t\\r\\n'))`

/**
 * Takes out of what is supposed absent those that the warehouse has a row of, or a record in quarantine that may be
 * them, and answers these.
 */
export const possibleDuplicates = (run: Run, place: OutboxScope, table: string, companyId: bigint) =>
  Effect.gen(function* () {
    yield* run("look at the new rows of", `analyze ${absentTable}; ${planForAll}`)
    return rowsOf(
      yield* run<RowRow>(
        "compare the new rows with the warehouse's",
        `with found as (
           select a.id from ${absentTable} a join ${table} t
               on ${folded('t."externalid"')} = ${folded("a.externalid")} and t."_company_id" = $4 and t."_deleted_at" is null
           union
           select a.id from tributary.quarantine q join ${absentTable} a on position(a.externalid in q.bytes) > 0
            where q.company_id = $4 and q.resource = $2 and q.resolved_at is null
         ), taken as (
           delete from ${absentTable} a using found f where a.id = f.id
         )
         select ${columns} from tributary.outbox o join found f on f.id = o.id
          where o.company = $1 and o.state = 'waiting' order by o.id`,
        [place.company, place.resource, place.push, companyId]
      )
    )
  })

/** The next creates that may be sent, locked, call by call, and the last row that was looked at. */
export const creates = Effect.fnUntraced(function* (
  run: Run,
  place: OutboxScope,
  given: {
    readonly after: bigint
    readonly through: bigint
    readonly recordsMax: number
    readonly bytesMax: number
    readonly callsMax: number
  }
): Effect.fn.Return<{ readonly calls: ReadonlyArray<ReadonlyArray<Row>>; readonly after: bigint }, DatabaseError> {
  let { after } = given
  const rowsMax = given.recordsMax * given.callsMax
  for (;;) {
    const { rows: found } = yield* run<RowRow & { readonly is_ready: boolean }>(
      "take rows of",
      `with o as materialized (
         select * from tributary.outbox o
          where ${waiting} and o.operation = 'create' and o.checked and o.id > $5 and o.id <= $6
          order by o.id limit $7 for update
       )
       select ${columns}, ${blocker} is null and (coalesce(o.looked_up_at >= tributary.now() - ${absentFor}, false)
              or (select true from ${absentTable} a where a.id = o.id) is true) as is_ready
         from o order by o.id`,
      [...parametersOf(place), after, given.through, rowsMax]
    )
    const calls: Array<Array<Row>> = []
    let bytes = 0
    for (const row of found) {
      if (row.is_ready) {
        const last = calls.at(-1)
        bytes += row.record.length
        if (last !== undefined && last.length < given.recordsMax && bytes <= given.bytesMax) last.push(rowOf(row))
        else if (calls.length === given.callsMax) break
        else {
          calls.push([rowOf(row)])
          bytes = row.record.length
        }
      }
      after = row.id
    }
    if (calls.length > 0 || found.length < rowsMax) return { calls, after }
  }
})

/** The next updates and cancels. */
export const changes = Effect.fnUntraced(function* (
  run: Run,
  place: OutboxScope,
  given: { readonly after: bigint; readonly through: bigint; readonly atMost: number }
): Effect.fn.Return<ReadonlyArray<Row>, DatabaseError> {
  return rowsOf(
    yield* run<RowRow>(
      "take changes of",
      `select ${columns} from tributary.outbox o
        where ${waiting} and o.operation <> 'create' and o.checked and o.id > $5 and o.id <= $6 and ${blocker} is null
        order by o.id limit $7`,
      [...parametersOf(place), given.after, given.through, given.atMost]
    )
  )
})

/** Records that the warehouse holds under another spelling of these externalids alone. */
export const heldAlike = (run: Run, table: string, companyId: bigint, externalids: ReadonlyArray<string>) =>
  Effect.map(
    run<{ externalid: string; id: string; other: string }>(
      "look for other spellings in",
      `select a.externalid, min(t."id")::text as id, min(t."externalid") as other
         from unnest($2::text[]) a (externalid)
         join ${table} t on ${folded('t."externalid"')} = ${folded("a.externalid")}
        where t."_company_id" = $1 and t."_deleted_at" is null
        group by 1 having bool_and(t."externalid" <> a.externalid)`,
      [companyId, externalids]
    ),
    ({ rows }): ReadonlyMap<string, { readonly id: string; readonly other: string }> =>
      new Map(rows.map(({ externalid, id, other }) => [externalid, { id, other }]))
  )

/** The numbers of the records that the warehouse holds with these externalids. */
export const heldBy = (run: Run, table: string, companyId: bigint, externalids: ReadonlyArray<string>) =>
  Effect.map(
    run<{ externalid: string; ids: ReadonlyArray<string> }>(
      "look for the records of",
      `select "externalid" as externalid, array_agg("id"::text order by "id") as ids from ${table}
        where "_company_id" = $1 and "externalid" = any($2::text[]) and "_deleted_at" is null group by 1`,
      [companyId, externalids]
    ),
    ({ rows }): ReadonlyMap<string, ReadonlyArray<string>> =>
      new Map(rows.map(({ externalid, ids }) => [externalid, ids]))
  )

/** Keeps the numbers of the records that rows turned out to be about. */
export const resolved = (run: Run, rows: ReadonlyArray<Row>) =>
  run(
    "keep the records of changes of",
    `update tributary.outbox o set record_id = v.record_id
       from unnest($1::bigint[], $2::text[]) as v(id, record_id) where o.id = v.id and o.state = 'waiting'`,
    [rows.map(({ id }) => id), rows.map(({ recordId }) => recordId)]
  )

/** Whether the row waits as it was read, and no other before it; locked if so. */
export const isStill = (run: Run, row: Row) =>
  Effect.map(
    run(
      "lock a row of",
      `select 1 from tributary.outbox o
        where o.id = $1 and o.state = 'waiting' and o.checked and o.record::text = $2 and ${blocker} is null
          for update of o`,
      [row.id, row.text]
    ),
    ({ rows }) => rows.length > 0
  )

/** The rows of a call, in their places. */
export const ofCall = (run: Run, { company, resource, push }: OutboxScope, callId: bigint) =>
  Effect.map(
    run<RowRow>(
      "read the rows of a call of",
      `select ${columns} from tributary.outbox o
        where o.company = $1 and o.resource = $2 and o.call_id = $4 and o.state = 'sending' order by o.position`,
      [company, resource, push, callId]
    ),
    rowsOf
  )

/** A message of the source may hold what no text of Postgres can. */
export const plain = (_: string, value: unknown) => (typeof value === "string" ? sanitizeText(value) : value)

const forSql = ({ row, verdict, callId }: GivenRow) => {
  const same = {
    id: String(row.id),
    state: verdict.state,
    ...(callId === null ? { text: row.text } : { call_id: String(callId) })
  }
  switch (verdict.state) {
    case "done":
      return {
        ...same,
        outcome: verdict.outcome,
        record_id: verdict.recordId,
        differences: verdict.differences.length === 0 ? null : verdict.differences
      }
    case "refused":
      return {
        ...same,
        code: verdict.code,
        field: verdict.field,
        reason: verdict.reason,
        problems: verdict.problems.length === 0 ? null : verdict.problems,
        attempts: verdict.attempts ?? 0
      }
    case "waiting":
      return {
        ...same,
        reason: verdict.reason,
        attempts: verdict.attempts ?? 0,
        merges: verdict.merges ?? 0,
        absent: verdict.isAbsent ?? false
      }
  }
}

/** Writes verdicts on rows of a call, or on rows that wait, and answers those that took effect. */
export const resolveRows = Effect.fnUntraced(function* (
  run: Run,
  judged: ReadonlyArray<GivenRow>
): Effect.fn.Return<ReadonlyArray<GivenRow>, DatabaseError> {
  if (judged.length === 0) return []
  const { rows } = yield* run<{ id: bigint }>(
    "settle rows of",
    `update tributary.outbox o set
       state = v.state, outcome = v.outcome, record_id = coalesce(v.record_id, o.record_id),
       attempts = o.attempts + coalesce(v.attempts, 0), merges = o.merges + coalesce(v.merges, 0),
       looked_up_at = case when v.absent then tributary.now() else o.looked_up_at end,
       call_id = case when v.state = 'waiting' then null else o.call_id end,
       position = case when v.state = 'waiting' then null else o.position end,
       code = v.code, field = v.field, reason = left(v.reason, ${reasonLengthMax}), problems = v.problems,
       differences = v.differences,
       settled_at = case when v.state = 'waiting' then null else tributary.now() end
     from jsonb_to_recordset($1::text::jsonb) as v(id bigint, call_id bigint, state text, text text, outcome text, record_id text,
       attempts integer, merges integer, absent boolean, code text, field text, reason text, problems json, differences json)
     where o.id = v.id and o.call_id is not distinct from v.call_id
       and ${stateIs("case when v.call_id is null then 'waiting' else 'sending' end")}
       and (v.text is null or v.text = o.record::text)
     returning o.id`,
    [JSON.stringify(judged.map(forSql), plain)]
  )
  const ids = new Set(rows.map(({ id }) => id))
  return judged.filter(({ row }) => ids.has(row.id))
})

/** Says of pushes that they are finished: none of their rows waits or is being sent. */
export const finish = (run: Run, { company, resource }: OutboxScope) =>
  run(
    "finish the pushes of",
    `update tributary.pushes p set finished_at = tributary.now()
      where p.company = $1 and p.resource = $2 and p.finished_at is null
        and not exists (select 1 from tributary.outbox o where o.push_id = p.id and o.state = 'waiting')
        and not exists (select 1 from tributary.outbox o where o.push_id = p.id and o.state = 'sending')`,
    [company, resource]
  )

interface CountsRow extends QueryResultRow {
  readonly name: keyof Counts
  readonly rows: number
}

export const noCounts: Counts = {
  waiting: 0,
  sending: 0,
  created: 0,
  adopted: 0,
  updated: 0,
  cancelled: 0,
  unchanged: 0,
  refused: 0,
  different: 0
}

const countsSql = `select coalesce(o.outcome, o.state) as name, count(*)::float8 as rows,
       (count(*) filter (where o.differences is not null))::float8 as different from tributary.outbox o`

const countsOf = (rows: ReadonlyArray<CountsRow & { readonly different: number }>): Counts =>
  rows.reduce(
    (counts, { name, rows: count, different }) => ({
      ...counts,
      [name]: count,
      different: counts.different + different
    }),
    noCounts
  )

/** Of a push as a whole; of rows that belong to none those that are open. */
const countsQuery = ({ company, resource, push }: OutboxScope): readonly [string, ReadonlyArray<unknown>] =>
  push === null
    ? [
        `${countsSql} where o.company = $1 and o.resource = $2 and o.state in ('waiting', 'sending') and o.push_id is null group by 1`,
        [company, resource]
      ]
    : [`${countsSql} where o.push_id = $1 group by 1`, [push]]

/** Counts the rows by a query of one's own. */
export const countFrom = <E, R>(
  ask: (
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<CountsRow & { readonly different: number }>, E, R>,
  place: OutboxScope
): Effect.Effect<Counts, E, R> => Effect.map(ask(...countsQuery(place)), countsOf)

export const count = (run: Run, place: OutboxScope): Effect.Effect<Counts, DatabaseError> =>
  countFrom(
    (text, values) =>
      Effect.map(
        run<CountsRow & { readonly different: number }>("count the rows of", text, values),
        ({ rows }) => rows
      ),
    place
  )

/** The counts after rows came to these verdicts. */
export const counted = (before: Counts, judged: ReadonlyArray<GivenRow>): Counts => {
  const after: Record<keyof Counts, number> = { ...before }
  for (const { row, verdict, callId } of judged) {
    if (!row.isOwn) continue
    after[callId === null ? "waiting" : "sending"] -= 1
    after[verdict.state === "done" ? verdict.outcome : verdict.state] += 1
    if (verdict.state === "done" && verdict.differences.length > 0) after.different += 1
  }
  return after
}

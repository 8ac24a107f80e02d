/**
 * The stored rules, their states and their violations.
 *
 * Promise: a change of a table marks the rules that read it, in the transaction that moves the position in the change
 * feed: no change is missed. An evaluation clears only the marks from before it began, and is discarded when another one
 * ended meanwhile. A killed process leaves marks, which the next evaluation finds.
 */
import { createHash } from "node:crypto"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ChangeFeed from "../changes/ChangeFeed.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import type { Invariant } from "./Invariant.ts"

/** A rule with its query over the current records. */
export interface StoredRule extends Omit<Invariant, "sql"> {
  readonly query: string
}

/**
 * SQL: the time up to which every change of these resources is in the warehouse; null where one of them was not read to
 * its end yet. It is the begin of the last scan, or later where events prove it.
 */
const readAt = (resources: string, company: string) =>
  `(select case when count(greatest(k.cursor_read_at, k.full_scan_at)) = cardinality(${resources}) then min(greatest(
      k.cursor_read_at, k.full_scan_at,
      (select max(p.proven_at) from tributary.event_proofs p where p.company_id = k.company_id and p.resource = k.resource))) end
      from tributary.checkpoints k where k.company_id = ${company} and k.lane = 'live' and k.resource = any (${resources}))`

export const digestOf = (rules: ReadonlyArray<StoredRule>): string =>
  createHash("sha256").update(JSON.stringify(rules)).digest("hex")

export const lookStatement = Statement.make({
  name: "look for invariants to evaluate",
  params: ["text"],
  columns: { hasWork: "bool" },
  text: `select e.rules is distinct from $1 or e.position is distinct from f.last_position
                or exists (select from tributary.invariant_states where due_at is not null)
                or exists (select from tributary.violations where ended_at is null and opened_at is null)
                or exists (select from tributary.change_batches where last_position is null) as "hasWork"
           from tributary.evaluations e, tributary.change_feed f where e.kind = 'invariants'`
})

/** Whether a rule may be due. One statement, which reads a few rows. */
export const hasWork = (digest: string): Sql.Query<boolean> =>
  Effect.map(Statement.run(lookStatement, [digest]), ([row]) => row!.hasWork)

export const lockStatement = Statement.make({
  name: "lock the marks of invariants",
  params: ["text"],
  columns: { isCurrent: "bool" },
  text: `select coalesce(rules = $1, false) as "isCurrent" from tributary.evaluations
          where kind = 'invariants' for update`
})

/**
 * A rule with another query is due for every company. Its violations stay until it is evaluated. A rule that is missing is
 * removed, but not by a command beside a live `serve`: it may run with another configuration.
 */
export const registerStatement = Statement.make({
  name: "store the rules of invariants",
  params: ["text", "text", "bool"],
  text: `with given as (
      select * from jsonb_to_recordset($1::text::jsonb)
        as g(name text, severity text, statement text, comment text, resources text[], query text)),
    allowed as (select $3 or not exists (select from tributary.processes_alive) as may_remove),
    removed as (delete from tributary.invariants i where (select may_remove from allowed) and not exists (select from given g where g.name = i.name)),
    changed as (
      select g.name, g.resources from given g left join tributary.invariants i using (name)
       where (i.query, i.resources) is distinct from (g.query, g.resources)),
    stored as (
      insert into tributary.invariants (name, severity, statement, comment, resources, query)
      select name, severity, statement, comment, resources, query from given
      on conflict (name) do update set severity = excluded.severity, statement = excluded.statement, comment = excluded.comment,
                                       resources = excluded.resources, query = excluded.query),
    marked as (
      insert into tributary.invariant_states as s (invariant, company_id, due_at)
      select m.name, m.company_id, tributary.now() from (
        select distinct c.name, k.company_id
          from changed c join tributary.checkpoints k on k.lane = 'live' and k.resource = any (c.resources)) m
      on conflict (invariant, company_id) do update set marks = s.marks + 1, due_at = excluded.due_at)
    update tributary.evaluations set rules = case when (select may_remove from allowed) or not exists (
      select from tributary.invariants i where not exists (select from given g where g.name = i.name)) then $2 end
     where kind = 'invariants'`
})

/**
 * A position that the feed no longer has, or has not given, marks everything. A violation that can be confirmed marks its
 * rule.
 */
export const markStatement = Statement.make({
  name: "mark the invariants that changes concern",
  params: ["float8"],
  text: `with done as (
      select e.position, f.last_position as reached,
             coalesce(e.position < f.removed_through or e.position > f.last_position, true) as is_lost
        from tributary.evaluations e, tributary.change_feed f where e.kind = 'invariants'),
    changed as (
      select distinct b.company_id, b.resource from done d join tributary.change_batches b
        on not d.is_lost and b.last_position > d.position and b.last_position <= d.reached
      union
      select k.company_id, k.resource from done d join tributary.checkpoints k on d.is_lost and k.lane = 'live'),
    confirmable as (
      select v.invariant, v.company_id from (
        select invariant, company_id, min(changed_at) as since from tributary.violations
         where ended_at is null and opened_at is null group by 1, 2) v
        join tributary.invariants i on i.name = v.invariant
        join tributary.invariant_states s on s.invariant = v.invariant and s.company_id = v.company_id and s.due_at is null
       where v.since < ${readAt("i.resources", "v.company_id")}),
    marked as (
      insert into tributary.invariant_states as s (invariant, company_id, due_at)
      select m.name, m.company_id, tributary.now() + make_interval(secs => $1) from (
        select i.name, c.company_id from changed c join tributary.invariants i on c.resource = any (i.resources)
        union
        select invariant, company_id from confirmable) m
      on conflict (invariant, company_id) do update set marks = s.marks + 1, due_at = least(s.due_at, excluded.due_at))
    update tributary.evaluations e set position = d.reached from done d
     where e.kind = 'invariants' and e.position is distinct from d.reached`
})

/**
 * Stores the rules where they are others, and marks those that are due after `debounce`. Changes that have no position yet
 * get theirs before: a process may have been killed between its landing and that.
 */
export const mark = (
  rules: ReadonlyArray<StoredRule>,
  digest: string,
  debounce: Duration.Duration,
  removesOthers: boolean
) =>
  Effect.andThen(
    ChangeFeed.order,
    transaction(
      Effect.gen(function* () {
        const [locked] = yield* Statement.run(lockStatement, [digest])
        if (locked?.isCurrent !== true)
          yield* Statement.run(registerStatement, [JSON.stringify(rules), digest, removesOthers])
        yield* Statement.run(markStatement, [Duration.toSeconds(debounce)])
      })
    )
  )

/** SQL: companies that move to or from another warehouse. No process works for them, and their rows are not all here. */
const movingCompanies = `select c.company_id from tributary.company_settings m join tributary.companies c using (company)
                          where m.move_state is not null and c.company_id is not null`

/** Evaluations of one round. */
const claimsMax = 10_000

export const dueStatement = Statement.make({
  name: "read the invariants that are due",
  params: ["bool"],
  columns: {
    invariant: "text",
    companyId: "int8",
    ...Statement.columns("int8", "marks", "evaluations"),
    hasFailed: "bool",
    isRead: "bool"
  },
  text: `select s.invariant, s.company_id as "companyId", s.marks, s.evaluations, s.state = 'failed' as "hasFailed",
                ${readAt("i.resources", "s.company_id")} is not null as "isRead"
           from tributary.invariant_states s join tributary.invariants i on i.name = s.invariant
          where s.due_at is not null and s.company_id not in (${movingCompanies}) and (s.due_at <= tributary.now() and not ($1 and s.state = 'failed' and s.marks <= s.evaluated_marks) or $1 and (s.marks > s.evaluated_marks or s.state = 'waiting'))
          order by s.due_at, s.invariant, s.company_id limit ${claimsMax}`
})

/** The due evaluation of a rule for a company. */
export type Due = Statement.RowOf<typeof dueStatement>

/** The due evaluations; `isNow` does not wait for the debounce. */
export const due = (isNow: boolean): Sql.Query<ReadonlyArray<Due>> => Statement.run(dueStatement, [isNow])

/** How long a rule waits that cannot be evaluated yet; a change of a resource ends it. */
const waitMinutes = 10

export const waitStatement = Statement.make({
  name: "store invariants that wait for a resource",
  params: ["text[]", "int8[]"],
  text: `update tributary.invariant_states s set state = 'waiting', evaluated_marks = s.marks,
           due_at = tributary.now() + interval '${waitMinutes} minutes',
           error = 'not read to the end yet: ' || (
             select string_agg(r, ', ' order by r) from unnest(i.resources) r where not exists (
               select from tributary.checkpoints k where k.company_id = s.company_id and k.lane = 'live' and k.resource = r
                  and coalesce(k.cursor_read_at, k.full_scan_at) is not null))
      from unnest($1::text[], $2::bigint[]) w(invariant, company_id) join tributary.invariants i on i.name = w.invariant
     where s.invariant = w.invariant and s.company_id = w.company_id
       and (s.due_at <= tributary.now() or s.state <> 'waiting' or s.error is null)`
})

/** Stores that these wait for a resource that was not read to its end. */
export const wait = (all: ReadonlyArray<Due>): Sql.Query<unknown> =>
  Statement.run(waitStatement, [all.map((one) => one.invariant), all.map((one) => one.companyId)])

/** The time after which a failed rule is evaluated again without a change. */
const retryMinutes = 2

export const failStatement = Statement.make({
  name: "store the failure of an invariant",
  params: ["text", "text", "text"],
  text: `update tributary.invariant_states s set state = 'failed', error = $3, evaluated_at = tributary.now(),
           evaluated_marks = g.marks, evaluations = s.evaluations + 1, due_at = tributary.now() + interval '${retryMinutes} minutes'
      from jsonb_to_recordset($2::text::jsonb) as g(company_id bigint, marks bigint, evaluations bigint)
     where s.invariant = $1 and s.company_id = g.company_id and s.evaluations = g.evaluations`
})

const claimsJson = (all: ReadonlyArray<Due>, more: (one: Due) => object = () => ({})): string =>
  JSON.stringify(
    all.map((one) => ({
      company_id: String(one.companyId),
      marks: String(one.marks),
      evaluations: String(one.evaluations),
      ...more(one)
    }))
  )

/** Stores that the query failed for these companies. Their violations stay. */
export const fail = (invariant: string, all: ReadonlyArray<Due>, error: string): Sql.Query<unknown> =>
  Statement.run(failStatement, [invariant, claimsJson(all), error])

/** A record that violates a rule. */
export interface Violation {
  readonly companyId: bigint
  readonly resource: string
  readonly id: bigint
  readonly detail: string
  /** The violations of the company, with those that are not among these. */
  readonly total: bigint
}

/** SQL: whether a stored violation `v` of the company `u` is one that the evaluation answered. */
const isFound = "f.company_id = v.company_id and f.resource = v.resource and f.id = v.record_id"

/** Beyond the last of too many violations nothing is known, so that stored ones there are deleted and not ended. */
export const saveStatement = Statement.make({
  name: "store the violations of an invariant",
  params: ["text", "text", "text"],
  text: `with evaluated as (
      update tributary.invariant_states s set evaluations = s.evaluations + 1, evaluated_marks = g.marks, error = null,
             evaluated_at = tributary.now(), violations = g.total, due_at = case when s.marks > g.marks then tributary.now() end
        from jsonb_to_recordset($2::text::jsonb)
          as g(company_id bigint, marks bigint, evaluations bigint, total bigint, last_resource text, last_id bigint)
       where s.invariant = $1 and s.company_id = g.company_id and s.evaluations = g.evaluations
      returning s.company_id, g.last_resource, g.last_id),
    found as (
      select f.* from jsonb_to_recordset($3::text::jsonb) as f(company_id bigint, resource text, id bigint, detail text)
        join evaluated using (company_id)),
    unknown as (
      delete from tributary.violations v using evaluated u
       where v.invariant = $1 and v.company_id = u.company_id and v.ended_at is null
         and (v.resource collate "C", v.record_id) > (u.last_resource, u.last_id)),
    ended as (
      update tributary.violations v set ended_at = tributary.now() from evaluated u
       where v.invariant = $1 and v.company_id = u.company_id and v.ended_at is null
         and ((v.resource collate "C", v.record_id) > (u.last_resource, u.last_id)) is not true
         and not exists (select from found f where ${isFound})),
    changed as (
      update tributary.violations v set detail = f.detail, changed_at = tributary.now() from found f
       where v.invariant = $1 and v.ended_at is null and ${isFound} and v.detail <> f.detail),
    reads as materialized (
      select u.company_id, ${readAt("i.resources", "u.company_id")} as at
        from evaluated u join tributary.invariants i on i.name = $1
       where exists (select from tributary.violations v
                      where v.invariant = $1 and v.company_id = u.company_id and v.ended_at is null and v.opened_at is null)),
    opened as (
      update tributary.violations v set opened_at = tributary.now() from found f join reads r using (company_id)
       where v.invariant = $1 and v.ended_at is null and v.opened_at is null and ${isFound} and v.detail = f.detail
         and v.changed_at < r.at)
    insert into tributary.violations (invariant, company_id, resource, record_id, detail)
    select $1, f.company_id, f.resource, f.id, f.detail from found f
     where not exists (select from tributary.violations v where v.invariant = $1 and v.ended_at is null and ${isFound})`
})

/** Of more violations than are stored, all are open except those that are known not to be. */
export const countStatement = Statement.make({
  name: "count the open violations of an invariant",
  params: ["text", "int8[]"],
  text: `update tributary.invariant_states s set open_violations = c.open,
           state = case when c.open > 0 then 'violated' when s.violations > 0 then 'unconfirmed' else 'holds' end
      from (select o.company_id,
                   case when count(v.opened_at) > 0 then o.violations - (count(v.id) - count(v.opened_at)) else 0 end as open
              from tributary.invariant_states o left join tributary.violations v
                on v.invariant = o.invariant and v.company_id = o.company_id and v.ended_at is null
             where o.invariant = $1 and o.company_id = any ($2) group by o.company_id, o.violations) c
     where s.invariant = $1 and s.company_id = c.company_id and s.error is null`
})

/** Stores what an evaluation found for these companies, at most `storedMax` violations of each. */
export const save = (
  invariant: string,
  all: ReadonlyArray<Due>,
  found: ReadonlyArray<Violation>,
  storedMax: number
) => {
  const byCompany = Map.groupBy(found, ({ companyId }) => companyId)
  const claims = claimsJson(all, ({ companyId }) => {
    const own = byCompany.get(companyId) ?? []
    const total = own[0]?.total ?? 0n
    const last = total > BigInt(storedMax) ? own.at(-1) : undefined
    return {
      total: String(total),
      last_resource: last?.resource ?? null,
      last_id: last === undefined ? null : String(last.id)
    }
  })
  const rows = found.map(({ companyId, resource, id, detail }) => ({
    company_id: String(companyId),
    resource,
    id: String(id),
    detail
  }))
  return transaction(
    Effect.gen(function* () {
      yield* Statement.run(saveStatement, [invariant, claims, JSON.stringify(rows)])
      yield* Statement.run(countStatement, [invariant, all.map(({ companyId }) => companyId)])
    })
  )
}

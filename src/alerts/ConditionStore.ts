/** The stored conditions, their silences, and the messages that an evaluation writes. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { type Kind, type Severity, severityOf } from "../status/ProblemKinds.ts"
import { type Announced, type Condition, type ConditionKey, keyOf, type Message, type Silence } from "./Transitions.ts"

export const lockStatement = Statement.make({
  name: "begin an evaluation of the alerts",
  columns: { evaluatedAt: "timestamptz?", now: "timestamptz" },
  // The clock is read after the lock was acquired, so that evaluations are in the order of their times.
  text: `with locked as materialized (select evaluated_at from tributary.evaluations where kind = 'alerts' for update)
    select evaluated_at as "evaluatedAt", tributary.now() as now from locked`
})

/** Waits for another evaluation, and answers the time of the last one. Within a transaction. */
export const begin = Effect.map(Statement.run(lockStatement), ([row]) => row!)

/** A longer time between two evaluations is a break. */
export const breakMs = 3 * 60_000

/** The last evaluation; its time and age are null before the first one. */
export const readEvaluated = Effect.map(
  Query.first(
    control
      .selectFrom("tributary.evaluations")
      .where("kind", "=", "alerts")
      .select((of) => ["evaluated_at as evaluatedAt", Query.ageMs(of.ref("evaluated_at")).as("ageMs")])
  ),
  (row) => row!
)

export const conditionsStatement = Statement.make({
  name: "read the conditions of alerts",
  columns: {
    kind: Statement.as<Kind>("text"),
    ...Statement.columns("text", "company", "subject"),
    level: "int4",
    ...Statement.columns("timestamptz", "since", "observedAt"),
    ...Statement.columns("timestamptz?", "startedAt", "absentAt"),
    ...Statement.columns("text", "what", "remedy"),
    /** The highest level of a start or of a message about a worse state, by route. */
    announced: Statement.as<Readonly<Record<string, number>>>("json")
  },
  text: `select c.kind, c.company, c.subject, c.level, c.since, c.observed_at as "observedAt", c.started_at as "startedAt",
         c.absent_at as "absentAt", c.what, c.remedy,
         coalesce((select json_object_agg(route, level) from (
           select m.route, max(m.level) as level from tributary.alert_messages m
            where m.condition = c.id and m.event <> 'end' group by 1) g), '{}') as announced
    from tributary.alert_conditions c order by c.id`
})
export type StoredCondition = Statement.RowOf<typeof conditionsStatement>

/** The conditions that are observed, or were a moment ago, in the order of their first observation. */
export const readConditions = Statement.run(conditionsStatement)

export const announcedOf = (rows: ReadonlyArray<StoredCondition>): ReadonlyMap<string, Announced> =>
  new Map(rows.map((row) => [keyOf(row), new Map(Object.entries(row.announced))]))

export const storeStatement = Statement.make({
  name: "store conditions of alerts",
  params: ["text"],
  text: `insert into tributary.alert_conditions as c (kind, company, subject, level, since, observed_at, started_at, absent_at, what, remedy)
    select kind, company, subject, level, since, "observedAt", "startedAt", "absentAt", what, remedy
      from jsonb_to_recordset($1::text::jsonb) as r(kind text, company text, subject text, level int, since timestamptz,
           "observedAt" timestamptz, "startedAt" timestamptz, "absentAt" timestamptz, what text, remedy text)
    on conflict (kind, company, subject) do update
       set (level, observed_at, started_at, absent_at, what, remedy)
         = (excluded.level, excluded.observed_at, excluded.started_at, excluded.absent_at, excluded.what, excluded.remedy)`
})

/** A message carries all that its text needs: the condition may be gone when it is sent. */
export const writeStatement = Statement.make({
  name: "write messages of alerts",
  params: ["text", "timestamptz"],
  text: `insert into tributary.alert_messages (condition, route, event, kind, company, subject, level, severity, since, at, what, remedy, due_at)
    select c.id, r.route, r.event, c.kind, c.company, c.subject, r.level, r.severity, c.since, $2::timestamptz, c.what, c.remedy, r."dueAt"
      from rows from (jsonb_to_recordset($1::text::jsonb) as (kind text, company text, subject text, route text, event text,
             level int, severity text, "dueAt" timestamptz)) with ordinality
             as r(kind, company, subject, route, event, level, severity, "dueAt", place)
      join tributary.alert_conditions c on (c.kind, c.company, c.subject) = (r.kind, r.company, r.subject)
     order by place
    on conflict (condition, route, event, level) do nothing`
})

export const endStatement = Statement.make({
  name: "end conditions of alerts",
  params: ["text"],
  text: `delete from tributary.alert_conditions c
    using jsonb_to_recordset($1::text::jsonb) as r(kind text, company text, subject text)
    where (c.kind, c.company, c.subject) = (r.kind, r.company, r.subject)`
})

/** Stores an evaluation. Within the transaction of {@link begin}. */
export const save = Effect.fnUntraced(function* (
  stored: ReadonlyArray<Condition>,
  messages: ReadonlyArray<Message>,
  ended: ReadonlyArray<ConditionKey>,
  now: Date
) {
  if (stored.length > 0) yield* Statement.run(storeStatement, [JSON.stringify(stored)])
  if (messages.length > 0) {
    const rows = messages.map((one) => ({ ...one, severity: severityOf(one.kind, one.level) satisfies Severity }))
    yield* Statement.run(writeStatement, [JSON.stringify(rows), now])
  }
  if (ended.length > 0) {
    const keys = ended.map(({ kind, company, subject }) => ({ kind, company, subject }))
    yield* Statement.run(endStatement, [JSON.stringify(keys)])
  }
  yield* Query.run(control.updateTable("tributary.evaluations").set({ evaluated_at: now }).where("kind", "=", "alerts"))
})

const silenceColumns = [
  ...(["id", "kind", "only_company as company", "subject"] as const),
  ...(["until", "reason", "created_by as by", "created_at as at"] as const)
]

/** The silences that have not ended. */
export const readSilences = Query.run(
  control.selectFrom("tributary.alert_silences").select(silenceColumns).where("until", ">", Query.now).orderBy("id")
)
export type StoredSilence = Effect.Success<typeof readSilences>[number]

export const withdrawStatement = Statement.make({
  name: "withdraw messages of silenced conditions",
  text: `delete from tributary.alert_messages m
    where m.batch is null and m.event <> 'end'
      and exists (select from tributary.alert_conditions c where c.id = m.condition)
      and exists (select from tributary.alert_silences s
                   where s.until > (select tributary.now()) and (s.kind is null or s.kind = m.kind)
                     and (s.only_company is null or s.only_company = m.company) and (s.subject is null or s.subject = m.subject))`
})

/** Deletes messages that no process has begun to send. After the silence the condition starts anew if it holds. */
export const withdrawSilenced: Sql.Query<void> = Effect.asVoid(Statement.run(withdrawStatement))

export interface NewSilence extends Silence {
  /** RFC 3339; null where `seconds` states the length. */
  readonly until: string | null
  readonly seconds: number | null
  readonly reason: string | null
  readonly by: string
}

export const addSilence = Effect.fnUntraced(function* (silence: NewSilence) {
  const { kind, company, subject, until, seconds, reason, by } = silence
  const stored = yield* Query.first(
    control
      .insertInto("tributary.alert_silences")
      .values({
        kind,
        only_company: company,
        subject,
        until: until === null ? Query.nowPlus((seconds ?? 0) * 1000) : new Date(until),
        reason,
        created_by: by
      })
      .returning(silenceColumns)
  )
  yield* withdrawSilenced
  return stored!
})

/** Ends a silence, or all of them for null. */
export const endSilences = (id: bigint | null) =>
  Query.run(
    control
      .deleteFrom("tributary.alert_silences")
      .where("until", ">", Query.now)
      .$if(id !== null, (silences) => silences.where("id", "=", id))
      .returning(silenceColumns)
  )

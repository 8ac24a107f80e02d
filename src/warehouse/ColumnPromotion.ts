/**
 * Making columns of fields that records were seen to carry.
 *
 * Promise: a column gets the narrowest type that holds every value seen so far exactly, and text otherwise; its values
 * move out of `_extra` in all rows and all earlier versions in the one transaction that makes the field a learnt one, so
 * that no record's JSON changes and no version is made. A value that does not fit stays in `_extra` under the field's
 * name. Nobody syncs the resource meanwhile, and a run that began before can no longer write.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Field, InferredType } from "../catalogue/Field.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { literal } from "./Identifier.ts"
import * as LaneLock from "./LaneLock.ts"
import { columnName, type InferredColumn, withInferred } from "./WarehouseCatalogue.ts"
import { type Datasets, type Table, tableOf } from "./Table.ts"
import * as TablePlan from "./TablePlan.ts"

/** An unknown field, and the column that it could become. */
export interface Candidate {
  readonly resource: string
  readonly field: string
  /** Records that carried it. */
  readonly times: number
  readonly firstSeenAt: Date
  /** What its values looked like. */
  readonly kinds: ReadonlyArray<string>
  /** Null when that cannot be told yet: all values so far were null. */
  readonly type: InferredType | null
}

/** A field with the column that it becomes. */
export interface Promotion {
  readonly resource: string
  readonly field: string
  readonly column: string
  readonly type: InferredType
}

export interface PromotionPlan {
  readonly adoptions: ReadonlyArray<Promotion>
  readonly statements: ReadonlyArray<string>
}

const isOneOf = (kinds: ReadonlyArray<string>, ...allowed: ReadonlyArray<string>): boolean =>
  kinds.every((kind) => allowed.includes(kind))

/** Whether the field may have a column of the type: which of two versions is newer is read from an instant, or not at all. */
export const isPossible = (field: string, type: InferredType | null): boolean =>
  field !== "lastchangedate" || type === "timestamp"

/** The type of a column that holds every value of these kinds; null when there is none. */
export const typeFor = (field: string, seen: ReadonlyArray<string>): InferredType | null => {
  const kinds = seen.filter((kind) => kind !== "null")
  if (kinds.length === 0) return null
  const type = typeOfKinds(kinds)
  return isPossible(field, type) ? type : null
}

const typeOfKinds = (kinds: ReadonlyArray<string>): InferredType => {
  if (isOneOf(kinds, "boolean")) return "boolean"
  if (isOneOf(kinds, "integer")) return "integer"
  if (isOneOf(kinds, "integer", "number")) return "number"
  // Digits alone are as likely a code as an amount.
  if (isOneOf(kinds, "decimal", "numeral") && kinds.includes("decimal")) return "decimal"
  if (isOneOf(kinds, "date")) return "date"
  if (isOneOf(kinds, "timestamp")) return "timestamp"
  return kinds.includes("nested") ? "json" : "text"
}

/** Unknown fields of these resources that have no column yet, in the order in which they were met. */
export const candidates = Effect.fn("ColumnPromotion.candidates")(function* (
  resources: ReadonlyArray<Resource>
): Effect.fn.Return<ReadonlyArray<Candidate>, SqlError, SqlClient.SqlClient> {
  if (resources.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ resource: string; field: string; times: bigint; first_seen_at: Date; kinds: string }>`
    select resource, field, sum(times)::bigint as times, min(first_seen_at) as first_seen_at,
           string_agg(array_to_string(sample_types, ','), ',') as kinds
      from tributary.unknown_fields u
     where promoted_at is null and ${sql.in(
       "resource",
       resources.map(({ path }) => path)
     )} and not exists (select 1 from tributary.inferred_columns l where l.resource = u.resource and l.field = u.field)
     group by resource, field order by resource, min(first_seen_at), field`
  const known = new Map(resources.map((one) => [one.path, one]))
  return rows
    .filter(({ resource, field }) => known.get(resource)?.field.has(field) === false)
    .map(({ resource, field, times, first_seen_at, kinds }) => {
      const distinct = [...new Set(kinds.split(","))].sort()
      return {
        resource,
        field,
        times: Number(times),
        firstSeenAt: first_seen_at,
        kinds: distinct,
        type: typeFor(field, distinct)
      }
    })
})

/** A field that is to have a column of a type. */
export interface PromotionRequest {
  readonly field: string
  readonly type: InferredType
}

interface Prepared {
  readonly adoptions: ReadonlyArray<Promotion>
  readonly table: Table
  readonly learning: ReadonlySet<Field>
}

/** Gives names and types; a name that was given before is kept. */
const prepare = Effect.fnUntraced(function* (
  base: Resource,
  wishes: ReadonlyArray<PromotionRequest>,
  datasets: Datasets
) {
  const sql = yield* SqlClient.SqlClient
  const given = new Map(
    (yield* sql<{ field: string; column: string }>`
      select api_name as field, sql_name as column from tributary.sql_names where scope = ${base.path}`).map(
      ({ field, column }) => [field, column]
    )
  )
  const taken = new Set(given.values())
  const learnt = wishes.map(({ field, type }): InferredColumn => {
    const column = given.get(field) ?? columnName(base, taken, field)
    taken.add(column)
    return { name: field, column, type }
  })
  const resource = withInferred(base, learnt)
  return {
    adoptions: learnt.map(({ name, column, type }) => ({ resource: base.path, field: name, column, type })),
    table: tableOf(resource, datasets),
    learning: new Set(learnt.map(({ name }) => resource.field.get(name)!))
  } satisfies Prepared
})

/** Moves the values of all adopted fields in one pass over a table. */
const move = (adoptions: ReadonlyArray<Promotion>, table: Table, name: string): string => {
  const columns = adoptions.map(({ field, type }) => {
    const column = table.columns.find((one) => one.field === field)!
    const value = `"_extra" -> ${literal(field)}`
    return {
      set:
        `${column.sql} = case when "_extra" ? ${literal(field)} ` +
        `then tributary.inferred_text(${value}, ${literal(type)})::${column.sqlType} else ${column.sql} end`,
      gone: `case when tributary.inferred_is_complete(${value}, ${literal(type)}) then ${literal(field)} end`
    }
  })
  const fields = adoptions.map(({ field }) => literal(field)).join(", ")
  return (
    `update ${name} set ${columns.map(({ set }) => set).join(", ")}, ` +
    `"_extra" = nullif("_extra" - array_remove(array[${columns.map(({ gone }) => gone).join(", ")}]::text[], null), '{}'::jsonb) ` +
    `where "_extra" ?| array[${fields}]::text[]`
  )
}

/** What makes the fields learnt ones, once their columns are there. */
const learning = ({ adoptions, table }: Prepared): ReadonlyArray<string> => {
  const path = literal(table.resource.path)
  return [
    // A run that began before does not know the columns: it can no longer write.
    `update tributary.checkpoints set fence = fence + 1, identity_fence = identity_fence + 1 where resource = ${path}`,
    move(adoptions, table, table.current),
    move(adoptions, table, table.superseded),
    ...adoptions.map(
      ({ field, type }) =>
        `insert into tributary.inferred_columns (resource, field, type) values (${path}, ${literal(field)}, ${literal(type)}) on conflict do nothing`
    ),
    `update tributary.unknown_fields set promoted_at = tributary.now() where resource = ${path} and promoted_at is null ` +
      `and field in (${adoptions.map(({ field }) => literal(field)).join(", ")})`
  ]
}

const names = ({ adoptions, table }: Prepared): ReadonlyArray<string> =>
  adoptions.map(({ field, column }) => TablePlan.nameStatement(table.resource.path, field, column))

/** What adopting the fields would do. `base` is the resource as the overlay has it. */
export const planFor = Effect.fn("ColumnPromotion.planFor")(function* (
  base: Resource,
  wishes: ReadonlyArray<PromotionRequest>,
  datasets: Datasets
): Effect.fn.Return<PromotionPlan, TablePlan.TableConflict | SqlError, SqlClient.SqlClient> {
  if (wishes.length === 0) return { adoptions: [], statements: [] }
  const prepared = yield* prepare(base, wishes, datasets)
  const changes = yield* TablePlan.planFor([prepared.table], prepared)
  return { adoptions: prepared.adoptions, statements: [...changes, ...names(prepared), ...learning(prepared)] }
})

/** A process that has just ended holds its locks until the server has noticed. */
const busyRetries = 10
const busyRetryEvery = "100 millis"

class Busy extends TablePlan.TableConflict {}

const isBusy = (error: unknown): error is Busy => error instanceof Busy

/** Takes the lock that every run of the resource holds, of all companies and lanes, for the transaction. */
const alone = Effect.fnUntraced(function* (table: Table) {
  const sql = yield* SqlClient.SqlClient
  const { path } = table.resource
  const [row] = yield* sql<{ alone: boolean | null }>`
    select bool_and(pg_try_advisory_xact_lock(${sql.literal(LaneLock.keySql("c"))})) as alone
      from tributary.checkpoints c where resource = ${path}`
  if (row?.alone === false) {
    return yield* new Busy({
      table: path,
      detail: "is being synced right now, and its table cannot learn a column meanwhile",
      remedy: "Wait for the run to end and run this again",
      isRetryable: true
    })
  }
})

/** Makes the columns and moves the values. `base` is the resource as the overlay has it; load it anew afterwards. */
export const promote = Effect.fn("ColumnPromotion.promote")(function* (
  base: Resource,
  wishes: ReadonlyArray<PromotionRequest>,
  datasets: Datasets
): Effect.fn.Return<PromotionPlan, TablePlan.TableConflict | SqlError, SqlClient.SqlClient> {
  if (wishes.length === 0) return { adoptions: [], statements: [] }
  const when = <A, E, R>(body: Effect.Effect<A, E, R>, table: Table) =>
    TablePlan.changing(table.name, Effect.andThen(alone(table), body)).pipe(
      Effect.retry({ while: isBusy, times: busyRetries, schedule: Schedule.spaced(busyRetryEvery) })
    )
  // Two transactions: readers wait for the first, which is short, and not for the second, which writes rows.
  const prepared = yield* prepare(base, wishes, datasets)
  const made = yield* when(
    Effect.gen(function* () {
      const changes = [...(yield* TablePlan.planFor([prepared.table], prepared)), ...names(prepared)]
      yield* TablePlan.run(changes)
      return changes
    }),
    prepared.table
  )
  const moved = learning(prepared)
  yield* when(TablePlan.run(moved), prepared.table)
  return { adoptions: prepared.adoptions, statements: [...made, ...moved] }
})

/** Postgres takes 1,600 columns at most, and people far fewer; further fields stay in `_extra`. */
export const inferredMax = 500

/**
 * Learns the columns of a resource that only the configuration names, from what its runs have seen so far: to be called
 * when all runs of a sync have ended and given the resource back, so that none of them goes on with the table as it was.
 * Answers the columns made. A resource that the connector states learns nothing by itself; one that another program
 * works on learns later.
 */
export const infer = Effect.fn("ColumnPromotion.infer")(function* (
  base: Resource,
  datasets: Datasets
): Effect.fn.Return<ReadonlyArray<Promotion>, TablePlan.TableConflict | SqlError, SqlClient.SqlClient> {
  if (base.basis !== "configured") return []
  const room = Math.max(0, inferredMax - base.fields.length)
  const wishes = (yield* candidates([base]))
    .flatMap(({ field, type }) => (type === null ? [] : [{ field, type }]))
    .slice(0, room)
  if (wishes.length === 0) return []
  return yield* promote(base, wishes, datasets).pipe(
    Effect.map(({ adoptions }) => adoptions),
    Effect.catchIf(isBusy, () => Effect.succeed([]))
  )
})

/** {@link infer} for all resources of a sync. Never fails: answers a sentence for each that learnt, or that could not. */
export const inferAll = Effect.fn("ColumnPromotion.inferAll")(function* (
  resources: ReadonlyArray<Resource>,
  datasets: Datasets
): Effect.fn.Return<ReadonlyArray<string>, never, SqlClient.SqlClient> {
  const sentences: Array<string> = []
  for (const resource of new Map(resources.map((one) => [one.path, one])).values()) {
    const result = yield* Effect.result(infer(resource, datasets))
    if (result._tag === "Failure") {
      sentences.push(`${resource.path}: its columns could not be made: ${result.failure.message}`)
    } else if (result.success.length > 0) {
      const columns = result.success.map(({ column, type }) => `${column} ${type}`)
      sentences.push(`${resource.path} has new columns: ${columns.join(", ")}`)
    }
  }
  return sentences
})

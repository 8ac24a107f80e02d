/**
 * The promotion of unknown fields to columns.
 *
 * Promise: a column gets the narrowest type that holds every value seen so far exactly, and text otherwise. One
 * transaction moves the values out of `_extra` in all rows and all earlier versions, so that no record's JSON changes and
 * no version is made. A value that does not fit stays in `_extra`. No run of the resource is active meanwhile, and a run
 * that began before can no longer write.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { InferredType } from "../catalogue/Field.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as Statement from "../postgres/Statement.ts"
import { literal } from "./Identifier.ts"
import { lockCheckpointsStatement } from "./Altered.ts"
import * as LaneLock from "./LaneLock.ts"
import { columnName, type InferredColumn, withInferred } from "./WarehouseCatalogue.ts"
import { type Datasets, type Table, tableOf } from "./Table.ts"
import type { RulesChanged } from "./RulesChanged.ts"
import type { TableDamaged } from "./TableDamage.ts"
import * as TablePlan from "./TablePlan.ts"
import { markPromoted } from "./UnknownFields.ts"

/** An unknown field, and the column that it could become. */
export interface Candidate {
  readonly resource: string
  readonly field: string
  /** Records that carried it. */
  readonly times: number
  readonly firstSeenAt: Date
  /** The kinds of its values. */
  readonly kinds: ReadonlyArray<string>
  /** Null while all values were null. */
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
  readonly promotions: ReadonlyArray<Promotion>
  readonly statements: ReadonlyArray<string>
}

const isOneOf = (kinds: ReadonlyArray<string>, ...allowed: ReadonlyArray<string>): boolean =>
  kinds.every((kind) => allowed.includes(kind))

/** Whether the field may have a column of the type: the field that orders versions must be an instant. */
const isPossible = ({ roles }: Resource, field: string, type: InferredType | null): boolean =>
  field !== roles.modifiedAt || type === "timestamp"

/** The type of a column that holds every value of these kinds; null when there is none. */
const typeFor = (of: Resource, field: string, seen: ReadonlyArray<string>): InferredType | null => {
  const kinds = seen.filter((kind) => kind !== "null")
  if (kinds.length === 0) return null
  const type = typeOfKinds(kinds)
  return isPossible(of, field, type) ? type : null
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

export const candidatesStatement = Statement.make({
  name: "read the unknown fields",
  params: ["text[]"],
  columns: { resource: "text", field: "text", times: "int8", first_seen_at: "timestamptz", kinds: "text" },
  text: `
    select resource, field, sum(times)::bigint as times, min(first_seen_at) as first_seen_at,
           string_agg(array_to_string(sample_types, ','), ',') as kinds
      from tributary.unknown_fields u
     where promoted_at is null and resource = any($1)
       and not exists (select from tributary.sql_names n
                        where n.scope = u.resource and n.api_name = u.field and n.inferred_type is not null)
     group by resource, field order by resource, min(first_seen_at), field`
})

/** Unknown fields of these resources that have no column yet, in the order in which they were first seen. */
export const candidates = Effect.fn("ColumnPromotion.candidates")(function* (
  resources: ReadonlyArray<Resource>
): Effect.fn.Return<ReadonlyArray<Candidate>, DatabaseError, SqlClient.SqlClient> {
  if (resources.length === 0) return []
  const known = new Map(resources.map((one) => [one.path, one]))
  const rows = yield* Statement.run(candidatesStatement, [[...known.keys()]])
  return rows.flatMap(({ resource, field, times, first_seen_at, kinds }) => {
    const of = known.get(resource)
    if (of === undefined || of.field.has(field) || of.protection?.ruleOf(field) !== undefined) return []
    const distinct = [...new Set(kinds.split(","))].sort()
    const type = typeFor(of, field, distinct)
    return [{ resource, field, times: Number(times), firstSeenAt: first_seen_at, kinds: distinct, type }]
  })
})

/** A request for a column of this type for a field. */
export interface PromotionRequest {
  readonly field: string
  readonly type: InferredType
}

/** Names and types the columns; a stored name is kept. */
const prepare = Effect.fnUntraced(function* (
  base: Resource,
  requests: ReadonlyArray<PromotionRequest>,
  datasets: Datasets
) {
  const given = yield* TablePlan.readNames(base.path)
  const used = new Set(given.values())
  const inferred = requests.map(({ field, type }): InferredColumn => {
    const column = given.get(field) ?? columnName(base, used, field)
    used.add(column)
    return { name: field, column, type }
  })
  const resource = withInferred(base, inferred)
  return {
    promotions: inferred.map(({ name, column, type }) => ({ resource: base.path, field: name, column, type })),
    table: tableOf(resource, datasets),
    promoted: new Set(inferred.map(({ name }) => resource.field.get(name)!))
  }
})
type Prepared = Effect.Success<ReturnType<typeof prepare>>

/** Moves the values of all promoted fields in one pass over a table. */
const moveValues = (promotions: ReadonlyArray<Promotion>, table: Table, name: string): string => {
  const columns = promotions.map(({ field, type }) => {
    const column = table.columns.find((one) => one.field === field)!
    const value = `"_extra" -> ${literal(field)}`
    return {
      set:
        `${column.sql} = case when "_extra" ? ${literal(field)} ` +
        `then tributary.inferred_text(${value}, ${literal(type)})::${column.sqlType} else ${column.sql} end`,
      moved: `case when tributary.inferred_is_complete(${value}, ${literal(type)}) then ${literal(field)} end`
    }
  })
  const fields = promotions.map(({ field }) => literal(field)).join(", ")
  return (
    `update ${name} set ${columns.map(({ set }) => set).join(", ")}, ` +
    `"_extra" = nullif("_extra" - array_remove(array[${columns.map(({ moved }) => moved).join(", ")}]::text[], null), '{}'::jsonb) ` +
    `where "_extra" ?| array[${fields}]::text[]`
  )
}

/** The statements that follow once the columns exist. */
const promoteStatements = ({ promotions, table }: Prepared): ReadonlyArray<string> => {
  const path = literal(table.resource.path)
  return [
    // A run that began before does not know the columns: it can no longer write.
    `update tributary.checkpoints set fence = fence + 1 where resource = ${path}`,
    moveValues(promotions, table, table.current),
    moveValues(promotions, table, table.superseded),
    ...promotions.map(
      ({ field, type }) =>
        `update tributary.sql_names set inferred_type = ${literal(type)}, inferred_position = ` +
        `(select coalesce(max(inferred_position), 0) + 1 from tributary.sql_names where scope = ${path}) ` +
        `where scope = ${path} and api_name = ${literal(field)} and inferred_type is null`
    ),
    markPromoted(table.resource.path, promotions)
  ]
}

const nameStatements = ({ promotions, table }: Prepared): ReadonlyArray<string> =>
  promotions.map(({ field, column }) => TablePlan.nameStatement(table.resource.path, field, column))

/** The plan of a promotion. `base` is the resource with its inferred columns. */
export const planFor = Effect.fn("ColumnPromotion.planFor")(function* (
  base: Resource,
  requests: ReadonlyArray<PromotionRequest>,
  datasets: Datasets
): Effect.fn.Return<
  PromotionPlan,
  TablePlan.TableConflict | TableDamaged | RulesChanged | DatabaseError,
  SqlClient.SqlClient
> {
  if (requests.length === 0) return { promotions: [], statements: [] }
  const prepared = yield* prepare(base, requests, datasets)
  const changes = yield* TablePlan.planFor([prepared.table], prepared.promoted)
  return {
    promotions: prepared.promotions,
    statements: [...changes, ...nameStatements(prepared), ...promoteStatements(prepared)]
  }
})

/** A process that has just ended holds its locks until the server has noticed. */
const busyRetries = 10
const busyRetryEvery = "100 millis"

class Busy extends TablePlan.TableConflict {}

const isBusy = (error: unknown): error is Busy => error instanceof Busy

export const lockRunsStatement = Statement.make({
  name: "acquire the locks of all runs",
  params: ["text"],
  columns: { alone: "bool?" },
  text: `select bool_and(pg_try_advisory_xact_lock(${LaneLock.keySql("c")})) as alone
           from tributary.checkpoints c where resource = $1`
})

/** Acquires the locks of all runs of the resource, of every company and lane, also of new ones, until the transaction ends. */
const lockAllRuns = Effect.fnUntraced(function* (table: Table) {
  const { path } = table.resource
  yield* Statement.run(lockCheckpointsStatement, [path])
  const [row] = yield* Statement.run(lockRunsStatement, [path])
  if (row?.alone === false) {
    return yield* new Busy({
      table: path,
      detail: "is being synced right now, and its table cannot get a column meanwhile",
      remedy: "Wait for the run to end and run this again",
      isRetryable: true
    })
  }
})

/** Makes the columns and moves the values. `base` is the resource with its inferred columns; load it again afterwards. */
export const promote = Effect.fn("ColumnPromotion.promote")(function* (
  base: Resource,
  requests: ReadonlyArray<PromotionRequest>,
  datasets: Datasets
): Effect.fn.Return<
  PromotionPlan,
  TablePlan.TableConflict | TableDamaged | RulesChanged | DatabaseError,
  SqlClient.SqlClient
> {
  if (requests.length === 0) return { promotions: [], statements: [] }
  const when = <A, E, R>(body: Effect.Effect<A, E, R>, table: Table) =>
    TablePlan.changing(table.name, Effect.andThen(lockAllRuns(table), body)).pipe(
      Effect.retry({ while: isBusy, times: busyRetries, schedule: Schedule.spaced(busyRetryEvery) })
    )
  // Two transactions: readers wait for the first, which is short, and not for the second, which writes rows.
  const prepared = yield* prepare(base, requests, datasets)
  const made = yield* when(
    Effect.gen(function* () {
      const changes = [...(yield* TablePlan.planFor([prepared.table], prepared.promoted)), ...nameStatements(prepared)]
      yield* TablePlan.run(changes)
      return changes
    }),
    prepared.table
  )
  const moved = promoteStatements(prepared)
  yield* when(TablePlan.run(moved), prepared.table)
  return { promotions: prepared.promotions, statements: [...made, ...moved] }
})

/** Postgres allows 1,600 columns; further fields stay in `_extra`. */
const inferredMax = 500

/**
 * Promotes every unknown field of a resource that only the configuration names; returns the new columns. All runs of
 * the sync must have ended, so that none of them continues with the old table. While another process syncs the
 * resource, the promotion is left to a later sync.
 */
export const infer = Effect.fn("ColumnPromotion.infer")(function* (
  base: Resource,
  datasets: Datasets
): Effect.fn.Return<
  ReadonlyArray<Promotion>,
  TablePlan.TableConflict | TableDamaged | RulesChanged | DatabaseError,
  SqlClient.SqlClient
> {
  if (base.basis !== "configured") return []
  const room = Math.max(0, inferredMax - base.fields.length)
  const requests = (yield* candidates([base]))
    .flatMap(({ field, type }) => (type === null ? [] : [{ field, type }]))
    .slice(0, room)
  if (requests.length === 0) return []
  return yield* promote(base, requests, datasets).pipe(
    Effect.map(({ promotions }) => promotions),
    Effect.catchIf(isBusy, () => Effect.succeed([]))
  )
})

/** {@link infer} for all resources of a sync. Never fails; returns a sentence for each change or failure. */
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

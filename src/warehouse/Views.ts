/**
 * The views of the connector's models, and the indexes that help them.
 *
 * Promise: an up-to-date warehouse costs one query. A view with dependents is replaced in place or left as it is, never
 * dropped, and a foreign relation is never replaced. A model without its tables is skipped, one that cannot change is
 * refused with its reason, and the sync continues.
 *
 * The comment of each view ends with a digest of its definition, by which the next run recognises it. A view that reads
 * other tables than those of its definition, since they were renamed, is replaced.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as LockWait from "../postgres/LockWait.ts"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { transaction } from "../postgres/Transaction.ts"
import * as Digest from "./Digest.ts"
import { identifier, literal } from "./Identifier.ts"
import { type Index, indexesOf, rowsMin, statementsOf } from "./Indexes.ts"
import { tablesOfView } from "./ViewTables.ts"
import {
  type DayFunction,
  dayFunctionName,
  type Model,
  type ModelDatasets,
  noteOf,
  queryOf,
  viewName
} from "./Model.ts"

/** The statements for one view or index. */
export interface Step {
  /** Name of the view or the index. */
  readonly name: string
  readonly kind: "view" | "index"
  readonly statements: ReadonlyArray<string>
}

/** A view whose tables do not all exist. */
export interface Skipped {
  readonly name: string
  readonly missing: ReadonlyArray<string>
}

/** A view or index that could not be made or changed, and stays as it was. */
export interface Refused {
  readonly name: string
  readonly reason: string
  readonly remedy: string
}

export interface ViewPlan {
  readonly steps: ReadonlyArray<Step>
  readonly skipped: ReadonlyArray<Skipped>
  readonly refused: ReadonlyArray<Refused>
}

export interface ViewReport {
  /** Statements that ran. */
  readonly done: ReadonlyArray<string>
  readonly skipped: ReadonlyArray<Skipped>
  readonly refused: ReadonlyArray<Refused>
}

/**
 * The objects of the datasets. Of a table: its rows by the statistics, -1 without any. Of a view: its columns with their
 * types in order, the tables that it reads, the quoted roles that may read it, and the objects that depend on it.
 */
export const objectsStatement = Statement.make({
  name: "look for the objects of the models",
  params: ["name", "name"],
  columns: {
    kind: Statement.as<"dataset" | "table" | "index" | "view" | "other" | "function">("text"),
    name: "name",
    comment: "text?",
    rows: "float8",
    columns: "text[]?",
    reads: "text[]?",
    grantees: "text[]?",
    dependents: "text[]?"
  },
  text: `
    select case when n.nspname = $1 then case c.relkind when 'v' then 'view' else 'other' end
                when c.relkind in ('i', 'I') then 'index' else 'table' end as kind,
           c.relname as name, obj_description(c.oid, 'pg_class') as comment, c.reltuples::float8 as rows,
           case when c.relkind = 'v' then array(
             select a.attname || ' ' || replace(format_type(a.atttypid, null), '"', '') from pg_attribute a
              where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) end as columns,
           case when c.relkind = 'v' then ${tablesOfView("c.oid")} end as reads,
           case when c.relkind = 'v' then array(
             select case g.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(g.grantee)) end
               from aclexplode(c.relacl) g where g.privilege_type = 'SELECT' and g.grantee <> c.relowner
              order by 1) end as grantees,
           case when c.relkind = 'v' then array(
             select distinct case when r.oid is null then pg_describe_object(d.classid, d.objid, d.objsubid)
                                  else r.ev_class::regclass::text end
               from pg_depend d left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
              where d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.deptype = 'n'
                and r.ev_class is distinct from c.oid order by 1) end as dependents
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where (n.nspname = $2 and c.relkind in ('r', 'p', 'v', 'i', 'I'))
        or (n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f'))
    union all
    select 'function', p.proname, obj_description(p.oid, 'pg_proc'), -1, null, null, null, null
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1
    union all
    select 'dataset', n.nspname, null, -1, null, null, null, null from pg_namespace n where n.nspname = $1`
})
type ExistingObject = Statement.RowOf<typeof objectsStatement>

interface FunctionStep extends Step {
  readonly digest: string
}

const functionStep = (
  datasets: ModelDatasets,
  name: DayFunction,
  parameters: string,
  definition: string,
  about: string
): FunctionStep => {
  const header = `${dayFunctionName(datasets, name)}(${parameters})`
  const create = `create or replace function ${header} returns ${definition}`
  const digest = Digest.of(`${create}\n${about}`)
  return {
    name,
    kind: "view",
    digest,
    statements: [create, `comment on function ${header} is ${literal(Digest.mark(about, digest))}`]
  }
}

const asOfComment =
  "What today is to the models: the session's current date, or the day of the setting tributary.as_of where it is set (set tributary.as_of = '2026-03-31'; of a position, the day on which it landed)."

const untilComment =
  "The last day whose documents count in the models: the day of the setting tributary.as_of; infinity where it is not set, so that every record counts. Documents without a date always count."

const confirmComment =
  "True, or an error where tributary.as_of is a past day: the model has rows that depend on what has no date, such as the status of an order, which is known for the present only."

const setting = "current_setting('tributary.as_of', true)"

/** The functions that the models call. */
const functionSteps = (datasets: ModelDatasets): ReadonlyArray<FunctionStep> => {
  const [asOf, until] = [dayFunctionName(datasets, "as_of"), dayFunctionName(datasets, "until")]
  const day =
    `select coalesce(case when ${setting} like 'position %' then tributary.as_of_landed()::date ` +
    `else nullif(${setting}, '')::date end, current_date)`
  const last = `select case when nullif(${setting}, '') is null then 'infinity'::date else ${asOf}() end`
  const confirm = `
    begin
      if ${until}() < current_date then
        raise exception '%.% has no day: what it shows has no dates, and is known for the present only', ${literal(datasets.models)}, model
          using errcode = 'TB004', hint = 'Run "reset tributary.as_of" for the present, or read the view of this name in erp_models_asof, which has the records as of the moment.';
      end if;
      return true;
    end`
  return [
    functionStep(datasets, "as_of", "", `date language sql stable parallel safe as ${literal(day)}`, asOfComment),
    functionStep(datasets, "until", "", `date language sql stable parallel safe as ${literal(last)}`, untilComment),
    ...(datasets.isAsOf === true
      ? []
      : [
          functionStep(
            datasets,
            "confirm_present",
            "model text",
            `boolean language plpgsql stable parallel safe as ${literal(confirm)}`,
            confirmComment
          )
        ])
  ]
}

const isPrefix = (short: ReadonlyArray<string>, long: ReadonlyArray<string>): boolean =>
  short.every((one, index) => one === long[index])

const planView = (
  model: Model,
  datasets: ModelDatasets,
  existing: ReadonlyMap<string, ExistingObject>
): Step | Refused | null => {
  const view = viewName(model, datasets)
  const query = queryOf(model, datasets)
  const columns = model.columns.map(({ name, type }) => `${name} ${type}`)
  const documented = model.columns.map(
    ({ name, comment }) => `comment on column ${view}.${identifier(name)} is ${literal(comment)}`
  )
  const comment = `${model.comment}\n\n${noteOf(datasets, model)}`
  const digest = Digest.of([query, comment, ...documented].join("\n"))
  const found = existing.get(`view.${model.name}`) ?? existing.get(`other.${model.name}`)
  const foundDigest = Digest.find(found?.comment)
  const comments = [...documented, `comment on view ${view} is ${literal(Digest.mark(comment, digest))}`]
  if (found === undefined)
    return { name: model.name, kind: "view", statements: [`create view ${view} as\n${query}`, ...comments] }
  if (foundDigest === undefined || found.kind !== "view") {
    return {
      name: model.name,
      reason: `${datasets.models}.${model.name} is not one of Tributary's views`,
      remedy: "rename it, or move it to a dataset of your own; the next sync makes the view"
    }
  }
  const isBound = model.resources.every((path) => found.reads?.includes(`${datasets.current}.${path}`))
  const hasColumns = isPrefix(found.columns ?? [], columns) && found.columns?.length === columns.length
  if (foundDigest === digest && isBound && hasColumns) return null
  if (isPrefix(found.columns ?? [], columns)) {
    return { name: model.name, kind: "view", statements: [`create or replace view ${view} as\n${query}`, ...comments] }
  }
  const dependents = found.dependents ?? []
  if (dependents.length > 0) {
    return {
      name: model.name,
      reason: `its columns change, and ${dependents.join(", ")} ${dependents.length === 1 ? "depends" : "depend"} on it`,
      remedy: `drop what depends on it, run tributary schema apply, and create it again on the new columns`
    }
  }
  const granted = (found.grantees ?? []).map((grantee) => `grant select on ${view} to ${grantee}`)
  return {
    name: model.name,
    kind: "view",
    statements: [`drop view ${view}`, `create view ${view} as\n${query}`, ...comments, ...granted]
  }
}

/** The plan, without steps when everything is up to date. It costs one query and changes nothing. `further` are indexes beside those of the models. */
export const planFor = Effect.fnUntraced(function* (
  models: ReadonlyArray<Model>,
  datasets: ModelDatasets,
  further: ReadonlyArray<Index> = []
): Effect.fn.Return<ViewPlan, DatabaseError, SqlClient.SqlClient> {
  const steps: Array<Step> = []
  const skipped: Array<Skipped> = []
  const refused: Array<Refused> = []
  if (models.length + further.length === 0) return { steps, skipped, refused }
  const existing = new Map(
    (yield* Statement.run(objectsStatement, [datasets.models, datasets.current])).map((one) => [
      `${one.kind}.${one.name}`,
      one
    ])
  )
  const possible = models.filter(({ name, resources }) => {
    const missing = resources.filter((path) => !existing.has(`table.${path}`))
    if (missing.length > 0) skipped.push({ name, missing })
    return missing.length === 0
  })
  if (possible.length > 0) {
    if (!existing.has(`dataset.${datasets.models}`)) {
      steps.push({
        name: datasets.models,
        kind: "view",
        statements: [
          `create schema if not exists ${identifier(datasets.models)}`,
          `comment on schema ${identifier(datasets.models)} is ${literal(`Views for people; the comment of each says what it counts. ${noteOf(datasets)}`)}`
        ]
      })
    }
    steps.push(
      ...functionSteps(datasets).filter(
        ({ name, digest }) => Digest.find(existing.get(`function.${name}`)?.comment) !== digest
      )
    )
  }
  for (const model of possible) {
    const planned = planView(model, datasets, existing)
    if (planned === null) continue
    if ("reason" in planned) refused.push(planned)
    else steps.push(planned)
  }
  for (const index of [...indexesOf(models), ...further]) {
    const table = existing.get(`table.${index.resource}`)
    if (table === undefined || table.rows < rowsMin || existing.has(`index.${index.name}`)) continue
    steps.push({ name: index.name, kind: "index", statements: statementsOf(index, datasets) })
  }
  return { steps, skipped, refused }
})

/** The number of this advisory lock is used for no other. */
export const viewsLockStatement = Statement.make({
  name: "wait for changes of the views",
  columns: { pg_advisory_xact_lock: "void" },
  text: "select pg_advisory_xact_lock(7261002)"
})

const busyRemedy = "another session is using it: the next run tries again"

/** SQLSTATEs of the step: not of the connection (08), nor of a server that stops (57P), nor an errno. */
const saysOfStep = /^(?!08|57P|E)[0-9A-Z]{5}$/

const remedyOf = (code: string): string => {
  switch (code) {
    case "42501":
      return "run tributary schema apply as the owner of the datasets; a loader may not create views"
    case "40001":
    case "40P01":
    case "55P03":
    case "57014":
      return busyRemedy
    case "2BP01":
      return "drop what depends on it, run tributary schema apply, and create it again"
    default:
      return "see tributary schema plan for the statement; unless the tables were changed by hand, please report it"
  }
}

const runStep = (step: Step) =>
  transaction(Effect.forEach(step.statements, (statement) => Sql.rows(statement), { discard: true })).pipe(
    Effect.as(null),
    Effect.catch((error): Effect.Effect<Refused, DatabaseError> => {
      const { code, message } = error
      if (code === undefined || !saysOfStep.test(code)) return Effect.fail(error)
      return Effect.succeed({ name: step.name, reason: message, remedy: remedyOf(code) })
    })
  )

/** A transaction that excludes other processes. */
const serialized = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  transaction(Effect.andThen(Statement.run(viewsLockStatement), LockWait.bounded("make views", work)))

/**
 * Plans and applies: the views in one transaction, every index in its own, so that no view is locked while an index is
 * built.
 */
export const apply = Effect.fn("Views.apply")(function* (
  models: ReadonlyArray<Model>,
  datasets: ModelDatasets,
  further: ReadonlyArray<Index> = []
): Effect.fn.Return<ViewReport, DatabaseError, SqlClient.SqlClient> {
  const looked = yield* planFor(models, datasets, further)
  if (looked.steps.length === 0) return { done: [], skipped: looked.skipped, refused: looked.refused }
  const done: Array<string> = []
  const failed: Array<Refused> = []
  const run = Effect.fnUntraced(function* (step: Step) {
    // The session that blocks one step would block the others too.
    const busy = failed.find(({ remedy }) => remedy === busyRemedy)
    const refusal = busy === undefined ? yield* runStep(step) : { ...busy, name: step.name }
    if (refusal === null) done.push(...step.statements)
    else failed.push(refusal)
  })
  const { steps, skipped, refused } = yield* serialized(
    Effect.gen(function* () {
      // Another process may have done it meanwhile.
      const plan = yield* planFor(models, datasets, further)
      yield* Effect.forEach(
        plan.steps.filter(({ kind }) => kind === "view"),
        run,
        { discard: true }
      )
      return plan
    })
  )
  for (const step of steps.filter(({ kind }) => kind === "index")) yield* serialized(run(step))
  return { done, skipped, refused: [...refused, ...failed] }
})

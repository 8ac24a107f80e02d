/**
 * Pushing what is inserted into the outbox by SQL, for as long as a service runs.
 *
 * Promise: what waits is sent within seconds, resource by resource, many rows at once; a resource that cannot go on rests
 * for a while, longer each time up to a minute, and holds no other up. Nothing but the end of the service ends it.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { childrenOf, type Table } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Polling from "../postgres/Polling.ts"
import { push, type PushCompany, type PushSettings } from "./OutboxWorker.ts"

export interface PolledCompany extends PushCompany {
  /** The tables of the resources that are synced, by path, with the columns learnt so far; read anew at each use. */
  readonly tables: Effect.Effect<ReadonlyMap<string, Table>, SqlError>
}

const pauseMinMs = 1_000
const pauseMaxMs = 60_000

const asking = <Row extends object>(text: string, values: ReadonlyArray<unknown>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe<Row>(text, [...values])).pipe(
    Effect.mapError(DatabaseError.from("look into the outbox"))
  )

/** Resources with rows that belong to no push and are not settled. */
const open = (company: string) =>
  asking<{ resource: string }>(
    // Each resource is looked up once in the index, however many rows wait.
    `with recursive resources as (
       (select resource from tributary.outbox
         where company = $1 and state in ('waiting', 'sending') and push_id is null order by resource limit 1)
       union all
       select (select o.resource from tributary.outbox o
                where o.company = $1 and o.state in ('waiting', 'sending') and o.push_id is null and o.resource > r.resource
                order by o.resource limit 1)
         from resources r where r.resource is not null
     ) select resource from resources where resource is not null`,
    [company]
  ).pipe(Effect.map((rows) => rows.map(({ resource }) => resource)))

/** Rows of a resource that is not synced can never be sent. */
const refuse = (company: string, resource: string) =>
  asking(
    `update tributary.outbox set state = 'refused', code = 'invalid', settled_at = tributary.now(),
            reason = 'the resource is not among those that are synced for this company'
      where company = $1 and resource = $2 and push_id is null and state = 'waiting'`,
    [company, resource]
  )

const keepOne = Effect.fnUntraced(function* (company: PolledCompany, settings: PushSettings, lookEveryMs: number) {
  const clock = yield* Clock.Clock
  const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
  const busy = new Set<string>()
  /** Failures in a row and until when nothing is tried, by resource; of the company under the empty name. */
  const rests = new Map<string, { readonly failures: number; readonly untilMs: number }>()
  let companyId: bigint | null = null

  const isResting = (path: string) => (rests.get(path)?.untilMs ?? 0) > now()
  const rest = (path: string, why: string) =>
    Effect.suspend(() => {
      const failures = rests.get(path)?.failures ?? 0
      const pauseMs = Math.min(pauseMaxMs, pauseMinMs * 2 ** Math.min(failures, 10))
      rests.set(path, { failures: failures + 1, untilMs: now() + pauseMs })
      const what = path === "" ? company.name : `${company.name}: ${path}`
      return Effect.logWarning(`push of company ${what}: ${why}; again in ${Math.round(pauseMs / 1000)} s`)
    })

  const work = Effect.fnUntraced(function* (tables: ReadonlyMap<string, Table>, table: Table, id: bigint) {
    const { path } = table.resource
    const { failure } = yield* push({
      company,
      companyId: id,
      table,
      children: childrenOf(tables, path),
      settings,
      scope: "outbox"
    })
    if (failure === null) rests.delete(path)
    // The table has learnt columns meanwhile: the next look knows them.
    else if (failure.kind !== "TableChanged") yield* rest(path, `${failure.message}; ${failure.remedy}`)
  })

  const look = Effect.gen(function* () {
    const paths = (yield* open(company.name)).filter((path) => !busy.has(path) && !isResting(path))
    if (paths.length === 0 || isResting("")) return
    const tables = yield* Effect.mapError(company.tables, DatabaseError.from("read the tables"))
    const known = paths.flatMap((path) => tables.get(path) ?? [])
    yield* Effect.forEach(
      paths.filter((path) => !tables.has(path)),
      (path) => refuse(company.name, path),
      { discard: true }
    )
    if (known.length === 0) return
    if (companyId === null) {
      const identified = yield* Effect.result(company.connector.identify)
      if (identified._tag === "Failure") return yield* rest("", identified.failure.message)
      companyId = identified.success.companyId
      rests.delete("")
    }
    const id = companyId
    for (const table of known) {
      const { path } = table.resource
      busy.add(path)
      yield* work(tables, table, id).pipe(
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause)
            ? Effect.failCause(cause)
            : rest(path, `this is a fault of the program, please report it: ${Cause.pretty(cause)}`)
        ),
        Effect.ensuring(Effect.sync(() => busy.delete(path))),
        Effect.forkScoped
      )
    }
  })

  let isFailing = false
  for (;;) {
    const looked = yield* Effect.result(look)
    if (looked._tag === "Failure" && !isFailing) {
      yield* Effect.logWarning(`push of company ${company.name}: the outbox cannot be read: ${looked.failure.message}`)
    }
    isFailing = looked._tag === "Failure"
    yield* Effect.sleep(lookEveryMs)
  }
}, Effect.scoped)

/** Pushes what waits in the outbox of these companies, for ever. */
export const poll = (
  companies: ReadonlyArray<PolledCompany>,
  settings: PushSettings
): Effect.Effect<never, never, Database | SqlClient.SqlClient> =>
  Effect.andThen(
    Effect.forEach(companies, (company) => keepOne(company, settings, Polling.everyMs(companies.length)), {
      concurrency: "unbounded",
      discard: true
    }),
    Effect.never
  )

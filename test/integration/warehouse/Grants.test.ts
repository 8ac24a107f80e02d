/** The printed grants, which an administrator runs: they mean what they mean for the owner. */
import { randomUUID } from "node:crypto"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { applyViews } from "../../../src/sync/Sync.ts"
import * as CompanyGrants from "../../../src/warehouse/CompanyGrants.ts"
import * as Grants from "../../../src/warehouse/Grants.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { freshDatabase, sql } from "../../support/postgres.ts"
import { plain, things } from "../../support/tiny.ts"
import { datasets, namesModel } from "./readers.ts"
import { test } from "../../support/suite.ts"

/** An empty database of a superuser, and the layers of an owner without such rights, a loader and a reader. */
const stage = Effect.gen(function* () {
  const url = yield* freshDatabase
  const as = (user?: string) => {
    const named = new URL(Redacted.value(url))
    if (user !== undefined) Object.assign(named, { username: user, password: "not-a-secret" })
    return sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(named.href))))
  }
  const administer = <A, E>(work: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.flatMap(SqlClient.SqlClient, work).pipe(Effect.provide(as()))
  const mark = randomUUID().slice(0, 8)
  const names = { owner: `Owner-${mark}`, loader: `loader_${mark}`, reader: `reader_${mark}` }
  const quoted = Object.values(names).map((name) => `"${name}"`)
  yield* Effect.acquireRelease(
    administer((sql) =>
      Effect.gen(function* () {
        for (const name of quoted) yield* sql.unsafe(`create role ${name} login password 'not-a-secret'`)
        const [row] = yield* sql<{ name: string }>`select current_database()::text as name`
        yield* sql.unsafe(`grant create, temporary on database ${row!.name} to ${quoted[0]}`)
      })
    ),
    () =>
      Effect.orDie(
        administer((sql) =>
          Effect.forEach([...quoted].reverse(), (name) =>
            Effect.andThen(sql.unsafe(`drop owned by ${name} cascade`), sql.unsafe(`drop role ${name}`))
          )
        )
      )
  )
  const grant = administer((sql) =>
    Effect.forEach(Grants.statements(datasets, names), (statement) => sql.unsafe(statement), { discard: true })
  )
  const sync = (resources: ReadonlyArray<Parameters<typeof tableOf>[0]>) =>
    Effect.gen(function* () {
      yield* Migrations.migrate()
      yield* TablePlan.apply(resources.map((one) => tableOf(one, datasetsDefault)))
      yield* applyViews({ models: [namesModel], datasets: datasetsDefault })
    }).pipe(Effect.provide(as(names.owner)))
  const count = (user: string, from: string) =>
    sql.unsafe<{ n: bigint }>(`select count(*) as n from ${from}`).pipe(
      Effect.map(([row]) => row!.n),
      Effect.provide(as(user))
    )
  return { administer, names, grant, sync, count }
})

describe("grants that an administrator runs", () => {
  for (const when of ["before the first sync", "after the first sync"]) {
    test(`make later tables and models readable, ${when}`, function* () {
      const { administer, names, grant, sync, count } = yield* stage
      if (when === "after the first sync") yield* sync([things])
      else {
        // A dataset that belongs to another role ends them with the command.
        yield* administer((sql) => sql.unsafe("create schema erp_models"))
        const error = DatabaseError.from("grant")(yield* Effect.flip(grant))
        assert.match(error.message, /the dataset erp_models belongs to \w+, not to Owner-/)
        yield* administer((sql) => sql.unsafe("drop schema erp_models"))
      }
      yield* grant
      yield* sync([things])
      // Made later by the owner.
      yield* sync([things, plain])
      for (const from of ["erp.plains", "erp.things", "erp_history.plains", "erp_models.names"]) {
        assert.strictEqual(yield* count(names.reader, from), 0n, from)
        if (!from.startsWith("erp_models")) assert.strictEqual(yield* count(names.loader, from), 0n, from)
      }
      assert.strictEqual(yield* count(names.loader, "tributary.checkpoints"), 0n)
      const owners = yield* administer((sql) =>
        sql.unsafe<{ owner: string }>(
          `select distinct r.rolname::text as owner from pg_namespace n join pg_roles r on r.oid = n.nspowner
              where n.nspname = any(array[${Object.values(datasets)
                .map((name) => `'${name}'`)
                .join(", ")}])`
        )
      )
      assert.deepStrictEqual(owners, [{ owner: names.owner }])
      const company = `company_${names.reader}`
      const own = CompanyGrants.statements(datasets, 5n, company, names.owner)
      yield* Effect.acquireRelease(
        administer((sql) => Effect.forEach(own, (statement) => sql.unsafe(statement))),
        () =>
          Effect.orDie(
            administer((sql) =>
              Effect.andThen(sql.unsafe(`drop owned by ${company}`), sql.unsafe(`drop role ${company}`))
            )
          )
      )
      const views = yield* administer((sql) =>
        sql.unsafe<{ owner: string }>(
          "select distinct viewowner::text as owner from pg_views where schemaname in ('erp_5', 'erp_asof_5')"
        )
      )
      assert.deepStrictEqual(views, [{ owner: names.owner }])
    })
  }
})

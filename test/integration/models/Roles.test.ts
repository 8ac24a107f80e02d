/**
 * The database roles on a real warehouse: the owner creates it, the loader syncs it, the reader queries it, and neither
 * may do more.
 */
import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import { statements } from "../../../src/warehouse/Grants.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as Views from "../../../src/warehouse/Views.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as ClusterOwnership from "../../../src/processes/ClusterOwnership.ts"
import { bucketCount } from "../../../src/processes/Ownership.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import { until } from "../../support/until.ts"
import { makeWorld } from "../../support/world.ts"
import { datasets } from "../warehouse/readers.ts"
import { resourcesOf } from "./compare.ts"

const models = readModels()
const resources = resourcesOf(models)
const password = "not-a-secret"

const as = (url: string) => sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(url))))

/** The error code with which Postgres refuses a statement. */
const refusalOf = (statement: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.flip(sql.unsafe(statement))).pipe(
    Effect.map((error) => DatabaseError.from("try")(error).code)
  )

describe("the database roles", () => {
  it.live(
    "allow the loader only to sync, and the reader only to read",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure("budget: { requests_per_minute: unlimited }\n")
          const owner = as(world.databaseUrl)
          const mark = randomUUID().slice(0, 8)
          const names = { loader: `loader_${mark}`, reader: `reader_${mark}` }
          const urlOf = (role: string) => {
            const url = new URL(world.databaseUrl)
            url.username = role
            url.password = password
            return url.href
          }
          const run = (url?: string) =>
            Effect.gen(function* () {
              const done = yield* world.run(["sync", ...resources], url === undefined ? {} : { DATABASE_URL: url })
              assert.strictEqual(done.code, 0, done.stderr)
            })

          yield* run()
          const views = yield* Views.apply(models, datasets).pipe(Effect.provide(owner))
          assert.deepStrictEqual([views.refused, views.skipped], [[], []])
          yield* Effect.acquireRelease(
            Effect.gen(function* () {
              const sql = yield* SqlClient.SqlClient
              // Twice: repeated grants are harmless.
              for (const statement of [...statements(datasets, names), ...statements(datasets, names)]) {
                yield* sql.unsafe(statement)
              }
              for (const role of Object.values(names)) yield* sql.unsafe(`alter role ${role} password '${password}'`)
            }).pipe(Effect.provide(owner)),
            () =>
              Effect.flatMap(SqlClient.SqlClient, (sql) =>
                Effect.forEach(Object.values(names), (role) =>
                  Effect.andThen(sql.unsafe(`drop owned by ${role}`), sql.unsafe(`drop role ${role}`))
                )
              ).pipe(Effect.provide(owner), Effect.orDie)
          )

          // The loader lands a change. The views are current, so it needs no right to create them.
          const [invoice] = (yield* Effect.promise(() => world.reference.lines("/state?company=1&resource=invoices")))
            .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
            .filter((one) => one["voucherid"] !== null && one["cancel"] === false && one["invoicepaid"] === "0.0000")
          const put = (resource: string, records: ReadonlyArray<object>) =>
            world.control("POST", "/records", { company: 1, resource, records })
          yield* put("invoices", [{ id: invoice!["id"], invoicepaid: "1.0000" }])
          yield* put("payments", [
            { invoiceid: invoice!["id"], amount: "1.0000", paymeth: 1, datereceived: "2026-01-05", currency: "USD" }
          ])
          yield* world.control("POST", "/remove", { company: 1, resource: "ardailycloses", id: 1 })
          yield* run(urlOf(names.loader))
          yield* Effect.gen(function* () {
            assert.deepStrictEqual(yield* Views.apply(models, datasets), { done: [], skipped: [], refused: [] })
            const changed = [{ ...models[0]!, comment: "Changed?" }]
            const refused = yield* Views.apply(changed, datasets)
            assert.deepStrictEqual(refused.done, [])
            assert.include(refused.refused[0]!.remedy, "as the owner")
            for (const statement of [
              "create table erp.mine (id bigint)",
              "alter table erp.invoices add column mine text",
              "drop table erp.invoices",
              "create table public.mine (id bigint)",
              "create schema mine",
              "drop view erp_models.receivables_aging",
              "create role mine"
            ]) {
              assert.strictEqual(yield* refusalOf(statement), "42501", statement)
            }
          }).pipe(Effect.provide(as(urlOf(names.loader))))

          // The loader serves: it shares the companies with other processes.
          const owned = new Set<number>()
          yield* Effect.gen(function* () {
            const keeper = (bucket: number) =>
              Effect.andThen(
                Effect.sync(() => owned.add(bucket)),
                Effect.never
              )
            yield* Layer.build(ClusterOwnership.make(yield* Database).layer(keeper))
            yield* until(
              "the loader owns every bucket",
              Effect.sync(() => owned.size),
              (size) => size === bucketCount
            )
          }).pipe(Effect.scoped, Effect.provide(as(urlOf(names.loader))))

          // The grants cover tables that the owner creates later.
          yield* TablePlan.apply([tableOf(serviceV2.resources.get("emailtemplates")!, datasets)]).pipe(
            Effect.provide(owner)
          )
          const settings = yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql`insert into erp.emailtemplates (_company_id, id, _origin, _observed_at) values (1, 1, 'scan', now())`
            return yield* sql`select from tributary.runs`
          }).pipe(Effect.provide(as(urlOf(names.loader))))
          assert.isAbove(settings.length, 0)

          // Reader.test.ts of the warehouse has what a reader may not do; here it has a session of its own.
          yield* Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            assert.isAbove((yield* sql`select from erp_models.payments_by_day`).length, 10)
            assert.strictEqual((yield* sql`select from erp.emailtemplates`).length, 1)
            assert.isAbove((yield* sql`select from erp_history.payments`).length, 10)
            // For sessions of other programs; ours set their own.
            const roleSettings = yield* sql<{ config: ReadonlyArray<string> }>`
              select rolconfig as config from pg_roles where rolname = current_user`
            assert.includeMembers(
              [...roleSettings[0]!.config],
              ["default_transaction_read_only=on", "statement_timeout=60s"]
            )
            assert.isAbove((yield* sql`select from tributary.runs`).length, 0)
            for (const statement of [
              "select from tributary.webhook_secrets",
              "select idempotency_key from tributary.push_requests"
            ]) {
              assert.strictEqual(yield* refusalOf(statement), "42501", statement)
            }
            assert.strictEqual(yield* refusalOf("delete from erp.invoices"), "25006")
            assert.strictEqual(yield* refusalOf("create temp table mine (id bigint)"), "25006")
            // The refusal holds even if the reader overrides its read-only default.
            const lifted = (statement: string) =>
              sql.withTransaction(Effect.andThen(sql.unsafe("set transaction read write"), sql.unsafe(statement))).pipe(
                Effect.flip,
                Effect.map((error) => DatabaseError.from("try")(error).code)
              )
            for (const statement of [
              "delete from erp.invoices",
              "update erp.payments set amount = 0",
              "insert into erp_history.payments__superseded select * from erp_history.payments__superseded",
              "create table public.mine (id bigint)",
              "drop view erp_models.receivables_aging"
            ]) {
              assert.strictEqual(yield* lifted(statement), "42501", statement)
            }
          }).pipe(Effect.provide(as(urlOf(names.reader))))
        })
      ),
    120_000
  )

  it("reject role and schema names that are no valid identifiers", () => {
    for (const names of [
      { loader: 'l"; drop table x; --', reader: "r" },
      { loader: "l", reader: "r'||'" },
      { loader: "", reader: "r" }
    ]) {
      assert.throws(() => statements(datasets, names), /cannot be a name/)
    }
    assert.throws(() => statements({ ...datasets, models: "a b" }), /cannot be a name/)
    assert.isTrue(statements(datasets).every((statement) => !statement.includes("undefined")))
  })
})

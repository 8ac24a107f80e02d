/**
 * The database roles on a real warehouse: the owner creates it, the loader syncs it, the reader queries it, and neither
 * may do more.
 */
import { randomUUID } from "node:crypto"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import { statements } from "../../../src/warehouse/Grants.ts"
import { tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import * as Views from "../../../src/warehouse/Views.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as ClusterOwnership from "../../../src/processes/ClusterOwnership.ts"
import { bucketCount } from "../../../src/processes/Ownership.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import { layerCatalogue } from "../../support/demo.ts"
import { databaseUrl, execute, sql } from "../../support/postgres.ts"
import { things } from "../../support/tiny.ts"
import { untilTrue } from "../../support/until.ts"
import { datasets } from "../warehouse/readers.ts"
import { makeDemo } from "./moments.ts"
import { suite } from "../../support/suite.ts"

const models = readModels()
const password = "not-a-secret"

/** The error code with which Postgres refuses a statement. */
const refusalOf = (statement: string) =>
  Effect.flip(sql.unsafe(statement)).pipe(Effect.map((error) => DatabaseError.from("try")(error).code))

suite("the database roles", layerCatalogue, (test) => {
  test("allow the loader only to sync, and the reader only to read", function* () {
    const ownerUrl = Redacted.value(yield* databaseUrl)
    const mark = randomUUID().slice(0, 8)
    const names = { loader: `loader_${mark}`, reader: `reader_${mark}` }
    const as = (role: string) => {
      const url = new URL(ownerUrl)
      url.username = role
      url.password = password
      return Layer.fresh(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(url.href)))))
    }
    const demo = makeDemo(1, 0)
    yield* demo.synced("by the owner")
    yield* Effect.acquireRelease(
      Effect.gen(function* () {
        // Twice: repeated grants are harmless.
        for (const statement of [...statements(datasets, names), ...statements(datasets, names)]) {
          yield* execute(statement)
        }
        for (const role of Object.values(names)) yield* execute(`alter role ${role} password '${password}'`)
      }),
      () =>
        Effect.orDie(
          Effect.forEach(Object.values(names), (role) =>
            Effect.andThen(execute(`drop owned by ${role}`), execute(`drop role ${role}`))
          )
        )
    )

    // The loader lands a change. The views are current, so it needs no right to create them.
    const invoice = demo.one("invoices", (one) => one["voucherid"] !== null && one["invoicepaid"] === "0.0000")
    demo.put("invoices", [{ id: invoice["id"], invoicepaid: "1.0000" }])
    demo.put("payments", [
      { invoiceid: invoice["id"], amount: "1.0000", paymeth: 1, datereceived: "2026-01-05", currency: "USD" }
    ])
    demo.remove("ardailycloses", 1)
    yield* Effect.gen(function* () {
      yield* demo.synced("by the loader", "loader")
      assert.deepStrictEqual(yield* Views.apply(models, datasets), { done: [], skipped: [], refused: [] })
      const refused = yield* Views.apply([{ ...models[0]!, comment: "Changed?" }], datasets)
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
    }).pipe(Effect.provide(as(names.loader)))

    // The loader serves: it shares the companies with other processes.
    const owned = new Set<number>()
    yield* Effect.gen(function* () {
      const keeper = (bucket: number) =>
        Effect.andThen(
          Effect.sync(() => owned.add(bucket)),
          Effect.never
        )
      yield* Layer.build(ClusterOwnership.make(yield* Database).layer(keeper))
      yield* untilTrue("the loader owns every bucket", () => owned.size === bucketCount)
    }).pipe(Effect.scoped, Effect.provide(as(names.loader)))

    // The grants cover tables that the owner creates later.
    yield* TablePlan.apply([tableOf({ ...things, path: "later" })])
    const settings = yield* Effect.gen(function* () {
      yield* sql`insert into erp.later (_company_id, id, _origin, _observed_at) values (1, 1, 'scan', now())`
      return yield* sql`select from tributary.runs`
    }).pipe(Effect.provide(as(names.loader)))
    assert.isAbove(settings.length, 0)

    // Reader.test.ts of the warehouse has what a reader may not do; here it has a session of its own.
    yield* Effect.gen(function* () {
      assert.isAbove((yield* sql`select from erp_models.payments_by_day`).length, 10)
      assert.strictEqual((yield* sql`select from erp.later`).length, 1)
      assert.isAbove((yield* sql`select from erp_history.payments`).length, 10)
      // For sessions of other programs; ours set their own.
      const roleSettings = yield* sql<{ config: ReadonlyArray<string> }>`
          select rolconfig as config from pg_roles where rolname = current_user`
      assert.includeMembers([...roleSettings[0]!.config], ["default_transaction_read_only=on", "statement_timeout=60s"])
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
    }).pipe(Effect.provide(as(names.reader)))
  })
})

it("the statements of the roles reject role and schema names that are no valid identifiers", () => {
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

/** A new company on a reference server and an empty warehouse, for tests of pushes. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { push } from "../../../src/outbox/OutboxWorker.ts"
import type { PushOptions, PushSettings } from "../../../src/outbox/PushSession.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import { settingsDefault } from "../../support/pushSettings.ts"
import { layerSource, makeCompany } from "../../support/source.ts"
import { flowing } from "../../support/until.ts"

export const paths = ["salesmen", "areas", "estquotepricelists", "taskstatuses"]
export const tables = new Map<string, Table>(paths.map((path) => [path, tableOf(serviceV2.resources.get(path)!)]))

export const stand = layerSource([...tables.values()])

export interface OutboxRow {
  readonly id: bigint
  readonly externalid: string | null
  readonly state: string
  readonly outcome: string | null
  readonly record_id: string | null
  readonly attempts: number
  readonly conflict_retries: number
  readonly code: string | null
  readonly field: string | null
  readonly reason: string | null
  readonly differences: ReadonlyArray<{ readonly field: string }> | null
}

export const makeStand = Effect.fnUntraced(function* (path = "salesmen") {
  const one = yield* makeCompany(tables)
  const { id, name, sql, company, truth } = one
  const table = tables.get(path)!
  const options: PushOptions = {
    company,
    companyId: BigInt(id),
    table,
    children: [],
    settings: settingsDefault,
    scope: "outbox"
  }
  const pushWith = (settings: Partial<PushSettings> = {}, more: Partial<PushOptions> = {}) =>
    flowing(push({ ...options, ...more, settings: { ...settingsDefault, ...settings } }))
  /** Inserts records by SQL, as a user does. */
  const insert = (records: ReadonlyArray<object>, operation = "create") =>
    sql`insert into tributary.outbox (company, resource, operation, record)
          select ${name}, ${path}, ${operation}, r from jsonb_array_elements(${JSON.stringify(records)}::text::jsonb) r`
  /** The records at the source. */
  const sourceRecords = Effect.map(truth(path), (lines) =>
    lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
  )
  /** Whether the warehouse is equal to the source. */
  const isEqual = Effect.flatMap(truth(path), (lines) => compare(table, BigInt(id), lines))
  return {
    ...one,
    options,
    push: pushWith,
    insert,
    /** Inserts records, and asserts that a push is done with them. */
    pushAll: Effect.fnUntraced(function* (
      records: ReadonlyArray<object>,
      settings: Partial<PushSettings> = {},
      more: Partial<PushOptions> = {}
    ) {
      yield* insert(records)
      const pushed = yield* pushWith(settings, more)
      assert.strictEqual(pushed.status, "done")
      return pushed
    }),
    /** Asserts that the source has so many records, and the warehouse the same. */
    hasRecords: Effect.fnUntraced(function* (count: number) {
      assert.lengthOf(yield* sourceRecords, count)
      assert.deepStrictEqual((yield* isEqual).differences, [])
    }),
    rows: sql<OutboxRow>`select id, externalid, state, outcome, record_id, attempts, conflict_retries, code, field, reason, differences
                           from tributary.outbox where company = ${name} order by id`,
    calls: sql<{ operation: string; items: number; state: string; failures: number; body: string | null }>`
      select operation, record_count as items, state, failed_attempts as failures, body from tributary.push_requests where company = ${name} order by id`,
    sourceRecords,
    isEqual,
    put: (records: ReadonlyArray<object>) => one.put(path, records)
  }
})

/** Salespeople with unique externalids. */
export const people = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({
    name: `Person ${from + at}`,
    externalid: `p-${from + at}`,
    commissionrate: "1.500"
  }))

export type Stand = Effect.Success<ReturnType<typeof makeStand>>

/** Asserts that every row was created exactly once, and that the warehouse is equal to the source. */
export const everyoneOnce = Effect.fnUntraced(function* (one: Stand, count: number) {
  assert.isTrue((yield* one.rows).every(({ outcome }) => outcome === "created"))
  const records = yield* one.sourceRecords
  assert.strictEqual(records.length, count)
  assert.strictEqual(new Set(records.map(({ externalid }) => externalid)).size, count)
  assert.deepStrictEqual((yield* one.isEqual).differences, [])
  assert.isTrue((yield* one.calls).every(({ state, body }) => state !== "open" && body === null))
})

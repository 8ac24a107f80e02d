/** A new company on a reference server and an empty warehouse, for tests of pushes. */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { ServiceClient } from "../../../connectors/service-v2/client/index.ts"
import { type Table, tableOf } from "../../../src/warehouse/Table.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { push } from "../../../src/outbox/OutboxWorker.ts"
import type { PushOptions, PushSettings } from "../../../src/outbox/PushSession.ts"
import { settingsDefault } from "../../support/pushSettings.ts"
import { compare } from "../../../src/verify/Compare.ts"
import { layerSource, Source } from "../../support/source.ts"

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

interface RequestEntry {
  readonly method: string
  readonly path: string
  readonly tokenid: number | null
}

let companies = 100

export const makeStand = Effect.fnUntraced(function* (path = "salesmen") {
  const source = yield* Source
  const sql = yield* SqlClient.SqlClient
  const number = (companies += 1)
  const name = `company ${number}`
  const table = tables.get(path)!
  const control = (method: string, at: string, body?: unknown) => Effect.promise(() => source.control(method, at, body))
  /** A connector with a new token of the company. */
  const connect = Effect.gen(function* () {
    const issued = (yield* control("POST", "/tokens", { company: number, scopes: ["*"] })) as {
      readonly token: string
      readonly tokenid: number
    }
    const connector = yield* ServiceClient.make({
      baseUrl: source.baseUrl,
      token: Redacted.make(issued.token),
      catalogue: serviceV2,
      pageSize: 100,
      requestTimeout: Duration.seconds(5),
      retry: { attemptsMax: 2, backoffBase: Duration.millis(5), backoffMax: Duration.millis(10) }
    })
    return { ...issued, connector }
  })
  const { token, tokenid, connector } = yield* connect
  const company = { name, connector, engine: engineDefault, batchRecordsMax: 2_500 }
  const options: PushOptions = {
    company,
    companyId: BigInt(number),
    table,
    children: [],
    settings: settingsDefault,
    scope: "outbox"
  }
  return {
    name,
    number,
    token,
    sql,
    options,
    company,
    connect,
    control,
    push: (settings: Partial<PushSettings> = {}, more: Partial<PushOptions> = {}) =>
      push({ ...options, ...more, settings: { ...settingsDefault, ...settings } }),
    /** Inserts records by SQL, as a user does. */
    insert: (records: ReadonlyArray<object>, operation = "create") =>
      sql`insert into tributary.outbox (company, resource, operation, record)
          select ${name}, ${path}, ${operation}, r from jsonb_array_elements(${JSON.stringify(records)}::text::jsonb) r`,
    rows: sql<OutboxRow>`select id, externalid, state, outcome, record_id, attempts, conflict_retries, code, field, reason, differences
                           from tributary.outbox where company = ${name} order by id`,
    calls: sql<{ operation: string; items: number; state: string; failures: number; body: string | null }>`
      select operation, record_count as items, state, failed_attempts as failures, body from tributary.push_requests where company = ${name} order by id`,
    /** The records at the source. */
    sourceRecords: Effect.map(
      Effect.promise(() => source.lines(`/state?company=${number}&resource=${path}`)),
      (lines) => lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    ),
    /** Whether the warehouse is equal to the source. */
    isEqual: Effect.gen(function* () {
      const state = yield* Effect.promise(() => source.lines(`/state?company=${number}&resource=${path}`))
      return yield* compare(table, BigInt(number), state)
    }),
    /** The paths of the read requests that the source received, with their queries. */
    reads: Effect.map(control("GET", "/requests"), (answer) =>
      (answer as { readonly requests: ReadonlyArray<RequestEntry> }).requests.flatMap((entry) =>
        entry.tokenid === tokenid && entry.method === "GET" ? [entry.path] : []
      )
    ),
    put: (records: ReadonlyArray<object>) =>
      Effect.map(
        control("POST", "/records", { company: number, resource: path, records }),
        (answer) => (answer as { readonly records: ReadonlyArray<Record<string, unknown>> }).records
      ),
    faults: (...rules: ReadonlyArray<object>) => control("POST", "/faults", { rules, seed: 1 }),
    noFaults: control("DELETE", "/faults")
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
  const rows = yield* one.rows
  assert.isTrue(rows.every(({ outcome }) => outcome === "created"))
  const records = yield* one.sourceRecords
  assert.strictEqual(records.length, count)
  assert.strictEqual(new Set(records.map(({ externalid }) => externalid)).size, count)
  assert.deepStrictEqual((yield* one.isEqual).differences, [])
  assert.isTrue((yield* one.calls).every(({ state, body }) => state !== "open" && body === null))
})

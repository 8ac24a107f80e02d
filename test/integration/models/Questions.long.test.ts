/**
 * The questions of `docs/how-to/questions.md`, asked by the reader of a warehouse with a month of
 * history: each answer is compared with one that is computed without SQL from the records of the server.
 */
import { readFileSync } from "node:fs"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { processDue } from "../tasks/working.ts"
import { push } from "../../../src/outbox/OutboxWorker.ts"
import type { Company } from "../../../src/sync/Company.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { engineDefault } from "../../../src/sync/EngineSettings.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as Reader from "../../../src/warehouse/Reader.ts"
import * as ReaderQuery from "../../../src/warehouse/ReaderQuery.ts"
import { booksOf, layerCatalogue } from "../../support/demo.ts"
import { clockIs } from "../../support/postgres.ts"
import { settingsDefault } from "../../support/pushSettings.ts"
import { connect, layerClients, makeSource } from "../../support/source.ts"
import { answers, type Given } from "./answers.ts"
import { type Json, plain } from "./figures.ts"
import { assertEach } from "../../support/assertions.ts"

const textOf = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8")
const page = textOf("docs/how-to/questions.md")

/** Each question with its SQL, without the line that sets the moment. */
const questions = [...page.matchAll(/^### (.*)\n(?:(?!^###).*\n)*?```sql\n((?:.*\n)*?)```$/gm)].map(
  ([, title, text]) => {
    const setting = /^set tributary\.as_of = '[^']*';\n/
    return { title: title!, sql: text!.replace(setting, ""), isAsOf: setting.test(text!) }
  }
)

const resources = [...serviceV2.resources.values()]
const paths = resources.map(({ path }) => path)
const tables = new Map(resources.map((resource) => [resource.path, tableOf(resource)]))

/** A text that no column of Postgres can hold. */
const unstorable = "\ud800"

const makeCompany = Effect.gen(function* () {
  const source = yield* makeSource("demo")
  const { token, connector } = yield* connect(source, 1)
  const control = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => source.control(method, path, body))
  const bringOver = Effect.fnUntraced(function* (full: boolean) {
    const report = yield* sync({
      companies: [{ name: "main", connector, resources }],
      datasets: datasetsDefault,
      concurrency: 4,
      batchRecordsMax: 2_500,
      mode: { full }
    })
    for (const outcome of report.companies[0]!.outcomes) {
      assert.include(["done", "quarantined"], outcome.status, JSON.stringify(outcome.failure))
    }
  })
  const books = Effect.gen(function* () {
    const state = new Map<string, ReadonlyArray<string>>()
    for (const path of paths) {
      // The record that no column can hold is in no table.
      const all = yield* Effect.promise(() => source.lines(`/state?company=1&resource=${path}`))
      state.set(
        path,
        all.filter((line) => !line.includes("\\ud800"))
      )
    }
    return booksOf(1, paths, (_company, resource) => state.get(resource)!)
  })
  const company: Company = {
    name: "main",
    connector,
    tables: Effect.succeed(tables),
    engine: engineDefault,
    batchRecordsMax: 2_500,
    events: []
  }
  return {
    company,
    control,
    bringOver,
    books,
    put: (resource: string, record: Json) => control("POST", "/records", { company: 1, resource, records: [record] }),
    /** A request as a client of the API sends it. */
    call: (method: string, path: string, body: unknown) =>
      Effect.promise(async () => {
        const headers = { "content-type": "application/json", authorization: `Bearer ${token}` }
        const response = await fetch(`${source.baseUrl}${path}`, { method, headers, body: JSON.stringify(body) })
        return (await response.json()) as Json
      })
  }
})

/** Changes a little of everything, after a month: a payment, orders, a deletion, an event, pushes and an odd value. */
const change = Effect.fnUntraced(function* (installation: Effect.Success<typeof makeCompany>, before: Given["before"]) {
  const { call, company, control, put } = installation
  const sql = yield* SqlClient.SqlClient
  const order = (status: string, place = 0) =>
    before.of("orders").filter((one) => one["status"] === status && one["cancel"] !== true)[place]!["id"] as number
  const unpaid = before.of("invoices").find((one) => one["voucherid"] !== null && one["invoicepaid"] === "0.0000")!
  const paid = yield* call("POST", "/payments", { invoiceid: unpaid["id"], amount: "10.50", method: 2, reference: "7" })
  assert.property(paid, "id", JSON.stringify(paid))
  yield* put("orders", { id: order("open"), status: "billed" })
  yield* put("orders", { id: order("open", 1), cancel: true })
  const customer = before.of("customers").at(-1)!["id"]
  yield* control("POST", "/remove", { company: 1, resource: "customers", id: customer })
  yield* put("areas", { id: 901, name: unstorable })

  const rejected = { customercode: "HARBOR99", name: "Harbor Fish", invoiceterm: "Net 3O", externalid: "crm-7003" }
  const { error } = (yield* call("POST", "/customers", rejected)) as { readonly error: Json }
  yield* sql`insert into tributary.outbox (company, resource, record) values ('main', 'customers', ${JSON.stringify(rejected)}::text::json)`
  yield* push({
    company,
    companyId: 1n,
    table: tables.get("customers")!,
    children: [],
    settings: settingsDefault,
    scope: "outbox"
  })

  const byWebhook = order("quote")
  yield* put("orders", { id: byWebhook, status: "open" })
  const body = { id: "evt_1", type: "orders.updated", createdate: new Date(), companyid: 1, data: { id: byWebhook } }
  yield* sql`insert into tributary.inbox (company, event_id, event_type, resource, record_id, sent_at, next_attempt_at, body)
             values ('main', 'evt_1', 'orders.updated', 'orders', ${String(byWebhook)}, tributary.now(), tributary.now(),
                     ${new TextEncoder().encode(JSON.stringify(body))})`
  yield* processDue(company)
  return { byWebhook, rejected: ["customers", "crm-7003", error["code"], error["field"], error["message"]] }
})

/** A value as both sides show it: a number in its shortest form. */
const canonical = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return /^-?\d+(\.\d{1,12})?$/.test(text) ? plain(text) : text
}

const oneLine = (sql: string) => sql.replace(/\s+/g, " ").replace(/;\s*$/, "")

const sorted = (rows: ReadonlyArray<ReadonlyArray<unknown>>): ReadonlyArray<string> =>
  rows.map((row) => JSON.stringify(row.map(canonical))).sort()

/** The rows of a statement in a session of the reader that has set `tributary.as_of`, as the page shows. */
const readAt = Effect.fnUntraced(function* (text: string, moment: string) {
  const client = yield* Reader.connect
  yield* ReaderQuery.setUp(client)
  yield* Effect.promise(() => client.query("select set_config('tributary.as_of', $1, false)", [moment]))
  const rows: Array<ReaderQuery.QueryResult["rows"][number]> = []
  yield* ReaderQuery.readParts(client, text, (part) => Effect.sync(() => rows.push(...part.rows) > -1))
  return rows
}, Effect.scoped)

test("the README has three of the questions", () => {
  const asked = [...textOf("README.md").matchAll(/^npx tributary query --demo "(.*)"$/gm)].map(([, sql]) => sql!)
  const known = questions.map(({ sql }) => oneLine(sql))
  assertEach(asked, (sql) => known.includes(sql), [true, true, true])
})

layer(Layer.merge(layerCatalogue, layerClients), { excludeTestServices: true, timeout: "120 seconds" })(
  "the questions",
  (it) => {
    it.effect(
      "have the answers that the records of the server give",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* sql.unsafe(clockIs("clock_timestamp() - interval ''40 days''"))
          const installation = yield* makeCompany
          yield* installation.bringOver(false)
          const before = yield* installation.books
          yield* sql.unsafe(clockIs("clock_timestamp()"))
          const expected = yield* change(installation, before)
          yield* installation.bringOver(true)
          const { requests } = (yield* installation.control("GET", "/requests")) as {
            readonly requests: ReadonlyArray<{ readonly path: string; readonly method: string }>
          }
          const [at] = yield* sql<{ readonly moment: string; readonly day: string; readonly today: string }>`
        select (now() - interval '20 days')::text as moment, (now() - interval '20 days')::date::text as day,
               current_date::text as today`
          const given: Given = {
            ...expected,
            before,
            now: yield* installation.books,
            today: at!.today,
            day: at!.day,
            resources: paths,
            quarantined: ["areas", "901", "name", "contains half a surrogate pair"],
            requests: (resource) =>
              requests.filter(({ method, path }) => method === "GET" && path.split(/[?/]/)[1] === resource).length
          }
          assert.isAtLeast(questions.length, 40)
          assert.deepStrictEqual(questions.map(({ title }) => title).sort(), Object.keys(answers).sort())
          const wrong: Array<string> = []
          for (const { title, sql: text, isAsOf } of questions) {
            // A reader of the page may paste it between double quotes of a shell.
            assert.notMatch(text, /["$`\\]/, title)
            const rows = yield* readAt(text, isAsOf ? at!.moment : "")
            const is = sorted(rows)
            const ought = sorted(answers[title]!(given))
            if (ought.length === 0) wrong.push(`${title}\n  the demo has no row that answers it`)
            if (JSON.stringify(is) !== JSON.stringify(ought)) {
              const only = (some: ReadonlyArray<string>, other: ReadonlyArray<string>) =>
                some
                  .filter((row) => !other.includes(row))
                  .slice(0, 5)
                  .join("\n    ")
              wrong.push(`${title}\n  has  ${only(is, ought)}\n  lacks ${only(ought, is)}`)
            }
          }
          assert.strictEqual(wrong.join("\n\n"), "")
        }),
      120_000
    )
  }
)

/** Results of writes for each record: every form of a batch response, from scripts and from the reference server. */
import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as fc from "fast-check"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { SourceRecord, WriteAnswer, WriteRequest } from "../../src/connector/Connector.ts"
import type { WriteResult, WriteSucceeded } from "../../src/connector/WriteResult.ts"
import { type Json, server } from "../reference-server/support.ts"
import { record as recordOf, things } from "../support/tiny.ts"
import * as ScriptedHttp from "./ScriptedHttp.ts"
import { answers, failureOf } from "./ScriptedHttp.ts"
import { clientOf, networkOf } from "./ServerHttp.ts"
import { test } from "../support/suite.ts"

const base = { resource: things, id: null, idempotencyKey: "k", ifMatch: null } as const

type Body = string | Json | ReadonlyArray<unknown>

const bodyOf = (sent: number | ReadonlyArray<unknown>) =>
  JSON.stringify(typeof sent === "number" ? Array.from({ length: sent }, (_, at) => ({ name: `n${at}` })) : sent)

/** The client's result for a response to a batch of this many records. */
const batch = Effect.fnUntraced(function* (body: Body, sent: number | ReadonlyArray<unknown>, status = 207) {
  const { connector } = yield* ScriptedHttp.make([answers(status, body)])
  const answer: WriteAnswer = yield* connector.write({ ...base, operation: "batch", body: bodyOf(sent) })
  return answer.items
})

/** The client's result for one item of a batch with a single record. */
const itemOf = Effect.fnUntraced(function* (item: string | Json) {
  const text = typeof item === "string" ? item : JSON.stringify(item)
  const items = yield* batch(`{"results":[${text}]}`, 1)
  assert.strictEqual(items.length, 1)
  return items[0]!
})

const one = Effect.fnUntraced(function* (request: Partial<WriteRequest>, body: Body | null, status = 200) {
  const { connector } = yield* ScriptedHttp.make([answers(status, body)])
  const { items } = yield* connector.write({ ...base, operation: "create", body: "{}", ...request })
  assert.strictEqual(items.length, 1)
  return items[0]!
})

const whole = {
  id: 7,
  name: "é",
  price: "1.10",
  weight: null,
  rank: 3,
  flag: true,
  day: "2026-01-01",
  seen: null,
  memo: null,
  cancel: false,
  lastchangedate: "2026-01-01T00:00:00Z"
}
const wholeTexts = Object.entries(whole).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]))
const wholeRecord = recordOf(things, { id: "7", ...Object.fromEntries(wholeTexts) })
const written = (more: Partial<WriteSucceeded> = {}): WriteSucceeded => ({
  _tag: "WriteSucceeded",
  index: 0,
  id: "7",
  record: null,
  rejected: null,
  ...more
})
const duplicate = { code: "duplicate", field: "name", message: "is there" }

const tagsOf = (items: ReadonlyArray<WriteResult>) => items.map(({ index, _tag }) => `${index} ${_tag}`)

describe("a batch item", () => {
  const statuses = {
    success: [200, 201, 204, 299, "200", "201", "ok", "Created", "SUCCESS"],
    refused: [400, 409, "422", 404],
    failed: [429, 500, "503", 599],
    word: ["error", "FAILED"],
    none: [undefined, null],
    other: [0, 100, 199, 300, 304, 600, -1, 201.5, "0201", "201 Created", "pending", "", true, {}, []]
  } as const
  const errors = {
    none: [undefined, null, false, ""],
    coded: [duplicate, { error: duplicate }],
    odd: ["boom", {}, { message: "boom" }, { code: 7 }, [], true, 1]
  } as const
  const records = {
    none: [undefined],
    whole: [whole],
    partial: [{ id: 7 }, { id: "7", name: "x" }],
    misfit: [{ ...whole, day: "31.12.2026" }]
  } as const
  type Kinds = { [_ in "status" | "error" | "record"]: string }

  /** The rules as a table (G-01). */
  const expectedTag = ({ status, error, record }: Kinds): WriteResult["_tag"] => {
    if (status === "success") return error === "none" ? "WriteSucceeded" : "WriteUncertain"
    if (status === "refused" || status === "failed") return "WriteRejected"
    if (status === "word") return error === "none" ? "WriteUncertain" : "WriteRejected"
    if (status === "other") return error === "coded" ? "WriteRejected" : "WriteUncertain"
    if (error === "coded") return record === "none" ? "WriteRejected" : "WriteUncertain"
    return error === "none" && record !== "none" ? "WriteSucceeded" : "WriteUncertain"
  }
  const pairs = <Of extends Readonly<Record<string, ReadonlyArray<unknown>>>>(of: Of) =>
    Object.entries(of).flatMap(([kind, values]) => values.map((value) => ({ kind, value })))

  test("is read from every combination of status, error and record", function* () {
    const seen = new Map<string, number>()
    const items: Array<{ readonly expected: WriteResult["_tag"]; readonly text: string; readonly kinds: Kinds }> = []
    for (const status of pairs(statuses)) {
      for (const error of pairs(errors)) {
        for (const record of pairs(records)) {
          const kinds = { status: status.kind, error: error.kind, record: record.kind }
          const text = JSON.stringify({ status: status.value, error: error.value, record: record.value })
          items.push({ expected: expectedTag(kinds), text, kinds })
        }
      }
    }
    const text = `{"results":[${items.map((item, at) => item.text.replace("{", `{"index":${at}${item.text === "{}" ? "" : ","}`)).join()}]}`
    const read = yield* batch(text, items.length)
    assert.strictEqual(read.length, items.length)
    for (const [at, { expected, text, kinds }] of items.entries()) {
      const item = read[at]!
      assert.deepStrictEqual([item.index, item._tag], [at, expected], text)
      seen.set(expected, (seen.get(expected) ?? 0) + 1)
      if (item._tag === "WriteSucceeded") {
        assert.strictEqual(item.id, kinds.record === "none" ? null : "7", text)
        assert.deepStrictEqual(item.record, kinds.record === "whole" ? wholeRecord : null, text)
        assert.strictEqual(item.rejected?.field, kinds.record === "misfit" ? "day" : undefined, text)
      }
      if (item._tag === "WriteRejected") {
        const status: unknown = (JSON.parse(text) as Json)["status"]
        const isNumber = kinds.status === "refused" || kinds.status === "failed"
        assert.strictEqual(item.status, isNumber ? Number(status) : null, text)
        assert.strictEqual(item.code, kinds.error === "coded" ? "duplicate" : "unstated", text)
        assert.strictEqual(item.field, kinds.error === "coded" ? "name" : null, text)
        assert.strictEqual(item.isRetryable, kinds.status === "failed", text)
      }
    }
    assert.isAbove(
      Math.min(...["WriteSucceeded", "WriteRejected", "WriteUncertain"].map((tag) => seen.get(tag) ?? 0)),
      100
    )
  })

  test("has its record and its exact id in every form", function* () {
    const id = "9007199254740993"
    for (const [item, expected] of [
      ...[
        { status: 201, record: whole },
        { status: 201, data: whole },
        { status: 201, record: whole, data: { id: 9 } },
        { status: 201, id: "7", record: whole },
        { status: 201, ...whole },
        whole
      ].map((item) => [JSON.stringify({ index: 0, ...item }), written({ record: wholeRecord })] as const),
      ...[
        `"status":201,"id":${id}`,
        `"status":201,"id":"${id}"`,
        `"id":${id}`,
        `"status":201,"record":{"id":${id},"name":"x"}`,
        `"id":${id},"name":"x"`
      ].map((members) => [`{"index":0,${members}}`, written({ id })] as const),
      [`{"index":0,"status":201,"id":"abc"}`, written({ id: null })] as const
    ]) {
      assert.deepStrictEqual(yield* itemOf(item), expected, item)
    }
    assert.strictEqual((yield* itemOf({ index: 0, status: 201, id: 8, record: whole }))._tag, "WriteUncertain")
  })

  test("has exact values and keeps fields unknown to the catalogue", function* () {
    const text = JSON.stringify({ ...whole, price: "@", colour: "@2" })
      .replace(`"@"`, "123456789012345.1000")
      .replace(`"@2"`, "1.10")
    for (const item of [`{"index":0,"status":201,"record":${text}}`, `{"index":0,"status":201,${text.slice(1)}`]) {
      const read = yield* itemOf(item)
      assert(read._tag === "WriteSucceeded" && read.record !== null)
      const price = things.fields.findIndex(({ name }) => name === "price")
      assert.strictEqual(read.record.columns[price], "123456789012345.1000")
      assert.strictEqual(read.record.extra, `{"colour":1.10}`)
    }
  })

  test("is not mistaken for a record that has a status field", function* () {
    const resource = serviceV2.resources.get("teamprojectreminders")!
    const values = Object.fromEntries(resource.fields.map(({ name }) => [name, name === "id" ? 7 : null]))
    const results = [
      { ...values, index: 0, status: 201 },
      { index: 1, status: 201, record: { ...values, status: true } }
    ]
    const { connector } = yield* ScriptedHttp.make([answers(207, { results })])
    const { items } = yield* connector.write({ ...base, resource, operation: "batch", body: "[{},{}]" })
    const [around, below] = items
    assert.deepStrictEqual(around, written())
    assert(below?._tag === "WriteSucceeded" && below.record !== null)
    assert.strictEqual(below.record.columns[resource.fields.findIndex(({ name }) => name === "status")], "true")
  })

  test("that does not fit the catalogue counts as written and keeps its bytes", function* () {
    const text = `{"id":7, "day":"31.12.2026"}`
    const price = `{"id":7,"price":"much"}`
    for (const [read, rejected] of [
      [yield* itemOf(`{"index":0,"status":201,"record":${text}}`), { id: "7", field: "day", bytes: text }],
      [yield* one({}, price, 201), { id: "7", field: "price", bytes: price }]
    ] as const) {
      assert(read._tag === "WriteSucceeded")
      assert.deepInclude(read, { id: "7", record: null })
      assert.deepInclude(read.rejected, rejected)
    }
  })

  test("has the reason of its rejection, and whether it may pass later", function* () {
    const errors = [{ field: "lines[0]", code: "required", message: "is required" }]
    const error = { ...duplicate, errors }
    const [field, code, detail] = [duplicate.field, duplicate.code, duplicate.message]
    for (const [status, item] of [
      [409, { status: 409, error }],
      [409, { status: 409, ...error }],
      [null, { status: "error", error }],
      [null, { error }]
    ] as const) {
      assert.deepStrictEqual<unknown>(yield* itemOf({ index: 0, ...item }), {
        _tag: "WriteRejected",
        kind: "duplicate",
        index: 0,
        status,
        code,
        field,
        detail,
        problems: errors,
        isRetryable: false
      })
    }
    const unstated = yield* itemOf({ index: 0, status: 400, error: "no such unit" })
    assert.deepInclude(unstated, { status: 400, code: "unstated", detail: "no such unit", isRetryable: false })
    const passing = [
      { status: 429 },
      { status: 500 },
      { status: 503 },
      { status: "error", error: { code: "server_error" } },
      { status: 409, error: { code: "request_in_progress" } },
      { error: { code: "rate_limited" } }
    ]
    const lasting = [{ status: 501 }, { status: 422 }, { status: 409, error: { code: "duplicate" } }]
    for (const item of [...passing, ...lasting]) {
      const isRetryable = (passing as ReadonlyArray<unknown>).includes(item)
      const read = yield* itemOf({ index: 0, ...item })
      assert.deepInclude(read, { _tag: "WriteRejected", isRetryable }, JSON.stringify(item))
    }
  })

  test("contains neither the token nor text that Postgres cannot store", function* () {
    const error = { code: `c${ScriptedHttp.token}`, field: "a\0b", message: `with ${ScriptedHttp.token}`, errors: [] }
    const read = yield* itemOf({ index: 0, status: 422, error })
    assert.deepInclude(read, { code: "c[token]", field: "ab", detail: "with [token]" })
    const bare = yield* itemOf({ index: 0, status: 422, error: `${ScriptedHttp.token}\0` })
    assert.deepInclude(bare, { detail: "[token]" })
  })
})

describe("the items of a batch", () => {
  const made = (index: unknown, id: number) => ({ index, status: 201, id })

  test("are matched by their index, or by position if no index is given and the count fits", function* () {
    const indexed = [made(2, 12), made("0", 10), made(2, 22), { index: 1, error: duplicate }]
    const bare = [{ status: 201, id: 1 }, null, { status: 409, index: null, error: duplicate }]
    const odd = [null, undefined, -1, 1.5, "x", "", " 0", "01", true, {}, "9999999999"]
    const cases: ReadonlyArray<readonly [ReadonlyArray<unknown>, number, ReadonlyArray<string>]> = [
      [indexed, 4, ["2 WriteSucceeded", "0 WriteSucceeded", "2 WriteSucceeded", "1 WriteRejected"]],
      [bare, 3, ["0 WriteSucceeded", "1 WriteUncertain", "2 WriteRejected"]],
      [bare, 4, []],
      // An unreadable index is not a missing one.
      [[...odd.map((index, at) => made(index, at + 1)), 3, made(1, 99)], 13, ["1 WriteSucceeded"]],
      [[made("x", 1)], 1, []],
      // The numbering of the answer is another one than the request's.
      [[made(1, 10), made(2, 11), made(3, 12)], 3, ["1 WriteUncertain", "2 WriteUncertain"]]
    ]
    for (const [results, count, expected] of cases) {
      assert.deepStrictEqual(tagsOf(yield* batch({ results }, count)), expected)
    }
  })

  test("are uncertain if they show a sent record at another position", function* () {
    const sent = [{ externalid: "a" }, { externalid: "b" }, { externalid: "c" }, {}]
    const shown = (index: number, externalid: unknown) => ({ index, status: 201, record: { id: 1, externalid } })
    const results = [shown(0, "a"), shown(1, "c"), shown(2, "C "), shown(3, "a")]
    assert.deepStrictEqual(tagsOf(yield* batch({ results }, sent)), [
      "0 WriteSucceeded",
      "1 WriteUncertain",
      "2 WriteSucceeded",
      "3 WriteUncertain"
    ])
  })

  test("are the same under 200, 201 and 207, bare and under data (G-03)", function* () {
    const results = [made(0, 7)]
    for (const status of [200, 201, 207]) {
      for (const body of [
        { results },
        { results, _meta: {} },
        { data: { results } },
        { data: { results }, _meta: {} }
      ]) {
        assert.deepStrictEqual(yield* batch(body, 1, status), [written()])
      }
    }
  })

  test("are required: a response without results is malformed", function* () {
    for (const body of [
      {},
      { results: {} },
      { results: null },
      { id: 1 },
      { data: [made(0, 1)] },
      { data: { results: [made(0, 1)] }, more: 1 },
      [made(0, 1)],
      "3",
      null
    ]) {
      for (const status of body === null ? [204] : [200, 207]) {
        const answer = answers(status, body)
        const { connector, sent } = yield* ScriptedHttp.make([answer, answer, answer], {
          retry: { attemptsMax: 3, backoffBase: Duration.zero }
        })
        const error = yield* failureOf(connector.write({ ...base, operation: "batch", body: "[{}]" }))
        assert.strictEqual(error.reason._tag, "Malformed", JSON.stringify(body))
        assert.strictEqual(sent.length, 3)
      }
    }
  })

  test("are found in any order and formatting of the response", function* () {
    yield* Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.record({
              id: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
              name: fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
              cents: fc.nat(),
              isRefused: fc.boolean(),
              isText: fc.boolean()
            }),
            { minLength: 1, maxLength: 40 }
          ),
          fc.infiniteStream(fc.nat()),
          fc.boolean(),
          async (writes, chance, isSpaced) => {
            const space = isSpaced ? " \n\t" : ""
            const texts = writes.map(({ id, name, cents, isRefused, isText }, at) => {
              const price = `${cents}.${String(at % 100).padStart(2, "0")}`
              const record = JSON.stringify({ ...whole, id: "@id", price: "@price", name, externalid: `e${at}` })
                .replace(`"@id"`, String(id))
                .replace(`"@price"`, price)
              const index = isText ? `"${at}"` : String(at)
              const outcome = isRefused ? `"error":{"code":"c${at}","message":"m"}` : `"record":${space}${record}`
              const status = isRefused ? (isText ? `"error"` : "409") : isText ? `"created"` : "201"
              return { at, price, text: `{${space}"index":${index},"status":${space}${status},${outcome}${space}}` }
            })
            const order = texts.map((text) => ({ text, key: chance.next().value })).toSorted((a, b) => a.key - b.key)
            const body = `{"results":[${order.map(({ text }) => text.text).join(`${space},`)}]${space}}`
            const sent = writes.map((_, at) => ({ externalid: `e${at}` }))
            const items = await Effect.runPromise(Effect.scoped(batch(body, sent)))
            const price = things.fields.findIndex((field) => field.name === "price")
            for (const [place, item] of items.entries()) {
              const { at, price: expected } = order[place]!.text
              const { id, name, isRefused } = writes[at]!
              assert.strictEqual(item.index, at)
              if (isRefused) assert.deepInclude(item, { _tag: "WriteRejected", code: `c${at}` })
              else {
                assert(item._tag === "WriteSucceeded" && item.record !== null)
                assert.strictEqual(item.id, String(id))
                assert.strictEqual(item.record.columns[price], expected)
                assert.strictEqual(item.record.columns[1], name)
              }
            }
            assert.strictEqual(items.length, writes.length)
          }
        ),
        { numRuns: 60 }
      )
    )
  })
})

test("the response to a single write has the record, bare or under data, or the id where fields are missing (WRITE-04, WRITE-09)", function* () {
  for (const operation of ["create", "update", "cancel"] as const) {
    for (const body of [whole, { data: whole }, { data: whole, _meta: {} }]) {
      const item = yield* one({ operation, id: operation === "create" ? null : "7" }, body, 201)
      assert.deepStrictEqual(item, written({ record: wholeRecord }))
    }
  }
  assert.deepStrictEqual(yield* one({}, { id: 7, name: "x" }), written())
  assert.deepStrictEqual(yield* one({}, { name: "x" }), written({ id: null }))
  assert.deepStrictEqual(yield* one({}, { id: null, name: "x" }), written({ id: null }))
  assert.deepStrictEqual(yield* one({ operation: "update", id: "7" }, { name: "x" }), written())
  assert.deepStrictEqual(yield* one({ operation: "cancel", id: "7", body: null }, null, 204), written())
  assert.deepStrictEqual(yield* one({}, null, 204), written({ id: null }))
  assert.strictEqual((yield* one({ operation: "update", id: "8" }, whole))._tag, "WriteUncertain")
  assert.strictEqual((yield* one({}, { ...whole, error: duplicate }))._tag, "WriteUncertain")
  assert.strictEqual((yield* one({}, { data: { ...whole, error: duplicate } }))._tag, "WriteUncertain")
})

test("writes to the reference server return records whose sums are not stored (I-05), with item statuses as integers and as text", function* () {
  for (const batchStatus of ["integer", "text"]) {
    const { call, control, served, token } = server()
    control("PUT", "/limits", { requestsPerMinute: null })
    assert.strictEqual(control("PUT", "/dialect", { batchStatus }).status, 200)
    const { http } = networkOf(served, () => Effect.succeed(null))
    const connector = yield* clientOf(http, token(), { pageSize: 250 })
    let key = 0
    const write = (path: string, operation: WriteRequest["operation"], body: unknown) =>
      connector.write({
        resource: serviceV2.resources.get(path)!,
        operation,
        id: null,
        body: JSON.stringify(body),
        idempotencyKey: `key-${++key}`,
        ifMatch: null
      })
    const make = (path: string, body: Json): Json => {
      const response = call("POST", `/${path}`, body)
      assert.strictEqual(response.status, 201, response.text)
      return response.body
    }
    /** The records of a resource from its list, by id. A record from a list is kept as the bytes for the database. */
    const listRecords = Effect.fnUntraced(function* (path: string) {
      const resource = serviceV2.resources.get(path)!
      const { records, next } = yield* connector.page({ resource, since: null, token: null })
      assert.isNull(next)
      return new Map(
        records.map(({ id, columns, partial, customFields, extra }): readonly [string, SourceRecord] => [
          id,
          { id, columns: [...columns], partial, customFields, extra }
        ])
      )
    })

    const customerid = make("customers", { customercode: "c", name: "n" })["id"]
    const lines = [{ description: "x", quantity: "2", price: "5" }]
    const draft = make("invoices", { customerid, lines })["id"]
    const posted = make("invoices", { customerid, lines })["id"]
    assert.strictEqual(call("POST", `/invoices/${String(posted)}/post`).status, 200)
    const vendorid = make("vendors", { vendorcode: "v", name: "n" })["id"]
    const apbillid = make("apbills", { vendorid, billdate: "2026-02-03", billtotal: "100" })["id"]
    const glaccountid = 70
    const accounts = [{ id: glaccountid, name: "1000" }]
    assert.strictEqual(
      control("POST", "/records", { company: 1, resource: "glaccounts", records: accounts }).status,
      200
    )
    const bodies: Readonly<Record<string, Json>> = {
      invoicelines: { invoiceid: draft, description: "y", quantity: "1.5", price: "2.25" },
      payments: { invoiceid: posted, amount: "1.25" },
      apbilllines: { apbillid, glaccountid, amount: "10" }
    }
    for (const [path, body] of Object.entries(bodies)) {
      const alone = yield* write(path, "create", body)
      const items = [...alone.items, ...(yield* write(path, "batch", [body, body])).items]
      for (const name of serviceV2.resources.get(path)!.answers) assert.include(alone.body, `"${name}":`)
      const byId = yield* listRecords(path)
      assert.strictEqual(items.length, 3)
      for (const item of items) {
        assert(item._tag === "WriteSucceeded" && item.id !== null && item.record !== null, path)
        assert.isNull(item.record.extra, path)
        assert.deepStrictEqual(item.record, byId.get(item.id), path)
      }
    }
  }
})

/** The lookup by externalid at a source that compares texts loosely. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ConnectorShape, Page, PageRequest, SourceRecord } from "../../src/connector/Connector.ts"
import { findByExternalid, idOf, listByExternalid } from "../../src/outbox/SourceLookup.ts"
import { resourceOf } from "./support.ts"
import { test } from "../support/suite.ts"

const resource = resourceOf("salesmen")

const record = (id: string, externalid: string): SourceRecord => ({
  id,
  columns: resource.fields.map(({ name }) => (name === "id" ? id : name === "externalid" ? externalid : null)),
  partial: false,
  customFields: null,
  extra: null
})

const page = (records: ReadonlyArray<SourceRecord>): Page => ({
  records,
  rejected: [],
  next: null,
  syncedThrough: null,
  beganAt: 0,
  attempts: 1,
  bytes: 0,
  source: ""
})

/** A source that returns these records for any request. */
const answering = (...records: ReadonlyArray<SourceRecord>) => inPages(page(records))

/** A source that returns these pages for any list. */
const inPages = (...pages: ReadonlyArray<Page>) =>
  ({
    page: ({ token }: PageRequest) => {
      const at = Number(token ?? 0)
      return Effect.succeed({ ...pages[at], next: at + 1 < pages.length ? String(at + 1) : null })
    }
  }) as unknown as ConnectorShape

const idsOf = (externalid: string, ...records: ReadonlyArray<SourceRecord>) =>
  Effect.map(findByExternalid(answering(...records), resource, externalid), (matches) =>
    matches.map((one) => one.record?.id)
  )

test("the lookup by externalid returns exact matches, else records that differ only in case, blanks or Unicode form", function* () {
  assert.deepStrictEqual(yield* idsOf("crm-1", record("1", "CRM-1"), record("2", "crm-1")), ["2"])
  assert.deepStrictEqual(yield* idsOf("crm-1", record("1", "CRM-1"), record("3", " crm-1"), record("4", "crm-10")), [
    "1",
    "3"
  ])
  assert.deepStrictEqual(yield* idsOf("Caf\u00e9", record("1", "Cafe\u0301")), ["1"])
  assert.deepStrictEqual(yield* idsOf("crm-1", record("4", "crm-10")), [])
})

describe("the list of many externalids", () => {
  const wanted = new Set(["a", "b", "c", "d"])
  const listed = (connector: ConnectorShape, pagesMax = 10) =>
    Effect.map(listByExternalid(connector, resource, wanted, { since: null, pagesMax }), (found) =>
      Array.from(found, ([externalid, readings]) => [externalid, ...readings.map(idOf)])
    )

  test("shows the records of exactly these externalids, each once", function* () {
    const first = page([record("1", "a"), record("2", "A"), record("3", "b"), record("4", "z")])
    // Record 1 moved to the second page while the list was read. Two records have the externalid b.
    const second = page([record("1", "a"), record("5", "b"), record("6", " c")])
    assert.deepStrictEqual(yield* listed(inPages(first, second)), [
      ["a", "1"],
      ["b", "3", "5"]
    ])
  })

  test("does not show an externalid that an unreadable record may have", function* () {
    const broken = { id: "7", version: null, field: "name", reason: "no text", bytes: '{"id":7,"externalid":"a"}' }
    const pages = [page([record("1", "a"), record("3", "b")]), { ...page([]), rejected: [broken as never] }]
    assert.deepStrictEqual(yield* listed(inPages(...pages)), [["b", "3"]])
  })

  test("shows nothing when the list is longer than it may be", function* () {
    const pages = [page([record("1", "a")]), page([record("3", "b")]), page([record("4", "d")])]
    assert.deepStrictEqual(yield* listed(inPages(...pages), 2), [])
    assert.strictEqual((yield* listed(inPages(...pages), 3)).length, 3)
  })
})

/**
 * Companies and their sources: a source that becomes another one is refused until a person accepts it, and companies of two
 * sources with equal numbers have rows of their own.
 */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SourceGuard from "../../../src/sync/SourceGuard.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { scripted } from "../../support/tiny.ts"
import { testWith } from "../../support/suite.ts"

const [one, two] = ["https://one/api", "https://two/api"] as const

interface Answer {
  readonly sourceNumber: bigint
  readonly address: string
}

const guarded = (
  name: string,
  { sourceNumber, address }: Answer,
  options: {
    readonly warehouseNumber?: bigint
    readonly acceptsNewSource?: boolean
    readonly configured?: ReadonlyArray<string>
  } = {}
) => {
  const { connector } = scripted(sourceNumber, () => ({ records: [], rejected: [], syncedThrough: null, next: null }))
  const source = { ...connector, source: { address, settings: {} } }
  const { warehouseNumber = null, acceptsNewSource = false, configured = [name] } = options
  return Effect.map(
    SourceGuard.guarded({ name, configured, warehouseNumber }, source, acceptsNewSource),
    (connector) => ({
      name,
      connector
    })
  )
}

/** The number that the company gets, or the error with its remedy. */
const identified = (...company: Parameters<typeof guarded>) =>
  Effect.match(Effect.flatMap(guarded(...company), SourceGuard.identify), {
    onFailure: (error) => `${error.message}; ${"remedy" in error ? error.remedy : ""}`,
    onSuccess: ({ companyId }) => companyId
  })

const rows = execute<{ id: bigint; company: string | null; number: bigint | null; address: string | null }>(
  "select company_id as id, company, source_number as number, address from tributary.companies order by company_id"
)

const test = testWith(layerWarehouse)

describe("a company whose source is another one", () => {
  test("is refused by its number and by its address, until a person accepts it", function* () {
    const reason = execute<{ reason: string | null }>("select pause_reason as reason from tributary.warehouse").pipe(
      Effect.map(([row]) => row!.reason)
    )
    const ofOne = { sourceNumber: 1n, address: one }
    const ofTwo = { sourceNumber: 1n, address: two }
    assert.strictEqual(yield* identified("north", ofOne), 1n)
    yield* execute("insert into tributary.outbox (company, resource) values ('north', 'things')")
    assert.strictEqual(yield* identified("north", ofOne), 1n)
    assert.match(
      String(yield* identified("north", { sourceNumber: 2n, address: one })),
      /had the number 1, and its token is now of company 2/
    )
    assert.match(String(yield* identified("north", ofTwo)), /https:\/\/one\/api.*https:\/\/two\/api/)
    assert.isNull(yield* reason)
    assert.strictEqual(yield* identified("north", ofTwo, { acceptsNewSource: true }), 1n)
    assert.strictEqual(yield* identified("north", ofTwo), 1n)
    assert.match(String(yield* identified("north", ofOne)), /https:\/\/two\/api.*https:\/\/one\/api/)
    assert.match((yield* reason)!, /company north has a new source/)
  })

  test("keeps the rows of its earlier number apart", function* () {
    assert.strictEqual(yield* identified("north", { sourceNumber: 1n, address: one }), 1n)
    const second = { sourceNumber: 2n, address: one }
    assert.strictEqual(yield* identified("north", second, { acceptsNewSource: true }), 2n)
    assert.deepStrictEqual(yield* rows, [
      { id: 1n, company: "north (1)", number: null, address: one },
      { id: 2n, company: "north", number: null, address: one }
    ])
    // The first company comes back under another name.
    assert.strictEqual(yield* identified("east", { sourceNumber: 1n, address: one }), 1n)
  })
})

describe("a company that is renamed", () => {
  const ofOne = { sourceNumber: 1n, address: one }

  test("keeps its events, its records to be written, its secrets and the pauses of its tasks", function* () {
    yield* identified("north", ofOne)
    for (const insert of [
      "outbox (company, resource) values ('north', 'things')",
      "inbox (company, event_id, event_type, sent_at, body) values ('north', 'one', 'things.updated', now(), '')",
      "webhook_secrets (company, sealed, state) values ('north', '', 'current')",
      "tasks (company, resource, kind, paused_at, paused_by) values ('north', 'things', 'sync', now(), 'ada'), ('north', 'things', 'backfill', null, null)",
      "tasks (company, resource, kind) values ('south', 'things', 'sync'), ('south', 'others', 'sync')"
    ])
      yield* execute(`insert into tributary.${insert}`)
    assert.strictEqual(yield* identified("south", ofOne), 1n)
    for (const table of ["outbox", "inbox", "webhook_secrets"])
      assert.deepStrictEqual(yield* execute(`select company from tributary.${table}`), [{ company: "south" }])
    assert.deepStrictEqual(
      yield* execute("select company, resource, kind, paused_by as by from tributary.tasks order by resource, kind"),
      [
        { company: "south", resource: "others", kind: "sync", by: null },
        { company: "south", resource: "things", kind: "backfill", by: null },
        { company: "south", resource: "things", kind: "sync", by: "ada" }
      ]
    )
  })

  test("loses nothing where two programs use both names", function* () {
    yield* identified("north", ofOne)
    yield* execute(`
      insert into tributary.inbox (company, event_id, event_type, sent_at, body)
      values ('north', 'one', 'things.updated', now(), ''), ('south', 'one', 'things.updated', now(), '')`)
    assert.strictEqual(yield* identified("south", ofOne), 1n)
    assert.deepStrictEqual(yield* execute("select company from tributary.inbox order by company"), [
      { company: "north" },
      { company: "south" }
    ])
  })

  test("is refused while its earlier name is configured, in the file or in the warehouse", function* () {
    yield* identified("north", ofOne)
    const refused = /company south is company 1 of https:\/\/one\/api, as company north is.*; leave one of them out/
    assert.match(String(yield* identified("south", ofOne, { configured: ["north", "south"] })), refused)
    yield* execute(`insert into tributary.company_settings (company, url, token) values ('north', '${one}', 'secret')`)
    assert.match(String(yield* identified("south", ofOne)), refused)
    assert.deepStrictEqual(yield* rows, [{ id: 1n, company: "north", number: null, address: one }])
  })
})

describe("companies of two sources with equal numbers", () => {
  test("have numbers of their own, which the configuration gives and which never change", function* () {
    const here = { sourceNumber: 1n, address: one }
    const there = { sourceNumber: 1n, address: two }
    assert.strictEqual(yield* identified("north", here), 1n)
    const refused = String(yield* identified("south", there))
    assert.match(refused, /company south is company 1 of https:\/\/two\/api.*a company 1 of https:\/\/one\/api, north/)
    assert.match(refused, /warehouse_number: 1000001/)
    assert.strictEqual(yield* identified("south", there, { warehouseNumber: 1_000_001n }), 1_000_001n)
    // Afterwards the number is known without the configuration.
    assert.strictEqual(yield* identified("south", there), 1_000_001n)
    assert.match(
      String(yield* identified("south", there, { warehouseNumber: 7n })),
      /number 1000001, and warehouse_number is 7/
    )
    assert.match(
      String(yield* identified("west", { sourceNumber: 3n, address: two }, { warehouseNumber: 1n })),
      /company 1 of/
    )
    // A renamed company keeps its rows.
    assert.strictEqual(yield* identified("south-east", there), 1_000_001n)
    assert.deepStrictEqual(yield* rows, [
      { id: 1n, company: "north", number: null, address: one },
      { id: 1_000_001n, company: "south-east", number: 1n, address: two }
    ])
  })

  test("do not get the same number from two processes at once", function* () {
    const [north, south] = [
      yield* guarded("north", { sourceNumber: 1n, address: one }),
      yield* guarded("south", { sourceNumber: 1n, address: two })
    ]
    const [first, second] = [yield* north.connector.identify, yield* south.connector.identify]
    yield* SourceGuard.save("north", first, one)
    const lost = yield* Effect.flip(SourceGuard.save("south", second, two))
    assert.match(lost.message, /another company has just got the number 1/)
    assert.deepStrictEqual(yield* rows, [{ id: 1n, company: "north", number: null, address: one }])
  })
})

/** Rows of companies: sealed tokens, the revision, and the removal of every row of one company. */
import { assert, describe } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as CompanyStore from "../../../src/companies/CompanyStore.ts"
import * as Removal from "../../../src/companies/Removal.ts"
import { installationOf } from "../../../src/configuration/Installations.ts"
import * as StoredCompanies from "../../../src/companies/StoredCompanies.ts"
import { execute, layerWarehouse, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const test = testWith(layerWarehouse)

const key = Redacted.make("a key of the test, with more than thirty-two characters")
const otherKey = Redacted.make("another key, with more than thirty-two characters too")
const settings = {
  companies: [],
  companiesKey: key,
  excluded: [],
  installation: installationOf({}),
  installations: [],
  installationResources: [],
  written: {}
}
const south = {
  company: "south",
  installation: null,
  url: "https://south.example/!/api/v2",
  companyId: null,
  warehouseNumber: null,
  resources: null,
  excludeResources: ["users"],
  events: null
}
const token = Redacted.make("token-of-south")

const tokensOf = ({ companies }: StoredCompanies.StoredCompanies) =>
  Object.fromEntries(companies.map((one) => [one.name, Redacted.value(one.token)]))

describe("the companies of the warehouse", () => {
  test("are read with their tokens, which no column shows", function* () {
    assert.isTrue(yield* CompanyStore.add(key, south, token))
    assert.isFalse(yield* CompanyStore.add(key, south, Redacted.make("another token")))
    const stored = yield* StoredCompanies.read(settings)
    assert.deepStrictEqual(tokensOf(stored), { south: "token-of-south" })
    assert.deepStrictEqual(stored.companies[0]!.excluded, [
      { pattern: "users", place: "exclude_resources of company south in tributary.company_settings" }
    ])
    const [row] = yield* execute<{ text: string }>("select s::text as text from tributary.company_settings s")
    assert.notInclude(row!.text, "token-of-south")
    assert.notInclude(row!.text, Buffer.from("token-of-south").toString("hex"))
  })

  test("raise the revision with each change, also of another program, and with none that is rolled back", function* () {
    const revisions = [yield* CompanyStore.readRevision]
    const record = Effect.map(CompanyStore.readRevision, (revision) => revisions.push(revision))
    yield* CompanyStore.add(key, south, token)
    yield* record
    yield* CompanyStore.pause("south", "a person")
    yield* record
    yield* execute("update tributary.company_settings set resources = array['a']")
    yield* record
    yield* Effect.ignore(sql.withTransaction(Effect.andThen(CompanyStore.remove("south"), Effect.fail("no"))))
    assert.strictEqual(yield* CompanyStore.readRevision, revisions.at(-1))
    yield* CompanyStore.remove("south")
    yield* record
    assert.strictEqual(new Set(revisions).size, 5)
  })

  test("seal the token that another program inserted", function* () {
    yield* execute(
      "insert into tributary.company_settings (company, url, token) values ('east', 'https://east.example', 'plain')"
    )
    assert.deepStrictEqual(tokensOf(yield* StoredCompanies.readOnly(settings)), { east: "plain" })
    yield* StoredCompanies.read(settings)
    assert.isNull((yield* execute<{ token: string | null }>("select token from tributary.company_settings"))[0]!.token)
    assert.deepStrictEqual(tokensOf(yield* StoredCompanies.readOnly(settings)), { east: "plain" })
  })

  test("cannot be used with another key, another address, or a name of the file; other companies can", function* () {
    yield* CompanyStore.add(key, south, token)
    yield* CompanyStore.add(key, { ...south, company: "moved" }, token)
    yield* execute("update tributary.company_settings set url = 'https://thief.example' where company = 'moved'")
    yield* CompanyStore.add(key, { ...south, company: "north" }, token)
    const [usable] = (yield* StoredCompanies.read(settings)).companies
    const inFile = { ...settings, companies: [{ ...usable!, name: "north" }] }
    const read = yield* StoredCompanies.read(inFile)
    assert.deepStrictEqual(Object.keys(tokensOf(read)), ["south"])
    assert.deepStrictEqual(
      read.unusable.map(({ name, problem }) => `${name} ${/does not open|configuration file/.exec(problem)?.[0]}`),
      ["moved does not open", "north configuration file"]
    )
    const wrong = yield* StoredCompanies.read({ ...settings, companiesKey: otherKey })
    assert.deepStrictEqual([wrong.companies.length, wrong.unusable.length], [0, 3])
    const missing = yield* StoredCompanies.read({ ...settings, companiesKey: null })
    assert.isTrue(missing.unusable.every(({ problem }) => problem.includes("TRIBUTARY_COMPANIES_KEY is not set")))
    yield* execute("update tributary.company_settings set webhook_events = array['no event!'] where company = 'south'")
    const [invalid] = (yield* StoredCompanies.read(inFile)).unusable.filter(({ name }) => name === "south")
    assert.include(invalid!.problem, "webhook_events")
  })

  test("stay the same object while their row does not change", function* () {
    yield* CompanyStore.add(key, south, token)
    yield* CompanyStore.add(key, { ...south, company: "north" }, token)
    const read = Effect.map(StoredCompanies.read(settings), ({ companies }) => companies)
    const again = StoredCompanies.read(settings).pipe(Effect.map(({ companies }) => companies))
    assert.notStrictEqual((yield* read)[0], (yield* again)[0], "another reader decodes for itself")
    const [north, before] = yield* read
    yield* CompanyStore.pause("south", "Ann")
    const [same, after] = yield* read
    assert.strictEqual(same, north)
    assert.isNull(before!.paused)
    assert.strictEqual(after!.paused!.by, "Ann")
  })

  test("leave no row behind when they are erased, and no other company loses one", function* () {
    yield* execute("create schema if not exists kept")
    yield* execute("create table kept.things (_company_id bigint, id bigint)")
    yield* execute("insert into kept.things values (1, 1), (2, 1), (2, 2)")
    yield* execute("insert into tributary.companies (company, company_id) values ('north', 1), ('south', 2)")
    yield* execute(
      "insert into tributary.checkpoints (company_id, resource, updated_at) values (1, 'things', now()), (2, 'things', now())"
    )
    yield* execute("insert into tributary.outbox (company, resource) values ('north', 'things'), ('south', 'things')")
    yield* CompanyStore.add(key, south, token)
    const receipt = yield* Removal.erase("south", 2n, "a person", ["kept"])
    assert.deepStrictEqual(receipt.rows, {
      "tributary.checkpoints": 1,
      "kept.things": 2,
      "tributary.companies": 1,
      "tributary.outbox": 1
    })
    const [left] = yield* execute<{ things: number; names: string; outbox: number }>(
      `select (select count(*)::int from kept.things) as things, (select count(*)::int from tributary.outbox) as outbox,
                (select string_agg(company, ' ') from tributary.companies) as names`
    )
    assert.deepStrictEqual({ ...left }, { things: 1, outbox: 1, names: "north" })
    const [written] = yield* execute<{ by: string; action: string; rows: unknown }>(
      "select performed_by as by, action, row_counts as rows from tributary.receipts"
    )
    assert.deepStrictEqual({ ...written }, { by: "a person", action: "erase", rows: receipt.rows })
    assert.deepStrictEqual((yield* CompanyStore.read).length, 0)
  })
})

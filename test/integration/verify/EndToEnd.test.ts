/**
 * Verify, repair and explain over the whole catalogue of the reference server: synced by the real pipeline, compared
 * over HTTP, altered in SQL.
 */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import * as Verify from "../../../src/cli/verify.ts"
import * as ExplainLines from "../../../src/cli/explain.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import { sync } from "../../../src/sync/Sync.ts"
import { explain, findHistory } from "../../../src/verify/Explain.ts"
import { layerCatalogue } from "../../support/demo.ts"
import { execute } from "../../support/postgres.ts"
import { connect, layerClients, makeSource } from "../../support/source.ts"
import { suite } from "../../support/suite.ts"
import { flowing } from "../../support/until.ts"
import { differingIds } from "./support.ts"
import { assertNone } from "../../support/assertions.ts"

const verify = (...[options, companies]: [Parameters<typeof Verify.run>[1], Parameters<typeof Verify.run>[2]]) =>
  flowing(Verify.run({ datasets: datasetsDefault, concurrency: 4 }, options, companies))
const whole = { sample: null, seed: 1, repair: false }

const makeCompanies = Effect.gen(function* () {
  const source = yield* makeSource("demo")
  const companyOf = (company: number) =>
    Effect.map(connect(source, company, { includeCustomFields: true }), ({ connector }) => ({
      name: `company-${company}`,
      connector,
      resources: [...serviceV2.resources.values()]
    }))
  const second = yield* companyOf(2)
  const few = ["invoices", "invoicelines", "payments"]
  const companies = [
    yield* companyOf(1),
    { ...second, resources: second.resources.filter(({ path }) => few.includes(path)) }
  ]
  const only = (...paths: ReadonlyArray<string>) =>
    companies.map((one) => ({ ...one, resources: one.resources.filter(({ path }) => paths.includes(path)) }))
  const bringOver = (targets = companies) =>
    sync({ companies: targets, datasets: datasetsDefault, concurrency: 4, batchRecordsMax: 2_500 }).pipe(
      flowing,
      Effect.tap((report) =>
        Effect.sync(() => {
          for (const { outcomes } of report.companies) {
            for (const outcome of outcomes) assert.strictEqual(outcome.status, "done", JSON.stringify(outcome.failure))
          }
        })
      )
    )
  const state = (company: number, resource: string) =>
    Effect.promise(() => source.lines(`/state?company=${company}&resource=${resource}&include=custom_fields`))
  const control = (method: string, path: string, body: object) =>
    Effect.promise(() => source.control(method, path, body))
  return { control, companies, only, bringOver, state }
})

const resourcesOf = (report: Verify.VerifyReport) => report.companies.flatMap(({ resources }) => resources)

/** `1 invoices 17 different invoicetotal`, one line per finding. */
const briefly = (report: Verify.VerifyReport): ReadonlyArray<string> =>
  resourcesOf(report).flatMap(({ companyId, resource, findings }) =>
    findings.map(({ id, kind, fields }) =>
      [companyId, resource, id, kind, ...fields.map(({ field }) => field)].join(" ")
    )
  )

const idsOf = (resource: string, count: number) =>
  Effect.map(
    execute<{ id: string }>(`select id::text from erp.${resource} where _company_id = 1 order by id limit ${count}`),
    (rows) => rows.map(({ id }) => id)
  )

const shared = Layer.merge(layerCatalogue, layerClients)

suite("verify of the whole catalogue", shared, (test) => {
  test("finds no difference after a sync, then finds and repairs exactly the altered rows", function* () {
    const { control, companies, only, bringOver, state } = yield* makeCompanies
    yield* control("PUT", "/dialect", { extraFields: 11 })
    yield* bringOver()
    const equal = yield* verify(whole, companies)
    assertNone(resourcesOf(equal), ({ status }) => status !== "equal")
    assert.strictEqual(Verify.codeOf(equal, false), 0)
    assert.strictEqual(resourcesOf(equal).length, serviceV2.resources.size + 3)
    assert.isAbove(
      resourcesOf(equal).reduce((sum, { source }) => sum + source, 0),
      1_000
    )
    // Plain SQL over the server's own state gives the same result.
    for (const path of ["invoices", "invoicelines", "payments", "customers", "orders"]) {
      const texts = yield* state(1, path)
      assert.isAbove(texts.length, 5, path)
      assert.deepStrictEqual(yield* differingIds(tableOf(serviceV2.resources.get(path)!), 1n, texts), [], path)
    }

    // One alteration of each kind, in resources with and without single requests, one of them in another company.
    const [line] = yield* idsOf("invoicelines", 1)
    const ids = yield* idsOf("invoices", 4)
    const payments = yield* idsOf("payments", 2)
    const alter = (statement: string, id: string | undefined) =>
      execute(`${statement} where _company_id = 1 and id = ${id}`)
    yield* alter("update erp.invoicelines set qty = qty + 0.000001", line)
    yield* alter("update erp.invoices set invoicetotal = invoicetotal + 1", ids[0])
    yield* alter("update erp.invoices set _deleted_at = tributary.now()", ids[1])
    yield* alter("delete from erp.invoices", ids[2])
    yield* alter(`update erp.invoices set _extra = '{"x_note":"invented"}'`, ids[3])
    yield* alter("update erp.payments set id = 900001", payments[0])
    yield* alter("update erp.payments set _company_id = 2", payments[1])
    const versions =
      "select _company_id::text as company, 'i' || id as id, _version::text as version from erp.invoices union all select _company_id::text, 'p' || id, _version::text from erp.payments union all select _company_id::text, 'l' || id, _version::text from erp.invoicelines order by 1, 2"
    const before = yield* execute<{ company: string; id: string; version: string }>(versions)

    const targets = only("invoices", "invoicelines", "payments")
    const report = yield* verify(whole, targets)
    const lines = briefly(report)
    const expected = [
      `1 invoicelines ${line} different qty`,
      `1 invoices ${ids[0]} different invoicetotal`,
      `1 invoices ${ids[1]} missing`,
      `1 invoices ${ids[2]} missing`,
      `1 payments ${payments[0]} missing`,
      `1 payments ${payments[1]} missing`,
      "1 payments 900001 surplus",
      `2 payments ${payments[1]} surplus`
    ]
    assert.includeMembers([...lines], expected)
    assert.lengthOf(lines, expected.length + 1)
    assert.match(
      lines.find((one) => one.startsWith(`1 invoices ${ids[3]} different`))!,
      /x_/
    )
    assert.strictEqual(Verify.codeOf(report, true), 4)
    const prose = Verify.lines(report).join("\n")
    assert.include(prose, `    ${line}  different`)
    assert.match(prose, /qty +source "[\d.]+" +warehouse "[\d.]+"/)
    assert.include(prose, "missing: it is deleted in the warehouse")
    assert.include(prose, "Not equal: 9 records differ")

    const repaired = yield* verify({ ...whole, repair: true }, targets)
    assert.deepStrictEqual(briefly(repaired), [])
    assert.strictEqual(Verify.codeOf(repaired, false), 0)
    const tampered = new Set([
      `1 l${line}`,
      `1 i${ids[0]}`,
      `1 i${ids[1]}`,
      `1 i${ids[3]}`,
      "1 p900001",
      `2 p${payments[1]}`
    ])
    const versionsBefore = new Map(before.map(({ company, id, version }) => [`${company} ${id}`, version]))
    const rewritten = (yield* execute<{ company: string; id: string; version: string }>(versions))
      .map(({ company, id, version }) => [`${company} ${id}`, version] as const)
      .filter(([key, version]) => versionsBefore.has(key) && versionsBefore.get(key) !== version)
      .map(([key]) => key)
    assert.deepStrictEqual(new Set(rewritten), tampered)
    for (const path of ["invoices", "invoicelines", "payments"]) {
      for (const company of [1, 2]) {
        const texts = yield* state(company, path)
        const differing = yield* differingIds(tableOf(serviceV2.resources.get(path)!), BigInt(company), texts)
        assert.deepStrictEqual(differing, [], path)
      }
    }
  })
})

suite("verify of a source that changes", shared, (test) => {
  test("distinguishes later changes of the source from differences, and explain shows their runs", function* () {
    const { control, only, bringOver } = yield* makeCompanies
    const targets = only("invoices", "payments", "customers").slice(0, 1)
    yield* bringOver(targets)
    const [id = ""] = yield* idsOf("invoices", 1)
    const change = (record: object) =>
      control("POST", "/records", { company: 1, resource: "invoices", records: [record] })
    yield* change({ id: Number(id), notes: "changed since" })
    const waiting = yield* verify(whole, targets)
    assert.deepStrictEqual(briefly(waiting), [`1 invoices ${id} different lastchangedate notes`])
    assert.deepStrictEqual([Verify.codeOf(waiting, false), Verify.codeOf(waiting, true)], [4, 0])
    assert.include(Verify.lines(waiting).join("\n"), "Not equal: 1 is not yet synced")
    yield* bringOver(targets)
    assert.strictEqual(Verify.codeOf(yield* verify(whole, targets), false), 0)

    // The report of a sample states its chance of detection.
    const sampled = yield* verify({ sample: 4, seed: 9, repair: false }, targets)
    assert.match(
      Verify.lines(sampled).at(-1)!,
      /^Equal: .* This is a sample \(seed 9\), not a proof: .* probability of at least [\d.]+ %\.$/
    )

    const named = yield* findHistory(datasetsDefault, "invoices")
    const [explanation] = yield* explain(datasetsDefault, named!, id, null)
    assert.deepInclude(explanation!, { companyId: 1n, state: "exists", quarantine: [], rereads: [] })
    assert.deepStrictEqual(
      explanation!.versions.map(
        ({ version, op, origin, run }) => `${version} ${op} ${origin} ${run!.kind} ${run!.status}`
      ),
      ["1 insert scan full done", "2 update scan incremental done"]
    )
    const [first, second] = explanation!.versions
    assert.include(second!.source!, "GET /invoices?modifiedsince=")
    assert.deepStrictEqual(first!.validTo, second!.validFrom)
    assert.sameMembers(
      second!.changes.map(({ field }) => field),
      ["notes", "lastchangedate"]
    )
    assert.strictEqual(second!.changes.find(({ field }) => field === "notes")!.to, '"changed since"')
    assert.deepInclude(explanation!.fullScan!, { kind: "full", confirmed: false })
    const prose = ExplainLines.lines(explanation!, new Map([["north", 1n]])).join("\n")
    assert.include(prose, `invoices ${id} of north: exists, 2 versions`)
    assert.match(prose, /notes +.* → "changed since"/)
    assert.include(prose, "this version came after it")
    assert.include(prose, "  quarantine: never")
    assert.include(prose, "  to be read again: no")

    // A deleted record, a record with an open refetch request, and a quarantined record.
    yield* control("POST", "/remove", { company: 1, resource: "invoices", id: Number(id) })
    yield* execute(
      "insert into tributary.refetch_requests (company_id, resource, field, value, requested_at) values (1, 'invoices', 'id', $1, tributary.now())",
      [id]
    )
    yield* execute(
      `insert into tributary.quarantine (company_id, resource, record_id, field, reason, bytes, run_id, source, first_seen_at, last_seen_at)
           values (1, 'invoices', $1, 'notes', 'holds the character NUL', '{"id":1}', 1, 'GET /invoices', tributary.now(), tributary.now())`,
      [id]
    )
    assert.deepStrictEqual(briefly(yield* verify(whole, targets)), [`1 invoices ${id} surplus`])
    assert.strictEqual(Verify.codeOf(yield* verify({ ...whole, repair: true }, targets), false), 0)
    const [deleted] = yield* explain(datasetsDefault, named!, id, 1n)
    assert.strictEqual(deleted!.state, "deleted")
    assert.deepInclude(deleted!.versions.at(-1)!, { version: 3n, op: "delete" })
    assert.strictEqual(deleted!.versions.at(-1)!.run!.kind, "fetch")
    assert.deepInclude(deleted!.quarantine[0]!, { field: "notes", resolvedAt: deleted!.quarantine[0]!.resolvedAt })
    assert.deepStrictEqual(yield* explain(datasetsDefault, named!, "999999999", null), [])
    assert.deepStrictEqual(yield* explain(datasetsDefault, named!, "1; drop table x", null), [])
    assert.isNull(yield* findHistory(datasetsDefault, "nonsense"))
    assert.isNull(yield* findHistory(datasetsDefault, 'x"; drop'))
  })
})

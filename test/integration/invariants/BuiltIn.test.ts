/**
 * The built-in rules on the records of the reference server: the demo data violates none, a record that breaks a rule is
 * named after two scans, and its repair ends the violation.
 */
import { readFileSync } from "node:fs"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readInvariants } from "../../../connectors/service-v2/invariants/index.ts"
import { evaluateOnce } from "../../../src/invariants/Evaluate.ts"
import { datasetsDefault } from "../../../src/warehouse/Table.ts"
import { demoServer, land, layerDemo } from "../../support/demo.ts"
import { changed, current, run, scanned, states } from "./landings.ts"
import { suite } from "../../support/suite.ts"
import { assertNone } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

const invariants = readInvariants()
const resources = [...new Set(invariants.flatMap((one) => one.resources))].sort()
const companies = [1, 2]
const { served, linesOf } = demoServer()

type Record = Readonly<globalThis.Record<string, unknown>>

const recordsOf = (resource: string): ReadonlyArray<Record> =>
  linesOf(1, resource).map((line) => JSON.parse(line) as Record)

/** The landed records, by company and resource. */
const landed = new Map<string, string>(
  companies.flatMap((company) =>
    resources.map((resource) => [`${company} ${resource}`, linesOf(company, resource).join("\n")] as const)
  )
)

/** Lands what changed at the server, as a sync of everything does, and evaluates. */
const sync = Effect.gen(function* () {
  yield* scanned(companies, resources)
  for (const company of companies) {
    for (const resource of resources) {
      const lines = linesOf(company, resource)
      const key = `${company} ${resource}`
      if (landed.get(key) === lines.join("\n")) continue
      landed.set(key, lines.join("\n"))
      yield* land(company, new Map([[resource, lines]]))
      yield* changed([company], [resource])
    }
  }
  return yield* evaluateOnce({ invariants, current: datasetsDefault.current }, { isNow: true })
})

const put = (resource: string, record: Record): Record => {
  const answer = served.control("POST", "/records", { company: 1, resource, records: [record] })
  assert.strictEqual(answer.status, 200, answer.text)
  return (answer.body["records"] as ReadonlyArray<Record>)[0]!
}

/** A record that fits, and its id. */
const find = (resource: string, fits: (record: Record) => boolean): Record => {
  const found = recordsOf(resource).find(fits)
  if (found === undefined) throw new Error(`the demo data has no suitable record of ${resource}`)
  return found
}

const more = (amount: unknown): string => `${Number.parseInt(String(amount), 10) + 1}.01`

/** For each rule: a change that breaks it, the record that it names, and what repairs it. */
const mistakes: globalThis.Record<string, () => { readonly names: string; readonly repair: () => void }> = {
  invoice_lines_add_up: () => {
    const line = find("invoicelines", (one) => one["invoiceid"] !== null)
    put("invoicelines", { id: line["id"], totalprice: more(line["totalprice"]) })
    return {
      names: `invoices ${String(line["invoiceid"])}`,
      repair: () => put("invoicelines", { id: line["id"], totalprice: line["totalprice"] })
    }
  },
  invoice_paid_is_sum_of_payments: () => {
    const invoice = find("invoices", (one) => one["voucherid"] !== null)
    put("invoices", { id: invoice["id"], invoicepaid: more(invoice["invoicepaid"]) })
    return {
      names: `invoices ${String(invoice["id"])}`,
      repair: () => put("invoices", { id: invoice["id"], invoicepaid: invoice["invoicepaid"] })
    }
  },
  deposits_within_orders: () => {
    const deposit = find("orderdeposits", (one) => one["cancel"] !== true)
    put("orderdeposits", { id: deposit["id"], amount: "99999999.00" })
    return {
      names: `orders ${String(deposit["orderid"])}`,
      repair: () => put("orderdeposits", { id: deposit["id"], amount: deposit["amount"] })
    }
  },
  vouchers_exist: () => {
    const invoice = find("invoices", (one) => one["voucherid"] !== null)
    put("invoices", { id: invoice["id"], voucherid: 987_654 })
    return {
      names: `invoices ${String(invoice["id"])}`,
      repair: () => put("invoices", { id: invoice["id"], voucherid: invoice["voucherid"] })
    }
  },
  daily_close_agrees: () => {
    const close = find("ardailycloses", (one) => one["cancel"] !== true)
    put("ardailycloses", { id: close["id"], sys_cash: more(close["sys_cash"]) })
    return {
      names: `ardailycloses ${String(close["id"])}`,
      repair: () => put("ardailycloses", { id: close["id"], sys_cash: close["sys_cash"] })
    }
  }
}

suite("the built-in invariants", layerDemo, (test, it) => {
  test("hold for the demo data, name the record that breaks one, and end with its repair", function* () {
    assert.deepStrictEqual(valuesOf(invariants, "name"), Object.keys(mistakes).sort(), "each rule has a mistake")
    yield* changed(companies, resources)
    assert.strictEqual(yield* sync, invariants.length * companies.length)
    assert.deepStrictEqual(yield* current, [])
    assert.deepStrictEqual(
      yield* states,
      invariants.flatMap(({ name }) => companies.map((company) => `${name} of ${company}: holds`)).sort()
    )
    assert.strictEqual(yield* sync, 0, "nothing changed")
    for (const [name, make] of Object.entries(mistakes)) {
      const { names, repair } = make()
      yield* sync
      assert.deepStrictEqual(yield* current, [`${name} of 1: ${names} unconfirmed`])
      yield* sync
      assert.deepStrictEqual(yield* current, [`${name} of 1: ${names}`])
      repair()
      yield* sync
      assert.deepStrictEqual(yield* current, [])
    }
    const ended = yield* run<{ invariant: string; detail: string }>(
      "select invariant, detail from tributary.violations order by invariant"
    )
    assert.deepStrictEqual(valuesOf(ended, "invariant"), Object.keys(mistakes).sort())
    assert.match(ended[1]!.detail, /^order \d+ has the total [\d.]+, but its \d+ deposits add up to 99999999/)
  })

  it.effect("name only existing facts and resources", () =>
    Effect.sync(() => {
      const file = new URL("../../conformance/facts.json", import.meta.url)
      const facts = new Set(Object.keys(JSON.parse(readFileSync(file, "utf8")) as object))
      for (const { name, comment, resources: read } of invariants) {
        const named = [...comment.matchAll(/\b[A-Z]+-\d{2}\b/g)].map(([id]) => id)
        assert.isAbove(named.length, 2, name)
        assertNone(named, (id) => !facts.has(id), name)
        for (const part of ["Counts: ", "Names: "]) assert.include(comment, part, name)
        for (const resource of read) assert.isTrue(serviceV2.resources.has(resource), `${name}: ${resource}`)
      }
    })
  )
})

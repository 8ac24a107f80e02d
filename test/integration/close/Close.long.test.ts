/**
 * The month-end close of the demo's company: the file beside the server's own records, and every change of the closed month
 * afterwards, by scans, a webhook and a push.
 */
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ChangedRecord, Comparison } from "../../../src/close/Compare.ts"
import type { Document } from "../../../src/close/Document.ts"
import { firstLine } from "../../support/reference.ts"
import { until } from "../../support/until.ts"
import { makeReceivingWorld, type World } from "../../support/world.ts"
import { exact, sum } from "../models/figures/records.ts"
import { liveTest } from "../../support/live.ts"
import { assertEach, assertNone } from "../../support/assertions.ts"

const monthOf = (offset: number): string => {
  const today = new Date()
  return new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + offset, 1)).toISOString().slice(0, 7)
}
const month = monthOf(-1)
const thisMonth = monthOf(0)

type Row = Readonly<Record<string, unknown>>

const stateOf = (world: World, resource: string): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.map(
    Effect.promise(() => world.reference.lines(`/state?company=1&resource=${resource}`)),
    (lines) => lines.map((line) => JSON.parse(line) as Row)
  )

const isIn = (day: unknown): boolean => String(day).startsWith(month)

/** The month's records by the server's own state. */
const expectedOf = Effect.fnUntraced(function* (world: World) {
  const invoices = yield* stateOf(world, "invoices")
  const closed = new Set(invoices.flatMap(({ id, invoicedate }) => (isIn(invoicedate) ? [id] : [])))
  const payments = (yield* stateOf(world, "payments")).filter(({ datereceived }) => isIn(datereceived))
  const lines = (yield* stateOf(world, "invoicelines")).filter(({ invoiceid }) => closed.has(invoiceid))
  return {
    all: invoices.length,
    invoices: {
      count: closed.size,
      sum: sum(invoices, "invoicetotal", ({ id }) => closed.has(id))
    },
    payments: { count: payments.length, sum: sum(payments, "amount") },
    invoicelines: { count: lines.length, sum: sum(lines, "totalprice") }
  }
})

const assertEqualToState = Effect.fnUntraced(function* (world: World, document: Document) {
  const expected = yield* expectedOf(world)
  const found = (resource: string) => document.resources.find((one) => one.resource === resource)!
  const summed = { invoices: "invoicetotal", payments: "amount", invoicelines: "totalprice" } as const
  for (const [resource, field] of Object.entries(summed)) {
    const { count, sum } = expected[resource as keyof typeof summed]
    const { period } = found(resource)
    assert.deepStrictEqual([period!.count, exact(period!.sums[field])], [count, sum], resource)
    assert.isAbove(count, 0)
  }
  assert.strictEqual(found("invoices").table.count, expected.all)
})

/** An installation whose company receives events, with its month closed. */
const makeClosed = Effect.gen(function* () {
  const { world, token } = yield* makeReceivingWorld("customers, invoices, invoicelines, payments", "events: all")
  const run = Effect.fnUntraced(function* (line: string, code = 0) {
    const result = yield* world.run(line.split(" "), { NORTH: token })
    assert.strictEqual(result.code, code, `${line}: ${result.stdout}${result.stderr}`)
    return result
  })
  const serve = Effect.promise(async () => {
    const command = world.command(["serve", "--json"], { NORTH: token })
    await firstLine(command)
    return command
  })
  const call = (method: string, path: string, body: object) =>
    Effect.promise(async () => {
      const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json", "Idempotency-Key": path }
      const response = await fetch(`${world.reference.baseUrl}${path}`, { method, headers, body: JSON.stringify(body) })
      assert.isTrue(response.ok, `${method} ${path}: ${response.status}`)
      return (await response.json()) as { readonly id: number }
    })
  const file = (name: string) => join(world.folder, name)
  const compare = (code: number) =>
    Effect.map(run(`close --compare ${month} --json`, code), ({ stdout }) => {
      const { companies } = JSON.parse(stdout) as { readonly companies: ReadonlyArray<Comparison> }
      return companies[0]!
    })
  yield* run("sync")
  return { world, run, serve, call, file, compare }
})

const closeFile = `closes/${month}-north.json`
const readClose = (path: string) => JSON.parse(readFileSync(path, "utf8")) as Document

describe("tributary close", () => {
  liveTest("writes what the server has, and lists every later change of the month", function* () {
    const { world, run, serve, call, file, compare } = yield* makeClosed
    yield* serve
    yield* run("webhooks ensure")
    /** Changes an invoice by the API, whose event brings it. */
    const rename = Effect.fnUntraced(function* (id: number, externalid: string) {
      yield* call("PATCH", `/invoices/${id}`, { externalid })
      yield* world.control("POST", "/cycle")
      yield* until(
        `invoice ${id} by webhook`,
        world.query(`select 1 as one from erp.invoices where id = ${id} and externalid = '${externalid}'`),
        (rows) => rows.length === 1
      )
    })
    yield* rename(1, "FIRST")
    // What the gap before the subscription may hide is read now.
    yield* run("sync --full")
    assert.include((yield* run(`close --compare ${month}`, 1)).stderr, `${month} of company north is not closed`)
    assert.include((yield* run(`close ${thisMonth}`, 1)).stderr, "close it after that, or look at a draft")
    assert.include((yield* run("close 2026-13", 1)).stderr, "expected a month")
    const draft = yield* run(`close ${thisMonth} --draft`, 4)
    assert.include(draft.stdout, "config/close-key.pem is the new signing key")
    assert.include(draft.stdout, "4 resources were not read after the period's end")

    const closed = yield* run(`close ${month}`)
    assert.include(closed.stdout, `company north (1): ${month} is clean`)
    const first = readClose(file(closeFile))
    yield* assertEqualToState(world, first)
    assert.lengthOf(first.verification.resources, 4)
    assert.isTrue(first.invariants.some(({ severity }) => severity === "critical"))
    assert.isTrue(
      readFileSync(file(closeFile.replace("json", "pdf")))
        .subarray(0, 5)
        .equals(Buffer.from("%PDF-"))
    )
    assert.include((yield* run(`close --verify ${closeFile}`)).stdout, "is what was signed")
    assert.include((yield* run(`close ${month}`, 1)).stderr, "is closed already")
    assert.isTrue((yield* compare(0)).equal)

    // A row that is edited by hand has no change in the feed. The payments of the renamed invoice are read again.
    const [edited] = yield* world.query<{ id: string }>(
      `update erp.payments set amount = amount + 1 where id = (select min(id) from erp.payments where invoiceid <> 1 and to_char(datereceived, 'YYYY-MM') = '${month}') returning id::text`
    )
    const byHand = yield* compare(4)
    assert.deepStrictEqual(byHand.records, [])
    assert.match(
      byHand.resources.map(({ resource, problem }) => `${resource}: ${problem}`).join(),
      /^payments: it changed without the change feed/
    )
    assert.include(
      (yield* run(`close ${month} --draft`, 4)).stdout,
      "payments is not equal to the source (1 different)"
    )
    yield* world.query(`update erp.payments set amount = amount - 1 where id = ${edited!.id}`)
    assert.isTrue((yield* compare(0)).equal)

    const invoices = yield* world.query<{
      id: number
      m: string
      posted: boolean
      open: boolean
      lines: ReadonlyArray<number>
    }>(
      `select i.id::int, to_char(invoicedate, 'YYYY-MM') as m, voucherid is not null as posted, invoicetotal - invoicepaid > 20 as open,
                    (select coalesce(array_agg(l.id::int order by l.id), '{}') from erp.invoicelines l where l.invoiceid = i.id) as lines
               from erp.invoices i where not cancel order by 1`
    )
    const inMonth = invoices.filter(({ m, lines }) => m === month && lines.length > 1)
    const payable = invoices.filter(({ m, posted, open }) => m !== month && posted && open)
    const [moved, shortened, hooked] = inMonth
    const [paidByPush, outside] = payable
    const [payment] = yield* world.query<{ id: number }>(
      `select id::int from erp.payments where to_char(datereceived, 'YYYY-MM') = '${month}' and not cancel and id <> ${edited!.id} order by id limit 1`
    )
    const records = (resource: string, record: Row) =>
      world.control("POST", "/records", { company: 1, resource, records: [record] })
    yield* records("invoices", {
      id: 900_001,
      customerid: 1,
      invoicenumber: "LATE-1",
      invoicedate: `${month}-28`,
      invoicetotal: "100.0000"
    })
    yield* records("invoicelines", { id: 900_002, invoiceid: 900_001, qty: "1.000000", totalprice: "100.0000" })
    yield* records("payments", { id: payment!.id, checkid: "corrected" })
    yield* records("invoices", { id: moved!.id, invoicedate: `${thisMonth}-01` })
    yield* records("invoices", { id: outside!.id, invoicetotal: "1.0000" })
    yield* world.control("POST", "/remove", { company: 1, resource: "invoicelines", id: shortened!.lines[0] })

    yield* rename(hooked!.id, "HOOKED")
    writeFileSync(file("payments.csv"), `externalid,invoiceid,amount,date\nP-1,${paidByPush!.id},2.0000,${month}-16\n`)
    yield* run("push payments --from payments.csv")
    yield* run("sync --full")
    const [pushed] = yield* world.query<{ id: string }>("select id::text from erp.payments where externalid = 'P-1'")

    const changed = yield* compare(4)
    const shown = (one: ChangedRecord) =>
      `${one.resource} ${one.id} ${one.kind} ${one.fromVersion}-${one.toVersion} ${one.versions.map(({ op, origin }) => `${op} by ${origin}`).join(", ")}`
    assert.deepStrictEqual(
      changed.records.map(shown).sort(),
      [
        "invoices 900001 inserted 0-1 insert by scan",
        `invoices ${moved!.id} moved out 1-2 update by scan`,
        "invoicelines 900002 inserted 0-1 insert by scan",
        `invoicelines ${shortened!.lines[0]} deleted 1-2 delete by scan`,
        ...moved!.lines.map((id) => `invoicelines ${id} moved out 1-1 `),
        `payments ${payment!.id} changed 1-2 update by scan`,
        `invoices ${hooked!.id} changed 1-2 update by webhook`,
        `payments ${pushed!.id} inserted 0-1 insert by push`
      ].sort()
    )
    const corrected = changed.records.find(({ id, resource }) => resource === "payments" && id === String(payment!.id))!
    assert.deepInclude(corrected.changes, {
      field: "checkid",
      from: corrected.changes.find(({ field }) => field === "checkid")!.from,
      to: "corrected"
    })
    assert.isTrue(
      changed.records.every(({ versions }) =>
        versions.every(({ source, observedAt }) => source !== null && observedAt > first.closedAt)
      )
    )
    assert.strictEqual(
      changed.resources.find(({ resource }) => resource === "payments")!.figures!.now.count,
      first.resources.find(({ resource }) => resource === "payments")!.period!.count + 1
    )
    const forPeople = yield* run(`close --compare ${month}`, 4)
    assert.match(
      forPeople.stdout,
      new RegExp(`invoices ${hooked!.id}: changed, version 1 → 2\\n +version 2: update by webhook, .*GET /invoices/`)
    )

    // The second revision stands beside the first one, and has the figures that the comparison found.
    const before = readFileSync(file(closeFile))
    const again = yield* run(`close ${month} --again`, 4)
    // Two invoices have another total than their lines now.
    assert.match(again.stdout, /\d violations of invoice_lines_add_up/)
    assert.isTrue(before.equals(readFileSync(file(closeFile))))
    const second = readClose(file(closeFile.replace("json", "2.json")))
    yield* assertEqualToState(world, second)
    assert.deepInclude(second, { revision: 2 })
    const secondFile = closeFile.replace("json", "2.json")
    assert.include((yield* run(`close --verify ${secondFile}`)).stdout, `${closeFile}, which is unchanged`)
    writeFileSync(file(closeFile), before.toString().replace(/\n$/, ""))
    assert.include((yield* run(`close --verify ${secondFile}`, 4)).stdout, "is not the file of that time")
    writeFileSync(file(closeFile), before)
    for (const { resource, figures } of changed.resources) {
      const { count, sums, digest } = second.resources.find((one) => one.resource === resource)!.period!
      assert.deepStrictEqual(figures!.now, { count, sums, digest })
    }
    assert.isTrue((yield* compare(0)).equal)
  })

  liveTest(
    "leaves no part of a file when it is killed, and reports what it cannot close while it closes the others",
    function* () {
      const { world, run, file } = yield* makeClosed
      const killed = world.command(["close", month], {
        NORTH: yield* Effect.promise(() => world.reference.token(1))
      })
      yield* Effect.promise(
        () =>
          new Promise<void>((resolve) =>
            killed.child.stderr!.on("data", (chunk: Buffer) => {
              if (chunk.includes("computing")) resolve()
            })
          )
      )
      killed.child.kill("SIGKILL")
      yield* Effect.promise(() => killed.done)
      assertNone(readdirSync(file("closes")), (name) => !name.startsWith("."))
      yield* run(`close ${month}`)
      const pages = readFileSync(file(closeFile.replace("json", "pdf")))
      rmSync(file(closeFile.replace("json", "pdf")))
      yield* run(`close ${month}`, 1)
      assert.isTrue(pages.equals(readFileSync(file(closeFile.replace("json", "pdf")))))
      renameSync(file("config/close-key.pem"), file("first-key.pem"))
      assert.include((yield* run(`close --verify ${closeFile}`, 4)).stdout, "so that its signer is not proven")
      yield* run(`close --verify ${closeFile} --key first-key.pem`)
      yield* run(`close ${month} --draft`)
      assert.include((yield* run(`close --verify ${closeFile}`, 4)).stderr, "was signed by another key")

      // A rule of the configuration that fails, and a company that the source refuses, are reported; the others are closed.
      world.configure(`companies:
  - { name: north, token_env: NORTH, resources: [customers] }
  - { name: south, token_env: SOUTH, resources: [customers] }
schedule: { default: off }
invariants:
  - { name: broken, severity: critical, statement: "Nothing is divided by zero.", sql: "select _company_id as company_id, 'customers' as resource, id, (id / 0)::text as detail from {{customers}}" }
`)
      const token = yield* Effect.promise(() => world.reference.token(1))
      const several = yield* world.run(["close", month, "--draft", "--json"], { NORTH: token, SOUTH: "wrong" })
      assert.strictEqual(several.code, 3, several.stdout + several.stderr)
      assert.include(several.stderr, "company south could not be compared with the source")
      interface Report {
        readonly closes: ReadonlyArray<{ company: { name: string }; findings: ReadonlyArray<string> }>
        readonly failures: ReadonlyArray<{ company: string }>
      }
      const { closes } = JSON.parse(several.stdout) as Report
      assertEach(closes, ({ company }) => company.name, ["north"])
      assert.match(closes[0]!.findings.join(), /^the invariant broken cannot be evaluated: .*division by zero/)

      // The figures of one company cannot be computed; the other one is closed.
      world.configure(`companies:
  - { name: damaged, token_env: NORTH, resources: [payments] }
  - { name: north, token_env: NORTH, resources: [customers] }
schedule: { default: off }
`)
      yield* world.query("alter table erp.payments drop column checkid cascade")
      const damaged = yield* world.run(["close", month, "--draft", "--json"], { NORTH: token })
      assert.strictEqual(damaged.code, 2, damaged.stdout + damaged.stderr)
      assert.match(damaged.stderr, /company damaged: .*checkid/)
      const rest = JSON.parse(damaged.stdout) as Report
      assert.deepStrictEqual(
        [rest.failures.map(({ company }) => company), rest.closes.map(({ company }) => company.name)],
        [["damaged"], ["north"]]
      )
    }
  )
})

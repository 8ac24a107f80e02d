/** Each scenario, by its effect on a client of the API. */
import { assert, describe, it } from "vitest"
import type { Json } from "./support.ts"
import { codeOf, dataOf, idsOf, metaOf, order, readAll, server } from "./support.ts"
import { eventServer } from "./eventsSupport.ts"
import { assertEach } from "../support/assertions.ts"

const run = ({ control }: ReturnType<typeof server>, name: string, input: Json = {}) => {
  const { status, body, text } = control("POST", `/scenarios/${name}`, input)
  assert.strictEqual(status, 200, text)
  return body["changed"] as Json
}

const since = (at: unknown) => `modifiedsince=${encodeURIComponent(String(at))}`

describe("the scenarios", () => {
  it("are listed with a description; an unknown one, or a member that it does not take, is refused", () => {
    const { control } = server()
    const listed = control("GET", "/scenarios").body["scenarios"] as ReadonlyArray<Json>
    assert.deepStrictEqual(
      listed.map(({ name }) => name),
      ["closed-period", "late-rows", "month-end", "rate-limit-storm", "restored-backup", "ties", "webhook-outage"]
    )
    for (const { description } of listed) assert.isAbove(String(description).length, 80)
    const unknown = control("POST", "/scenarios/x", {})
    assert.strictEqual(unknown.status, 400)
    assert.include(unknown.text, "there are: closed-period, late-rows")
    assert.include(
      control("POST", "/scenarios/ties", { hours: 1 }).text,
      "ties takes no hours; it takes: company, count"
    )
  })

  it("late-rows: a client that continues at synced_through does not read the rows, a full read does", () => {
    const world = server({ data: "demo" })
    world.control("POST", "/clock", { advanceSeconds: 3600 })
    const synced = metaOf(world.call("GET", "/customers?modifiedsince=2020-01-01T00:00:00Z"))["synced_through"]
    const { ids, at } = run(world, "late-rows")
    assert.isBelow(Date.parse(String(at)), Date.parse(String(synced)))
    assert.strictEqual((ids as Array<number>).length, 5)
    assert.deepStrictEqual(dataOf(world.call("GET", `/customers?${since(synced)}`)), [])
    assert.includeMembers(idsOf(readAll(world.call, "/customers?limit=50").records), ids as Array<number>)
    const overlapping = new Date(Date.parse(String(synced)) - 300_000).toISOString()
    assert.sameMembers(idsOf(dataOf(world.call("GET", `/customers?${since(overlapping)}`))), ids as Array<number>)
  })

  it("ties: one instant fills more than two pages, and the cursor returns each row once", () => {
    const world = server()
    const { at, count } = run(world, "ties")
    const stamps = new Set(dataOf(world.call("GET", "/customers?limit=250")).map((one) => one["lastchangedate"]))
    assert.deepStrictEqual([...stamps], [at])
    const { records } = readAll(world.call, `/customers?${since(at)}&limit=250`)
    assert.strictEqual(records.length, count)
    assert.strictEqual(new Set(idsOf(records)).size, count)
    // A client that goes on after a page by its last time reads the first page again.
    const page = () => world.call("GET", `/customers?${since(at)}&limit=250`)
    assert.deepStrictEqual(dataOf(page()), dataOf(page()))
  })

  it("closed-period: a posting of the month before is refused, one of today is not", () => {
    const world = server()
    assert.deepStrictEqual(run(world, "closed-period"), { company: 1, closedThrough: "2026-02-28" })
    const { customer } = order(world.call)
    const post = (invoicedate: string) => {
      const lines = [{ description: "Work", quantity: "1", price: "10" }]
      const { body } = world.call("POST", "/invoices", { customerid: customer["id"], invoicedate, lines })
      return world.call("POST", `/invoices/${String(body["id"])}/post`)
    }
    assert.strictEqual(codeOf(post("2026-02-28")), "period_closed")
    assert.strictEqual(post("2026-03-01").status, 200)
  })

  it("rate-limit-storm: refusals with Retry-After, then a low limit of the install", () => {
    const world = server()
    assert.deepInclude(run(world, "rate-limit-storm", { count: 4 }), { refused: 4, requestsPerMinute: 30 })
    const other = world.caller(world.token())
    const answers = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? world.call : other)("GET", "/items"))
    const statuses = answers.map(({ status }) => status)
    assert.deepStrictEqual(statuses.slice(0, 5), [429, 429, 429, 429, 200])
    assert.strictEqual(answers[0]!.headers["Retry-After"], "2")
    assert.strictEqual(codeOf(answers[0]!), "rate_limited")
    assert.strictEqual(statuses.filter((status) => status === 200).length, 30)
    assert.strictEqual(statuses.at(-1), 429)
    world.control("POST", "/clock", { advanceSeconds: 61 })
    assert.strictEqual(world.call("GET", "/items").status, 200)
  })

  it("restored-backup: new rows are gone, changed ones are old again, and their ids are given to others", () => {
    const world = server({ data: "demo" })
    const kept = world.call("POST", "/customers", { customercode: "KEPT", name: "kept" }).body
    world.control("POST", "/clock", { advanceSeconds: 3 * 3600 })
    const token = world.token({ user: "late" })
    const gone = world.call("POST", "/customers", { customercode: "GONE", name: "gone" }).body
    const changed = world.call("PATCH", `/customers/${String(kept["id"])}`, { name: "changed" }).body
    const synced = metaOf(world.call("GET", `/customers?${since(kept["lastchangedate"])}`))["synced_through"]
    world.control("POST", "/clock", { advanceSeconds: 1 })
    const { ids } = run(world, "restored-backup", { hours: 2 })
    const again = world.call("GET", `/customers/${String(kept["id"])}`).body
    assert.strictEqual(again["name"], "kept")
    assert.strictEqual(again["lastchangedate"], kept["lastchangedate"])
    assert.isBelow(Date.parse(String(again["lastchangedate"])), Date.parse(String(changed["lastchangedate"])))
    assert.strictEqual(world.call("GET", `/customers/${String(gone["id"])}`).body["customercode"], "NEW-00001")
    assert.strictEqual((ids as Array<number>)[0], gone["id"])
    // The changes since the last read name the new owner of the id only: the old value of `kept` is not among them.
    assert.sameMembers(idsOf(dataOf(world.call("GET", `/customers?${since(synced)}`))), ids as Array<number>)
    assert.strictEqual(world.caller(token)("POST", "/customers", { customercode: "LATER", name: "x" }).status, 201)
    order(world.call)
    assert.deepStrictEqual(world.defects, [])
  })

  it("month-end: a burst of postings with their events, then a closed month", async () => {
    const { call, control, sent } = eventServerWith(["invoices.posted"])
    const { status, body, text } = await control("POST", "/scenarios/month-end", { count: 12 })
    assert.strictEqual(status, 200, text)
    const changed = body["changed"] as Json
    assert.deepInclude(changed, { count: 12, closedThrough: "2026-03-31", now: "2026-03-31T23:59:00.000000Z" })
    const invoices = dataOf(call("GET", `/invoices?${since(changed["now"])}&limit=250`))
    assert.strictEqual(invoices.length, 12)
    for (const { voucherid } of invoices) assert.isNumber(voucherid)
    await control("POST", "/cycle")
    assert.strictEqual(sent.filter(({ type }) => type === "invoices.posted").length, 12)
    const lines = [{ description: "Late", quantity: "1", price: "1" }]
    const late = call("POST", "/invoices", { customerid: invoices[0]!["customerid"], lines })
    assert.strictEqual(codeOf(call("POST", `/invoices/${String(late.body["id"])}/post`)), "period_closed")
  })

  it("month-end: is refused where the ledger is closed already, and then moves no clock", () => {
    const main = server()
    run(main, "month-end", { count: 1 })
    const before = main.control("GET", "/clock").text
    const again = main.control("POST", "/scenarios/month-end", { count: 1 })
    assert.strictEqual(again.status, 400, again.text)
    assert.include(again.text, "the ledger of company 1 is closed through 2026-03-31")
    assert.strictEqual(main.control("GET", "/clock").text, before)
    main.control("POST", "/clock", { advanceSeconds: 3600 })
    assert.strictEqual(run(main, "month-end", { count: 1 })["closedThrough"], "2026-04-30")
  })

  it("are refused by a rule, or by hours beyond every clock, with its reason", () => {
    const main = server()
    main.control("PUT", "/companies/1", { recordLimits: { customers: 0 } })
    const refused = main.control("POST", "/scenarios/month-end", {})
    assert.strictEqual(refused.status, 400, refused.text)
    assert.include(refused.text, "month-end cannot run: ")
    for (const name of ["webhook-outage", "restored-backup"]) {
      assert.strictEqual(main.control("POST", `/scenarios/${name}`, { hours: 1e300 }).status, 400, name)
    }
    assert.deepStrictEqual(main.defects, [])
  })

  it("webhook-outage: nothing arrives, the subscription is disabled, and later events arrive once it is enabled", async () => {
    const { call, control, sent } = eventServerWith(["items.created"])
    await control("POST", "/scenarios/webhook-outage", { hours: 3 })
    for (let index = 0; index < 30; index++) call("POST", "/items", { sku: `S${index}`, description: "x" })
    await control("POST", "/clock", { advanceSeconds: 3 * 3600 - 1 })
    assert.deepStrictEqual(sent, [])
    assert.isNotNull(dataOf(call("GET", "/webhooks"))[0]!["disableddate"])
    assert.isNotEmpty(dataOf(call("GET", "/webhooks/1/deliveries?abandoned=true&limit=250")))
    await control("POST", "/clock", { advanceSeconds: 2 })
    call("PATCH", "/webhooks/1", { enabled: true })
    call("POST", "/items", { sku: "AFTER", description: "x" })
    await control("POST", "/cycle")
    assertEach(sent, ({ envelope }) => (envelope["data"] as Json)["sku"], ["AFTER"])
  })
})

const eventServerWith = (events: ReadonlyArray<string>) => {
  const world = eventServer()
  const made = world.call("POST", "/webhooks", { url: "https://receiver.example/hook", events })
  assert.strictEqual(made.status, 201, made.text)
  return { call: world.call, control: world.plane, sent: world.sent }
}

/** Isolated worlds: copies of one state that share their records and nothing that one of them can change. */
import { assert, describe, it } from "vitest"
import { snapshotsMax, worldsMax } from "../../connectors/service-v2/reference-server/worlds/Worlds.ts"
import type { Json, Server } from "./support.ts"
import { codeOf, dataOf, order, server } from "./support.ts"

/** The calls of one world. */
const worldOf = ({ control, served, token }: Server, name: string, from?: string) => {
  const made = control("POST", "/worlds", { name, ...(from === undefined ? {} : { from }) })
  assert.strictEqual(made.status, 201, made.text)
  const secret = token()
  const plane: Server["control"] = (method, path, body) => control(method, `/worlds/${name}${path}`, body)
  const { body } = plane("POST", "/tokens", { company: 1, scopes: ["*"] })
  const call = (method: string, path: string, sent?: unknown) => {
    const answer = served.handle({
      method,
      url: `/worlds/${name}/!/api/v2${path}`,
      headers: { authorization: `Bearer ${String(body["token"])}` },
      body: sent === undefined ? null : Buffer.from(JSON.stringify(sent))
    })
    const { status, headers: sentHeaders, body: text } = answer
    return { status, headers: sentHeaders, text, body: JSON.parse(text) as Json }
  }
  return { name, made: made.body, control: plane, call, world: served.worlds.find(name)!, secret }
}

const customersOf = (call: Server["call"]) => dataOf(call("GET", "/customers?limit=250")).map(({ name }) => name)

describe("a world", () => {
  it("begins as the main world or a snapshot, at its own addresses", () => {
    const main = server()
    main.call("POST", "/customers", { customercode: "A", name: "first" })
    main.control("POST", "/snapshots", { name: "one" })
    main.call("POST", "/customers", { customercode: "B", name: "second" })
    const now = worldOf(main, "now")
    const before = worldOf(main, "before", "one")
    assert.deepStrictEqual(now.made, {
      name: "now",
      path: "/worlds/now",
      baseUrl: "http://127.0.0.1/worlds/now/!/api/v2",
      controlUrl: "http://127.0.0.1/worlds/now"
    })
    assert.deepStrictEqual(customersOf(now.call), ["first", "second"])
    assert.deepStrictEqual(customersOf(before.call), ["first"])
    assert.deepStrictEqual(main.control("GET", "/worlds").body["worlds"], [before.made, now.made])
  })

  it("names itself in links and in its OpenAPI document", () => {
    const main = server()
    for (const customercode of ["A", "B"]) main.call("POST", "/customers", { customercode })
    const { call, control } = worldOf(main, "links")
    control("PUT", "/dialect", { paging: "link" })
    const { headers } = call("GET", "/customers?limit=1")
    assert.match(headers["Link"]!, /^<http:\/\/127\.0\.0\.1\/worlds\/links\/!\/api\/v2\/customers\?/)
    assert.deepStrictEqual(call("GET", "/openapi.json").body["servers"], [
      { url: "http://127.0.0.1/worlds/links/!/api/v2" }
    ])
  })

  it("shares records until it writes their table", () => {
    const main = server()
    order(main.call)
    const { world, call } = worldOf(main, "sharing")
    const tables = (path: string) =>
      [main.served.world, world].map(({ store }) => store.table(1, path).changes) as [unknown, unknown]
    assert.strictEqual(...tables("orderlines"))
    assert.strictEqual(...tables("items"))
    assert.strictEqual(call("PATCH", "/items/1", { description: "other" }).status, 200)
    assert.strictEqual(...tables("orderlines"))
    assert.notStrictEqual(...tables("items"))
    assert.strictEqual(call("GET", "/items/1").body["description"], "other")
    assert.notStrictEqual(main.call("GET", "/items/1").body["description"], "other")
  })

  it("sees no write of the world from which it was made, in any order and index", () => {
    const main = server()
    for (const customercode of ["A", "B", "C"]) main.call("POST", "/customers", { customercode })
    const { call, world } = worldOf(main, "still")
    const [first] = dataOf(call("GET", "/customers?limit=1"))
    const code = String(first!["customercode"])
    const seen = () => [
      call("GET", `/customers?customercode=${code}`).text,
      call("GET", "/customers?modifiedsince=2020-01-01T00:00:00Z&limit=250").text,
      world.store.history.length
    ]
    const before = seen()
    main.call("PATCH", `/customers/${String(first!["id"])}`, { customercode: "MOVED" })
    main.control("POST", "/remove", { company: 1, resource: "customers", id: 2 })
    main.call("POST", "/customers", { customercode: code, name: "new owner of the code" })
    assert.deepStrictEqual(seen(), before)
    assert.strictEqual(dataOf(main.call("GET", `/customers?customercode=${code}`)).length, 1)
  })

  it("has its own clock, tokens, limits, dialect, faults, companies, journal and deliveries", async () => {
    const sent: Array<string> = []
    const main = server({
      network: {
        send: ({ url }) => {
          sent.push(url)
          return Promise.resolve({ status: 200, body: new Uint8Array(), durationms: 1, failure: null })
        }
      }
    })
    const one = worldOf(main, "one")
    const two = worldOf(main, "two")
    one.control("POST", "/clock", { now: "2031-01-01T00:00:00Z" })
    one.control("PUT", "/limits", { requestsPerMinute: 3 })
    one.control("PUT", "/dialect", { itemsKey: "bare" })
    one.control("PUT", "/companies/1", { features: { estimating: false } })
    assert.strictEqual(one.call("GET", "/estquotes").status, 403)
    assert.strictEqual(two.call("GET", "/estquotes").status, 200)
    assert.isArray(one.call("GET", "/items").body)
    assert.isArray(dataOf(two.call("GET", "/items")))
    one.control("POST", "/faults", { rules: [{ kind: "status", status: 503 }] })
    assert.strictEqual(one.call("GET", "/items").status, 503)
    one.control("DELETE", "/faults")
    one.call("GET", "/items")
    assert.strictEqual(one.call("GET", "/items").status, 429)
    assert.strictEqual(two.call("GET", "/items").status, 200)
    assert.strictEqual(two.control("GET", "/clock").body["now"], "2026-03-16T09:00:00.000000Z")
    assert.strictEqual((one.control("GET", "/requests").body["requests"] as Array<Json>).length, 5)
    assert.strictEqual((two.control("GET", "/requests").body["requests"] as Array<Json>).length, 3)
    two.call("POST", "/webhooks", { url: "https://receiver.test/two", events: ["items.created"] })
    two.call("POST", "/items", { sku: "X", description: "X" })
    one.control("PUT", "/limits", { requestsPerMinute: null })
    one.call("POST", "/items", { sku: "X", description: "X" })
    for (const name of ["one", "two"]) {
      await main.served.control({ method: "POST", url: `/worlds/${name}/cycle`, headers: {}, body: null }).pending
    }
    assert.deepStrictEqual(sent, ["https://receiver.test/two"])
    assert.strictEqual(main.control("GET", "/deliveries").text, '{"deliveries":[]}')
  })

  it("ends, and is then unknown to both ports; its name is free again", () => {
    const main = server()
    const { call, control } = worldOf(main, "short")
    assert.strictEqual(main.control("POST", "/worlds", { name: "short" }).status, 400)
    assert.strictEqual(main.control("DELETE", "/worlds/short").status, 200)
    const requests = () => main.served.world.state().requests
    const before = requests()
    assert.strictEqual(codeOf(call("GET", "/items")), "not_found")
    assert.strictEqual(requests(), before, "a request to an ended world changes the main one")
    assert.strictEqual(control("GET", "/clock").status, 404)
    assert.strictEqual(main.control("DELETE", "/worlds/short").status, 400)
    assert.strictEqual(main.control("POST", "/worlds", { name: "short" }).status, 201)
    for (const name of ["", "a/b", "..", "-", "x".repeat(65), 1, null]) {
      assert.strictEqual(main.control("POST", "/worlds", { name }).status, 400, String(name))
    }
    assert.strictEqual(main.control("POST", "/worlds/short/worlds", {}).status, 404)
    assert.strictEqual(main.control("POST", "/worlds", { from: "none" }).status, 400)
  })
})

it("worlds and snapshots have a maximum each, and one that is deleted makes room", () => {
  const main = server()
  const { worlds, world } = main.served
  for (let number = 0; number < snapshotsMax; number += 1) worlds.save(world, `s${number}`)
  const refused = main.control("POST", "/snapshots", { name: "more" })
  assert.strictEqual(refused.status, 400)
  assert.match(refused.text, /1000 snapshots already.*delete some/)
  assert.strictEqual(main.control("DELETE", "/snapshots/s1").status, 200)
  assert.strictEqual(main.control("POST", "/snapshots", { name: "more" }).status, 201)
  for (let number = 0; number < worldsMax; number += 1) worlds.create(null, "s0")
  assert.match(main.control("POST", "/worlds", {}).text, /1000 worlds already.*delete some/)
  assert.strictEqual(main.control("DELETE", "/worlds/world-7").status, 200)
  assert.strictEqual(main.control("POST", "/worlds", {}).status, 201)
})

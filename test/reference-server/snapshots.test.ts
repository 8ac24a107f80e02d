/** Snapshots: complete, readable, byte for byte the same after they were read, and refused whole when a line is wrong. */
import { assert, describe, it } from "vitest"
import type { Server } from "./support.ts"
import { beginning, codeOf, linesOf, order, postedInvoice, server } from "./support.ts"
import { readInstant } from "../../connectors/service-v2/reference-server/time.ts"

const textOf = ({ control }: Server, name: string) => control("GET", `/snapshots/${name}`).text

const save = (world: Server, name: string) => {
  const { status, text, body } = world.control("POST", "/snapshots", { name })
  assert.strictEqual(status, 201, text)
  return body
}

/** Restores the text in another server; returns what that server saves. */
const copy = (text: string) => {
  const other = server()
  const answer = other.control("POST", "/restore", text)
  assert.strictEqual(answer.status, 200, answer.text)
  save(other, "copy")
  return { other, text: textOf(other, "copy") }
}

const cycle = ({ served }: Server) => served.control({ method: "POST", url: "/cycle", headers: {}, body: null }).pending

/** A server with something of every kind. */
const busy = async () => {
  const secret: Array<string> = []
  const world = server({
    network: {
      send: ({ url }) =>
        Promise.resolve({
          status: url.endsWith("/down") ? 503 : 200,
          body: new Uint8Array([0, 255, 65]),
          durationms: 3,
          failure: null
        })
    }
  })
  const { control, token, caller } = world
  const own = token()
  const call = caller(own)
  control("PUT", "/companies/2", {
    features: { estimating: false },
    recordLimits: { customers: 900 },
    closedThrough: "2025-12-31"
  })
  control("PUT", "/limits", { requestsPerMinute: 600, cycleSeconds: 60 })
  control("PUT", "/dialect", { itemsKey: "items", retryAfter: "date" })
  control("POST", "/faults", {
    rules: [
      { kind: "status", status: 503, path: "/carriers", method: "GET", times: 2, body: { a: 1.1 } },
      { kind: "delay", rate: 0.5, path: "/never*" }
    ],
    seed: 7
  })
  control(
    "POST",
    "/records",
    '{"company":1,"resource":"customers","records":[{"id":90001,"name":"\\ud800 \\u0000 \\"x\\"","rate_x":1.10,"9":-0,"creditlimit":10.00,"custom_fields":{"b":[1e2],"1":null}}]}'
  )
  control("POST", "/records", {
    company: 1,
    resource: "customers",
    records: [{ id: 90001, "1": 2, zeta: 9_007_199_254_740_991 }]
  })
  const carriers = ["A", "B", "C", "D", "E"].map((name) => ({ name }))
  control("POST", "/records", { company: 1, resource: "carriers", records: carriers })
  control("POST", "/remove", { company: 1, resource: "carriers", id: 1 })
  for (const path of ["up", "down"]) {
    const { body } = call("POST", "/webhooks", { url: `https://receiver.test/${path}`, events: ["customers.created"] })
    assert.isString(body["secret"], JSON.stringify(body))
    secret.push(String(body["secret"]))
  }
  call("PATCH", "/webhooks/1", { description: "first" })
  call("POST", "/customers", { customercode: "ONE", name: "One" }, { "idempotency-key": "key 1" })
  await cycle(world)
  call("POST", "/customers", { customercode: "TWO", name: "Two" })
  call("POST", "/customers", {}, { "idempotency-key": "key 2" })
  const revoked = token({ scopes: ["orders:read"], expires: "2027-01-01T00:00:00Z", user: "other" })
  caller(revoked)("GET", "/orders?limit=1")
  control("POST", "/tokens/revoke", { token: revoked })
  assert.deepStrictEqual(world.defects, [])
  return { world, call, own, secret, revoked }
}

describe("a snapshot", () => {
  it("is byte for byte the same after it was read, with something of every kind", async () => {
    const { world } = await busy()
    save(world, "all")
    const text = textOf(world, "all")
    const kinds = new Set(linesOf(text).map(({ kind }) => kind))
    assert.sameMembers(
      [...kinds],
      [
        undefined,
        "clock",
        "server",
        "dialect",
        "limits",
        "company",
        "next",
        "sequence",
        "token",
        "rate",
        "fault",
        "subscription",
        "event",
        "attempt",
        "answer",
        "change",
        "end"
      ]
    )
    assert.strictEqual(copy(text).text, text)
  })

  it("continues as the original server does, request by request", async () => {
    const { world, call, own, secret, revoked } = await busy()
    save(world, "all")
    const { other } = copy(textOf(world, "all"))
    const requests: ReadonlyArray<readonly [method: string, path: string, body?: unknown, key?: string]> = [
      ["GET", "/me"],
      ["GET", "/carriers?limit=3"],
      ["GET", "/carriers?limit=3"],
      ["GET", "/customers?modifiedsince=2026-03-01T00:00:00Z&limit=5"],
      ["GET", "/customers/90001?include=custom_fields"],
      ["POST", "/customers", { customercode: "ONE", name: "One" }, "key 1"],
      ["POST", "/customers", {}, "key 2"],
      ["POST", "/customers", { customercode: "THREE", name: "Three" }],
      ["PATCH", "/customers/90001", { name: "changed" }],
      ["GET", "/webhooks"],
      ["GET", "/webhooks/2/deliveries"],
      ["POST", "/orders", { customerid: 1, lines: [] }]
    ]
    for (const [method, path, body, key] of requests) {
      const headers = key === undefined ? {} : { "idempotency-key": key }
      const expected = call(method, path, body, headers)
      assert.deepStrictEqual(other.caller(own)(method, path, body, headers), expected, `${method} ${path}`)
    }
    for (const one of [world, other]) assert.strictEqual(codeOf(one.caller(revoked)("GET", "/me")), "token_revoked")
    assert.strictEqual(other.control("GET", "/history").text, world.control("GET", "/history").text)
    assert.include(textOf(other, "copy"), secret[0]!)
    assert.notInclude(textOf(other, "copy"), own)
    assert.strictEqual(world.token(), other.token())
    for (const one of [world, other]) save(one, "later")
    assert.strictEqual(textOf(other, "later"), textOf(world, "later"))
  })

  it("delivers what was queued, with the attempts of before", async () => {
    const { world } = await busy()
    save(world, "all")
    const text = textOf(world, "all")
    const sent: Array<string> = []
    const other = server({
      network: {
        send: ({ url, headers }) => {
          sent.push(`${url} ${headers["Svc-Event-Type"]!} ${headers["Svc-Delivery-Attempt"]!}`)
          return Promise.resolve({ status: 200, body: new Uint8Array(), durationms: 1, failure: null })
        }
      }
    })
    other.control("POST", "/restore", text)
    await cycle(other)
    assert.sameMembers(sent, [
      "https://receiver.test/up customers.created 1",
      "https://receiver.test/down customers.created 2",
      "https://receiver.test/down customers.created 1"
    ])
  })

  it("is read back at the end of the calendar, and with the largest id", () => {
    const world = server()
    const expires = "9999-12-31T23:59:59.999999Z"
    world.control("POST", "/clock", { now: "9999-12-31T23:59:59Z", manual: false })
    const own = world.caller(world.token({ expires }))
    assert.match(String(own("GET", "/me").body["expires"]), /^9999-12-31T23:59:59\.9999\d\dZ$/)
    const put = (id: number) =>
      world.control("POST", "/records", { company: 1, resource: "salesmen", records: [{ id, name: "last" }] }).status
    assert.strictEqual(put(9_000_000_000_000_000), 200)
    assert.strictEqual(own("POST", "/customers", { customercode: "LATE" }).status, 201)
    save(world, "late")
    assert.strictEqual(copy(textOf(world, "late")).text, textOf(world, "late"))
    assert.strictEqual(put(Number.MAX_SAFE_INTEGER), 400, "the ids after it would not be exact")
    assert.deepStrictEqual(world.defects, [])
  })

  it("is not changed by what was under way when it was restored", async () => {
    const world = server({
      network: {
        send: (_request, signal) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () =>
              resolve({ status: null, body: new Uint8Array(), durationms: 1, failure: "cancelled" })
            )
          })
      }
    })
    const { control, served } = world
    const secret = world.token()
    const call = world.caller(secret)
    call("POST", "/webhooks", { url: "https://receiver.test/", events: ["customers.created"] })
    call("POST", "/customers", { customercode: "QUEUED" })
    save(world, "before")
    const later = [
      cycle(world),
      served.control({ method: "POST", url: "/clock", headers: {}, body: Buffer.from('{"advanceSeconds":90000}') })
        .pending,
      served.handle({
        method: "POST",
        url: "/!/api/v2/webhooks/1/test",
        headers: { authorization: `Bearer ${secret}` },
        body: null
      }).pending
    ]
    assert.notInclude(later, undefined)
    control("POST", "/restore", { name: "before" })
    await Promise.all(later.map(async (work) => work))
    assert.strictEqual(control("GET", "/requests").text, '{"requests":[]}')
    save(world, "after")
    assert.strictEqual(textOf(world, "after"), textOf(world, "before"))
  })

  it("is not changed by later writes, and restores more than once", () => {
    const world = server()
    save(world, "before")
    const text = textOf(world, "before")
    for (let round = 0; round < 3; round++) {
      const { id } = order(world.call)
      assert.strictEqual(world.call("GET", `/orders/${id}`).status, 200)
      postedInvoice(world.call, "10")
      assert.strictEqual(textOf(world, "before"), text)
      assert.strictEqual(world.control("POST", "/restore", { name: "before" }).status, 200)
      assert.strictEqual(codeOf(world.call("GET", `/orders/${id}`)), "not_found")
    }
    save(world, "after")
    // Requests since then are no part of the records, but the numbers of their request ids are.
    const withoutServer = (all: string) => all.replace(/\n\{"kind":"(?:server|rate|token|end)".*/g, "")
    assert.strictEqual(withoutServer(textOf(world, "after")), withoutServer(text))
  })

  it("keeps a stopped clock where it is, and lets a running one run", () => {
    let now = readInstant(beginning)!
    const world = server({ now: () => now })
    world.control("POST", "/clock", { now: "2030-01-01T00:00:00Z", manual: true })
    save(world, "stopped")
    world.control("POST", "/clock", { manual: false })
    save(world, "running")
    now += 5_000_000
    const clockAfter = (name: string) => {
      world.control("POST", "/restore", { name })
      return world.control("GET", "/clock").body
    }
    assert.deepStrictEqual(clockAfter("stopped"), { now: "2030-01-01T00:00:00.000000Z", manual: true })
    assert.deepStrictEqual(clockAfter("running"), { now: "2030-01-01T00:00:05.000000Z", manual: false })
  })

  it("is listed and forgotten by its name, which is given once", () => {
    const { control } = server()
    assert.strictEqual(control("POST", "/snapshots").body["name"], "snapshot-1")
    assert.strictEqual(control("POST", "/snapshots", { name: "x" }).status, 201)
    const twice = control("POST", "/snapshots", { name: "x" })
    assert.strictEqual(twice.status, 400)
    assert.include(twice.text, "there is a snapshot x already")
    const names = () =>
      (control("GET", "/snapshots").body["snapshots"] as Array<{ name: string }>).map(({ name }) => name)
    assert.deepStrictEqual(names(), ["snapshot-1", "x"])
    assert.strictEqual(control("DELETE", "/snapshots/x").status, 200)
    assert.deepStrictEqual(names(), ["snapshot-1"])
    for (const path of ["/snapshots/x", "/snapshots/.."]) assert.strictEqual(control("GET", path).status, 400, path)
    assert.strictEqual(control("POST", "/restore", { name: "x" }).status, 400)
  })
})

const change = (text: string, line: number, edit: (line: string) => string | null) => {
  const lines = text.split("\n")
  const edited = edit(lines[line - 1]!)
  return [...lines.slice(0, line - 1), ...(edited === null ? [] : [edited]), ...lines.slice(line)].join("\n")
}

describe("a snapshot with a wrong line", () => {
  const world = server()
  order(world.call)
  save(world, "good")
  const good = textOf(world, "good")
  const lines = good.trimEnd().split("\n")
  const lineOf = (kind: string, has = "") =>
    lines.findIndex((line) => line.startsWith(`{"kind":"${kind}"`) && line.includes(has)) + 1
  const [first, customer, last] = [lineOf("change"), lineOf("change", '"customers"'), lines.length]
  const later = lines[customer - 1]!.replace(/"seq":\d+/, '"seq":999999')
  const replaced = (line: number, from: string | RegExp, to: string) =>
    change(good, line, (text) => text.replace(from, () => to))

  const wrong: ReadonlyArray<readonly [name: string, text: string, message: RegExp]> = [
    ["another format", change(good, 1, () => '{"format":"x"}'), /^line 1: this is no snapshot/],
    ["another version", replaced(1, '"version":1', '"version":2'), /^line 1: the version is 2 and/],
    ["no JSON", change(good, 9, (line) => line.slice(0, -1)), /^line 9: this is not valid JSON/],
    ["an array", change(good, 9, () => "[]"), /^line 9: this is not a JSON object/],
    ["an unknown kind", change(good, 3, () => '{"kind":"x"}'), /^line 3: "kind" must be one of clock, server/],
    ["no clock", change(good, 2, () => null), /^line 2: the line of kind clock is missing/],
    ["two clocks", replaced(2, /$/, `\n${lines[1]!}`), /^line 3: there is a second line of kind clock/],
    [
      "lines in another order",
      replaced(last - 1, /$/, `\n${lines[1]!}`),
      /^line \d+: a line of kind clock stands before/
    ],
    ["a wrong time", replaced(2, /"stopped":"[^"]*"/, '"stopped":"noon"'), /^line 2: stopped must be RFC 3339/],
    ["a missing member", replaced(3, '"fired":0,', ""), /^line 3: fired must be a whole number from 0/],
    ["an unknown member", replaced(3, '"fired"', '"more":1,"fired"'), /^line 3: there is no "more" here/],
    ["a wrong switch", replaced(4, '"cursor"', '"scroll"'), /^line 4: the switch paging takes cursor, page/],
    ["an unknown resource", replaced(first, /"resource":"\w+"/, '"resource":"x"'), /there is no resource x/],
    ["an unknown field", replaced(first, '"values":{', '"values":{"nofield":1,'), /has no field "nofield"/],
    ["a record twice", replaced(customer, /$/, `\n${later}`), /insert of customers 1, which exists/],
    ["a seq that goes back", replaced(customer, /"seq":\d+/, '"seq":1'), /seq 1 is not above the one before/],
    [
      "another id in the values",
      replaced(customer, '"id":1,"at"', '"id":2,"at"'),
      /values.id must be 2|id 2 is not below/
    ],
    ["a cut end", lines.slice(0, -1).join("\n"), /the snapshot was cut here/],
    ["a cut line", good.slice(0, -20), /^line \d+: this is not valid JSON/],
    [
      "a lost line",
      change(good, lineOf("token"), () => null),
      /lines between the header and this one|there is no token/
    ],
    ["a line after the end", `${good}{"kind":"end","lines":1}\n`, /there is a line after the last one/]
  ]

  it.each(wrong)("is refused and changes nothing: %s", (_name, text, message) => {
    assert.notStrictEqual(text, good)
    const before = world.control("GET", "/history").text
    const answer = world.control("POST", "/restore", text)
    assert.strictEqual(answer.status, 400, answer.text)
    assert.match(String(answer.body["error"]), message)
    assert.strictEqual(world.control("GET", "/history").text, before)
    assert.strictEqual(world.call("GET", "/me").status, 200)
  })

  it("is accepted after an edit by hand, with spaces and a number of another form", () => {
    const edited = replaced(customer, '"values":{', '"values" : { "creditlimit" : 1.50, ').replace("{", "{ ")
    const other = server()
    assert.strictEqual(other.control("POST", "/restore", edited).status, 200)
    assert.include(other.control("GET", "/state?company=1&resource=customers").text, '"creditlimit":1.50')
  })
})

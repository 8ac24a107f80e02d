/** The server as a test in JavaScript starts it. */
import { afterEach, assert, describe, it } from "vitest"
import { ControlPlane, ControlPlaneError, start } from "../../connectors/service-v2/reference-server/index.ts"
import type {
  DialectOptions,
  FaultRule,
  LimitOptions,
  ReferenceServer,
  StartOptions
} from "../../connectors/service-v2/reference-server/index.ts"
import { type Dialect, plainDialect } from "../../connectors/service-v2/reference-server/http/dialect.ts"
import type { FaultKind } from "../../connectors/service-v2/reference-server/http/faults.ts"
import { type Limits, plainLimits } from "../../connectors/service-v2/reference-server/Limits.ts"
import { assertEach } from "../support/assertions.ts"
import { valuesOf } from "../support/rows.ts"

const now = "2026-03-16T09:00:00Z"
const stopped = { now, stopped: true }

const started: Array<ReferenceServer> = []
const begin = async (options: StartOptions = {}) => {
  const server = await start({ data: "empty", ...options })
  started.push(server)
  return server
}

const call = async (
  server: { readonly baseUrl: string },
  path: string,
  token: string,
  method = "GET",
  body?: unknown
) => {
  const response = await fetch(`${server.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  return { status: response.status, body: (await response.json()) as Readonly<Record<string, unknown>> }
}

const rejection = (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => assert.fail("the call succeeds"),
    (error: unknown) => error as Error
  )

describe("a server in a test", () => {
  afterEach(async () => {
    for (const server of started.splice(0)) await server.close()
  })

  it("answers with the records that it was started with", async () => {
    const server = await begin({ data: "demo" })
    const token = await server.token()
    const { status, body } = await call(server, "/customers?limit=250&cancel=any", token)
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(body["data"], JSON.parse(JSON.stringify(await server.records("customers"))))
    assert.isAbove((await server.records("customers")).length, 30)
  })

  it("makes the same records from the same seed and clock, also after a reset", async () => {
    const one = await begin({ data: "demo", clock: stopped })
    const other = await begin({ data: "demo", clock: stopped, seed: 2 })
    const history = await one.send("GET", "/history")
    assert.isAbove(history.length, 1_000_000)
    assert.isFalse(history === (await other.send("GET", "/history")))
    await one.advanceClock(7200)
    await one.reset()
    assert.isTrue(history === (await one.send("GET", "/history")))
    assert.strictEqual((await one.clock()).now, "2026-03-16T09:00:00.000000Z")
  })

  it("has a clock that begins at a time, and runs or stands still", async () => {
    const still = await begin({ clock: stopped })
    assert.deepStrictEqual(await still.clock(), { now: "2026-03-16T09:00:00.000000Z", manual: true })
    assert.strictEqual((await still.advanceClock(90)).now, "2026-03-16T09:01:30.000000Z")
    const running = await begin({ clock: { now } })
    const first = await running.clock()
    assert.isFalse(first.manual)
    assert.match(first.now, /^2026-03-16T09:0/)
    assert.isAbove(Date.parse((await running.clock()).now), Date.parse(now) - 1)
    assert.isTrue((await running.setClock({ stopped: true })).manual)
    const present = await begin()
    assert.isAbove(Date.parse((await present.clock()).now), Date.parse("2026-01-01T00:00:00Z"))
  })

  it("offers every call of the control plane", async () => {
    const server = await begin({ clock: stopped })
    const token = await server.token({ company: 3, scopes: ["orders:read"], user: "kim" })
    const me = await call(server, "/me", token)
    assert.deepInclude(me.body, { companyid: 3, user: "kim", scopes: ["orders:read"] })
    await server.revokeToken(token)
    assert.strictEqual((await call(server, "/me", token)).status, 401)

    const all = await server.token({ company: 3 })
    await server.setCompany(3, { features: { estimating: false } })
    assert.notInclude((await call(server, "/me", all)).body["features"], "estimating")
    await server.setLimits({ requestsPerMinute: 0 })
    assert.strictEqual((await call(server, "/salesmen", all)).status, 429)
    await server.setLimits({ requestsPerMinute: null })
    await server.setDialect({ itemsKey: "items" })
    assert.property((await call(server, "/salesmen", all)).body, "items")
    await server.setFaults([{ kind: "status", status: 503, times: 1 }])
    assert.strictEqual((await call(server, "/salesmen", all)).status, 503)
    await server.setFaults([{ kind: "status", status: 503 }])
    await server.clearFaults()
    assert.strictEqual((await call(server, "/salesmen", all)).status, 200)

    const [record] = await server.putRecords({ company: 3, resource: "salesmen", records: [{ name: "Ada" }] })
    assert.strictEqual(record?.["name"], "Ada")
    await server.removeRecord("salesmen", Number(record?.["id"]), 3)
    assert.lengthOf(await server.records("salesmen", 3), 0)
    const versions = await server.history("salesmen", 3)
    assertEach(versions, ({ op, record: { name } }) => [op, name], [
      ["insert", "Ada"],
      ["delete", "Ada"]
    ])
    const requests = await server.requests()
    assertEach(requests, ({ path, status }) => [path, status], [
      ["/me", 200],
      ["/me", 401],
      ["/me", 200],
      ["/salesmen", 429],
      ["/salesmen", 200],
      ["/salesmen", 503],
      ["/salesmen", 200]
    ])
    assert.deepStrictEqual(await server.deliver(), [])
    assert.deepStrictEqual(await server.deliveries(), [])
  })

  it("has the types of the switches, limits and faults that the server knows", async () => {
    const switches: Required<DialectOptions> = plainDialect
    const dialect: Dialect = switches
    const limitOptions: Required<LimitOptions> = plainLimits
    const limits: Limits = limitOptions
    const kinds: ReadonlyArray<FaultRule["kind"]> = ["status" satisfies FaultKind]
    const server = await begin()
    await server.setDialect(dialect)
    await server.setLimits(limits)
    for (const kind of kinds) await server.setFaults([{ kind }])
    assert.deepStrictEqual(await server.control("PUT", "/dialect", {}), { ...plainDialect })
    assert.deepStrictEqual(await server.control("PUT", "/limits", {}), { ...plainLimits })
  })

  it("keeps snapshots, and makes worlds from them", async () => {
    const server = await begin({ clock: stopped })
    await server.putRecords({ resource: "salesmen", records: [{ name: "Ada" }] })
    assert.strictEqual(await server.saveSnapshot("before"), "before")
    await server.putRecords({ resource: "salesmen", records: [{ name: "Kim" }] })
    {
      await using world = await server.makeWorld({ from: "before" })
      const token = await world.token()
      assert.strictEqual((await call(world, "/salesmen", token, "POST", { name: "Lee" })).status, 201)
      assert.deepStrictEqual(valuesOf(await world.records("salesmen"), "name"), ["Ada", "Lee"])
      assert.strictEqual((await call(server, "/me", token)).status, 401)
      assert.deepStrictEqual(((await server.control("GET", "/worlds")) as { readonly worlds: object }).worlds, [
        { name: world.name, path: `/worlds/${world.name}`, baseUrl: world.baseUrl, controlUrl: world.controlUrl }
      ])
    }
    assert.deepStrictEqual(await server.control("GET", "/worlds"), { worlds: [] })
    assert.lengthOf(await server.records("salesmen"), 2)
    await server.restore("before")
    assert.lengthOf(await server.records("salesmen"), 1)
    await server.deleteSnapshot("before")
    assert.include((await rejection(server.restore("before"))).message, "there is no snapshot before")
  })

  it("says why it refuses a call or cannot start", async () => {
    const server = await begin()
    const refusal = await rejection(server.setFaults([{ kind: "status", path: 5 as unknown as string }]))
    assert.instanceOf(refusal, ControlPlaneError)
    assert.strictEqual(refusal.message, "POST /faults: rules[0].path must be a string")
    assert.include((await rejection(server.trust("nothing"))).message, "caPem must be a certificate in PEM")
    const port = Number(new URL(server.baseUrl).port)
    assert.include((await rejection(start({ port, data: "empty" }))).message, `cannot listen on port ${port}`)
    assert.include((await rejection(start({ clock: { now: "yesterday" } }))).message, "clock.now must be a time")
    const misspelt = await rejection(start({ data: "dmeo" as unknown as "demo" }))
    assert.strictEqual(misspelt.message, "data must be empty, demo, scale, and not dmeo")
    const plane = new ControlPlane(`${server.controlUrl}/`)
    assert.strictEqual(typeof (await plane.clock()).now, "string")
    await server.close()
    await server.close()
    assert.include((await rejection(server.clock())).message, `${server.controlUrl} does not answer`)
  })

  it("ends with its block", async () => {
    let url: string
    {
      await using server = await start({ data: "empty" })
      url = server.controlUrl
      assert.strictEqual((await fetch(`${url}/clock`)).status, 200)
    }
    await rejection(fetch(`${url}/clock`))
  })
})

/** Polling with modifiedsince and synced_through: no change is lost between two polls. */
import { afterAll, assert, describe } from "vitest"
import {
  advance,
  freeze,
  fresh,
  idOf,
  ids,
  it,
  keptPromises,
  micros,
  MICROSECONDS,
  newCompany,
  page,
  query,
  refused,
  row,
  serverNow,
  stamp,
  state,
  succeeded,
  text,
  thaw,
  useServer,
  type Company,
  type Row
} from "./harness.ts"
import { CHANGE, putRows, RESOURCES, shownRecord } from "./resources.ts"
import { makeDraft, makeOrder, type Order } from "./world.ts"

useServer()
afterAll(thaw)

const polled = RESOURCES.filter((each) => each.modifiedsince)

/** Reads every page since an instant, and returns the rows of this test only. */
async function since(
  c: Company,
  path: string,
  instant: string,
  mine: readonly number[],
  more: Record<string, string | number> = {}
): Promise<number[]> {
  const list = await c.list(`/${path}${query({ modifiedsince: instant, limit: 250, ...more })}`)
  return ids(list).filter((id) => mine.includes(id))
}

async function ago(days: number): Promise<bigint> {
  return ((await serverNow()) / 1_000_000n - BigInt(days) * 86_400n) * 1_000_000n
}

describe("the filter modifiedsince", () => {
  for (const { path, modifiedsince, absent, facts } of RESOURCES) {
    it(`[EP-16][EP-20][EP-21][X-02][I-03][${facts.since}]${absent.map((fact) => `[${fact}]`).join("")} is one that ${path} ${modifiedsince ? "offers" : "refuses"}`, async (c) => {
      const answer = await c.get(`/${path}?modifiedsince=1970-01-01T00:00:00Z`)
      if (modifiedsince) assert.isString(page(answer).syncedThrough)
      else refused(answer, "unknown_parameter", "modifiedsince")
    })
  }
})

for (const each of polled) {
  const { path } = each
  describe(`polling ${path} with modifiedsince`, () => {
    it("[EP-16][A-04][A-06] includes the given instant, to the microsecond, ordered by lastchangedate, then id", async (c) => {
      const base = await ago(3)
      const [late] = await putRows(c, path, [{}], stamp(base + 3n))
      const [early] = await putRows(c, path, [{}], stamp(base + 1n))
      const [tieA, tieB] = await putRows(c, path, [{}, {}], stamp(base + 2n))
      const mine = [early, tieA, tieB, late] as number[]
      assert.deepEqual(await since(c, path, stamp(base), mine), mine)
      assert.deepEqual(await since(c, path, stamp(base), mine, { limit: 1 }), mine)
      assert.deepEqual(await since(c, path, stamp(base + 2n), mine), mine.slice(1))
      assert.deepEqual(await since(c, path, stamp(base + 4n), mine), [])
    })

    it("[A-04][A-05] returns ties across page boundaries once each", async (c) => {
      const base = await ago(3)
      const mine = await putRows(
        c,
        path,
        Array.from({ length: 7 }, () => ({})),
        stamp(base)
      )
      for (const limit of [1, 2, 3, 6, 7, 8]) {
        assert.deepEqual(await since(c, path, stamp(base), mine, { limit }), mine, `limit ${limit}`)
      }
    })

    it("[EP-16][A-07] includes cancelled rows unless cancel is given", async () => {
      if (!each.cancel) return
      const c = await newCompany()
      const base = await ago(3)
      const [live, dead] = await putRows(c, path, [{ cancel: false }, { cancel: true }], stamp(base))
      const mine = [live, dead] as number[]
      assert.deepEqual(await since(c, path, stamp(base), mine), mine)
      assert.deepEqual(await since(c, path, stamp(base), mine, { cancel: "any" }), mine)
      assert.deepEqual(await since(c, path, stamp(base), mine, { cancel: "false" }), [live])
      assert.deepEqual(await since(c, path, stamp(base), mine, { cancel: "true" }), mine)
    })

    it("[A-05] keeps the synced_through of the first page for the whole scan", async (c) => {
      const base = await ago(3)
      await putRows(c, path, [{}, {}, {}, {}], stamp(base))
      await freeze()
      const url = `/${path}${query({ modifiedsince: stamp(base), limit: 1 })}`
      const first = page(await c.get(url))
      await advance(90)
      const pages = await c.pages(url, first)
      await thaw()
      assert.isAtLeast(pages.length, 4)
      for (const each of pages) assert.strictEqual(each.syncedThrough, first.syncedThrough)
    })

    it("[EP-16][A-05][A-06][FIELD-14] returns a change of the last poll's very instant in the next poll", async (c) => {
      await freeze()
      const first = page(await c.get(`/${path}?modifiedsince=1970-01-01T00:00:00Z`))
      const made = idOf(await each.make(c))
      const again = page(await c.get(`/${path}${query({ modifiedsince: text(first.syncedThrough), limit: 250 })}`))
      await thaw()
      assert.include(ids(again.data), made)
    })

    it("[EP-16] combines with the other filters", async (c) => {
      const base = await ago(3)
      const externalid = fresh("both")
      const [old, match] = [
        ...(await putRows(c, path, [{ externalid }], stamp(base))),
        ...(await putRows(c, path, [{ externalid }], stamp(base + 10n)))
      ]
      await putRows(c, path, [{ externalid: fresh("other") }], stamp(base + 10n))
      assert.deepEqual(ids(await c.list(`/${path}${query({ modifiedsince: stamp(base + 5n), externalid })}`)), [match])
      assert.deepEqual(ids(await c.list(`/${path}${query({ modifiedsince: stamp(base), externalid })}`)), [old, match])
    })

    it("[A-10][EP-16] rejects a value that is no RFC 3339 UTC timestamp", async (c) => {
      const wrong = [
        "yesterday",
        "",
        "2026-02-03",
        "1700000000",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "null"
      ]
      for (const value of wrong) {
        refused(await c.get(`/${path}${query({ modifiedsince: value })}`), "invalid_type", "modifiedsince")
      }
      for (const value of [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.5Z",
        "2026-01-01T00:00:00.123Z",
        "2026-01-01T00:00:00.123456Z"
      ]) {
        page(await c.get(`/${path}${query({ modifiedsince: value })}`))
      }
    })

    it("[A-06][FIELD-14] shows lastchangedate in microseconds, which a change increases", async (c) => {
      const made = idOf(await each.make(c))
      const before = await shownRecord(c, each, made)
      assert.match(text(before["lastchangedate"]), MICROSECONDS)
      if (!each.ops.includes("U")) return
      await advance(1)
      const after = succeeded(await c.patch(`/${each.path}/${made}`, CHANGE))
      assert.isTrue(micros(after["lastchangedate"]) > micros(before["lastchangedate"]))
      assert.deepEqual(await since(c, path, text(after["lastchangedate"]), [made]), [made])
    })

    it("[EP-16][STATE-12] returns a cancellation as a change", async () => {
      if (!each.ops.includes("D")) return
      const c = await newCompany()
      const made = idOf(await each.make(c))
      await advance(1)
      const through = text(page(await c.get(`/${path}?limit=1`)).syncedThrough)
      await advance(1)
      assert.isTrue(micros(succeeded(await c.del(`/${path}/${made}`))["lastchangedate"]) > micros(through))
      assert.deepEqual(await since(c, path, through, [made]), [made])
    })
  })
}

describe("a poller that stores synced_through", () => {
  it("[EP-16][A-05][A-06] loses nothing of twenty concurrent writers over several resources", async (c) => {
    const orders = await Promise.all(Array.from({ length: 6 }, () => makeOrder(c)))
    const draft = idOf(await makeDraft(c))
    const paths = ["shipments", "invoicelines", "orderdeposits"] as const
    const seen = new Map(paths.map((path) => [path, new Map<number, Row>()]))
    const cursors = new Map<string, string>(paths.map((path) => [path, "1970-01-01T00:00:00Z"]))
    const poll = async (path: (typeof paths)[number]) => {
      const pages = await c.pages(`/${path}${query({ modifiedsince: text(cursors.get(path)), limit: 7 })}`)
      for (const record of pages.flatMap(({ data }) => data)) seen.get(path)?.set(idOf(record), record)
      cursors.set(path, text(pages[0]?.syncedThrough))
    }
    const writing = { now: true }
    const writer = (async () => {
      await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const order = orders[i % orders.length] as Order
          for (let k = 0; k < 4; k += 1) {
            const line = { invoiceid: draft, description: `${i}-${k}`, quantity: "1", price: "1" }
            succeeded(await c.post("/invoicelines/batch", [line, line, line]), 207)
            await c.post("/orderdeposits", { orderid: order.id, amount: "1" })
            const shipped = await c.post("/shipments", {
              orderid: order.id,
              lines: [{ orderlineid: order.lineIds[0], quantity: "1" }]
            })
            if (shipped.status === 201 && k % 2 === 1) succeeded(await c.del(`/shipments/${idOf(row(shipped.json))}`))
          }
        })
      )
      writing.now = false
    })()
    while (writing.now) for (const path of paths) await poll(path)
    await writer
    for (const path of paths) {
      await poll(path)
      const truth = await state(c.id, path)
      assert.isNotEmpty(truth)
      assert.deepEqual(
        [...(seen.get(path)?.values() ?? [])].toSorted((a, b) => idOf(a) - idOf(b)),
        truth.toSorted((a, b) => idOf(a) - idOf(b))
      )
    }
  }, 60_000)

  it("[A-05][EP-16] receives a row that changes between two pages by the next poll", async (c) => {
    const base = await ago(3)
    const records = Array.from({ length: 6 }, (_, i) => ({ name: `p${i}` }))
    const made = await putRows(c, "salesmen", records, stamp(base))
    const url = `/salesmen${query({ modifiedsince: stamp(base), limit: 2 })}`
    const first = page(await c.get(url))
    succeeded(await c.patch(`/salesmen/${made[0]}`, { email1: "read-already" }))
    succeeded(await c.patch(`/salesmen/${made[5]}`, { email1: "not-yet-read" }))
    const scanned = (await c.pages(url, first)).flatMap(({ data }) => data)
    const polled = await c.list(`/salesmen${query({ modifiedsince: text(first.syncedThrough) })}`)
    const latest = new Map([...scanned, ...polled].map((record) => [idOf(record), record["email1"]]))
    assert.strictEqual(latest.size, 6)
    assert.strictEqual(latest.get(made[0] as number), "read-already")
    assert.strictEqual(latest.get(made[5] as number), "not-yet-read")
  })

  it("[A-05] does not see a row that is inserted late with an old stamp", async (c) => {
    const through = text(page(await c.get("/salesmen")).syncedThrough)
    await c.put("salesmen", [{ name: "late" }], stamp(await ago(10)))
    assert.isEmpty(await c.list(`/salesmen${query({ modifiedsince: through })}`))
    assert.lengthOf(await c.list("/salesmen"), 1)
  })
})

keptPromises()

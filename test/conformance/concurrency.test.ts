/** If-Match and ETag: no client overwrites a version that it has not read. */
import { assert, describe } from "vitest"
import {
  advance,
  etagOf,
  fresh,
  idOf,
  it,
  keptPromises,
  newCompany,
  refused,
  row,
  succeeded,
  text,
  useServer
} from "./harness.ts"
import { CHANGE, dated, RESOURCES } from "./resources.ts"
import { makeSalesman } from "./world.ts"

useServer()

for (const each of RESOURCES) {
  const { path, ops, make } = each
  if (!ops.includes("U")) continue
  describe(`${path} with If-Match`, () => {
    it("[B-01][B-02][EP-03][EP-09] returns the ETag of the last write, which an update may send, as it may send none", async (c) => {
      const id = idOf(await make(c))
      const current = async () => etagOf(await c.get(`/${path}/${id}`))
      const first = await current()
      assert.strictEqual(await current(), first)
      const patched = await c.patch(`/${path}/${id}`, CHANGE, { "if-match": first })
      succeeded(patched)
      assert.notStrictEqual(etagOf(patched), first)
      assert.strictEqual(await current(), etagOf(patched))
      succeeded(await c.patch(`/${path}/${id}`, { externalid: "two" }, { "if-match": "*" }))
      assert.strictEqual(succeeded(await c.patch(`/${path}/${id}`, { externalid: "three" }))["externalid"], "three")
      if (!ops.includes("D")) return
      const last = await current()
      // B-04: a cancellation ignores If-Match.
      const cancelled = await c.del(`/${path}/${id}`, { "if-match": '"nonsense"' })
      assert.strictEqual(succeeded(cancelled)["cancel"], true)
      assert.notStrictEqual(etagOf(cancelled), last)
      assert.strictEqual(await current(), etagOf(cancelled))
    })

    it("[EP-03][CODE-14][B-03][X-10][RMARETURNS-22][PAYMENTS-54] rejects a stale ETag with 409 and the current record, and writes nothing", async (c) => {
      const id = idOf(await make(c))
      const etag = etagOf(await c.get(`/${path}/${id}`))
      succeeded(await c.patch(`/${path}/${id}`, { externalid: "theirs" }))
      const error = refused(
        await c.patch(`/${path}/${id}`, { externalid: "mine" }, { "if-match": etag }),
        "stale_record"
      )
      const now = await c.read(path, id)
      assert.strictEqual(now["externalid"], "theirs")
      assert.deepEqual(error["current"], now)
      for (const never of ['"nonsense"', '"0"', '""']) {
        refused(await c.patch(`/${path}/${id}`, { externalid: "mine" }, { "if-match": never }), "stale_record")
      }
    })

    it("[B-01] accepts lastchangedate as ETag, quoted or bare, where the field exists", async () => {
      if (!dated(each)) return
      const c = await newCompany()
      const id = idOf(await make(c))
      const old = text((await c.read(path, id))["lastchangedate"])
      await advance(1)
      succeeded(await c.patch(`/${path}/${id}`, { externalid: "a" }, { "if-match": old }))
      await advance(1)
      const second = text((await c.read(path, id))["lastchangedate"])
      succeeded(await c.patch(`/${path}/${id}`, { externalid: "b" }, { "if-match": `"${second}"` }))
      refused(await c.patch(`/${path}/${id}`, { externalid: "c" }, { "if-match": old }), "stale_record")
      refused(await c.patch(`/${path}/${id}`, { externalid: "c" }, { "if-match": `"${second}"` }), "stale_record")
    })

    it("[EP-03][B-01] accepts one of ten concurrent writers with one ETag", async (c) => {
      const id = idOf(await make(c))
      const etag = etagOf(await c.get(`/${path}/${id}`))
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) => c.patch(`/${path}/${id}`, { externalid: `w${i}` }, { "if-match": etag }))
      )
      const won = answers.filter((answer) => answer.status === 200)
      assert.lengthOf(won, 1)
      for (const answer of answers) if (answer.status !== 200) refused(answer, "stale_record")
      assert.strictEqual((await c.read(path, id))["externalid"], row(won[0]?.json)["externalid"])
    })
  })
}

it("[B-01][B-04] a create ignores If-Match, and returns the ETag for a first update", async (c) => {
  const made = await c.post("/salesmen", { name: fresh("s") }, { "if-match": '"nonsense"' })
  const id = idOf(succeeded(made, 201))
  assert.strictEqual(etagOf(made), etagOf(await c.get(`/salesmen/${id}`)))
  succeeded(await c.patch(`/salesmen/${id}`, { email1: "x" }, { "if-match": etagOf(made) }))
})

it("[D-03][EP-09] an update checks a stale If-Match after the body and the id", async (c) => {
  const id = idOf(await makeSalesman(c))
  refused(await c.patch(`/salesmen/${id}`, { salesman: 1 }, { "if-match": '"stale"' }), "invalid_type", "salesman")
  refused(await c.patch("/salesmen/999999999", { salesman: true }, { "if-match": '"stale"' }), "not_found")
})

keptPromises()

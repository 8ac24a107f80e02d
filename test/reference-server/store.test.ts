import { assert, describe, it } from "vitest"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import { serverClock } from "../../connectors/service-v2/reference-server/ServerClock.ts"
import { Store } from "../../connectors/service-v2/reference-server/store/Store.ts"
import type { Values } from "../../connectors/service-v2/reference-server/store/Table.ts"
import { assertEach } from "../support/assertions.ts"

const make = () => {
  let now = 1_700_000_000_000_000
  const clock = serverClock(() => now)
  const store = new Store(serviceV2, clock)
  const customers = store.table(1, "customers")
  const put = (id: number | null, values: Values) => store.transact(() => store.put(customers, id, { values }))
  return { store, clock, customers, put, tick: (micros: number) => (now += micros) }
}

const seen = ({ customers }: ReturnType<typeof make>) => ({
  ids: [...customers.order],
  codes: [...customers.all()].map(({ values }) => values["customercode"]),
  changes: customers.changes.filter((version) => customers.isCurrent(version)).map(({ id, stamp }) => [id, stamp]),
  byCode: ["A", "B", "C"].map((code) => customers.where("customercode", code).map(({ id }) => id))
})

describe("the store of the reference server", () => {
  it("rolls back everything that a failed write did", () => {
    const world = make()
    world.put(null, { customercode: "A" })
    world.put(null, { customercode: "B" })
    const before = seen(world)
    const history = world.store.history.length
    assert.throws(() =>
      world.store.transact(() => {
        world.store.put(world.customers, 1, { values: { customercode: "C" } })
        world.store.put(world.customers, null, { values: { customercode: "A" } })
        world.store.remove(world.customers, 2)
        world.store.put(world.customers, 1, { values: { customercode: "B" } })
        throw new Error("refused")
      })
    )
    assert.deepStrictEqual(seen(world), before)
    assert.strictEqual(world.store.history.length, history)
  })

  it("rolls back a failed write after the order of changes was compacted", () => {
    const world = make()
    for (let round = 0; round < 400; round++) world.put(round === 0 ? null : 1, { customercode: `A${round}` })
    const before = seen(world)
    assert.throws(() =>
      world.store.transact(() => {
        for (let round = 0; round < 400; round++) world.store.put(world.customers, 1, { values: { name: `${round}` } })
        throw new Error("refused")
      })
    )
    assert.deepStrictEqual(seen(world), before)
    assert.isBelow(world.customers.changes.length, 600)
  })

  it("creates one version of a record that is written twice in one write", () => {
    const world = make()
    world.store.transact(() => {
      const { id } = world.store.put(world.customers, null, { values: { customercode: "A" } })
      world.store.put(world.customers, id, { values: { name: "second" } })
    })
    assertEach(world.store.history, ({ op, version }) => [op, version.version, version.values["name"]], [
      ["insert", 1, "second"]
    ])
  })

  it("creates no version for a write that changes nothing", () => {
    const world = make()
    const first = world.put(null, { customercode: "A", name: null })
    assert.strictEqual(world.put(first.id, { customercode: "A", name: null }), first)
    assert.strictEqual(world.store.history.length, 1)
  })

  it("stamps strictly upwards while the clock runs, and equally while it is stopped", () => {
    const world = make()
    const stamps = () => [world.put(null, {}), world.put(null, {}), world.put(null, {})].map(({ stamp }) => stamp!)
    const [a, b, c] = stamps()
    assert.isTrue(a! < b! && b! < c!)
    world.clock.setManual(true)
    const [d, e, f] = stamps()
    assert.isTrue(d === e && e === f)
  })

  it("keeps the order of changes when stamps go back", () => {
    const world = make()
    world.put(null, { customercode: "A" })
    world.tick(1000)
    world.put(null, { customercode: "B" })
    world.store.transact(() =>
      world.store.put(world.customers, null, {
        values: { customercode: "C", lastchangedate: "2020-01-01T00:00:00.000000Z" },
        verbatim: true
      })
    )
    assertEach(seen(world).changes, ([id]) => id, [3, 1, 2])
  })

  it("records a removal as the last version, and a later record as new", () => {
    const world = make()
    world.put(7, { customercode: "A" })
    world.store.transact(() => world.store.remove(world.customers, 7))
    world.put(7, { customercode: "B" })
    assertEach(
      world.store.history,
      ({ op, version }) => [op, version.id, version.version, version.values["customercode"]],
      [
        ["insert", 7, 1, "A"],
        ["delete", 7, 1, "A"],
        ["insert", 7, 1, "B"]
      ]
    )
    const seqs = world.store.history.map(({ seq }) => seq)
    assert.deepStrictEqual(
      seqs,
      seqs.toSorted((a, b) => a - b)
    )
  })
})

/** Scans of the reference server while records move between pages. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import * as Paging from "../../connectors/service-v2/client/Paging.ts"
import type { PageRequest } from "../../src/connector/Connector.ts"
import { SourceError } from "../../src/connector/SourceError.ts"
import { type Json, server } from "../reference-server/support.ts"
import { numbers } from "../support/numbers.ts"
import { failureOf } from "./ScriptedHttp.ts"
import { clientOf, networkOf } from "./ServerHttp.ts"
import { test } from "../support/suite.ts"

/** Timestamps in the past, one second apart. */
const stamp = (second: number) =>
  new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString().replace(".000Z", ".000001Z")
const beginning = "2026-01-01T00:00:00Z"

type PagingStyle = "page" | "offset" | "link" | "cursor"

interface Options {
  readonly paging: PagingStyle
  readonly mode?: Paging.PagingMode
  readonly dialect?: Json
  readonly resource?: "salesmen" | "areas"
  readonly pageSize?: number | null
}

/** Ten records, 1 to 10, on a server with these paging options. */
const open = Effect.fnUntraced(function* (options: Options) {
  const { control, token: makeToken, served } = server()
  const path = options.resource ?? "salesmen"
  control("PUT", "/limits", { requestsPerMinute: null })
  assert.strictEqual(control("PUT", "/dialect", { paging: options.paging, ...options.dialect }).status, 200)
  const change = (id: number, second: number, more: Json = {}) => {
    const at = stamp(second)
    const records = [{ id, name: `record ${id}`, ...more }]
    assert.strictEqual(control("POST", "/records", { company: 1, resource: path, records, at }).status, 200)
  }
  const remove = (id: number) => {
    assert.strictEqual(control("POST", "/remove", { company: 1, resource: path, id }).status, 200)
  }
  const table = served.world.store.table(1, path)
  const holds = (id: number) => table.get(id) !== undefined
  for (const id of table.order.slice()) remove(id)
  for (let id = 1; id <= 10; id++) change(id, id)
  const secret = makeToken()
  const hooks = { before: () => {} }
  const { http } = networkOf(served, () =>
    Effect.sync(() => {
      hooks.before()
      return null
    })
  )
  const ask = (url: string) =>
    served.handle({ method: "GET", url, headers: { authorization: `Bearer ${secret}` }, body: null })
  const isNumbered = options.paging === "page" || options.paging === "offset"
  const mode = options.mode ?? (isNumbered ? options.paging : "auto")
  const make = (pageSize: number | null) => clientOf(http, secret, { pageSize, paging: { mode } })
  const resource = serviceV2.resources.get(path)!
  const connector = yield* make(options.pageSize === undefined ? 3 : options.pageSize)
  return { ask, change, connector, holds, hooks, make, remove, resource }
})

type Opened = Effect.Success<ReturnType<typeof open>>

/** Scans from this token to the end. `between` runs after the page with that number. */
const scan = Effect.fnUntraced(function* (
  opened: Opened,
  since: string | null,
  between: (page: number) => void = () => {},
  how: "page" | "rawPage" = "page",
  from: string | null = null
) {
  const ids: Array<string> = []
  let token = from
  for (let page = 1; page < 40; page++) {
    const request: PageRequest = { resource: opened.resource, since, token }
    if (how === "page") {
      const one = yield* opened.connector.page(request)
      ids.push(...one.records.map(({ id }) => id))
      token = one.next
    } else {
      const one = yield* opened.connector.rawPage(request)
      ids.push(...one.records.map((text) => String((JSON.parse(text) as { readonly id: number }).id)))
      token = one.next
    }
    if (token === null) return ids
    between(page)
  }
  return assert.fail("the scan did not end")
})

const tagOf = <A>(effect: Effect.Effect<A, unknown>) => Effect.map(failureOf(effect), ({ reason }) => reason._tag)

/** The records of a naive reader, which follows page numbers or offsets without checks. */
const naively = (
  { ask, resource }: Opened,
  paging: "page" | "offset",
  since: string | null,
  between: (page: number) => void
) => {
  const ids: Array<string> = []
  for (let page = 1; ; page++) {
    const place = paging === "page" ? `page=${page}` : `offset=${(page - 1) * 3}`
    const changed = since === null ? "cancel=any" : `modifiedsince=${since}`
    const { body } = ask(`/!/api/v2/${resource.path}?limit=3&${changed}&${place}`)
    const { data, _meta } = JSON.parse(body) as { data: Array<{ id: number }>; _meta: { has_more: boolean } }
    ids.push(...data.map(({ id }) => String(id)))
    if (!_meta.has_more) return ids
    between(page)
  }
}

const all = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
const lost = (ids: ReadonlyArray<string>, ...gone: ReadonlyArray<string>) =>
  all.filter((id) => !ids.includes(id) && !gone.includes(id))

/** Moves that happen after the first of three pages: a record that was read is removed, or moves to the end. */
const moves: ReadonlyArray<{
  readonly since: string | null
  readonly move: (opened: Opened) => void
  readonly gone: ReadonlyArray<string>
}> = [
  { since: null, move: ({ remove }) => remove(2), gone: ["2"] },
  { since: beginning, move: ({ change }) => change(1, 30), gone: [] }
]

describe.each(["page", "offset"] as const)("a scan by %s", (paging) => {
  test("returns every record once for every page size if no record moves", function* () {
    let turn = 0
    for (const dialect of [
      {},
      { tieOrder: 5 },
      { itemsKey: "bare" },
      { itemsKey: "resource", dateForm: "seconds" },
      { keyOrder: 3, extraFields: 4 }
    ]) {
      for (const pageSize of [1, 3, 5, 10, 11, null]) {
        const opened = yield* open({ paging, dialect: { ...dialect, pageDefault: 4 }, pageSize })
        for (let id = 1; id <= 10; id++) opened.change(id, 7)
        const cases = [null, beginning].flatMap((since) =>
          (["page", "rawPage"] as const).map((how) => ({ since, how }))
        )
        // Each pair of values has its turn.
        const { since, how } = cases[turn++ % cases.length]!
        const ids = yield* scan(opened, since, () => {}, how)
        assert.deepStrictEqual(
          ids.toSorted((a, b) => Number(a) - Number(b)),
          all,
          JSON.stringify({ dialect, pageSize, since, how })
        )
      }
    }
  })

  test("stops with PageDrift if a record that was read moves, where a naive reader loses records", function* () {
    for (const { gone, move, since } of moves) {
      const naive = yield* open({ paging })
      const ids = naively(naive, paging, since, (page) => (page === 1 ? move(naive) : undefined))
      assert.deepStrictEqual(lost(ids, ...gone), ["4"])
      for (const how of ["page", "rawPage"] as const) {
        for (const resource of since === null ? (["salesmen", "areas"] as const) : (["salesmen"] as const)) {
          const opened = yield* open({ paging, resource })
          const tag = yield* tagOf(scan(opened, since, (page) => (page === 1 ? move(opened) : undefined), how))
          assert.strictEqual(tag, "PageDrift")
          // A second scan from the first page returns every record.
          assert.deepStrictEqual(lost(yield* scan(opened, since, () => {}, how), ...gone), [])
        }
      }
    }
  })

  test("stops if the last record read changes, even if its position stays", function* () {
    for (const dialect of [{}, { dateForm: "seconds" }]) {
      const opened = yield* open({ paging, dialect })
      for (const id of [5, 6, 7, 8, 9, 10]) opened.remove(id)
      // Pages 1 2 3 | 4 become 2 4 3: the third record is unchanged, but record 4 is on no page.
      const reading = scan(opened, beginning, () => {
        opened.remove(1)
        opened.change(3, 4, { name: "other" })
        opened.change(3, 5, { name: "another" })
      })
      assert.strictEqual(yield* tagOf(reading), "PageDrift")
    }
  })

  test("loses no record after a crash and a change of page size", function* () {
    const opened = yield* open({ paging })
    const { next } = yield* opened.connector.page({ resource: opened.resource, since: null, token: null })
    const later = { ...opened, connector: yield* opened.make(5) }
    const rest = scan(later, null, undefined, "page", next)
    assert.deepStrictEqual(["1", "2", "3", ...(yield* rest)], all)
    opened.remove(1)
    assert.strictEqual(yield* tagOf(rest), "PageDrift")
  })

  test("stops after a move also if links count the records, and where no paging mode is configured", function* () {
    const unnamed = yield* open({ paging, mode: "auto" })
    assert.strictEqual(yield* tagOf(scan(unnamed, null)), "PagingBroken")
    const dialect = { itemsKey: "bare" }
    const opened = yield* open({ paging, mode: "auto", dialect })
    assert.deepStrictEqual(yield* scan(opened, null), all)
    const drifting = scan(opened, null, (page) => (page === 2 ? opened.remove(2) : undefined))
    assert.strictEqual(yield* tagOf(drifting), "PageDrift")
  })
})

describe("the page before, read once more", () => {
  const facts = (position: string | null) => ({
    meta: { synced_through: position },
    link: undefined,
    records: 2,
    identities: () => ["1 a", "2 b"]
  })
  const again = (syncedThrough: string | null, last = "2 b") => ({ path: "/salesmen?page=1", last, syncedThrough })

  it("proves that no record moved where it ends with the same record, and is no earlier answer", () => {
    assert.isNull(Paging.confirm(facts(stamp(9)), again(stamp(9))))
    assert.isNull(Paging.confirm(facts(stamp(10)), again(stamp(9))))
    assert.isNull(Paging.confirm(facts(null), again(stamp(9))))
    assert.isNull(Paging.confirm(facts(stamp(9)), again(null)))
  })

  it("proves nothing where it is an answer from before the page after it, as of a replica that is behind", () => {
    assert.strictEqual(Paging.confirm(facts(stamp(8)), again(stamp(9)))?._tag, "PageDrift")
    assert.strictEqual(Paging.confirm(facts(stamp(9)), again(stamp(9), "3 c"))?._tag, "PageDrift")
  })
})

describe("a scan while records move at random", () => {
  for (const paging of ["page", "offset"] as const) {
    test(`by ${paging} loses no unchanged record if it completes`, function* () {
      let ended = 0
      let drifted = 0
      for (let seed = 1; seed <= 60; seed++) {
        const draw = numbers(seed)
        const dialect = seed % 3 === 0 ? { itemsKey: "bare" } : {}
        // Pages by number have at least 4 records. They overlap as long as fewer than 12 records follow the first
        // page.
        const opened = yield* open({ paging, dialect, pageSize: (paging === "offset" ? 2 : 4) + draw(3) })
        const since = draw(2) === 0 ? null : beginning
        const stayed = new Set(all)
        let second = 20
        opened.hooks.before = () => {
          if (draw(5) !== 0) return
          const id = 1 + draw(12)
          stayed.delete(String(id))
          const move = draw(3)
          if (move === 0) {
            if (opened.holds(id)) opened.remove(id)
          } else opened.change(id, move === 1 ? draw(12) : second++)
        }
        const exit = yield* Effect.exit(scan(opened, since))
        if (Exit.isFailure(exit)) {
          const error = Cause.squash(exit.cause)
          assert(error instanceof SourceError && error.reason._tag === "PageDrift", String(error))
          drifted++
          continue
        }
        ended++
        assert.deepStrictEqual(
          [...stayed].filter((id) => !exit.value.includes(id)),
          [],
          `seed ${seed}`
        )
      }
      assert.isAbove(ended, 5)
      assert.isAbove(drifted, 5)
    })
  }
})

describe("a scan of pages that are shorter than requested", () => {
  test("by offset loses no record, down to one record a page", function* () {
    for (let seed = 1; seed <= 8; seed++) {
      for (const itemsKey of ["data", "bare"]) {
        const opened = yield* open({ paging: "offset", dialect: { pageSizes: seed, itemsKey }, pageSize: 4 })
        assert.deepStrictEqual(yield* scan(opened, null), all)
      }
    }
  })

  test("by cursor and by link loses no record, also during changes", function* () {
    for (const paging of ["cursor", "link"] as const) {
      for (const dialect of [{ pageSizes: 3 }, { tieOrder: 9 }, { itemsKey: "bare" }, { pageSizes: 5, tieOrder: 2 }]) {
        const opened = yield* open({ paging, dialect, pageSize: 4 })
        const ids = yield* scan(opened, beginning, (page) => (page === 1 ? opened.change(1, 30) : undefined))
        assert.deepStrictEqual(lost(ids), [])
        opened.remove(1)
        const fewer = yield* scan(opened, null, (page) => (page === 1 ? opened.remove(2) : undefined))
        assert.deepStrictEqual(lost(fewer, "1", "2"), [])
      }
    }
  })
})

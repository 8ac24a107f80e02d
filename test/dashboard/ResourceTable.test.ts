/** The table of resources: its filters, its order, its parts, and the figures of its small charts. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as WriteActivity from "../../src/tasks/WriteActivity.ts"
import { ask, seed, shownCompany, showing } from "../support/pages.ts"
import { execute as run, layerPages } from "../support/postgres.ts"
import { partsOf, plain } from "./markup.ts"
import { suite } from "../support/suite.ts"
import { assertEach } from "../support/assertions.ts"

const write = WriteActivity.writeActivity(() => [])
const resources = Array.from({ length: 150 }, (_, index) => `things${String(index + 1).padStart(3, "0")}`)
const companies = [shownCompany("north", 1n), shownCompany("south", 2n)]

const rowsOf = (text: string): ReadonlyArray<string> =>
  [...text.slice(text.indexOf("<tbody")).matchAll(/<tr[\s\S]*?<\/tr>/g)].map(([row]) => row)
/** Resource and company of each row. */
const namesOf = (text: string): ReadonlyArray<string> =>
  rowsOf(text).map((row) => decodeURIComponent(/href="\/companies\/([^"/]+\/[^"]+)"/.exec(row)![1]!))
const cellOf = (row: string, heading: string): string =>
  new RegExp(`data-heading="${heading}"[^>]*>([\\s\\S]*?)</td>`).exec(row)![1]!
const filled = Layer.effectDiscard(
  Effect.andThen(seed(Object.entries({ north: 1, south: 2 }), resources, 9_000), write)
).pipe(Layer.provideMerge(layerPages))

suite("the table of resources", filled, (test) => {
  test("shows 300 resources in parts of 50, each once, in small pages", function* () {
    const url = yield* showing(companies)
    const parts = yield* partsOf("/resources", (path) => ask(`${url}${path}`))
    assertEach(parts, (text) => rowsOf(text).length, [50, 50, 50, 50, 50, 50])
    assert.strictEqual(new Set(parts.flatMap(namesOf)).size, 300)
    assert.isBelow(Math.max(...parts.map(({ length }) => length)), 120_000)
    assert.include((yield* ask(`${url}/resources?page=99`)).text, "251 to 300 of 300")
  })

  test("sorts by each column, up and down, and marks the column", function* () {
    const url = yield* showing(companies)
    const first = (order: string) =>
      Effect.map(ask(`${url}/resources?company=north&order=${order}`), ({ text }) => ({
        text,
        names: namesOf(text).map((name) => name.slice("north/".length))
      }))
    const up = yield* first("resource")
    assert.deepStrictEqual(up.names, resources.slice(0, 50))
    assert.match(up.text, /aria-sort="ascending"\s*>\s*<a href="\/resources\?company=north&amp;order=-resource"/)
    assert.strictEqual(up.text.match(/aria-sort/g)?.length, 1)
    const down = yield* first("-resource")
    assert.deepStrictEqual(down.names, resources.toReversed().slice(0, 50))
    assert.match(down.text, /aria-sort="descending"\s*>\s*<a href="\/resources\?company=north&amp;order=resource"/)

    const bySql = (order: string) =>
      Effect.map(
        run<{ resource: string }>(
          `select c.resource from tributary.row_counts c
               left join tributary.freshness f on f.company = 'north' and f.resource = c.resource
               left join tributary.tasks t on t.company = 'north' and t.resource = c.resource and t.kind = 'sync'
               left join lateral (select started_at from tributary.runs r where r.company_id = 1 and r.resource = c.resource order by id desc limit 1) r on true
              where c.company_id = 1 order by ${order}, c.resource limit 20`
        ),
        (rows) => rows.map(({ resource }) => resource)
      )
    // The order among equals is by health, so only values without a double are compared as lists.
    assert.deepStrictEqual((yield* first("rows")).names.slice(0, 20), yield* bySql("c.rows desc"))
    assert.deepStrictEqual((yield* first("-rows")).names.slice(0, 20), yield* bySql("c.rows"))
    const [threshold] = yield* run<{ names: ReadonlyArray<string> }>(
      `select array_agg(resource) as names from tributary.freshness
          where company = 'north' and age >= (select age from tributary.freshness where company = 'north' order by age desc nulls last offset 19 limit 1)`
    )
    assert.isTrue((yield* first("age")).names.slice(0, 20).every((name) => threshold!.names.includes(name)))
    assert.match(cellOf(rowsOf((yield* ask(`${url}/resources?company=north&state=all`)).text)[0]!, "State"), /failing/)
    assert.match(cellOf(rowsOf((yield* ask(`${url}/resources?company=north&order=-state`)).text)[0]!, "State"), /fresh/)
    const { text: quarantine } = yield* ask(`${url}/resources?order=quarantine`)
    assert.match(plain(rowsOf(quarantine)[0]!), /^things\d+ 1 in quarantine/)
  })

  test("filters by state, company, area and name, together", function* () {
    const url = yield* showing(companies)
    const names = (query: string) => Effect.map(ask(`${url}/resources?${query}`), ({ text }) => namesOf(text))
    const late = yield* run<{ name: string }>(
      `select company || '/' || resource as name from tributary.freshness f join tributary.tasks t using (company, resource)
          where f.is_late and t.paused_at is null and t.kind = 'sync'
            and (select status from tributary.runs r join tributary.companies c using (company_id)
                  where c.company = f.company and r.resource = f.resource order by id desc limit 1) is distinct from 'failed'`
    )
    assert.isAbove(late.length, 5)
    const { text } = yield* ask(`${url}/resources?state=late`)
    assert.sameMembers(
      [...namesOf(text)],
      late.map(({ name }) => name)
    )
    assert.match(plain(text), new RegExp(`Late ${late.length} `))
    assert.match(plain((yield* ask(`${url}/`)).text), new RegExp(` ${late.length} late `))
    assert.deepStrictEqual(yield* names("state=paused&company=south&text=THINGS01"), ["south/things013"])
    assert.deepStrictEqual(yield* names("area=unheard"), [])
    assert.strictEqual((yield* names("area=other&company=north")).length, 50)
    assert.include((yield* ask(`${url}/resources?text=nothing`)).text, "None of 300 resources matches")
    // A company's actions concern all of its resources, so that they are not shown beside a part of them.
    assert.include((yield* ask(`${url}/resources?company=north`)).text, "/confirm/pause-company?company=north")
    assert.notInclude((yield* ask(`${url}/resources?company=north&state=late`)).text, "/confirm/pause-company")
  })

  test("offers a choice of companies where there are many", function* () {
    const many = Array.from({ length: 30 }, (_, index) =>
      shownCompany(index === 0 ? "north" : `c${index}`, BigInt(index + 1))
    )
    yield* run(
      `insert into tributary.company_states (company, state, severity, resources, failing, late, never_synced, blocked, paused, fresh,
                lateness, quarantined, dead_letters, gaps, rejected, subscriptions_down)
         values ('north', 'late', 6000000, 150, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), ('c1', 'fresh', 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)`
    )
    const url = yield* showing(many)
    const { text } = yield* ask(`${url}/resources?state=late`)
    assert.include(text, "Choose a company")
    assert.include(text, 'href="/resources?company=north&amp;state=late"')
    assert.notInclude(text, "company=c1")
    assert.isAbove(rowsOf((yield* ask(`${url}/resources?company=north&state=late`)).text).length, 5)
    assert.strictEqual((yield* ask(`${url}/?state=late`)).status, 200, "the overview of many companies")
  })
})

/** Every view of the dashboard as markup: its structure, escaped foreign text, links, states and numbers. */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { routes } from "../../src/dashboard/Routes.ts"
import { application, type Answer, origin } from "../support/application.ts"
import { layerWarehouse, sql } from "../support/postgres.ts"
import { holdsHostile, hostile } from "./asking.ts"
import { plain } from "./markup.ts"
import { addressOf, fill, views } from "./shown.ts"
import { suite } from "../support/suite.ts"
import { assertNone } from "../support/assertions.ts"

class Pages extends Context.Service<Pages, { readonly answer: Answer; readonly cookie: string }>()("test/Pages") {}

const shown = Layer.effect(
  Pages,
  Effect.flatMap(fill(), (companies) => application(companies))
).pipe(Layer.provideMerge(layerWarehouse))

const open = Effect.fnUntraced(function* (path: string, more: Readonly<Record<string, string>> = {}) {
  const { answer, cookie } = yield* Pages
  return yield* Effect.promise(async () => {
    const response = await answer(new Request(`${origin}${path}`, { headers: { cookie, ...more } }))
    return { status: response.status, headers: response.headers, text: await response.text() }
  })
})
const textOf = (path: string) => Effect.map(open(path), ({ text }) => text)

const patterns = routes
  .filter(({ method }) => method === "GET")
  .map(({ path }) => ({ path, pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`) }))
const routeOf = (path: string) => patterns.find(({ pattern }) => pattern.test(new URL(path, origin).pathname))?.path

/** The links of a page to pages. */
const linksOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/href="(\/[^"]*)"/g)]
    .map(([, to]) => to!.replaceAll("&amp;", "&").replaceAll("&#39;", "'").replaceAll("&quot;", '"'))
    .filter((to) => !to.startsWith("/assets/"))

const weightMax = 200_000
/** What a page must not contain: unescaped markup, code that the content security policy blocks, and secrets. */
const forbidden =
  / style="|<style| on[a-z]+="|<script(?! defer src="\/assets\/)|<img|whsec_|postgres:\/\/|Bearer |\.ts:\d|NaN|undefined|\[object/

/** The state of a view, as its badge. */
const states: ReadonlyArray<readonly [view: string, badge: string]> = [
  ["resource-failing", "failing"],
  ["resource-late", "late"],
  ["resource-paused", "paused"],
  ["resource-blocked", "blocked"],
  ["company-hostile", "failing"],
  ["run", "quarantined"],
  ["run-running", "running"],
  ["run-failed", "failed"],
  ["run-dead-letter", "dead letter"],
  ["processes", "a process is lost"],
  ["endpoints", "failing"],
  ["event", "done"],
  ["event-dead", "dead letter"],
  ["event-lost", "lost"],
  ["outbox-row", "created"],
  ["outbox-row-rejected", "rejected"],
  ["outbox-row-waiting", "pending"],
  ["outbox-push", "unfinished with rejections"],
  ["quarantine-entry", "open"],
  ["invariants", "violated"],
  ["invariants", "failed"],
  ["invariants", "holds"],
  ["invariant", "open"],
  ["invariant", "unconfirmed"],
  ["endpoints", "dead"],
  ["endpoints", "active, no delivery yet"],
  ["process", "running"],
  ["process-lost", "lost"],
  ["record", "exists"],
  ["record-quarantined", "never landed"],
  ["budget", "paused"],
  ["webhooks", "events may be missing"]
]

/** Where a view leads: to what its thing belongs to, and to the action that is offered. */
const leads: ReadonlyArray<readonly [view: string, to: RegExp]> = [
  ["run", /^\/records\?company=north&resource=customers&id=1$/],
  ["run-dead-letter", /^\/webhooks\/event\?company=north&event=evt_8$/],
  ["event", /^\/runs\/\d+$/],
  ["event", /^\/records\?company=north&resource=customers&id=1$/],
  ["event-dead", /^\/confirm\/replay\?company=/],
  ["events", /^\/webhooks\/event\?company=north&event=evt_1$/],
  ["webhooks", /^\/webhooks\/north\/[^/]+\/deliveries$/],
  ["outbox", /^\/outbox\/pushes\/\d+$/],
  ["outbox-push", /^\/outbox\/rows\/\d+$/],
  ["outbox-push", /^\/confirm\/push-retry\?push=\d+$/],
  ["outbox-row", /^\/outbox\/pushes\/\d+$/],
  ["outbox-row-rejected", /^\/confirm\/push-retry\?/],
  ["outbox-rows-rejected", /^\/outbox\/rows\/\d+$/],
  ["quarantine-entry", /^\/confirm\/retry\?id=\d+$/],
  ["invariant", /^\/records\?company=north&resource=customers&id=1$/],
  ["process", /^\/companies\/north$/],
  ["resource", /^\/confirm\/(sync|full|backfill|pause)\?company=north&resource=customers$/],
  ["resource-paused", /^\/confirm\/resume\?company=north&resource=payments$/],
  ["resource-failing", /^\/runs\/\d+$/],
  ["company", /^\/confirm\/pause-company\?company=north$/],
  ["record", /^\/webhooks\/event\?|^\/runs\/\d+$/],
  ["record-order", /^\/records\?company=north&resource=orderlines&id=1007$/],
  ["record-order", /^\/records\?company=north&resource=payments&id=500$/]
]

const count = (from: string) => `select count(*) as n from tributary.${from}`
/** A number of a view, with the words after or before it, and its value by plain SQL. */
const numbers: ReadonlyArray<readonly [path: string, words: (n: string) => string, sql: string]> = [
  [
    "/",
    (n) => ` ${n} failing `,
    "select count(distinct resource) as n from tributary.tasks where status = 'failed' and company <> 'north'"
  ],
  ["/", (n) => ` ${n} dead letter`, count("inbox where state = 'dead_letter'")],
  ["/", (n) => ` ${n} rejected record`, count("outbox where state = 'rejected'")],
  ["/", (n) => ` ${n} record${n === "1" ? "" : "s"} in quarantine`, count("quarantine where resolved_at is null")],
  ["/", (n) => ` ${n} delivery gap`, count("delivery_gaps where closed_at is null and ended_at is null")],
  ["/", (n) => ` ${n} violation`, "select sum(open_violations) as n from tributary.invariant_states"],
  [
    "/runs",
    (n) => `Invariants ${n} ${n} to resolve`,
    "select sum(open_violations) + count(distinct invariant) filter (where state = 'failed') as n from tributary.invariant_states"
  ],
  ["/runs", (n) => `Quarantine ${n} ${n} to resolve`, count("quarantine where resolved_at is null")],
  ["/outbox", (n) => `${n} rejected`, count("outbox where state = 'rejected'")],
  ["/processes", (n) => `${n} process running`, count("processes_alive")],
  [
    "/records?company=north&resource=customers&id=1",
    (n) => `${n} versions`,
    "select count(*) as n from erp_history.customers where _company_id = 1 and id = 1"
  ],
  [
    "/records?company=north&resource=orders&id=100",
    (n) => `All ${n} orderlines`,
    "select count(*) as n from erp.orderlines where orderid = 100"
  ]
]

suite("the views", shown, (test) => {
  test("are valid, escape foreign text, and are small", function* () {
    const wrong: Array<string> = []
    for (const view of views) {
      const { status, headers, text } = yield* open(yield* addressOf(view))
      const problems = [
        status === (view.status ?? 200) ? "" : `status ${status}`,
        (headers.get("content-type") ?? "").startsWith("text/html") ? "" : "no HTML",
        /default-src 'none'/.test(headers.get("content-security-policy") ?? "") ? "" : "no policy",
        headers.get("cache-control") === "no-store" ? "" : "may be stored",
        // Markup in the value of a field is escaped, and is what the reader entered.
        holdsHostile(text.replaceAll(/value="[^"]*"/g, "")) ? "unescaped text" : "",
        forbidden.exec(text)?.[0] ?? "",
        text.match(/<h1/g)?.length === 1 ? "" : "not one heading",
        /<title>[^<]+Tributary/.test(text) ? "" : "no title",
        Buffer.byteLength(text) < weightMax ? "" : `${Buffer.byteLength(text)} bytes`
      ].filter((problem) => problem !== "")
      wrong.push(...problems.map((problem) => `${view.name}: ${problem}`))
    }
    assert.deepStrictEqual(wrong, [])
  })

  test("have one for each page", function* () {
    const seen = new Set<string | undefined>()
    for (const view of views) seen.add(routeOf(yield* addressOf(view)))
    assertNone(
      patterns.map(({ path }) => path),
      (path) => !seen.has(path)
    )
  })

  test("have only links that lead to pages", function* () {
    // Of each view, one link for each page and kind of query.
    const links = new Map<string, string>()
    for (const view of views) {
      const kinds = new Set<string>()
      for (const to of linksOf(yield* textOf(yield* addressOf(view)))) {
        const kind = `${routeOf(to)} ${[...new URL(to, origin).searchParams.keys()].toSorted().join()}`
        if (!kinds.has(kind) && !links.has(to)) links.set(to, view.name)
        kinds.add(kind)
      }
    }
    assert.isAbove(links.size, 60)
    const wrong: Array<string> = []
    // The source lists deliveries of events that never arrived.
    for (const [to, from] of links) {
      const { status } = yield* open(to)
      if (status !== 200 && status !== 303 && !["deliveries", "nothing", "not-valid"].includes(from))
        wrong.push(`${from}: ${to} is ${status}`)
    }
    assert.deepStrictEqual(wrong, [])
  })

  test("lead to what belongs to them", function* () {
    const wrong: Array<string> = []
    for (const [name, to] of leads) {
      const links = linksOf(yield* textOf(yield* addressOf(views.find((view) => view.name === name)!)))
      if (!links.some((link) => to.test(link))) wrong.push(`${name}: no ${to.source}`)
    }
    assert.deepStrictEqual(wrong, [])
  })

  test("show the states of the data", function* () {
    const wrong: Array<string> = []
    for (const [name, badge] of states) {
      const text = yield* textOf(yield* addressOf(views.find((view) => view.name === name)!))
      const badges = [...text.matchAll(/<span class="badge[^>]*>([\s\S]*?)<\/span\s*>/g)].map(([, words]) =>
        plain(words!).trim()
      )
      if (!badges.some((words) => words.includes(badge)))
        wrong.push(`${name}: not ${badge}, but ${[...new Set(badges)].join(", ")}`)
    }
    assert.deepStrictEqual(wrong, [])
  })

  test("show the numbers of the data", function* () {
    const wrong: Array<string> = []
    for (const [path, words, query] of numbers) {
      const [row] = yield* sql.unsafe<{ n: bigint }>(query)
      const text = ` ${plain(yield* textOf(path))} `
      if (!text.includes(words(String(row!.n)))) wrong.push(`${path}: not ${words(String(row!.n))}`)
    }
    assert.deepStrictEqual(wrong, [])
  })

  test("are unchanged for a browser that has them, until a number of the menu changes", function* () {
    const path = "/runs?before=1-1"
    const { headers } = yield* open(path)
    const again = { "if-none-match": headers.get("etag") ?? "", "hx-request": "true" }
    const unchanged = yield* open(path, again)
    assert.deepStrictEqual([unchanged.status, unchanged.text], [304, ""])
    yield* sql`update tributary.quarantine set resolved_at = tributary.now() where company_id = 1`
    assert.strictEqual((yield* open(path, again)).status, 200)
    yield* sql`update tributary.quarantine set resolved_at = null where company_id = 1`
    assert.strictEqual((yield* open(path, again)).status, 304, "as before")
    assert.strictEqual((yield* open("/runs", again)).status, 200)
  })

  test("explain why a page does not exist", function* () {
    const of = encodeURIComponent(hostile)
    for (const [path, status] of [
      ["/nothing", 404],
      ["/companies/unknown", 404],
      [`/companies/north/${of}`, 404],
      ["/runs/999999999", 404],
      ["/runs/x", 404],
      ["/runs/99999999999999999999", 404],
      ["/runs?company=x", 404],
      ["/runs?before=x", 400],
      ["/runs?before=100", 400],
      ["/runs?hour=2026-02-31T09:00Z", 400],
      ["/resources?state=unheard", 400],
      ["/resources?order=unheard", 400],
      ["/resources?page=0", 400],
      ["/resources?page=x", 400],
      ["/resources?company=none", 404],
      ["/quarantine/999999999", 404],
      ["/quarantine?company=unknown", 404],
      ["/quarantine?before=x", 400],
      ["/outbox/pushes/999999", 404],
      ["/outbox/pushes/x", 400],
      ["/outbox/rows/999999", 404],
      ["/outbox/rows?state=odd", 400],
      ["/outbox/rows?before=x", 400],
      ["/outbox/rejected", 400],
      ["/webhooks/event?company=north&event=none", 404],
      ["/webhooks/event?company=north", 400],
      ["/webhooks/events?time=2026-02-30@UTC", 400],
      ["/webhooks/events?time=2026-02-01@Mars/Base", 400],
      ["/webhooks/events?time=never", 400],
      ["/webhooks/events?before=x", 400],
      ["/webhooks/events?state=odd", 400],
      ["/endpoints?endpoint=other", 404],
      ["/invariants?invariant=nothing", 404],
      ["/invariants?invariant=priced&company=nowhere", 404],
      ["/invariants?invariant=priced&state=odd", 400],
      ["/processes/none", 404],
      ["/companies/%E0%A4%A/things", 404],
      ["/confirm/sync?company=unknown&resource=customers", 404],
      ["/confirm/full?company=north", 404],
      ["/assets/other/nothing.css", 404],
      ["/assets/../../package.json", 404]
    ] as const) {
      const reply = yield* open(path)
      assert.strictEqual(reply.status, status, path)
      assert.isFalse(holdsHostile(reply.text.replaceAll(/value="[^"]*"/g, "")), path)
      if (!path.startsWith("/assets")) assert.include(reply.text, "<h1", path)
    }
  })
})

import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Logger, Redacted } from "effect"
import { query } from "../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { pageTimeout } from "../../src/dashboard/PageRunner.ts"
import * as TaskQueue from "../../src/tasks/TaskQueue.ts"
import { makeGate } from "../support/gate.ts"
import { layerPages, sql } from "../support/postgres.ts"
import { plain } from "./markup.ts"
import {
  acting,
  ask,
  cookieOf,
  listening,
  post,
  type Reply,
  seed,
  showing,
  shownCompany,
  tokenOf
} from "../support/pages.ts"
import { suite } from "../support/suite.ts"
import { assertCount } from "../support/assertions.ts"

const hostile = `odd "><script>alert(1)</script>/name & more`
const resources = ["things", hostile, ...Array.from({ length: 18 }, (_, index) => `widgets${index + 3}`)]
const companies = [shownCompany("north", 1n), shownCompany("<b>south</b>", 2n), shownCompany("new", 3n)]

const warehouse = Layer.effectDiscard(seed(Object.entries({ north: 1, "<b>south</b>": 2 }), resources, 400)).pipe(
  Layer.provideMerge(layerPages)
)

const at = (company: string, resource: string) =>
  `/companies/${encodeURIComponent(company)}/${encodeURIComponent(resource)}`

/** The visible text, without charts. */
const words = (text: string) => plain(text.replace(/<(head|svg)[\s\S]*?<\/\1>/g, ""))

const until = (what: string, look: Effect.Effect<Reply>, isThere: (reply: Reply) => boolean) =>
  look.pipe(
    Effect.flatMap((reply) => (isThere(reply) ? Effect.succeed(reply) : Effect.fail(`timed out: ${what}`))),
    Effect.retry({ times: 50_000 })
  )

const task = (company: string, resource: string, kind: TaskQueue.TaskKind = "sync") =>
  Effect.map(TaskQueue.readTasks, (all) =>
    all.find((one) => one.company === company && one.resource === resource && one.kind === kind)
  )

suite("the pages", warehouse, (test) => {
  test("have immutable assets", function* () {
    const url = yield* showing(companies)
    const first = yield* ask(url)
    const paths = first.text.match(/\/assets\/[^"]+/g) ?? []
    assert.sameMembers(
      paths.map((path) => path.split("/").at(-1)),
      ["icon.svg", "pages.css", "live.js", "htmx.js", "idiomorph.js"]
    )
    for (const path of paths) {
      const { status, headers, text } = yield* ask(`${url}${path}`)
      assert.deepStrictEqual([status, headers["cache-control"]], [200, "public, max-age=31536000, immutable"], path)
      assert.isAbove(text.length, 100, path)
      // A page of another version, during a rolling update.
      const ofOther = yield* ask(`${url}${path.replace(/(?<=assets\/)[^/]+/, "other")}`)
      assert.deepStrictEqual([ofOther.status, ofOther.headers["cache-control"]], [200, "no-store"], path)
      assert.strictEqual(ofOther.text, text, path)
    }
  })

  describe("actions", () => {
    /** Opens the confirmation, then confirms. Returns the next page. */
    const done = Effect.fnUntraced(function* (
      { url, headers }: { readonly url: string; readonly headers: { readonly cookie: string } },
      what: string,
      target: Readonly<Record<string, string>>,
      more: Readonly<Record<string, string>> = {}
    ) {
      const question = yield* ask(`${url}/confirm/${what}?${new URLSearchParams(target).toString()}`, { headers })
      assert.strictEqual(question.status, 200)
      assert.notInclude(question.text, "hx-trigger", "a form is never refreshed")
      assert.include(question.text, "Cancel")
      const reply = yield* post(
        `${url}/do/${what}`,
        { form_token: tokenOf(question.text), ...target, ...more },
        headers
      )
      if (reply.status !== 303) return reply
      return yield* ask(`${url}${reply.headers.location}`, {
        headers: { cookie: cookieOf(reply, "tributary_said") ?? "" }
      })
    })
    const north = { company: "north", resource: "things" }

    test("run after confirmation, and report their result once", function* () {
      const page = yield* acting(companies)
      const after = yield* done(page, "sync", north)
      assert.include(words(after.text), "Requested: things of north will be synced as soon as a process is free.")
      assert.match(String(after.headers["set-cookie"]), /tributary_said=;.*Max-Age=0/)
      assert.deepInclude(yield* task("north", "things"), { askedFull: false, askedBy: "the page" })
      yield* done(page, "full", north)
      assert.strictEqual((yield* task("north", "things"))?.askedFull, true)

      yield* done(page, "pause", { company: "north", resource: hostile })
      assert.isNotNull((yield* task("north", hostile))?.pausedAt)
      assert.match(words((yield* ask(`${page.url}${at("north", hostile)}`)).text), /paused .* ago by the page/)
      yield* done(page, "resume", { company: "north", resource: hostile })
      assert.isNull((yield* task("north", hostile))?.pausedAt)
    })

    test("apply to a whole company", function* () {
      const page = yield* acting(companies)
      const company = "<b>south</b>"
      const of = Effect.map(TaskQueue.readTasks, (all) => all.filter((one) => one.company === company))
      assert.match(
        words((yield* done(page, "pause-company", { company })).text),
        /Paused: 19 resources of &lt;b&gt;south/
      )
      assert.isTrue((yield* of).every(({ pausedAt }) => pausedAt !== null))
      assert.match(words((yield* done(page, "resume-company", { company })).text), /Resumed: 20 resources/)
      assert.isTrue((yield* of).every(({ pausedAt }) => pausedAt === null))
      yield* done(page, "sync", { company })
      assert.isTrue((yield* of).every(({ askedAt }) => askedAt !== null))
      assert.isUndefined((yield* of).find(({ askedFull }) => askedFull))
    })

    test("start a backfill only for a valid range", function* () {
      const page = yield* acting(companies)
      const backfilled = Effect.map(task("north", "things", "backfill"), (one) => [one?.since, one?.until])
      for (const [since, until] of [
        ["yesterday", ""],
        ["2026-02-30", ""],
        ["", "2026-01-31T25:00:00Z"],
        ["2026-01-31T08:00:00", ""],
        ["2026-02-01", "2026-01-31"]
      ] as const) {
        const reply = yield* done(page, "backfill", north, { since, until })
        assert.strictEqual(reply.status, 400, `${since} ${until}`)
        assert.include(words(reply.text), "Nothing was done")
      }
      assert.deepStrictEqual(yield* backfilled, [undefined, undefined])
      assert.strictEqual(
        (yield* done(page, "backfill", north, { since: "2026-01-31", until: "2026-01-31" })).status,
        200
      )
      assert.deepStrictEqual(yield* backfilled, ["2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999999Z"])
      yield* done(page, "backfill", north, { since: "2026-01-31T08:00:00.5+02:00", until: "" })
      assert.deepStrictEqual(yield* backfilled, ["2026-01-31T06:00:00.5Z", null])
      yield* done(page, "backfill", north, { since: "", until: "" })
      assert.deepStrictEqual(yield* backfilled, [null, null])
      yield* sql`insert into tributary.runs (company_id, resource, kind, lane, fence, started_at)
                 select c.company_id, t.resource, 'full', 'backfill', 1, tributary.now()
                   from tributary.tasks t join tributary.companies c using (company) where t.kind = 'backfill'`
      assert.strictEqual((yield* done(page, "backfill", north, { since: "2026-01-31", until: "" })).status, 409)
      assert.deepStrictEqual(yield* backfilled, [null, null])
    })
  })

  describe("failures", () => {
    test("show 503 while the warehouse is unreachable, and end automatically", function* () {
      const dashboard = yield* listening()
      const without = yield* ask(dashboard.url)
      assert.strictEqual(without.status, 503)
      assert.include(words(without.text), "The warehouse does not answer")
      assert.include(without.text, "hx-trigger", "it refreshes again")
      const { endpoint } = yield* Database
      const { host, port, user, password, database } = endpoint
      const gate = yield* makeGate(
        Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
      )
      const within = yield* Effect.forkChild(
        dashboard
          .connect(() => companies)
          .pipe(Effect.provide(Layer.fresh(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(gate.url))))))
      )
      yield* until("the slow queries run", ask(dashboard.url), ({ status }) => status === 200)
      yield* gate.shut
      const away = yield* ask(dashboard.url)
      assert.strictEqual(away.status, 503)
      assert.notMatch(away.text, /from tributary\.|ECONN|terminated|\.ts:/)
      yield* gate.open
      yield* until("the slow queries are cancelled", ask(dashboard.url), ({ status }) => status === 200)
      const opened = yield* ask((yield* dashboard.link) ?? "")
      const headers = { cookie: cookieOf(opened, "tributary_session") ?? "" }
      const question = yield* ask(`${dashboard.url}/confirm/sync?company=north&resource=things`, { headers })
      yield* Fiber.interrupt(within)
      assert.strictEqual((yield* ask(dashboard.url)).status, 503)
      const fields = { form_token: tokenOf(question.text), company: "north", resource: "things" }
      const action = yield* post(`${dashboard.url}/do/sync`, fields, headers)
      assert.strictEqual(action.status, 503)
      assert.include(words(action.text), "Nothing was done")
      assert.notInclude(action.text, "hx-trigger")
    })

    test("cancel a slow query once its client disconnects", function* () {
      const url = yield* showing(companies)
      const waiting = Effect.map(
        sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
                              where datname = current_database() and wait_event_type = 'Lock'`,
        ([row]) => row!.n
      )
      const waitFor = (n: number) =>
        waiting.pipe(
          Effect.flatMap((now) => (now === n ? Effect.void : Effect.fail(`${now} wait instead of ${n}`))),
          Effect.retry({ times: 50_000 })
        )
      const client = yield* (yield* Database).connect
      yield* query(client, "lock", "begin; lock table tributary.row_counts")
      const pageFiber = yield* Effect.forkChild(ask(url))
      yield* waitFor(1)
      yield* Fiber.interrupt(pageFiber)
      yield* waitFor(0)
      yield* query(client, "unlock", "rollback")
      assert.strictEqual((yield* ask(url)).status, 200)
    })

    test("that are unexpected appear in the log and not on the page", function* () {
      const broken = Object.defineProperty(shownCompany("north", 1n), "name", {
        get: () => assert.fail("an inner secret")
      })
      const reply = yield* ask(yield* showing([broken]))
      assert.strictEqual(reply.status, 500)
      assert.notMatch(reply.text, /inner secret|\.ts:|hx-trigger/)
    })
  })
})

const few = [shownCompany("north", 1n), shownCompany("new", 3n)]
const small = Layer.effectDiscard(seed([["north", 1]], ["things"], 10)).pipe(Layer.provideMerge(layerPages))

suite("a request", small, (test) => {
  test("with a NUL is invalid", function* () {
    const { url, headers } = yield* acting(few)
    for (const path of [
      "/runs?company=%00",
      "/runs?resource=a%00",
      "/outbox/rows?resource=%00",
      "/quarantine?company=%00",
      "/webhooks/events?resource=%00",
      "/webhooks/event?company=north&event=%00",
      "/records?company=north&resource=%00&id=1",
      "/companies/north/%00",
      "/processes/%00",
      "/confirm/sync?company=north&resource=%00"
    ]) {
      const reply = yield* ask(url + path, { headers })
      assert.strictEqual(reply.status, 400, path)
      assert.include(reply.text, "NUL", path)
    }
    const form = yield* ask(`${url}/confirm/sync?company=north&resource=things`, { headers })
    const fields = { form_token: tokenOf(form.text), company: "north", resource: "\0" }
    const reply = yield* post(`${url}/do/sync`, fields, headers)
    assert.strictEqual(reply.status, 400)
    assert.include(reply.text, "NUL")
  })

  test("about a company that was never read names the reason", function* () {
    const url = yield* showing(few)
    const [rule] = /\/invariants\?invariant=\w+/.exec((yield* ask(`${url}/invariants`)).text) ?? [""]
    for (const path of ["/runs?", "/quarantine?", ...(rule === "" ? [] : [`${rule}&`])]) {
      const reply = yield* ask(`${url}${path}company=new`)
      assert.strictEqual(reply.status, 404, path)
      assert.include(reply.text, "Nothing of company new was read yet", path)
      assert.include((yield* ask(`${url}${path}company=other`)).text, "No company other is configured here", path)
    }
  })

  test("of a broken page is logged once, also while other pages work", function* () {
    const logged: Array<string> = []
    const log = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
    yield* Effect.gen(function* () {
      const url = yield* showing(few)
      yield* sql`alter table tributary.row_counts rename to elsewhere`
      for (let round = 0; round < 3; round += 1) {
        const reply = yield* ask(url)
        assert.strictEqual(reply.status, 503)
        assert.include(reply.text, "tributary doctor")
        assert.strictEqual((yield* ask(`${url}/runs`)).status, 200)
      }
      yield* sql`alter table tributary.elsewhere rename to row_counts`
      assert.strictEqual((yield* ask(url)).status, 200)
    }).pipe(Effect.provide(log))
    assertCount(logged, (line) => line.startsWith("The page / failed"), 1)
  })

  test("of the script waits longer than a page waits for the warehouse", function* () {
    const { text } = yield* ask(yield* showing(few))
    const [, timeout] = /name="htmx-config" content="[^"]*timeout&quot;:(\d+)/.exec(text) ?? []
    // The check of a session and the end of a transaction take up to 5 s each.
    assert.isAbove(Number(timeout), Duration.toMillis(pageTimeout) + 2 * 5_000)
  })
})

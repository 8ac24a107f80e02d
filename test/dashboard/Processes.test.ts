/** The page of the processes, on Postgres; its figures are compared with plain SQL. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { routes } from "../../src/dashboard/pages/Processes.ts"
import { bucketOf } from "../../src/processes/Ownership.ts"
import { stopClock } from "../support/postgres.ts"
import { ask, holdsHostile, hostile, unconnected, warehouse } from "./asking.ts"

const companies = ["east", "west"].map((name) => unconnected(name))

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("the page of the processes", (it) => {
  it.effect("states that none is running, and how to start one", () =>
    Effect.gen(function* () {
      const { read } = yield* ask(routes, companies, "/processes")
      assert.match(read, /none is running 0 processes running, 0 starts in the last day\./)
      assert.include(read, "Nothing is synced by schedule, and deliveries are refused. Next: start one with")
      assert.include(read, "No process was recorded.")
    })
  )

  it.effect("shows running, lost and stopped ones with their roles, and the runs in progress", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* stopClock
      yield* sql`insert into tributary.companies (company, company_id) values ('east', 1), ('west', 2)`
      yield* sql`
        insert into tributary.processes (process_id, companies, host, pid, started_at, heartbeat_at, stopped_at)
        values ('alive', '{east,west}', 'alpha.example', 41, tributary.now() - interval '3 hours', tributary.now() - interval '5 seconds', null),
               ('gone', '{east,west}', 'beta.example', 42, tributary.now() - interval '9 hours', tributary.now() - interval '2 hours', null),
               ('ended', '{east,west}', 'alpha.example', 40, tributary.now() - interval '20 hours', tributary.now() - interval '3 hours', tributary.now() - interval '3 hours'),
               ('old', '{east,west}', 'alpha.example', 39, tributary.now() - interval '20 days', tributary.now() - interval '10 days', null),
               (${hostile}, '{}', ${hostile}, 1, tributary.now() - interval '26 hours', tributary.now() - interval '25 hours', null)`
      yield* sql`
        insert into tributary.bucket_owners (bucket, process_id)
        select * from (values (0, 'alive'), (${bucketOf("east")}::int, 'alive')) v on conflict do nothing`
      yield* sql`
        insert into tributary.change_endpoints (name, url, origin, last_position, process_id, leased_until)
        values ('app', 'https://app.example.com/', 'command', 0, 'alive', tributary.now() + interval '1 minute'),
               ('late', 'https://app.example.com/', 'command', 0, 'alive', tributary.now() - interval '1 minute')`
      yield* sql`
        insert into tributary.tasks (company, resource, kind, process_id) values ('east', 'things', 'sync', 'alive'), ('east', 'others', 'sync', null)`
      yield* sql`
        insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at)
        values (1, 'things', 'incremental', 'live', 'running', 1, tributary.now() - interval '2 minutes'),
               (1, 'others', 'full', 'live', 'running', 1, tributary.now() - interval '1 minutes'),
               (2, 'things', 'incremental', 'live', 'done', 1, tributary.now())`
      yield* sql`
        insert into tributary.activity (resolution, at, company, resource, process_starts)
        select 'hour', date_trunc('hour', started_at, 'UTC'), null, null, count(*) from tributary.processes group by 2`

      const { read, text } = yield* ask(routes, companies, "/processes")
      const [figures] = yield* sql<{ running: number; starts: number }>`
        select (select count(*)::int from tributary.processes_alive) as running,
               (select count(*)::int from tributary.processes
                 where started_at >= date_trunc('hour', tributary.now(), 'UTC') - interval '23 hours') as starts`
      assert.include(read, `${figures!.running} process running, ${figures!.starts} starts in the last day.`)
      // The lost one lived until its last heartbeat, and has a sign there.
      assert.lengthOf(text.match(/<text class="sign"/g)!, 1)
      assert.match(read, /companies without an owner .* No process owns west/)
      assert.match(
        read,
        /alpha\.example, pid 41 running 3 h ago 3 h 5 s ago work for all owns 1 company, sends changes to app alive/
      )
      assert.match(
        read,
        /beta\.example, pid 42 lost killed, or cannot reach the warehouse 9 h ago 7 h 2 h ago none gone/
      )
      assert.match(read, /alpha\.example, pid 40 stopped ended in order 20 h ago 17 h/)
      assert.notInclude(read, "pid 39")
      assert.notInclude(read, "sends changes to app, late")
      assert.match(read, /things east live alpha\.example, pid 41 2 min/)
      assert.match(read, /others east live a command 60 s/)
      assert.isFalse(holdsHostile(text))
      // A lane for each that lived within the last day.
      assert.lengthOf(text.match(/<span class="name">/g)!, 3)

      yield* sql`insert into tributary.bucket_owners (bucket, process_id) values (${bucketOf("west")}, 'alive') on conflict do nothing`
      const lost = yield* ask(routes, companies, "/processes")
      assert.match(
        lost.read,
        /a process is lost .* Lost: beta\.example, pid 42; the companies have other owners\. Next: read its log/
      )
      yield* sql`
        insert into tributary.processes (process_id, companies, host, pid) values ('next', '{east,west}', 'beta.example', 50)`
      assert.match((yield* ask(routes, companies, "/processes")).read, /running 2 processes running/)

      const one = yield* ask(routes, companies, "/processes/alive")
      assert.isTrue(one.isLive)
      assert.match(one.read, /Owns 2 companies in \d 256 buckets|Owns 2 companies in \d of 256 buckets/)
      assert.include(one.text, 'href="/companies/east"')
      const gone = yield* ask(routes, companies, "/processes/gone")
      assert.isFalse(gone.isLive)
      assert.include(gone.read, "It sent no heartbeat for 2 h and did not stop in order.")
      assert.isFalse(holdsHostile((yield* ask(routes, companies, `/processes/${encodeURIComponent(hostile)}`)).text))
      assert.deepInclude(yield* Effect.flip(ask(routes, companies, "/processes/none")), { status: 404 })
    })
  )
})

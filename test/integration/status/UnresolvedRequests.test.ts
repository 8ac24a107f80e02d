/** Which push requests without a known outcome are a problem (`unresolved`), and its next step. */
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { problemLines } from "../../../src/cli/Problems.ts"
import { fleetLines, readFleet } from "../../../src/cli/status/Fleet.ts"
import { Database } from "../../../src/postgres/Database.ts"
import * as Problems from "../../../src/status/Problems.ts"
import * as LaneLock from "../../../src/warehouse/LaneLock.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"

/** An open request of a push, or of a row that was inserted by SQL. */
const open = (company: string, resource: string, push: number | null) =>
  execute(
    `with request as (
       insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count, created_at)
       values ($1, $2, 'create', gen_random_uuid()::text, '{}', 1, tributary.now() - interval '5 minutes') returning id)
     insert into tributary.outbox (company, resource, operation, record, state, push_id, line, request_id, request_index)
     select $1, $2, 'create', '{}', 'in_flight', $3, case when $3::bigint is not null then 1 end, id, 0 from request`,
    [company, resource, push]
  )

const ended = (status: string, kind: string | null, error: string | null, remedy: string | null) =>
  execute(
    `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at, finished_at, error_kind, error, remedy)
     values (1, 'things', 'push', 'push', $1, 1, tributary.now(), tributary.now(), $2, $3, $4)`,
    [status, kind, error, remedy]
  )

const readOf = (companies: ReadonlyArray<string> | null) =>
  Effect.map(Problems.read(companies), (all) => all.filter(({ kind }) => kind === "unresolved"))

/** The steps by resource. */
const steps = Effect.map(readOf(["north"]), (all) =>
  all.map(
    ({ subject, what, remedy, command }) => `${subject}: ${what}; ${remedy}${command === null ? "" : `: ${command}`}`
  )
)

/** A company with a living serve. */
const served = Layer.effectDiscard(
  Effect.all([
    execute("insert into tributary.companies (company, company_id) values ('north', 1)"),
    execute("insert into tributary.processes (process_id, companies) values ('p1', '{north}')"),
    execute("insert into tributary.tasks (company, resource, kind) values ('north', 'things', 'sync')")
  ])
).pipe(Layer.provideMerge(layerWarehouse))

describe("a push request without an outcome", () => {
  const test = testWith(served)

  test("of a push needs a person unless a process pushes its resource", function* () {
    const [push] = yield* execute<{ id: number }>(
      `insert into tributary.pushes (company, resource, operation, source, content_hash, record_count)
         values ('north', 'things', 'create', 'new.csv', 'c', 1) returning id::int`
    )
    const id = push!.id
    yield* open("north", "things", id)
    // A living serve sends no row of a push.
    const continued = `continue the push: tributary push retry ${id}`
    assert.deepStrictEqual(yield* steps, [`things: the push ended before the answer; ${continued}`])
    assert.deepStrictEqual(yield* readOf(["south"]), [])

    const { locks } = yield* Database
    yield* Effect.scoped(
      Effect.gen(function* () {
        assert.isTrue(yield* locks.tryLock(LaneLock.nameOf(1n, "things", "push")))
        assert.deepStrictEqual(yield* steps, [])
      })
    )
    yield* ended("failed", "Unreachable", "POST /things: the connection failed (reset)", "check the address")
    assert.deepStrictEqual(yield* steps, [`things: POST /things: the connection failed (reset); ${continued}`])
    // No process sends it after the cause is removed.
    yield* ended("failed", "Forbidden", "POST /things: the token may not do this (403)", "give the token the scope")
    assert.deepStrictEqual(yield* steps, [
      `things: POST /things: the token may not do this (403); give the token the scope; then ${continued}`
    ])
    // The next push was killed: the failure before it is not the reason.
    const [killed] = yield* execute<{ id: string }>(
      `insert into tributary.runs (company_id, resource, kind, lane, status, fence, started_at)
           values (1, 'things', 'push', 'push', 'running', 2, tributary.now()) returning id`
    )
    assert.deepStrictEqual(yield* steps, [`things: the push ended before the answer; ${continued}`])
    yield* execute("delete from tributary.runs where id = $1", [killed!.id])
    yield* ended("failed", "Unreachable", "POST /things: the connection failed (reset)", "check the address")
    // A row of the resource that serve pushes: its session completes every open request of the resource first.
    yield* execute(
      "insert into tributary.outbox (company, resource, operation, record) values ('north', 'things', 'create', '{}')"
    )
    assert.deepStrictEqual(yield* steps, [])
    yield* execute("delete from tributary.outbox where push_id is null")
    assert.lengthOf(yield* steps, 1)

    const lines = [
      "  what needs a person:",
      "    warning: Pushes have no known outcome (things of company north): the connection failed (reset), since T",
      `      what to do: ${continued}`
    ]
    const withoutTime = (line: string) => line.replace(/since \S+$/, "since T")
    assertEach(problemLines(yield* readOf(null)), withoutTime, lines)
    const fleet = fleetLines(yield* readFleet(["north"], [], null)).map(withoutTime)
    assert.includeMembers(fleet, lines)
    yield* execute("update tributary.warehouse set pause_reason = 'the database was restored'")
    assert.deepStrictEqual(yield* steps, [], "the pause of all pushes is the reason")
  })

  test("of rows inserted by SQL needs a person where serve does not run, fails for good or is paused", function* () {
    yield* open("north", "things", null)
    assert.deepStrictEqual(yield* steps, [], "serve sends it again after a failed connection")
    yield* ended("failed", "Forbidden", "POST /things: the token may not do this (403)", "give the token the scope")
    assert.deepStrictEqual(yield* steps, [
      "things: POST /things: the token may not do this (403); give the token the scope"
    ])
    yield* ended("done", null, null, null)
    assert.deepStrictEqual(yield* steps, [])
    yield* execute(
      "insert into tributary.company_settings (company, url, token, paused_at, paused_by) values ('north', 'https://erp.example', 't', tributary.now(), 'me')"
    )
    assert.deepStrictEqual(yield* steps, [
      "things: the company is paused; resume the company: tributary company resume north"
    ])
    yield* execute("delete from tributary.company_settings")
    // The configuration left the resource: serve rejects its pending rows, and sends no request of it again.
    const toContinue =
      "things: the push ended before the answer; continue the push: tributary push retry things --company north"
    yield* execute("update tributary.tasks set resource = 'others'")
    assert.deepStrictEqual(yield* steps, [toContinue])
    yield* execute("update tributary.tasks set resource = 'things'")
    assert.deepStrictEqual(yield* steps, [])
    yield* execute("update tributary.processes set stopped_at = tributary.now()")
    assert.deepStrictEqual(yield* steps, [toContinue])
  })

  test("is found without a search of the processes' companies for each request", function* () {
    const plan = yield* execute<{ "QUERY PLAN": string }>(
      "explain select * from tributary.other_problems where kind = 'unresolved'"
    )
    const lines = plan.map((row) => row["QUERY PLAN"]).join("\n")
    assert.include(lines, "processes")
    assert.notInclude(lines, "ANY (companies)")
    assert.notInclude(lines, "ANY (processes.companies)")
  })
})

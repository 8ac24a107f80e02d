/** The move of a company between two warehouses, with the real commands and the reference server: what moves, and what is refused. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { until } from "../../support/until.ts"
import { change, makeWarehouses, move, otherKey, rowsBehind, succeed } from "./warehouses.ts"

const checkpoints = `select resource, lane, cursor, full_scan_at::text as full_scan_at, full_scan_reason, shape
                       from tributary.checkpoints where company_id = 2 order by 1, 2`

describe("tributary company move", () => {
  it.live(
    "moves every row; syncing continues from the checkpoints, and a pending record is pushed once",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const warehouses = yield* makeWarehouses
          const { world, from, to, run, start, add, state, differences } = warehouses
          // History, an inferred column here, another one there, and ids that collide.
          const records = (company: number, more: Readonly<Record<string, unknown>>) =>
            world.control("POST", "/records", { company, resource: "items", records: [{ id: 990_001, ...more }] })
          yield* records(2, { colour: "red", weight: 3 })
          yield* change(warehouses, "Changed once")
          succeed(yield* run(from, ["sync"]))
          succeed(yield* run(from, ["schema", "apply", "--field", "items.colour"]))
          yield* change(warehouses, "Changed twice")
          succeed(yield* run(from, ["sync"]))
          yield* records(1, { weight: 4 })
          yield* add(to, "north", { TRIBUTARY_COMPANIES_KEY: otherKey })
          const there = { TRIBUTARY_COMPANIES_KEY: otherKey }
          succeed(yield* run(to, ["sync"], there))
          succeed(yield* run(to, ["schema", "apply", "--field", "items.weight"], there))
          succeed(yield* run(from, ["company", "pause", "south"]))
          yield* from.query(
            `insert into tributary.outbox (company, resource, record)
             values ('south', 'customers', '{"externalid": "moved-1", "customercode": "MOVED1", "name": "Moved"}')`
          )
          const before = yield* from.query(checkpoints)
          const counts = yield* from.query(
            "select (select count(*) from erp_history.customers) as versions, (select count(*) from tributary.runs) as runs"
          )
          const versions = "erp_history.customers where _company_id = 2"
          const runs =
            "erp.customers c join tributary.runs r on r.id = c._run_id and r.company_id = c._company_id and r.resource = 'customers' where c._company_id = 2"
          const joined = yield* from.count(runs)
          assert.isAbove(joined, 0)
          assert.strictEqual(yield* from.count(runs.replace("erp.customers c", "erp.customers c left")), joined)

          const args = [...move, "--to-key-env", "TO_KEY"]
          const shown = succeed(yield* run(from, [...args, "--dry-run"], { TO_KEY: otherKey }))
          assert.strictEqual((JSON.parse(shown.stdout) as { rows: Record<string, number> }).rows["tributary.outbox"], 1)
          assert.strictEqual(yield* to.count("erp.customers where _company_id = 2"), 0)

          // Processes of both warehouses run, and notice the move by themselves.
          start(from, ["serve"])
          start(to, ["serve"], there)
          for (const one of [from, to]) {
            yield* until("serve is alive", one.count("tributary.processes_alive"), (processes) => processes === 1, 60)
          }
          const moved = JSON.parse(succeed(yield* run(from, args, { TO_KEY: otherKey })).stdout) as {
            rows: Record<string, number>
            left: object
          }
          assert.deepStrictEqual(moved.left, {})
          assert.deepStrictEqual(yield* rowsBehind(from), [])
          assert.strictEqual(yield* from.count("tributary.company_receipts where action = 'move'"), 1)
          assert.deepStrictEqual(yield* to.query(checkpoints), before)
          assert.deepStrictEqual(
            yield* to.query(
              `select (select count(*) from ${versions}) as versions, (select count(*) from tributary.runs where company_id = 2) as runs`
            ),
            counts
          )
          assert.strictEqual(yield* to.count(runs), joined)
          assert.deepStrictEqual(
            yield* to.query(
              "select colour, weight::text as weight, _extra from erp.items where id = 990001 and _company_id = 2"
            ),
            [{ colour: "red", weight: "3", _extra: null }]
          )
          assert.deepStrictEqual(yield* differences(to), [])

          // It is paused there as it was here.
          assert.include((yield* run(to, ["sync", "--company", "south"], there)).stderr, "company south is paused")
          const [{ last }] = (yield* to.query<{ last: string }>(
            "select max(id)::text as last from tributary.runs"
          )) as [{ last: string }]
          yield* change(warehouses, "Changed after the move")
          succeed(yield* run(to, ["company", "resume", "south"], there))
          const outcome = "select outcome, attempts from tributary.outbox where company = 'south'"
          yield* until(
            "the record is pushed",
            to.query<{ outcome: string | null }>(outcome),
            (rows) => rows.length === 1 && rows[0]!.outcome === "created",
            60
          )
          yield* until("the rows are equal", differences(to), (found) => found.length === 0, 60)
          const [firstRun] = yield* to.query<{ kind: string; updated: number }>(
            `select kind, updated::int as updated from tributary.runs
              where company_id = 2 and resource = 'customers' and lane = 'live' and id > ${last} order by id limit 1`
          )
          assert.deepStrictEqual({ ...firstRun }, { kind: "incremental", updated: 1 })
          assert.lengthOf(
            (yield* state("customers")).filter((record) => record.includes('"moved-1"')),
            1
          )
          assert.deepStrictEqual(yield* rowsBehind(from), [])
          succeed(yield* run(to, ["verify", "--company", "south"], there))
        })
      ),
    { timeout: 400_000 }
  )

  it.live(
    "is refused with the reason where the target does not fit, and changes nothing",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { from, to, run, add } = yield* makeWarehouses
          const refused = Effect.fnUntraced(function* (
            reason: string,
            args: ReadonlyArray<string> = move,
            more: Readonly<Record<string, string>> = {}
          ) {
            const { code, stderr } = yield* run(from, args, more)
            assert.strictEqual(code, 2, stderr)
            assert.include(stderr, reason)
          })
          yield* refused("already", ["company", "move", "south", "--to-env", "DATABASE_URL"])
          yield* refused("has no company west", ["company", "move", "west", "--to-env", "OTHER"])
          yield* refused("does not open the token of company south", move, { TRIBUTARY_COMPANIES_KEY: otherKey })
          assert.strictEqual((yield* run(from, ["company", "move", "south"])).code, 1)
          assert.strictEqual(yield* from.count("tributary.company_settings where move_state is not null"), 0)

          yield* from.query("update tributary.installation set pause_reason = 'a test'")
          yield* from.query("insert into tributary.outbox (company, resource) values ('south', 'customers')")
          yield* refused("Pushes are paused: a test")
          yield* from.query("update tributary.installation set pause_reason = null")
          yield* from.query("delete from tributary.outbox")

          yield* to.query("insert into tributary.migrations (id, name, checksum) values (9999, 'later', '')")
          yield* refused("was applied by a newer version")
          yield* to.query("delete from tributary.migrations where id = 9999")

          // The number of the company has rows there, of another name.
          yield* to.query("insert into tributary.companies (company, company_id) values ('other', 2)")
          yield* refused("tributary.companies")
          yield* to.query("delete from tributary.companies")

          yield* to.query("create table erp.customers_kept (like erp.customers)")
          yield* to.query("alter table erp.customers add column remark text")
          yield* refused("remark is missing here and text in the target")
          yield* to.query("alter table erp.customers drop column remark")
          assert.deepStrictEqual(yield* rowsBehind(to), [])

          yield* add(to, "south")
          yield* refused("the target has a company south already")
          succeed(yield* run(to, ["company", "remove", "south", "--erase", "--yes"]))
          succeed(yield* run(from, move))
        })
      ),
    { timeout: 400_000 }
  )
})

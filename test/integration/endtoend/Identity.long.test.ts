/**
 * A warehouse whose tables, settings or source change between two commands. The next sync makes it equal to the source,
 * or ends with code 2 and a remedy.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { startReference } from "../../support/reference.ts"
import { makeWorld } from "../../support/world.ts"

const resources = ["orders", "customers", "salesmen"]
const yaml = (datasets = "", more = "") =>
  `budget: { requests_per_minute: unlimited }\n${datasets}\n` +
  `companies: [{ name: main, token_env: SERVICE_API_TOKEN, resources: [${resources.join(", ")}] }]\n${more}\n`

describe("a restored, copied or replaced warehouse", () => {
  it.live(
    "ends equal to the source, or the commands write nothing",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure(yaml())
          const ok = Effect.fnUntraced(function* (args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) {
            const result = yield* world.run(args, env)
            assert.strictEqual(result.code, 0, `${args.join(" ")}: ${result.stdout}${result.stderr}`)
            return `${result.stdout}${result.stderr}`
          })
          const syncAndVerify = Effect.fnUntraced(function* (env?: Readonly<Record<string, string>>) {
            const output = yield* ok(["sync"], env)
            yield* ok(["verify"], env)
            return output
          })
          yield* syncAndVerify()
          assert.match(yield* ok(["sync"]), /nothing new/)

          yield* world.query("drop table erp.orders cascade")
          assert.match(yield* syncAndVerify(), /orders: read in full: .*another table/)
          yield* world.query("truncate erp.customers")
          assert.match(yield* syncAndVerify(), /customers: read in full: .*truncated/)

          // Manual changes: verify reports them and a full scan repairs them. A future timestamp counts as different.
          yield* world.query("update erp.customers set name = 'by hand' where id = (select min(id) from erp.customers)")
          assert.strictEqual((yield* world.run(["verify"])).code, 4)
          yield* ok(["sync", "--full"])
          yield* ok(["verify"])
          yield* world.query(
            `update erp.customers set name = 'by hand', lastchangedate = '2199-01-01' where id = (select min(id) from erp.customers)`
          )
          const future = yield* world.run(["sync", "--full"])
          assert.strictEqual(future.code, 4, future.stderr)
          assert.match(future.stderr, /older than the warehouse's version.*--accept-restored/)
          assert.strictEqual((yield* world.run(["verify"])).code, 4)
          yield* ok(["sync", "--accept-restored"])
          yield* ok(["verify"])

          world.configure(yaml("", "sync: { custom_fields: true }"))
          assert.match(yield* syncAndVerify(), /custom_fields changed from false to true/)

          world.configure(
            yaml("warehouse: { current: erp_prod, history: erp_prod_history }", "sync: { custom_fields: true }")
          )
          yield* syncAndVerify()
          const [moved] = yield* world.query<{ rows: number }>("select count(*)::int as rows from erp_prod.orders")
          assert.isAbove(moved!.rows, 10)

          // Another installation at another address, with the same company number.
          const other = yield* Effect.acquireRelease(
            Effect.promise(() => startReference(["--data", "demo", "--seed", "77"])),
            (server) => Effect.promise(() => server.stop())
          )
          yield* Effect.promise(() => other.control("PUT", "/limits", { requestsPerMinute: 1_000_000 }))
          yield* Effect.promise(() =>
            other.control("POST", "/remove", { company: 1, resource: "customers", id: 1 }).catch(() => undefined)
          )
          const token = yield* Effect.promise(() => other.token(1))
          const there = { SERVICE_API_URL: other.baseUrl, SERVICE_API_TOKEN: token }
          const before = yield* world.query("select * from erp_prod.customers order by id")
          for (const args of [["sync"], ["sync", "--full"], ["backfill", "customers"], ["verify", "--repair"]]) {
            const refused = yield* world.run(args, there)
            assert.strictEqual(refused.code, 2, `${args.join(" ")}: ${refused.stdout}${refused.stderr}`)
            assert.match(refused.stdout + refused.stderr, /another source: .*nothing was written/)
            assert.match(refused.stdout + refused.stderr, /--accept-new-source/)
          }
          assert.deepStrictEqual([...(yield* world.query("select * from erp_prod.customers order by id"))], [...before])
          yield* ok(["sync", "--accept-new-source"], there)
          yield* ok(["verify"], there)
          yield* syncAndVerify(there)
          const back = yield* world.run(["sync"])
          assert.strictEqual(back.code, 2, "the former source is the foreign one now")

          // The same address with a token of another company.
          const second = yield* Effect.promise(() => other.token(2))
          const number = yield* world.run(["sync"], { ...there, SERVICE_API_TOKEN: second })
          assert.strictEqual(number.code, 2, number.stdout)
          assert.match(number.stderr, /had the number 1, and its token is now of company 2/)
          const numbers = yield* world.query<{ id: string }>("select company_id::text as id from tributary.companies")
          assert.deepStrictEqual([...numbers], [{ id: "1" }])

          // The control plane is restored from a dump: its outbox may lack records that were sent.
          yield* world.query("create table public.copied (like tributary.installation including all)")
          yield* world.query("insert into public.copied select * from tributary.installation")
          yield* world.query("drop table tributary.installation")
          yield* world.query("alter table public.copied set schema tributary")
          yield* world.query("alter table tributary.copied rename to installation")
          yield* world.query(
            `insert into tributary.outbox (company, resource, operation, record)
             values ('main', 'salesmen', 'create', '{"externalid": "paused-1", "name": "Paused"}')`
          )
          const pausedPush = yield* world.run(["push", "retry", "salesmen"], there)
          assert.strictEqual(pausedPush.code, 2, pausedPush.stdout + pausedPush.stderr)
          assert.match(pausedPush.stderr, /Pushes are paused: the database was restored or copied/)
          assert.match(yield* ok(["status"], there), /Pushes are paused/)
          const [pendingRow] = yield* world.query<{ state: string }>("select state from tributary.outbox")
          assert.strictEqual(pendingRow!.state, "pending")
          assert.match(yield* ok(["push", "release"], there), /Pushes continue/)
          yield* ok(["push", "retry", "salesmen"], there)
          const [sentRow] = yield* world.query<{ state: string }>("select state from tributary.outbox")
          assert.strictEqual(sentRow!.state, "done")
        })
      ),
    { timeout: 300_000 }
  )
})

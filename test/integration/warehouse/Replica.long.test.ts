/** A physical replica as the reader, whose replay is paused: nothing that decides rests on what it does not have yet. */
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import pg from "pg"
import * as Snapshot from "../../../src/close/Snapshot.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database, sqlLayer } from "../../../src/postgres/Database.ts"
import * as Migrations from "../../../src/postgres/Migrations.ts"
import { ReaderWait } from "../../../src/warehouse/ReaderMark.ts"
import { startServer } from "../../postgres/server.ts"
import { evaluate, pass, prepare, priced } from "../invariants/evaluating.ts"
import { changed, current, run, scanned, states } from "../invariants/landings.ts"
import { readerRole, readingFrom, refusals } from "./deciding.ts"
import { liveTest } from "../../support/live.ts"

const serverOf = (settings: ReadonlyArray<string>, primary?: Parameters<typeof startServer>[2]) =>
  Effect.acquireRelease(
    Effect.promise(() => startServer("15", settings, primary)),
    (server) => Effect.promise(server.stop)
  )

const tell = (url: string, statement: string) =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(statement)
    await client.end()
  })

const priceOf = Effect.gen(function* () {
  const { client } = yield* Snapshot.open(1n)
  const [row] = yield* query<{ price: string }>(client, "read", "select price::text from erp.things where id = 3")
  return row!.price
}).pipe(Effect.scoped)

liveTest(
  "a replica as the reader is waited for; while its replay is paused, marks stay and every decision is refused",
  function* () {
    const settings = ["fsync=off", "shared_buffers=32MB"]
    const primary = yield* serverOf(settings)
    const replica = yield* serverOf([...settings, "max_standby_streaming_delay=-1"], primary)
    yield* Effect.gen(function* () {
      yield* Migrations.migrate()
      yield* prepare
      const role = yield* readerRole
      const reading = readingFrom(replica.url, role)
      const atOnce = Effect.provideService(ReaderWait, Duration.zero)

      yield* run("update erp.things set price = -1 where id = 3")
      yield* evaluate([priced]).pipe(reading)
      yield* pass(1)
      yield* scanned([1], ["things"])
      yield* evaluate([priced]).pipe(reading)
      const violated = ["price_is_positive of 1: things 3"]
      assert.deepStrictEqual(yield* current, violated, "the replica is waited for")

      yield* tell(replica.url, "select pg_wal_replay_pause()")
      // One violation ends and another begins; the replica has neither.
      yield* run("update erp.things set price = case id when 3 then 3 else -2 end where id in (3, 4)")
      yield* changed([1], ["things"])
      assert.strictEqual(yield* evaluate([priced]).pipe(reading, atOnce), 1)
      assert.deepStrictEqual(yield* current, violated)
      assert.match((yield* states)[0]!, /: failed \(.*replica that is behind: after 0 s it lacks \d+ bytes/)
      for (const [use, message] of Object.entries(yield* refusals.pipe(reading, atOnce))) {
        assert.match(message ?? "", /replica that is behind.*or set DATABASE_READER_URL/, use)
      }

      yield* tell(replica.url, "select pg_wal_replay_resume()")
      assert.strictEqual(yield* priceOf.pipe(reading), "3")
      yield* pass(150)
      yield* evaluate([priced], { isNow: false }).pipe(reading)
      assert.deepStrictEqual(yield* current, ["price_is_positive of 1: things 4 unconfirmed"])
      assert.deepStrictEqual(Object.values(yield* refusals.pipe(reading)), [null, null, null, null])
    }).pipe(
      Effect.scoped,
      Effect.provide(sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(primary.url)))))
    )
  }
)

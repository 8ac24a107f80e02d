/** The watch that wakes workers for events of any process. */
import { assert, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import * as NewEvents from "../../../src/inbox/NewEvents.ts"
import { until } from "../../support/until.ts"
import { layerWarehouse } from "../../support/postgres.ts"

let events = 0
const insert = (company: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`insert into tributary.inbox (company, event_id, event_type, sent_at, body)
                 values (${company}, ${`e${(events += 1)}`}, 'items.updated', tributary.now(), '')`
  )

/** A watch that has begun, and the latches of these companies. `stored` is the one of the process's own inbox. */
const watching = Effect.fnUntraced(function* (interval: Duration.Duration, ...companies: ReadonlyArray<string>) {
  const stored = Latch.makeUnsafe(false)
  const latches = new Map([...companies, "probe"].map((company) => [company, Latch.makeUnsafe(false)]))
  yield* Effect.forkScoped(NewEvents.watch(stored, latches, interval))
  const look = Effect.andThen(insert("probe"), stored.open)
  /** Ends after a look that began after it. */
  const looked = Effect.gen(function* () {
    const probe = latches.get("probe")!
    yield* probe.close
    yield* look.pipe(Effect.repeat({ until: () => probe.isOpen(), schedule: Schedule.spaced("20 millis") }))
  })
  yield* looked
  return { stored, looked, latchOf: (company: string) => latches.get(company)! }
})

layer(layerWarehouse, { excludeTestServices: true, timeout: "60 seconds" })("the watch for new events", (it) => {
  it.effect("wakes the worker of a company for which another process has stored an event, and no other", () =>
    Effect.gen(function* () {
      yield* insert("north")
      const { latchOf, looked } = yield* watching(Duration.millis(50), "north", "south")
      assert.isFalse(latchOf("north").isOpen(), "the event was there before")
      yield* insert("west")
      yield* insert("north")
      yield* latchOf("north").await
      assert.isFalse(latchOf("south").isOpen())

      yield* until(
        "the event is no longer new",
        Effect.andThen(
          latchOf("north").close,
          Effect.map(Effect.orDie(looked), () => latchOf("north").isOpen())
        ),
        (isOpen) => !isOpen
      )
    })
  )

  it.effect("wakes the worker at once for an event that this process has stored", () =>
    Effect.gen(function* () {
      const { latchOf, stored } = yield* watching(Duration.hours(1), "east")
      yield* insert("east")
      yield* stored.open
      yield* Effect.timeout(latchOf("east").await, "10 seconds")
      assert.isTrue(latchOf("east").isOpen())
    })
  )

  it.effect("finds an event that was committed after a later one", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { latchOf, looked } = yield* watching(Duration.seconds(2), "slow")
      const [isInserted, mayCommit] = [Latch.makeUnsafe(), Latch.makeUnsafe()]
      yield* sql
        .withTransaction(Effect.andThen(insert("slow"), Effect.andThen(isInserted.open, mayCommit.await)))
        .pipe(Effect.forkScoped)
      yield* isInserted.await
      yield* looked
      assert.isFalse(latchOf("slow").isOpen())
      yield* mayCommit.open
      yield* Effect.timeout(latchOf("slow").await, "10 seconds")
      assert.isTrue(latchOf("slow").isOpen())
    })
  )
})

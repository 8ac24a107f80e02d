/** The watch that wakes workers for events of any process. */
import { assert } from "@effect/vitest"
import { Duration, Effect, Latch } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as NewEvents from "../../../src/inbox/NewEvents.ts"
import { flowing, until } from "../../support/until.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

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
    yield* until(
      "a look",
      Effect.map(Effect.orDie(look), () => probe.isOpen()),
      (isOpen) => isOpen
    )
  })
  yield* looked
  return { stored, looked, latchOf: (company: string) => latches.get(company)! }
})

suite("the watch for new events", layerWarehouse, (test) => {
  test("wakes the worker of a company for which another process has stored an event, and no other", function* () {
    yield* insert("north")
    const { latchOf, looked } = yield* watching(Duration.millis(50), "north", "south")
    assert.isFalse(latchOf("north").isOpen(), "the event was there before")
    yield* insert("west")
    yield* insert("north")
    yield* flowing(latchOf("north").await)
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

  test("wakes the worker at once for an event that this process has stored", function* () {
    const { latchOf, stored } = yield* watching(Duration.hours(1), "east")
    yield* insert("east")
    yield* stored.open
    yield* flowing(latchOf("east").await)
    assert.isTrue(latchOf("east").isOpen())
  })

  test("finds an event that was committed after a later one", function* () {
    const { latchOf, looked } = yield* watching(Duration.seconds(2), "slow")
    const [isInserted, mayCommit] = [Latch.makeUnsafe(), Latch.makeUnsafe()]
    yield* sql
      .withTransaction(Effect.andThen(insert("slow"), Effect.andThen(isInserted.open, mayCommit.await)))
      .pipe(Effect.forkScoped)
    yield* isInserted.await
    yield* looked
    assert.isFalse(latchOf("slow").isOpen())
    yield* mayCommit.open
    yield* flowing(latchOf("slow").await)
    assert.isTrue(latchOf("slow").isOpen())
  })
})

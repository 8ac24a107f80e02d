/** A reader of another database than the warehouse: nothing that decides rests on it. */
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { ReaderWait } from "../../../src/warehouse/ReaderMark.ts"
import { databaseUrl, layerWarehouse } from "../../support/postgres.ts"
import { evaluate, pass, prepare, priced, test } from "../invariants/evaluating.ts"
import { changed, current, run, scanned, states } from "../invariants/landings.ts"
import { readerRole, readingFrom, refusals } from "./deciding.ts"

test("a copy of the warehouse decides nothing, and the refusal says what to set", function* () {
  yield* prepare
  const role = yield* readerRole
  const copy = yield* Layer.build(Layer.fresh(layerWarehouse))
  const copyUrl = yield* Effect.provide(Effect.andThen(prepare, databaseUrl), copy)
  const ownUrl = yield* databaseUrl
  const reading = (url: Redacted.Redacted) => readingFrom(Redacted.value(url), role)

  yield* run("update erp.things set price = -1 where id = 3")
  yield* evaluate([priced])
  yield* pass(1)
  yield* scanned([1], ["things"])
  yield* evaluate([priced]).pipe(reading(ownUrl))
  const violated = ["price_is_positive of 1: things 3"]
  assert.deepStrictEqual(yield* current, violated)

  // The copy has no such price. Only a session of the warehouse may end the violation.
  yield* changed([1], ["things"])
  const ofCopy = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(reading(copyUrl), Effect.provideService(ReaderWait, Duration.zero))
  assert.strictEqual(yield* ofCopy(evaluate([priced])), 1)
  assert.deepStrictEqual(yield* current, violated)
  assert.match((yield* states)[0]!, /: failed \(the reader's session does not show what the warehouse committed/)
  for (const [use, message] of Object.entries(yield* ofCopy(refusals))) {
    assert.match(message ?? "", /set DATABASE_READER_URL to the server of DATABASE_URL/, use)
  }

  yield* pass(150)
  assert.strictEqual(yield* evaluate([priced], { isNow: false }).pipe(reading(ownUrl)), 1)
  assert.deepStrictEqual(yield* current, violated)
  assert.deepStrictEqual(Object.values(yield* refusals.pipe(reading(ownUrl))), [null, null, null, null])
})

test("a role that lacks the rights gets the command that grants them", function* () {
  yield* prepare
  const role = yield* readerRole
  const url = Redacted.value(yield* databaseUrl)
  yield* run(`revoke pg_read_all_data from ${role}`)
  const messages = Object.values(yield* refusals.pipe(readingFrom(url, role)))
  assert.isTrue(messages.every((message) => message?.includes("tributary schema grants | psql") === true))
})

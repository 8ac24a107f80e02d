/** Why pushes are paused: `tributary.push_pause_reason()` compares the confirmed identity with that of the database. */
import { assert, describe } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as PushPause from "../../../src/outbox/PushPause.ts"
import { execute, layerWarehouse } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const test = testWith(layerWarehouse)

const identity = "database=5 warehouse=16400 system=77 timeline=00000001"

/** The reason in a database with this identity, where another one was confirmed. */
const reasonIn = (current: string, confirmed = identity, because: string | null = null) =>
  Effect.gen(function* () {
    yield* execute(
      `create or replace function tributary.database_identity() returns text language sql as $$ select '${current}' $$`
    )
    yield* execute("update tributary.warehouse set identity = $1, pause_reason = $2", [confirmed, because])
    return yield* PushPause.read
  })

const copied = "the database was restored or copied, so the outbox may have forgotten what was sent"
const earlier =
  "the database was restored to an earlier time or failed over to a standby, so the outbox may have forgotten what was sent"

describe("pushes", () => {
  test("continue in a database with the confirmed identity", function* () {
    assert.isNull(yield* PushPause.read)
    assert.isNull(yield* reasonIn(identity))
    assert.isNull(yield* reasonIn(identity.split(" ").toReversed().join(" ")), "the order of the parts")
  })

  test("are paused where a part of the identity differs", function* () {
    for (const [part, reason] of [
      ["database=6", copied],
      ["warehouse=1", copied],
      ["system=770", copied],
      ["timeline=00000002", earlier]
    ] as const) {
      const current = identity.replace(new RegExp(`${part.split("=")[0]}=\\S+`), part)
      assert.strictEqual(yield* reasonIn(current), reason, part)
      assert.strictEqual(yield* reasonIn(part), reason, `${part} alone`)
      assert.strictEqual(yield* reasonIn(identity, current), reason, `${part} confirmed`)
    }
    assert.strictEqual(yield* reasonIn("system=78 timeline=00000002"), copied, "the worse reason")
    assert.isNull(yield* reasonIn(`${identity} other=1`, `${identity} other=2`), "a part without a meaning")
  })

  test("are not paused by a part that one side lacks", function* () {
    for (const part of identity.split(" ")) {
      const without = identity.split(" ").filter((one) => one !== part)
      assert.isNull(yield* reasonIn(without.join(" ")), part)
      assert.isNull(yield* reasonIn(identity, without.join(" ")), part)
    }
    assert.isNull(yield* reasonIn("", identity))
    assert.isNull(yield* reasonIn(identity, ""))
  })

  test("are paused where a reason is stored, and where the row is missing", function* () {
    assert.strictEqual(yield* reasonIn(identity, identity, "the source is a new one"), "the source is a new one")
    assert.strictEqual(yield* reasonIn("database=6", identity, "the source is a new one"), "the source is a new one")
    yield* execute("delete from tributary.warehouse")
    assert.strictEqual(yield* PushPause.read, "the row of tributary.warehouse is missing")
  })
})

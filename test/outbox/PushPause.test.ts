import { assert, it } from "vitest"
import { reasonOf } from "../../src/outbox/PushPause.ts"

const identity = "database=5 installation=16400 system=77 timeline=00000001"
const reason = (current: string, because: string | null = null) => reasonOf({ identity, current, because })

it("pushes go on in the database that was confirmed", () => {
  assert.isNull(reason(identity))
})

it("a restored or copied database holds them, and so does a failover, which looks like a restore to an earlier time", () => {
  for (const other of ["database=6 installation=16400 system=77", "database=5 installation=2 system=77", "system=78"]) {
    assert.match(reason(other)!, /restored or copied/)
  }
  assert.match(reason(identity.replace("00000001", "00000002"))!, /earlier time or failed over to a standby/)
})

it("what a role may not ask is not compared", () => {
  assert.isNull(reason("database=5 installation=16400"))
})

it("a missing row, or a reason of its own, holds them", () => {
  assert.isNotNull(reasonOf(undefined))
  assert.strictEqual(reason(identity, "the source is a new one"), "the source is a new one")
})

import { assert, it } from "vitest"
import { reasonOf } from "../../src/outbox/PushPause.ts"

const identity = "database=5 warehouse=16400 system=77 timeline=00000001"
const reason = (current: string, because: string | null = null) => reasonOf({ identity, current, because })

it("pushes continue in a database with the confirmed identity", () => {
  assert.isNull(reason(identity))
})

it("pushes are paused in a restored or copied database and after a failover", () => {
  for (const other of ["database=6 warehouse=16400 system=77", "database=5 warehouse=2 system=77", "system=78"]) {
    assert.match(reason(other)!, /restored or copied/)
  }
  assert.match(reason(identity.replace("00000001", "00000002"))!, /earlier time or failed over to a standby/)
})

it("the push pause ignores an identity that the role may not read", () => {
  assert.isNull(reason("database=5 warehouse=16400"))
})

it("pushes are paused when the identity is missing or a pause reason is stored", () => {
  assert.isNotNull(reasonOf(undefined))
  assert.strictEqual(reason(identity, "the source is a new one"), "the source is a new one")
})

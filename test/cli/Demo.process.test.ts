/** `npm start` in an empty folder. It exits with 0 only if every step that it prints has happened. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { liveTest } from "../support/live.ts"
import { startCommand } from "../support/reference.ts"
import { temporaryFolder } from "../support/servers.ts"
import { assertNone } from "../support/assertions.ts"

liveTest("tributary demo delivers a change by webhook and ends with a warehouse equal to the source", function* () {
  const folder = yield* temporaryFolder
  const demo = startCommand(["demo", "--json"], { cwd: folder, env: {} })
  const { code, stdout, stderr } = yield* Effect.promise(() => demo.done)
  assert.strictEqual(code, 0, stderr)
  const { equal, records, webhook, delivery } = JSON.parse(stdout) as {
    equal: boolean
    records: number
    delivery: { type: string; messageId: string; changed: ReadonlyArray<string> }
    webhook: {
      eventType: string
      eventId: string
      acknowledgement: number
      before: string
      after: string
    }
  }
  assert.isTrue(equal)
  assert.isAbove(records, 4_000)
  assert.strictEqual(webhook.eventType, "orders.updated")
  assert.match(webhook.eventId, /^evt_/)
  assert.strictEqual(webhook.acknowledgement, 204)
  assert.deepStrictEqual([webhook.before, webhook.after], ["quote", "open"])
  assert.strictEqual(delivery.type, "orders.update")
  assert.match(delivery.messageId, /^chg_/)
  assert.include(delivery.changed, "status")
  assertNone(readdirSync(join(folder, ".tributary", "demo")), (name) => name.startsWith("certificate"))
  assert.notInclude(stdout + stderr, "whsec_")
})

/** Failed starts of an embedded Postgres before a server is started. */
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { fail } from "../../../src/postgres/embedded/Failure.ts"
import { logSize, withReason } from "../../../src/postgres/embedded/ServerLog.ts"
import { temporaryFolder } from "../../support/servers.ts"
import { test } from "../../support/suite.ts"

describe("a failed start of embedded Postgres", () => {
  test("reports a file in place of the data directory", function* () {
    const root = join(yield* temporaryFolder, "postgres")
    writeFileSync(root, "")
    const error = yield* Effect.flip(Effect.scoped(start({ root })))
    assert.strictEqual(error.step, "folder")
    assert.include(error.hint, "TRIBUTARY_HOME")
  })

  test("reports the last PANIC or FATAL of the server where another process is starting it", function* () {
    const root = join(yield* temporaryFolder, "postgres")
    mkdirSync(root, { recursive: true })
    const logFile = join(root, "postgres.log")
    writeFileSync(logFile, "2026-01-01 00:00:00 UTC [1] PANIC:  an earlier one\n")
    const place = { root, logFile } as Parameters<typeof withReason>[0]
    const offset = logSize(place)
    const waiting = fail("wait", "another process is starting it")
    assert.strictEqual(withReason(place, offset, waiting).message, waiting.message)
    appendFileSync(
      logFile,
      [
        '2026-01-01 00:00:01 UTC [2] PANIC:  could not write to file "pg_wal/xlogtemp.2": No space left on device',
        "2026-01-01 00:00:01 UTC [3] LOG:  startup process (PID 2) was terminated by signal 6: Aborted",
        "2026-01-01 00:00:02 UTC [4] FATAL:  the database system is starting up",
        ""
      ].join("\n")
    )
    assert.strictEqual(
      withReason(place, offset, waiting).message,
      'another process is starting it, which cannot start: PANIC:  could not write to file "pg_wal/xlogtemp.2": No space left on device'
    )
    // The log was rotated meanwhile.
    writeFileSync(logFile, "2026-01-01 00:00:03 UTC [5] FATAL:  data directory has wrong ownership\n")
    assert.include(withReason(place, 1_000_000, waiting).message, "FATAL:  data directory has wrong ownership")
  })
})

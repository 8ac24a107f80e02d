import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type pg from "pg"
import { query } from "../../../src/postgres/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { copyIn, copyOut, escapeCopyText } from "../../../src/postgres/Copy.ts"
import { layerSql } from "../../support/postgres.ts"

const copyStatement = "copy t (id, name) from stdin"

/** A table `t`, a dedicated connection that fills it, and the pool to read it. */
const table = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`create table t (id bigint primary key, name text)`
  const database = yield* Database
  const count = Effect.map(sql<{ n: number }>`select count(*)::int as n from t`, (rows) => rows[0]!.n)
  return { sql, database, client: yield* database.connect, count }
})

const isUsable = (client: pg.Client) =>
  Effect.map(query<{ n: number }>(client, "ask", "select 1 as n"), (rows) => rows[0]?.n === 1)

function* rows(count: number, name = "x") {
  for (let id = 0; id < count; id++) yield `${id}\t${name}\n`
}

/** Endless chunks of 64 KB. */
function* endless(seen: { chunks: number; ended: boolean }) {
  const text = "n".repeat(64 * 1024 - 16)
  try {
    for (let id = 0; ; id++) {
      seen.chunks++
      yield `${id}\t${text}\n`
    }
  } finally {
    seen.ended = true
  }
}

const run = <A, E>(test: Effect.Effect<A, E, Database | SqlClient>) => test.pipe(Effect.provide(layerSql))

describe("copyIn", () => {
  it.live("loads rows from text and bytes, with rows split across chunks", () =>
    run(
      Effect.gen(function* () {
        const { client, sql } = yield* table
        assert.strictEqual(
          yield* copyIn(client, copyStatement, ["1\ta\n2\t", Buffer.from("ü\n"), new TextEncoder().encode("3\t\\N\n")]),
          3
        )
        assert.deepStrictEqual(yield* sql`select id, name from t order by id`, [
          { id: 1n, name: "a" },
          { id: 2n, name: "ü" },
          { id: 3n, name: null }
        ])
        assert.strictEqual(yield* copyIn(client, copyStatement, []), 0)
        assert.strictEqual(yield* copyIn(client, copyStatement, [""]), 0)
        assert.isTrue(yield* isUsable(client))
      }).pipe(Effect.scoped)
    )
  )

  it.live("loads many small chunks and large chunks", () =>
    run(
      Effect.gen(function* () {
        const { client, count } = yield* table
        assert.strictEqual(yield* copyIn(client, copyStatement, rows(50_000)), 50_000)
        yield* query(client, "truncate", "truncate t")
        const whole = [...rows(200_000, "y".repeat(100))].join("")
        const chunks = Array.from({ length: Math.ceil(whole.length / 2 ** 20) }, (_, i) =>
          whole.slice(i * 2 ** 20, (i + 1) * 2 ** 20)
        )
        assert.strictEqual(yield* copyIn(client, copyStatement, chunks), 200_000)
        assert.strictEqual(yield* count, 200_000)
      }).pipe(Effect.scoped)
    )
  )

  it.live("takes part in the transaction around it", () =>
    run(
      Effect.gen(function* () {
        const { client, count } = yield* table
        yield* query(client, "begin", "begin")
        yield* copyIn(client, copyStatement, rows(10))
        assert.strictEqual(yield* count, 0)
        yield* query(client, "commit", "commit")
        assert.strictEqual(yield* count, 10)
      }).pipe(Effect.scoped)
    )
  )

  it.live("rejects an unknown table, an aborted transaction and invalid syntax before it sends data", () =>
    run(
      Effect.gen(function* () {
        const { client } = yield* table
        const seen = { chunks: 0, ended: false }
        const unknown = yield* Effect.flip(copyIn(client, "copy nowhere from stdin", endless(seen)))
        assert.deepInclude(unknown, { operation: "copy", code: "42P01", isRetryable: false })
        assert.isTrue(seen.ended)
        yield* query(client, "begin", "begin")
        yield* Effect.flip(query(client, "fail", "select 1/0"))
        const aborted = yield* Effect.flip(copyIn(client, copyStatement, rows(10)))
        assert.strictEqual(aborted.code, "25P02")
        yield* query(client, "rollback", "rollback")
        assert.isTrue(yield* isUsable(client))
        const syntax = yield* Effect.flip(copyIn(client, "copy what whatever from stdin", rows(10)))
        assert.strictEqual(syntax.code, "42601")
        assert.isTrue(yield* isUsable(client))
      }).pipe(Effect.scoped)
    )
  )

  it.live("rejects a statement that reads no input instead of hanging", () =>
    run(
      Effect.gen(function* () {
        const { client } = yield* table
        for (const statement of [
          "select 1",
          "copy t from '/tmp/file'",
          "copy t from stdin; select 1",
          "copy t to stdout"
        ]) {
          const error = yield* Effect.flip(copyIn(client, statement, rows(10)))
          assert.include(error.message, "COPY ... FROM STDIN")
        }
        assert.isTrue(yield* isUsable(client))
      }).pipe(Effect.scoped)
    )
  )

  it.live("reports the server's reason and line for a bad row, and the client stays usable", () =>
    run(
      Effect.gen(function* () {
        const { client, count } = yield* table
        const early = yield* Effect.flip(copyIn(client, copyStatement, ["1\ta\nx\tb\n"]))
        assert.deepInclude(early, { code: "22P02", isRetryable: false })
        assert.include(early.message, 'COPY t, line 2, column id: "x"')
        const seen = { chunks: 0, ended: false }
        const late = yield* Effect.flip(
          copyIn(
            client,
            copyStatement,
            (function* () {
              yield* rows(100_000)
              yield "5\tagain\n"
              yield* endless(seen)
            })()
          )
        )
        assert.strictEqual(late.code, "23505")
        assert.isTrue(seen.ended)
        assert.isTrue(yield* isUsable(client))
        assert.strictEqual(yield* count, 0)
      }).pipe(Effect.scoped)
    )
  )

  it.live("reads chunks only as fast as the server accepts them", () =>
    run(
      Effect.gen(function* () {
        const { client, sql } = yield* table
        // The copy waits for the lock of another transaction, so the server accepts no data.
        const seen = { chunks: 0, ended: false }
        const chunksWhileBlocked = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`lock table t in access exclusive mode`
            const fiber = yield* Effect.forkChild(copyIn(client, copyStatement, endless(seen)))
            const blocked = sql<{
              n: number
            }>`select count(*)::int as n from pg_locks where not granted and relation = 't'::regclass`
            yield* blocked.pipe(
              Effect.flatMap((counts) => (counts[0]?.n === 1 ? Effect.void : Effect.fail("not yet"))),
              Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 200 })
            )
            const chunks = seen.chunks
            yield* Fiber.interrupt(fiber)
            return chunks
          })
        )
        // No data is sent before the server is ready. Only the waiting chunk was read.
        assert.isAtMost(chunksWhileBlocked, 2)
        assert.isTrue(seen.ended)
      }).pipe(Effect.scoped)
    )
  )

  it.live("writes no row and closes connection and session when it is interrupted", () =>
    run(
      Effect.gen(function* () {
        const { client, count, sql } = yield* table
        const seen = { chunks: 0, ended: false }
        const fiber = yield* Effect.forkChild(copyIn(client, copyStatement, endless(seen)))
        yield* Effect.suspend(() => (seen.chunks > 50 ? Effect.void : Effect.fail("not yet"))).pipe(
          Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 1000 })
        )
        yield* Fiber.interrupt(fiber)
        assert.isTrue(seen.ended)
        assert.isTrue((yield* Effect.flip(query(client, "ask", "select 1"))).isRetryable)
        yield* sql<{
          n: number
        }>`select count(*)::int as n from pg_stat_activity where datname = current_database() and query like 'copy t%'`.pipe(
          Effect.flatMap((counts) => (counts[0]?.n === 0 ? Effect.void : Effect.fail("not yet"))),
          Effect.retry({ schedule: Schedule.spaced("20 millis"), times: 200 })
        )
        assert.strictEqual(yield* count, 0)
      }).pipe(Effect.scoped)
    )
  )

  it.live("lets other work of the process run", () =>
    run(
      Effect.gen(function* () {
        const { client } = yield* table
        const seen = { chunks: 0, ended: false }
        const error = yield* Effect.flip(
          copyIn(client, copyStatement, endless(seen)).pipe(Effect.timeout("300 millis"))
        )
        assert.strictEqual(error._tag, "TimeoutError")
      }).pipe(Effect.scoped)
    )
  )

  it.live("fails with a retryable error when the connection is lost midway", () =>
    run(
      Effect.gen(function* () {
        const { client, count, sql } = yield* table
        const [session] = yield* query<{ pid: number }>(client, "ask", "select pg_backend_pid() as pid")
        const seen = { chunks: 0, ended: false }
        const fiber = yield* Effect.forkChild(copyIn(client, copyStatement, endless(seen)))
        yield* Effect.suspend(() => (seen.chunks > 50 ? Effect.void : Effect.fail("not yet"))).pipe(
          Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 1000 })
        )
        yield* sql`select pg_terminate_backend(${session!.pid})`
        const error = yield* Effect.flip(Fiber.join(fiber))
        assert.isTrue(error.isRetryable, error.message)
        assert.isTrue(seen.ended)
        assert.strictEqual(yield* count, 0)
        // A closed client fails at once.
        const again = yield* Effect.flip(copyIn(client, copyStatement, rows(10)))
        assert.isTrue(again.isRetryable, again.message)
      }).pipe(Effect.scoped)
    )
  )

  it.live("rethrows an exception of the chunk source and writes no row", () =>
    run(
      Effect.gen(function* () {
        const { client, count } = yield* table
        const exit = yield* Effect.exit(
          copyIn(
            client,
            copyStatement,
            (function* () {
              yield* rows(10)
              throw new Error("cannot render")
            })()
          )
        )
        assert.include(String(exit), "cannot render")
        assert.isTrue((yield* Effect.flip(query(client, "ask", "select 1"))).isRetryable)
        assert.strictEqual(yield* count, 0)
      }).pipe(Effect.scoped)
    )
  )
})

describe("copyOut", () => {
  it.live("feeds copyIn of another connection, and an error of its server ends both", () =>
    run(
      Effect.gen(function* () {
        const { client, count, database } = yield* table
        const other = yield* database.connect
        const rows = "select id, repeat('x', 1000) || E'\\t\\n' from generate_series(1, 20000) as id"
        assert.strictEqual(yield* copyIn(client, copyStatement, copyOut(other, `copy (${rows}) to stdout`)), 20_000)
        assert.isTrue(yield* isUsable(client))
        assert.isTrue(yield* isUsable(other))
        const divided = `copy (select 30000 + id, (1 / (15000 - id))::text from generate_series(1, 20000) as id) to stdout`
        const error = yield* Effect.flip(copyIn(client, copyStatement, copyOut(other, divided)))
        assert.strictEqual(error.code, "22012")
        assert.strictEqual(yield* count, 20_000)
      }).pipe(Effect.scoped)
    )
  )
})

describe("escapeCopyText", () => {
  it("escapes the special characters of COPY and no others", () => {
    assert.strictEqual(escapeCopyText("a\\b\tc\nd\re"), "a\\\\b\\tc\\nd\\re")
    assert.strictEqual(escapeCopyText("\\N"), "\\\\N")
    assert.strictEqual(escapeCopyText("\\."), "\\\\.")
    for (const plain of ["", "plain", "ü€𝄞", "'\"\b\f\v\u2028", "N"]) assert.strictEqual(escapeCopyText(plain), plain)
  })

  it.live("writes text that COPY reads back unchanged", () =>
    run(
      Effect.gen(function* () {
        const { client, sql } = yield* table
        const values = ["", "\\N", "\\.", "a\tb", "a\r\nb", "\\\\", "\\t", "𝄞", "\u0001", "end\\", "\n", " \t "]
        const text = values.map((value, id) => `${id}\t${escapeCopyText(value)}\n`).join("")
        yield* copyIn(client, copyStatement, [text])
        const rowsRead = yield* sql<{ name: string }>`select name from t order by id`
        assert.deepStrictEqual(
          rowsRead.map((row) => row.name),
          values
        )
      }).pipe(Effect.scoped)
    )
  )
})

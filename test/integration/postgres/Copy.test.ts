import { assert, it as test } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type pg from "pg"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { copyIn, copyOut, escapeCopyText } from "../../../src/postgres/driver/Copy.ts"
import { layerSql, sql } from "../../support/postgres.ts"
import { settled } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { valuesOf } from "../../support/rows.ts"

const copyStatement = "copy t (id, name) from stdin"

/** An empty table `t`, a dedicated connection that fills it, and the pool to read it. */
const table = Effect.gen(function* () {
  yield* sql`drop table if exists t`
  yield* sql`create table t (id bigint primary key, name text)`
  const database = yield* Database
  const client = yield* database.connect
  const count = Effect.map(sql<{ n: number }>`select count(*)::int as n from t`, (rows) => rows[0]!.n)
  const load = (chunks: Parameters<typeof copyIn>[2]) => copyIn(client, copyStatement, chunks)
  return { sql, database, client, count, load }
})

const assertUsable = (client: pg.Client) =>
  Effect.map(query<{ n: number }>(client, "ask", "select 1 as n"), (rows) => assert.deepStrictEqual(rows, [{ n: 1 }]))

function* rows(count: number, name = "x") {
  for (let id = 0; id < count; id++) yield `${id}\t${name}\n`
}

/** Endless chunks of 64 KB. */
const makeEndless = () => {
  const seen = { chunks: 0, ended: false }
  function* endless() {
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
  return { seen, endless }
}

suite("copyIn", layerSql, (test) => {
  test("loads rows from text and bytes, with rows split across chunks, in the transaction around it", function* () {
    const { client, count, load, sql } = yield* table
    yield* query(client, "begin", "begin")
    assert.strictEqual(yield* load(["1\ta\n2\t", Buffer.from("ü\n"), new TextEncoder().encode("3\t\\N\n")]), 3)
    assert.strictEqual(yield* count, 0)
    yield* query(client, "commit", "commit")
    assert.deepStrictEqual(yield* sql`select id, name from t order by id`, [
      { id: 1n, name: "a" },
      { id: 2n, name: "ü" },
      { id: 3n, name: null }
    ])
    for (const chunks of [[], [""]]) assert.strictEqual(yield* load(chunks), 0)
    yield* assertUsable(client)
  })

  test("loads many small chunks and large chunks", function* () {
    const { client, count, load } = yield* table
    assert.strictEqual(yield* load(rows(10_000)), 10_000)
    yield* query(client, "truncate", "truncate t")
    const whole = [...rows(40_000, "y".repeat(100))].join("")
    const chunks = Array.from({ length: Math.ceil(whole.length / 2 ** 20) }, (_, i) =>
      whole.slice(i * 2 ** 20, (i + 1) * 2 ** 20)
    )
    assert.strictEqual(yield* load(chunks), 40_000)
    assert.strictEqual(yield* count, 40_000)
  })

  test("rejects what cannot begin before it sends data, and a statement that reads no input", function* () {
    const { client, load } = yield* table
    const { seen, endless } = makeEndless()
    const unknown = yield* Effect.flip(copyIn(client, "copy nowhere from stdin", endless()))
    assert.deepInclude(unknown, { operation: "copy", code: "42P01", isRetryable: false })
    assert.isTrue(seen.ended)
    yield* query(client, "begin", "begin")
    yield* Effect.flip(query(client, "fail", "select 1/0"))
    assert.strictEqual((yield* Effect.flip(load(rows(10)))).code, "25P02")
    yield* query(client, "rollback", "rollback")
    assert.strictEqual((yield* Effect.flip(copyIn(client, "copy what whatever from stdin", rows(10)))).code, "42601")
    for (const statement of [
      "select 1",
      "copy t from '/tmp/file'",
      "copy t from stdin; select 1",
      "copy t to stdout"
    ]) {
      assert.include((yield* Effect.flip(copyIn(client, statement, rows(10)))).message, "COPY ... FROM STDIN")
    }
    yield* assertUsable(client)
  })

  test("reports the server's reason and line for a bad row, and the client stays usable", function* () {
    const { client, count, load } = yield* table
    const early = yield* Effect.flip(load(["1\ta\nx\tb\n"]))
    assert.deepInclude(early, { code: "22P02", isRetryable: false })
    assert.include(early.message, 'COPY t, line 2, column id: "x"')
    const { seen, endless } = makeEndless()
    function* duplicate() {
      yield* rows(20_000)
      yield "5\tagain\n"
      yield* endless()
    }
    assert.strictEqual((yield* Effect.flip(load(duplicate()))).code, "23505")
    assert.isTrue(seen.ended)
    yield* assertUsable(client)
    assert.strictEqual(yield* count, 0)
  })

  test("reads chunks only as fast as the server accepts them", function* () {
    const { load, sql } = yield* table
    // The copy waits for the lock of another transaction, so the server accepts no data.
    const { seen, endless } = makeEndless()
    const chunksWhileBlocked = yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`lock table t in access exclusive mode`
        const fiber = yield* Effect.forkChild(load(endless()))
        const waiting = sql`select 1 from pg_locks where not granted and relation = 't'::regclass`
        yield* settled("the copy waits", waiting, ({ length }) => length === 1)
        const { chunks } = seen
        yield* Fiber.interrupt(fiber)
        return chunks
      })
    )
    // No data is sent before the server is ready. Only the waiting chunk was read.
    assert.isAtMost(chunksWhileBlocked, 2)
    assert.isTrue(seen.ended)
  })

  test("lets other work run, and writes no row and closes the session when it is interrupted", function* () {
    const { client, count, load, sql } = yield* table
    const { seen, endless } = makeEndless()
    const fiber = yield* Effect.forkChild(load(endless()))
    const chunks = Effect.sync(() => seen.chunks)
    yield* settled("some chunks", chunks, (number) => number > 50)
    yield* Fiber.interrupt(fiber)
    assert.isTrue(seen.ended)
    assert.isTrue((yield* Effect.flip(query(client, "ask", "select 1"))).isRetryable)
    const session = sql`select 1 from pg_stat_activity where datname = current_database() and query like 'copy t%'`
    yield* settled("the end of the session", session, ({ length }) => length === 0)
    assert.strictEqual(yield* count, 0)
  })

  test("fails with a retryable error when the connection is lost midway", function* () {
    const { client, count, load, sql } = yield* table
    const [session] = yield* query<{ pid: number }>(client, "ask", "select pg_backend_pid() as pid")
    const { seen, endless } = makeEndless()
    const fiber = yield* Effect.forkChild(load(endless()))
    const chunks = Effect.sync(() => seen.chunks)
    yield* settled("some chunks", chunks, (number) => number > 50)
    yield* sql`select pg_terminate_backend(${session!.pid})`
    const error = yield* Effect.flip(Fiber.join(fiber))
    assert.isTrue(error.isRetryable, error.message)
    assert.isTrue(seen.ended)
    assert.strictEqual(yield* count, 0)
    // A closed client fails at once.
    const again = yield* Effect.flip(load(rows(10)))
    assert.isTrue(again.isRetryable, again.message)
  })

  test("rethrows an exception of the chunk source and writes no row", function* () {
    const { client, count, load } = yield* table
    function* failing() {
      yield* rows(10)
      throw new Error("cannot render")
    }
    assert.include(String(yield* Effect.exit(load(failing()))), "cannot render")
    assert.isTrue((yield* Effect.flip(query(client, "ask", "select 1"))).isRetryable)
    assert.strictEqual(yield* count, 0)
  })

  test("reads the rows of another connection, whose error ends both", function* () {
    const { client, count, database, load } = yield* table
    const other = yield* database.connect
    const sent = "select id, repeat('x', 1000) || E'\\t\\n' from generate_series(1, 20000) as id"
    assert.strictEqual(yield* load(copyOut(other, `copy (${sent}) to stdout`)), 20_000)
    yield* assertUsable(client)
    yield* assertUsable(other)
    const divided = `copy (select 30000 + id, (1 / (15000 - id))::text from generate_series(1, 20000) as id) to stdout`
    assert.strictEqual((yield* Effect.flip(load(copyOut(other, divided)))).code, "22012")
    assert.strictEqual(yield* count, 20_000)
  })

  test("reads escaped text back unchanged", function* () {
    const { load, sql } = yield* table
    const values = ["", "\\N", "\\.", "a\tb", "a\r\nb", "\\\\", "\\t", "𝄞", "\u0001", "end\\", "\n", " \t "]
    yield* load([values.map((value, id) => `${id}\t${escapeCopyText(value)}\n`).join("")])
    assert.deepStrictEqual(valuesOf(yield* sql<{ name: string }>`select name from t order by id`, "name"), values)
  })
})

test("escapeCopyText escapes the special characters of COPY and no others", () => {
  assert.strictEqual(escapeCopyText("a\\b\tc\nd\re"), "a\\\\b\\tc\\nd\\re")
  for (const plain of ["", "plain", "ü€𝄞", "'\"\b\f\v\u2028", "N"]) assert.strictEqual(escapeCopyText(plain), plain)
})

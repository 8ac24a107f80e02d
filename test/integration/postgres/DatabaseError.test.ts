import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DatabaseError } from "../../../src/postgres/Database.ts"
import { layerSql, sql } from "../../support/postgres.ts"
import { testWith } from "../../support/suite.ts"

const testSql = testWith(layerSql)

const coded = (code: string, message = "as the server says") => Object.assign(new Error(message), { code })
const from = DatabaseError.from("test")

describe("DatabaseError", () => {
  const retryable =
    "08000 08003 08006 08P01 57P01 57P02 57P03 40001 40P01 53300 55P03 ECONNREFUSED ECONNRESET EPIPE ETIMEDOUT EAI_AGAIN ENOENT"
  const permanent =
    "22P02 22003 22001 23505 23503 23502 42P01 42601 42501 28P01 3D000 57014 ENOTFOUND EACCES ERR_TLS_CERT_ALTNAME_INVALID DEPTH_ZERO_SELF_SIGNED_CERT"
  it.each(retryable.split(" "))("classifies %s as retryable", (code) => {
    assert.deepInclude(from(coded(code)), { operation: "test", code, isRetryable: true, message: "as the server says" })
  })
  it.each(permanent.split(" "))("classifies %s as permanent", (code) => {
    assert.deepInclude(from(coded(code)), { code, isRetryable: false })
  })

  const lost = [
    "Connection terminated unexpectedly",
    "Connection terminated",
    "timeout expired",
    "Client has encountered a connection error and is not queryable",
    "Client was closed and is not queryable",
    "PgConnection: Connection is closed",
    "Connection closed unexpectedly"
  ]
  it.each(lost)("classifies %s as a lost connection", (message) => {
    assert.deepInclude(from(new Error(message)), { code: undefined, isRetryable: true })
  })

  it("classifies any other error as permanent", () => {
    assert.deepInclude(from(new TypeError("x is not a function")), { code: undefined, isRetryable: false })
    assert.strictEqual(from("text").message, "text")
    assert.strictEqual(from(undefined).isRetryable, false)
    const loop = new Error("loop")
    loop.cause = loop
    assert.strictEqual(from(loop).message, "loop")
  })

  it("keeps an error that is already classified", () => {
    const error = DatabaseError.from("first")(coded("40001"))
    assert.strictEqual(from(error), error)
  })

  it("includes the line and column at which a COPY failed", () => {
    const cause = Object.assign(coded("22P02", "invalid input"), { where: 'COPY stage, line 2, column id: "x"\nmore' })
    assert.strictEqual(from(cause).message, 'invalid input (COPY stage, line 2, column id: "x")')
  })
})

describe("DatabaseError of the SqlClient", () => {
  testSql("has the code and message of the server", function* () {
    const missing = from(yield* Effect.flip(sql`select * from nowhere`))
    assert.deepInclude(missing, { code: "42P01", isRetryable: false, message: 'relation "nowhere" does not exist' })
    yield* sql`create table once (id int primary key)`
    yield* sql`insert into once values (1)`
    const twice = from(yield* Effect.flip(sql`insert into once values (1)`))
    assert.deepInclude(twice, { code: "23505", isRetryable: false })
    assert.include(twice.message, "Key (id)=(1) already exists.")
    const terminated = from(yield* Effect.flip(sql`select pg_terminate_backend(pg_backend_pid())`))
    assert.deepInclude(terminated, { isRetryable: true })
    assert.deepStrictEqual(yield* sql`select 1 as n`, [{ n: 1 }])
  })

  testSql("shows no parameter that could not be sent", function* () {
    const secret = "hunter2-hunter2"
    const error = from(yield* Effect.flip(sql`select ${secret}::int8 + ${{ secret }}::int8`))
    assert.notInclude(error.message, secret)
    assert.isFalse(error.isRetryable)
  })
})

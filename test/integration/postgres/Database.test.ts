import { once } from "node:events"
import { type AddressInfo, type Socket, createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { connectError } from "../../../src/postgres/Server.ts"
import { query } from "../../../src/postgres/driver/Connection.ts"
import { Database, DatabaseError, sqlLayer } from "../../../src/postgres/Database.ts"
import { parseUrl } from "../../../src/postgres/DatabaseUrl.ts"
import { freshDatabase, layerDatabase, layerSql, serverUrl } from "../../support/postgres.ts"
import { settled } from "../../support/until.ts"
import { temporaryFolder } from "../../support/servers.ts"
import { test, testWith } from "../../support/suite.ts"

const testSql = testWith(layerSql)
const testDatabase = testWith(layerDatabase)

/** The connection error, for dedicated and pooled connections. Both must have the same message. */
const refused = (url: Redacted.Redacted) =>
  Effect.gen(function* () {
    const database = Database.layerUrl(url)
    const dedicated = yield* Effect.flip(
      Effect.scoped(Effect.flatMap(Database, ({ connect }) => connect)).pipe(Effect.provide(database))
    )
    const pooled = yield* Effect.flip(Effect.provide(SqlClient, Layer.provide(sqlLayer, database)))
    assert.instanceOf(dedicated, DatabaseError)
    assert.instanceOf(pooled, DatabaseError)
    assert.strictEqual(pooled.message, dedicated.message)
    return dedicated
  })

describe("a database connection", () => {
  testSql("has a session in UTC and the types of the SqlClient", function* () {
    const text = `select current_setting('TimeZone') as zone, current_setting('application_name') as name, 9007199254740993::int8 as big,
                           '2026-01-31'::date as day, 1.10::numeric as money, '2026-01-31T10:00:00Z'::timestamptz as at`
    const client = yield* (yield* Database).connect
    const expected = [
      {
        zone: "UTC",
        name: "tributary",
        big: 9007199254740993n,
        day: "2026-01-31",
        money: "1.10",
        at: new Date("2026-01-31T10:00:00Z")
      }
    ]
    assert.deepStrictEqual(yield* query(client, "ask", text), expected)
    assert.deepStrictEqual(yield* (yield* SqlClient).unsafe(text), expected)
  })

  testDatabase("has TCP keepalive and connection checks, which release the locks of a lost machine", function* () {
    const client = yield* (yield* Database).connect
    const settings = ["idle", "interval", "count"].map((name) => `current_setting('tcp_keepalives_${name}') as ${name}`)
    const looks = "current_setting('client_connection_check_interval') as looks"
    assert.deepStrictEqual(yield* query(client, "ask", `select ${[...settings, looks].join(", ")}`), [
      { idle: "30", interval: "10", count: "3", looks: "2s" }
    ])
  })

  testDatabase("that is lost fails only its next query", function* () {
    const database = yield* Database
    const client = yield* database.connect
    const [row] = yield* query<{ pid: number }>(client, "ask", "select pg_backend_pid() as pid")
    const sessionEnd = new Promise<void>((settle) => client.once("end", settle))
    yield* Effect.scoped(
      Effect.flatMap(database.connect, (other) => query(other, "kill", "select pg_terminate_backend($1)", [row!.pid]))
    )
    yield* Effect.promise(() => sessionEnd)
    assert.isTrue((yield* Effect.flip(query(client, "ask", "select 1"))).isRetryable)
  })

  testSql("rolls back and cancels the running statement when its scope fails", function* () {
    const database = yield* Database
    const sql = yield* SqlClient
    yield* sql`create table t (id int)`
    const work = Effect.gen(function* () {
      const client = yield* database.connect
      yield* query(client, "begin", "begin")
      yield* query(client, "insert", "insert into t values (1)")
      yield* query(client, "sleep", "select pg_sleep(600)")
    })
    const fiber = yield* Effect.forkChild(Effect.scoped(work))
    const sleeping = sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and query like '%pg_sleep(600)%' and pid <> pg_backend_pid()`
    yield* settled("the statement", sleeping, ([row]) => row!.n === 1)
    yield* Fiber.interrupt(fiber)
    yield* settled("its end", sleeping, ([row]) => row!.n === 0)
    assert.deepStrictEqual(yield* sql`select * from t`, [])
  })
})

describe("a failed database connection", () => {
  /** The URL of a server on a port that answers each message with these bytes, and what it has received. */
  const serve = Effect.fnUntraced(function* (answer: Uint8Array | null) {
    const received: Array<string> = []
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket.on("error", () => {}))
      socket.on("data", (bytes) => {
        received.push(bytes.toString("latin1"))
        if (answer !== null) socket.write(answer)
      })
    }).listen(0, "127.0.0.1")
    const close = Effect.sync(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    yield* Effect.addFinalizer(() => close)
    yield* Effect.promise(() => once(server, "listening"))
    const { port } = server.address() as AddressInfo
    return { url: `postgres://me:hunter2@127.0.0.1:${port}/x`, port, received, close }
  })

  test("reports the address and a hint when the port is closed", function* () {
    const { url, port, close } = yield* serve(null)
    yield* close
    const error = yield* refused(Redacted.make(url))
    assert.strictEqual(
      error.message,
      `cannot reach Postgres at 127.0.0.1:${port} (ECONNREFUSED): start it, or unset DATABASE_URL to use the embedded one`
    )
    assert.isTrue(error.isRetryable)
  })

  test("reports a server that never answers as retryable", function* () {
    const { url } = yield* serve(null)
    const error = yield* refused(Redacted.make(`${url}?connect_timeout=1`))
    assert.include(error.message, "no answer in time")
    assert.isTrue(error.isRetryable)
  })

  test("never sends the password in clear text", function* () {
    // The server requests the password in clear text.
    const { url, received } = yield* serve(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
    const error = yield* refused(Redacted.make(url))
    assert.match(error.message, /requests the password in clear text.*: set sslmode=verify-full in DATABASE_URL/)
    assert.isAbove(received.length, 1)
    assert.notInclude(received.join(""), "hunter2")
  })

  it.effect.each<{ what: string; change: (url: URL) => void; message: RegExp }>([
    {
      what: "a wrong password without showing it",
      change: (url) => (url.password = "hunter2"),
      message: /refused the password of user "tributary" \(28P01\): check DATABASE_URL$/
    },
    { what: "a missing password", change: (url) => (url.password = ""), message: /password/ },
    {
      what: "a missing database",
      change: (url) => (url.pathname = "/nowhere"),
      message: /has no database "nowhere" \(3D000\): create it/
    },
    {
      what: "a server without TLS when TLS is required",
      change: (url) => (url.search = "?sslmode=require"),
      message: /does not speak TLS/
    }
  ])("reports $what", ({ change, message }) =>
    Effect.gen(function* () {
      const url = new URL(Redacted.value(yield* serverUrl))
      change(url)
      const error = yield* refused(Redacted.make(url.href))
      assert.match(error.message, message)
      assert.notInclude(JSON.stringify(error), "hunter2")
      assert.isFalse(error.isRetryable)
    })
  )

  test("reports which connection limit is reached", function* () {
    const reached = Object.assign(new Error('too many connections for role "app"'), { code: "53300" })
    const endpoint = yield* parseUrl(yield* serverUrl)
    const { message } = connectError({ endpoint, describe: "", embedded: false })(reached)
    assert.match(message, /no connection left \(53300: too many connections for role "app"\).*of the role or database/)
  })

  test("reports a missing unix socket", function* () {
    const folder = yield* temporaryFolder
    const error = yield* refused(Redacted.make(`postgres://me@/x?host=${folder}`))
    assert.include(error.message, `cannot reach Postgres at ${folder}:5432 (ENOENT)`)
  })
})

describe("DATABASE_URL", () => {
  const parse = (url: string) => parseUrl(Redacted.make(url))

  test("is parsed as in libpq", function* () {
    const endpoint = yield* parse(
      "postgresql://a%40b:p%2Fw@db.example:6000/some%20name?connect_timeout=3&sslmode=disable&options=-c%20work_mem%3D8MB&application_name=mine"
    )
    const { password, ...rest } = endpoint
    assert.deepStrictEqual(rest, {
      host: "db.example",
      port: 6000,
      user: "a@b",
      database: "some name",
      ssl: undefined,
      connectTimeout: Duration.seconds(3),
      applicationName: "mine",
      options: "-c work_mem=8MB"
    })
    assert.strictEqual(Redacted.value(password), "p/w")
    assert.deepInclude(yield* parse("postgres://me@db?ssl=false"), { port: 5432, database: "me" })
    assert.deepInclude(yield* parse("postgres://me@[::1]:7/x"), { host: "::1", port: 7 })
    assert.deepInclude(yield* parse("postgres:///x?host=/run/pg&user=me&port=7"), {
      host: "/run/pg",
      user: "me",
      port: 7
    })
    assert.deepInclude(yield* parse("postgres://me:pw@/x?host=/run/pg"), { host: "/run/pg", database: "x" })
    assert.deepInclude(yield* parse("postgres://me@/x"), { host: "localhost" })
    assert.deepInclude(yield* parse("postgres://me:one,two@localhost/x"), { host: "localhost" })
  })

  test("sets TLS options from the sslmode parameters", function* () {
    // The common settings of Node programs must not be weaker than they claim.
    assert.deepStrictEqual((yield* parse("postgres://me@db/x?ssl=true")).ssl, {})
    assert.deepStrictEqual((yield* parse("postgres://me@db/x?sslrootcert=system")).ssl, {})
    assert.deepStrictEqual(
      (yield* parse("postgres://me@db/x?sslmode=verify-full&ssl_min_protocol_version=TLSv1.3")).ssl,
      { minVersion: "TLSv1.3" }
    )
    for (const local of ["me@localhost/x", "me@127.0.0.1/x", "me@[::1]/x", "me@/x?host=/run/pg"]) {
      assert.isUndefined((yield* parse(`postgres://${local}`)).ssl, local)
    }
    yield* parse("postgres://me@db/x?sslmode=require&channel_binding=prefer&target_session_attrs=any&gssencmode=prefer")
    assert.isUndefined((yield* parse("postgres://me@db/x?sslmode=disable")).ssl)
    assert.deepStrictEqual((yield* parse("postgres://me@db/x?sslmode=require")).ssl, { rejectUnauthorized: false })
    assert.deepStrictEqual((yield* parse("postgres://me@db/x?sslmode=verify-full")).ssl, {})
    assert.isFunction((yield* parse("postgres://me@db/x?sslmode=verify-ca")).ssl?.checkServerIdentity)
  })

  const mistakes = [
    ["mysql://me:hunter2@db/x", "must begin with postgres://"],
    ["hunter2", "cannot be read"],
    ["postgres://:hunter2@db/x", "names no user"],
    ["postgres://me:%zz-hunter2@db/x", "cannot be read"],
    ["postgres://me:hunter2@db/x?sslmode=prefer", "allowed are disable, require, verify-ca, verify-full"],
    ["postgres://me:hunter2@db/x?sslmode=verify-full&sslrootcert=/nowhere", "cannot be read (/nowhere does not exist)"],
    ["postgres://me:hunter2@db/x?connect_timeout=soon", "connect_timeout that is no number"],
    ["postgres://me:hunter2@localhost/x?port=99999", "has a port that is not between 1 and 65535"],
    ["postgres://me:hunter2@localhost/x?port=0", "has a port that is not between 1 and 65535"],
    ["postgres://me:hunter2@one:1,two:2/x", "names more than one host"],
    ["postgres://me:hunter2@localhost/x%00y", "contains %00"],
    ["postgres://me:hunter2@db/x", "add sslmode=verify-full, or sslmode=disable if the network is trusted"],
    ["postgres://me:hunter2@127.0.0.1.example/x", "add sslmode=verify-full"],
    ["postgres://me:hunter2@x/x?sslmode=allow", "allowed are disable, require, verify-ca, verify-full"],
    ["postgres://me:hunter2@db/x?ssl=true&sslmode=disable", "sets both ssl and sslmode"],
    ["postgres://me:hunter2@db/x?ssl=no-verify", "neither true nor false"],
    ["postgres://me:hunter2@db/x?sslmode=disable&sslrootcert=/a", "sets sslrootcert, which has no effect"],
    [
      "postgres://me:hunter2@db/x?sslmode=require&channel_binding=require",
      "sets channel_binding, which is not supported: remove it, and set sslmode=verify-full"
    ],
    [
      "postgres://me:hunter2@db/x?sslmode=require&require_auth=scram-sha-256",
      "sets require_auth, which is not supported: remove it, and set sslmode=verify-full"
    ],
    ["postgres://me:hunter2@localhost/x?target_session_attrs=standby", "any, read-write and primary only: remove it"],
    ["postgres://me:hunter2@localhost/x?krbsrvname=hunter", "sets krbsrvname, which is not supported; remove it"],
    ["postgres://me:hunter2@localhost/x?hunter2%20=1", "a parameter with an unknown name"],
    ["postgres://me:hunter2@db/x?sslcert=/a", "both sslcert and sslkey"],
    ["postgres://me@/x?host=/run/pg&sslmode=verify-full&password=hunter2", "TLS on a unix socket"],
    ["postgres://me:hunter2@db/x#hunter2", "contains a #"]
  ] as const
  it.effect.each(mistakes)("is rejected when it is %s", ([url, part]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(parse(url))
      assert.include(error.message, part)
      assert.notInclude(JSON.stringify(error) + String(error.stack), "hunter2")
    })
  )
})

test("target_session_attrs is checked by each new connection and by the pool", function* () {
  const url = new URL(Redacted.value(yield* freshDatabase))
  const session = (value: string) => {
    url.searchParams.set("target_session_attrs", value)
    const database = Database.layerUrl(Redacted.make(url.href))
    return {
      dedicated: Effect.scoped(Effect.flatMap(Database, ({ connect }) => connect)).pipe(Effect.provide(database)),
      pooled: Effect.flatMap(SqlClient, (sql) => sql`select 1`).pipe(Effect.provide(Layer.provide(sqlLayer, database)))
    }
  }
  const accepts = ({ dedicated, pooled }: ReturnType<typeof session>) => Effect.andThen(dedicated, pooled)
  for (const value of ["any", "primary", "read-write"]) yield* accepts(session(value))
  yield* Effect.flatMap(SqlClient, (sql) =>
    sql.unsafe(`alter database ${url.pathname.slice(1)} set default_transaction_read_only = on`)
  ).pipe(Effect.provide(Layer.provide(sqlLayer, Database.layerUrl(Redacted.make(url.href)))))
  for (const value of ["any", "primary"]) yield* accepts(session(value))
  const { dedicated, pooled } = session("read-write")
  for (const failing of [Effect.asVoid(dedicated), Effect.asVoid(pooled)]) {
    const error = yield* Effect.flip(failing)
    assert.instanceOf(error, DatabaseError)
    assert.match(error.message, /read-only for this user, and target_session_attrs=read-write is set: name the primary/)
    assert.isTrue(error.isRetryable)
  }
})

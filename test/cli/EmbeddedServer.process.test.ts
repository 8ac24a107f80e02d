/** The embedded Postgres as other programs use it, from an empty folder on. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { once } from "node:events"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import pg from "pg"
import { startCommand } from "../support/reference.ts"
import { temporaryFolder } from "../support/servers.ts"

/** Commands in this folder; the server is stopped at the end. */
const commandsIn = (cwd: string, env: Readonly<Record<string, string>> = {}) => {
  const run = (...args: ReadonlyArray<string>) => Effect.promise(() => startCommand(args, { cwd, env }).done)
  return Effect.acquireRelease(Effect.succeed(run), () => run("postgres", "stop"))
}

interface State {
  readonly running: { readonly port: number; readonly pid: number } | null
  readonly exists: boolean
  readonly stays: boolean
}

const askAt = (connectionString: string, text: string) =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString })
    await client.connect()
    try {
      return JSON.stringify((await client.query(text)).rows)
    } catch (error) {
      return String(error)
    } finally {
      await client.end()
    }
  })

describe("the embedded Postgres", () => {
  it.live("is not made by commands that read, and stays for other programs from start to stop", () =>
    Effect.gen(function* () {
      const cwd = yield* temporaryFolder
      // A program in the place of psql prints what it gets.
      const programs = join(cwd, "programs")
      mkdirSync(programs)
      const psql = '#!/bin/sh\necho "$PGUSER $PGPORT $PGDATABASE ${#PGPASSWORD} $PGOPTIONS" "$@"\nexit ${FAILS:-0}\n'
      writeFileSync(join(programs, "psql"), psql, { mode: 0o755 })
      const env = { PATH: programs }
      const run = yield* commandsIn(cwd, env)
      const state = (what: string) =>
        Effect.map(run("postgres", what, "--json"), ({ code, stdout, stderr }) => {
          assert.strictEqual(code, 0, stderr)
          return JSON.parse(stdout) as State
        })

      for (const args of [["status"], ["query", "select 1"], ["explain", "orders", "1"], ["psql"]]) {
        const { code, stderr } = yield* run(...args)
        assert.deepStrictEqual([code, /no warehouse here yet: .*init/.test(stderr)], [2, true], `${args[0]}: ${stderr}`)
      }
      assert.include(yield* state("status"), { running: null, exists: false, stays: false })
      assert.include(yield* state("stop"), { running: null, exists: false, stays: false })
      assert.deepStrictEqual(readdirSync(cwd), ["programs"])

      const started = yield* state("start")
      assert.include(started, { exists: true, stays: true })
      // A command that ends leaves it running.
      const { code, stderr, stdout } = yield* run("status", "--connection")
      assert.deepStrictEqual([code, stderr], [0, ""])
      const url = stdout.trim()
      assert.deepStrictEqual((yield* state("status")).running, started.running)
      assert.strictEqual(
        yield* askAt(url, "select current_user::text as name, count(*) > 0 as some from tributary.runs"),
        '[{"name":"tributary_reader","some":false}]'
      )
      assert.match(yield* askAt(url, "create table public.x ()"), /read-only transaction/)
      const owner = yield* run("status", "--connection", "--owner", "--json")
      const { url: ownerUrl } = JSON.parse(owner.stdout) as { url: string }
      assert.strictEqual(yield* askAt(ownerUrl, "create table public.x ()"), "[]")

      const { port, username } = new URL(url)
      const session = yield* run("psql", "-c", "select 1", "--", "--csv")
      assert.deepStrictEqual(session.stdout.trim(), `${username} ${port} tributary 43  -c select 1 --csv`)
      assert.strictEqual(
        (yield* Effect.promise(() => startCommand(["psql"], { cwd, env: { ...env, FAILS: "3" } }).done)).code,
        1
      )
      rmSync(programs, { recursive: true })
      const absent = yield* run("psql")
      assert.deepStrictEqual([absent.code, /psql is not installed/.test(absent.stderr)], [2, true], absent.stderr)

      assert.include(yield* state("stop"), { running: null, exists: true, stays: false })
      // Without it, a command stops the server that it has started.
      yield* run("status", "--connection")
      assert.include(yield* state("status"), { running: null, stays: false })
    }).pipe(Effect.scoped)
  )

  it.live("takes the next port where another program has its own", () =>
    Effect.gen(function* () {
      const other = createServer().listen(0, "127.0.0.1")
      yield* Effect.promise(() => once(other, "listening"))
      const { port } = other.address() as AddressInfo
      const cwd = yield* temporaryFolder
      mkdirSync(join(cwd, "config"))
      writeFileSync(join(cwd, "config", "tributary.yaml"), `warehouse:\n  embedded_port: ${port}\n`)
      const run = yield* commandsIn(cwd)
      const { stdout, stderr } = yield* run("postgres", "start")
      const shown = Number(/127\.0\.0\.1:(\d+)/.exec(stdout)?.[1])
      assert.isTrue(shown > port && shown <= port + 20, `${port}, then ${stdout}${stderr}`)
      other.close()
    }).pipe(Effect.scoped)
  )
})

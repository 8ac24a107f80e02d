/**
 * Restores of one dataset alone by `pg_restore`, on Postgres 15: after the next sync the warehouse is equal to the source,
 * or the sync ends with code 2 and names one command. The simulation loses and restores datasets in other ways.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import pg from "pg"
import { startServer } from "../postgres/server.ts"
import { type ReferenceProcess, startCommand, startReference } from "../support/reference.ts"

const resources = ["salesmen", "invoices"]
const programs = "/usr/lib/postgresql/15/bin"

type Run = (...args: ReadonlyArray<string>) => ReturnType<typeof startCommand>["done"]

const assertEqual = async (client: pg.Client, succeed: Run) => {
  await succeed("verify", ...resources)
  const { rows } = await client.query(
    `select n.nspname || '.' || c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('erp', 'erp_history') and c.relkind = 'r' and c.relname !~ '__damaged'
        and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`
  )
  assert.deepStrictEqual(rows, [], "tables without a key")
  for (const resource of resources) {
    const { rows: versions } = await client.query(
      `select id, _version from erp_history.${resource} group by 1, 2 having count(*) > 1`
    )
    assert.deepStrictEqual(versions, [], `versions of ${resource} with one number`)
  }
}

describe.skipIf(!existsSync(join(programs, "pg_restore")))("a dataset restored alone by pg_restore", () => {
  const scope = Scope.makeUnsafe()
  const hold = <A>(value: A, release: () => Promise<void>) =>
    Effect.runPromise(Scope.addFinalizer(scope, Effect.promise(release)).pipe(Effect.as(value)))
  let reference: ReferenceProcess
  let token: string
  let folder: string
  let phone = 0

  beforeAll(async () => {
    reference = await startReference(["--data", "demo"])
    await hold(reference, reference.stop)
    token = await reference.token(1)
    folder = mkdtempSync(join(tmpdir(), "tributary-restores-"))
    await hold(folder, async () => rmSync(folder, { recursive: true, force: true }))
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  for (const dataset of ["erp", "erp_history", "tributary"]) {
    it(`${dataset}: is equal after the next sync, or after one repair`, async () => {
      const { url, stop } = await startServer("15", ["fsync=off"])
      await hold(url, stop)
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await hold(client, () => client.end())
      const env = { SERVICE_API_URL: reference.baseUrl, SERVICE_API_TOKEN: token, DATABASE_URL: url }
      const run: Run = (...args) => startCommand(args, { cwd: folder, env }).done
      const succeed: Run = async (...args) => {
        const done = await run(...args)
        assert.strictEqual(done.code, 0, `${args.join(" ")}: ${done.stdout}${done.stderr}`)
        return done
      }
      const change = (...ids: ReadonlyArray<number>) =>
        reference.control("POST", "/records", {
          company: 1,
          resource: "salesmen",
          records: ids.map((id) => ({ id, phone1: `555-${(phone += 1)}` }))
        })
      const sync = () => succeed("sync", ...resources)
      await sync()
      await change(1, 2)
      await sync()
      const dump = join(folder, `${dataset}.dump`)
      execFileSync(join(programs, "pg_dump"), ["--dbname", url, "-Fc", "-n", dataset, "-f", dump])
      await change(2, 3)
      await sync()
      // It goes on after an error, and ends with 1.
      spawnSync(join(programs, "pg_restore"), ["--dbname", url, "--clean", "--if-exists", dump])
      await change(4)
      const done = await run("sync", ...resources)
      assert.include([0, 2], done.code, done.stderr)
      if (done.code === 2) {
        assert.include(done.stderr, "tributary schema repair")
        assert.match((await run("doctor", "--json")).stdout, /is damaged/)
        assert.match((await run("status")).stdout, /damaged table/)
        await succeed("schema", "repair")
        await sync()
      }
      await assertEqual(client, succeed)
    }, 300_000)
  }
})

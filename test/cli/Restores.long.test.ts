/**
 * Restores of one dataset alone, by the real commands, on Postgres 15 and 18: after the next sync the warehouse is equal
 * to the source, or the sync ends with code 2 and names one command. That command repairs all damaged tables together.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import pg from "pg"
import { startServer } from "../postgres/server.ts"
import { freshDatabase } from "../support/postgres.ts"
import { type ReferenceProcess, startCommand, startReference } from "../support/reference.ts"

const resources = ["salesmen", "invoices"]
const datasets = ["erp", "erp_history", "tributary"] as const
type Dataset = (typeof datasets)[number]

const programs = "/usr/lib/postgresql/15/bin"
const hasPrograms = existsSync(join(programs, "pg_restore"))

/** The tables of a dataset. */
const tablesOf = async (client: pg.Client, dataset: string): Promise<ReadonlyArray<string>> => {
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r' order by 1`,
    [dataset]
  )
  return rows.map(({ name }) => name)
}

const copy = async (client: pg.Client, dataset: Dataset) => {
  await client.query(`create schema backup_${dataset}`)
  for (const table of await tablesOf(client, dataset))
    await client.query(`create table backup_${dataset}.${table} as table ${dataset}.${table}`)
}

const fill = async (client: pg.Client, dataset: Dataset) => {
  for (const table of await tablesOf(client, `backup_${dataset}`))
    await client.query(`insert into ${dataset}.${table} overriding system value table backup_${dataset}.${table}`)
}

/** As `pg_restore` leaves tables that views keep it from dropping: their keys are gone, and the rows are added. */
const add = async (client: pg.Client, dataset: Dataset) => {
  const { rows } = await client.query<{ drop: string }>(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop
       from pg_constraint where contype = 'p' and connamespace = $1::regnamespace`,
    [dataset]
  )
  for (const row of rows) await client.query(row.drop)
  await fill(client, dataset)
}

interface Stand {
  readonly url: string
  readonly client: pg.Client
  readonly run: (...args: ReadonlyArray<string>) => ReturnType<typeof startCommand>["done"]
  readonly change: (...ids: ReadonlyArray<number>) => Promise<void>
}

interface Way {
  readonly name: string
  readonly datasets: ReadonlyArray<Dataset>
  readonly restore: (stand: Stand, dataset: Dataset, dump: string) => Promise<void>
  readonly needsPrograms?: boolean
}

/** Constraints and triggers do not hinder a restore of the control plane, as with `pg_restore --disable-triggers`. */
const unhindered = async (client: pg.Client, dataset: Dataset, body: () => Promise<void>) => {
  if (dataset === "tributary") await client.query("set session_replication_role = replica")
  await body()
  await client.query("reset session_replication_role")
}

const emptied = (command: "truncate" | "delete") => async (stand: Stand, dataset: Dataset) =>
  unhindered(stand.client, dataset, async () => {
    const tables = (await tablesOf(stand.client, dataset)).map((table) => `${dataset}.${table}`)
    if (command === "truncate") await stand.client.query(`truncate ${tables.join(", ")} cascade`)
    else for (const table of tables) await stand.client.query(`delete from ${table}`)
    await fill(stand.client, dataset)
  })

const restored = (url: string, dump: string, ...options: ReadonlyArray<string>) => {
  try {
    execFileSync(join(programs, "pg_restore"), ["--dbname", url, ...options, dump], { stdio: "pipe" })
  } catch {
    // It goes on after an error, and ends with 1.
  }
}

const ways: ReadonlyArray<Way> = [
  {
    name: "dropped",
    datasets,
    restore: async ({ client }, dataset) => {
      await client.query(`drop schema ${dataset} cascade`)
    }
  },
  { name: "truncated and copied", datasets, restore: emptied("truncate") },
  { name: "deleted and copied", datasets, restore: emptied("delete") },
  {
    name: "added to what was there",
    datasets: ["erp", "erp_history"],
    restore: ({ client }, dataset) => add(client, dataset)
  },
  {
    name: "restored by pg_restore --clean --if-exists",
    datasets,
    restore: async ({ url }, _, dump) => restored(url, dump, "--clean", "--if-exists"),
    needsPrograms: true
  }
]

const assertEqual = async ({ client, run }: Stand) => {
  const verified = await run("verify", ...resources)
  assert.strictEqual(verified.code, 0, verified.stdout + verified.stderr)
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

for (const version of ["15", "18"]) {
  describe(`a dataset restored alone on Postgres ${version}`, () => {
    const scope = Scope.makeUnsafe()
    const hold = <A>(value: A, release: () => Promise<void>) =>
      Effect.runPromise(Scope.addFinalizer(scope, Effect.promise(release)).pipe(Effect.as(value)))
    let reference: ReferenceProcess
    let token: string
    let folder: string
    let phone = 0

    const database = async (): Promise<string> => {
      if (version === "18") {
        const url = await Effect.runPromise(Scope.provide(freshDatabase, scope))
        return `${Redacted.value(url)}?sslmode=disable`
      }
      const server = await startServer(version, ["fsync=off"])
      return hold(server.url, server.stop)
    }

    const stand = async (): Promise<Stand> => {
      const url = await database()
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await hold(client, () => client.end())
      const env = { SERVICE_API_URL: reference.baseUrl, SERVICE_API_TOKEN: token, DATABASE_URL: url }
      return {
        url,
        client,
        run: (...args) => startCommand(args, { cwd: folder, env }).done,
        change: async (...ids) => {
          const records = ids.map((id) => ({ id, phone1: `555-${(phone += 1)}` }))
          await reference.control("POST", "/records", { company: 1, resource: "salesmen", records })
        }
      }
    }

    beforeAll(async () => {
      reference = await startReference(["--data", "demo"])
      await hold(reference, reference.stop)
      token = await reference.token(1)
      folder = mkdtempSync(join(tmpdir(), "tributary-restores-"))
      await hold(folder, async () => rmSync(folder, { recursive: true, force: true }))
    }, 60_000)
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

    for (const dataset of datasets) {
      it(`${dataset}: is equal after the next sync, or after one repair`, async () => {
        const place = await stand()
        const sync = async () => {
          const done = await place.run("sync", ...resources)
          assert.include([0, 2], done.code, done.stderr)
          if (done.code === 0) return
          assert.include(done.stderr, "tributary schema repair")
          const doctor = await place.run("doctor", "--json")
          assert.match(doctor.stdout, /is damaged/)
          const status = await place.run("status")
          assert.match(status.stdout, /damaged table/)
          const repaired = await place.run("schema", "repair")
          assert.strictEqual(repaired.code, 0, repaired.stderr)
          const again = await place.run("sync", ...resources)
          assert.strictEqual(again.code, 0, again.stderr)
        }
        for (const way of ways) {
          if (!way.datasets.includes(dataset) || (way.needsPrograms === true && (!hasPrograms || version === "18")))
            continue
          await sync()
          await place.change(1, 2)
          await sync()
          await place.client.query(`drop schema if exists backup_${dataset} cascade`)
          await copy(place.client, dataset)
          const dump = join(folder, `${dataset}.dump`)
          if (way.needsPrograms === true)
            execFileSync(join(programs, "pg_dump"), ["--dbname", place.url, "-Fc", "-n", dataset, "-f", dump])
          await place.change(2, 3)
          await sync()
          await way.restore(place, dataset, dump)
          await place.change(4)
          await sync()
          await assertEqual(place)
        }
      }, 600_000)
    }
  })
}

/** The commands: exit codes, stdout and stderr, and no secret in any output. */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

const filesBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesBelow(path) : [path]
  })

describe("the tributary commands", () => {
  it.live(
    "end with the documented exit code, results on stdout and messages on stderr",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })

          const help = yield* world.run(["--help"])
          assert.strictEqual(help.code, 0)
          assert.include(help.stdout, "reference-server")
          assert.strictEqual(help.stderr, "")

          for (const args of [["sync", "--nope"], ["nope"], ["query"]]) {
            const usage = yield* world.run(args)
            assert.strictEqual(usage.code, 1, args.join(" "))
            assert.strictEqual(usage.stdout, "", args.join(" "))
            assert.include(usage.stderr, "USAGE")
          }

          const empty = yield* world.run(["status"])
          assert.strictEqual(empty.code, 0, empty.stderr)
          assert.include(empty.stdout, "Nothing has been synced yet")

          const unconfigured = yield* world.run(["sync"], { SERVICE_API_URL: "", SERVICE_API_TOKEN: "" })
          assert.strictEqual(unconfigured.code, 2)
          assert.include(unconfigured.stderr, "set SERVICE_API_URL and SERVICE_API_TOKEN")

          const unknown = yield* world.run(["sync", "nonsense"])
          assert.strictEqual(unknown.code, 2)
          assert.include(unknown.stderr, 'there is no resource "nonsense"')

          const open = yield* world.run(["sync"], { SERVICE_API_URL: "http://erp.example.com/!/api/v2" })
          assert.strictEqual(open.code, 2)
          assert.include(open.stderr, "http")

          world.configure("pagging: {}\n")
          const rejected = yield* world.run(["sync"])
          assert.strictEqual(rejected.code, 2)
          assert.match(rejected.stderr, /config\/tributary\.yaml:1:\d+: pagging: there is no such setting; allowed: /)
          world.configure("paging: { page_size: 50 }\n")

          const unreachable = yield* world.run(["status"], { DATABASE_URL: "postgres://a:s3cretword@127.0.0.1:1/x" })
          assert.strictEqual(unreachable.code, 5)
          assert.include(unreachable.stderr, "cannot reach Postgres at 127.0.0.1:1")
          assert.notInclude(unreachable.stderr, "s3cretword")

          const synced = yield* world.run(["sync", "--json"])
          assert.strictEqual(synced.code, 0, synced.stderr)
          const report = JSON.parse(synced.stdout) as {
            companies: Array<{ companyId: number; outcomes: Array<{ resource: string; status: string }> }>
          }
          assert.strictEqual(report.companies[0]!.companyId, 1)
          assert.isTrue(report.companies[0]!.outcomes.every(({ status }) => status === "done"))
          for (const { resource } of report.companies[0]!.outcomes) {
            assert.deepStrictEqual((yield* world.compare(resource)).differences, [], resource)
          }

          const again = yield* world.run(["sync"])
          assert.strictEqual(again.code, 0)
          assert.match(again.stdout, /^\d+ resources in .*: nothing new \(/)

          const status = yield* world.run(["status", "--json"])
          const { resources } = JSON.parse(status.stdout) as { resources: Array<{ resource: string; rows: number }> }
          assert.isAbove(resources.find(({ resource }) => resource === "invoicelines")!.rows, 100)

          const queried = yield* world.run([
            "query",
            "--json",
            "select 1.10::numeric as exact, 7::bigint as whole, true as flag, null as nothing, 'a\"b' as text"
          ])
          assert.strictEqual(queried.stdout, '{"exact":"1.10","whole":7,"flag":true,"nothing":null,"text":"a\\"b"}\n')

          world.configure(
            "companies:\n  - { name: a, token_env: SERVICE_API_TOKEN, company_id: 7, resources: [salesmen] }\n"
          )
          const warned = yield* world.run(["sync", "--json"])
          assert.strictEqual(warned.code, 0, warned.stderr)
          assert.match(warned.stderr, /^\S+Z WARN the token belongs to company 1, but company 7 is configured$/m)
          assert.strictEqual((JSON.parse(warned.stdout) as { companies: Array<object> }).companies.length, 1)

          const count = () => world.query<{ n: number }>("select count(*)::int as n from erp.invoicelines")
          const before = yield* count()
          for (const [statement, problem] of [
            ["commit; delete from erp.invoicelines where id < 20; select 1", "one read-only statement"],
            ["copy (select 1) to program 'true'", "one read-only statement"],
            ["select pg_read_file('/etc/passwd')", "permission denied for function pg_read_file (42501)"]
          ] as const) {
            const writing = yield* world.run(["query", statement])
            assert.strictEqual(writing.code, 1, statement)
            assert.include(writing.stderr, problem)
            assert.strictEqual(writing.stdout, "")
          }
          assert.deepStrictEqual(yield* count(), before)
        })
      ),
    { timeout: 120_000 }
  )

  it.live(
    "never write the token to output, files or tables, whatever the failure",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          const token = yield* Effect.promise(() => world.reference.token(1))
          const env = { SERVICE_API_TOKEN: token }
          const outputs: Array<string> = []
          const keep = (args: ReadonlyArray<string>, more: Record<string, string> = {}) =>
            Effect.map(world.run(args, { ...env, ...more }), ({ stdout, stderr }) => {
              outputs.push(stdout, stderr)
            })
          yield* world.control("POST", "/faults", {
            seed: 3,
            rules: [
              { path: "/payments", kind: "status", status: 500, times: 2 },
              { path: "/orders", kind: "html", times: 1 },
              { path: "/items", kind: "reset", times: 1 }
            ]
          })
          yield* keep(["sync", "--json"])
          yield* keep(["sync", "--full", "--log-level", "all"])
          yield* world.control("POST", "/tokens/revoke", { token })
          yield* keep(["sync"])
          yield* keep(["sync"], { SERVICE_API_URL: `${world.reference.baseUrl}/nowhere` })
          yield* keep(["status", "--json"])
          const [dump] = yield* world.query<{ text: string }>(
            `select string_agg(t::text, ' ') as text from (
               select to_jsonb(r) as t from tributary.runs r union all
               select to_jsonb(c) from tributary.checkpoints c union all
               select to_jsonb(q) from tributary.quarantine q union all
               select to_jsonb(i) from erp.invoices i) as everything`
          )
          outputs.push(dump!.text, ...filesBelow(world.folder).map((path) => readFileSync(path, "latin1")))
          assert.isAbove(outputs.join("").length, 10_000)
          for (const output of outputs) assert.notInclude(output, token)
        })
      ),
    { timeout: 120_000 }
  )
})

/** Settings of a database or a role. With each of them rows are correct, or an error names the setting. */
import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { overStdio } from "../../support/assistant.ts"
import { makeHostileWorld } from "./hostileWorld.ts"

const resources = ["customers", "items", "invoices", "invoicelines"]

it.live(
  "a database with unusual default settings gives the bytes of a plain role, by sync, verify, close, export, queries as of a moment, and MCP",
  () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { world, hostile, succeeds, grant } = yield* makeHostileWorld
        yield* succeeds(["sync"], hostile)
        yield* succeeds(["sync", "--full", ...resources], hostile)
        yield* grant
        const sealed = yield* world.run(["query", "select sealed_token from tributary.company_settings"], hostile)
        assert.strictEqual(sealed.code, 1, sealed.stdout)
        assert.include(sealed.stderr, "permission denied")
        // The plain roles: the superuser, which makes a reader of its own.
        const [now] = yield* world.query<{ now: string }>("select now()::text as now")
        const everything =
          "select c.*, '{null}'::text[] as list, interval '26 hours' as span, 'a\\b' as slash, 0.1::float8 * 3 as float, " +
          "'61ff'::bytea as bytes, lower('ABC') as lower, count(1::int8) over () as counted from customers c order by c.id"
        const reads: ReadonlyArray<ReadonlyArray<string>> = [
          ["query", "--json", everything],
          ["query", "--json", "--as-of", now!.now, everything],
          ["query", "--json", "--as-of", now!.now, "--mode", "source", "select * from invoices order by id"],
          ["query", "--json", "select * from receivables_rollforward order by 1, 2, 3"],
          ["query", "--json", "select * from erp_history.customers order by id, _version"],
          ["verify", ...resources]
        ]
        for (const args of reads) {
          assert.strictEqual(yield* succeeds(args, hostile), yield* succeeds(args), args.join(" "))
        }
        const digests = Effect.fnUntraced(function* (name: string, env: Readonly<Record<string, string>>) {
          const to = join(world.folder, name)
          yield* succeeds(["export", "--format", "csv", "--history", "--to", to], env)
          return readdirSync(to, { recursive: true, withFileTypes: true })
            .filter((file) => file.isFile() && file.name !== "manifest.json")
            .map((file) => {
              const content = readFileSync(join(file.parentPath, file.name))
              return `${file.name.replace(/-?\d{4}.*$/, "")} ${createHash("md5").update(content).digest("hex")}`
            })
            .sort((one, other) => (one < other ? -1 : 1))
        })
        const exported = yield* digests("hostile", hostile)
        assert.isAbove(exported.length, 100)
        assert.deepStrictEqual(exported, yield* digests("plain", {}))
        const closed = Effect.fnUntraced(function* (name: string, env: Readonly<Record<string, string>>) {
          const to = join(world.folder, name)
          mkdirSync(to)
          // Code 4: the draft has differences, which the file lists.
          yield* succeeds(["close", "2026-10", "--draft", "--to", to], env, [0, 4])
          const [file] = readdirSync(to).filter((one) => one.endsWith(".json"))
          const {
            resources: figures,
            models,
            state,
            verification
          } = JSON.parse(readFileSync(join(to, file!), "utf8")) as Record<string, unknown>
          assert.isNotEmpty(figures)
          return { figures, models, state, verified: (verification as { readonly resources: unknown }).resources }
        })
        assert.deepStrictEqual(yield* closed("close-hostile", hostile), yield* closed("close-plain", {}))
        const asked = (env: Readonly<Record<string, string>>) =>
          Effect.scoped(
            Effect.flatMap(
              overStdio(world.folder, {
                SERVICE_API_URL: world.reference.baseUrl,
                SERVICE_API_TOKEN: "not-used",
                DATABASE_URL: world.databaseUrl,
                ...env
              }),
              ({ call }) =>
                Effect.promise(async () => [
                  (await call("query", { sql: everything })).data,
                  (await call("query", { sql: everything, as_of: now!.now })).data,
                  (await call("freshness", { resource: "customers" })).answer
                ])
            )
          )
        const answers = yield* asked(hostile)
        assert.isDefined(answers[0])
        assert.deepStrictEqual(answers.slice(0, 2), (yield* asked({})).slice(0, 2))
        assert.match(JSON.stringify(answers[2]), /"fresh_at":"\d{4}-/)
      })
    ),
  600_000
)

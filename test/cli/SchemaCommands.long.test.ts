/**
 * `tributary schema` against a server that sends fields outside the catalogue, with a resource that only the
 * configuration defines.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorld } from "../support/world.ts"

interface Report {
  readonly statements: ReadonlyArray<string>
  readonly adopted: ReadonlyArray<{ readonly field: string; readonly column: string; readonly type: string }>
  readonly unknownFields: ReadonlyArray<{
    readonly resource: string
    readonly field: string
    readonly type: string | null
  }>
  readonly names: ReadonlyArray<{ readonly name: string; readonly inDatabase: string }>
}

const json = (text: string) => JSON.parse(text) as Report

describe("tributary schema", () => {
  it.live(
    "shows and creates missing tables and columns, infers columns and reports conflicting types",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
          world.configure(
            [
              "companies:",
              "  - name: main",
              "    resources: [items, webhooks]",
              "resources:",
              "  webhooks: { cancel: true }",
              ""
            ].join("\n")
          )
          const token = yield* Effect.promise(() => world.reference.token(1))
          const run = (...args: ReadonlyArray<string>) => world.run(args, { SERVICE_API_TOKEN: token })
          const subscribe = (url: string) =>
            Effect.promise(async () => {
              const answer = await fetch(`${world.reference.baseUrl}/webhooks`, {
                method: "POST",
                headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
                body: JSON.stringify({ url, events: ["orders.created"] })
              })
              assert.strictEqual(answer.status, 201, await answer.text())
            })
          yield* subscribe("https://example.com/one")
          yield* subscribe("https://example.com/two")

          // Before the first sync, the plan shows the tables that a sync would create.
          const fresh = yield* run("schema", "plan")
          assert.strictEqual(fresh.code, 0, fresh.stderr)
          assert.include(fresh.stdout, 'create table "erp"."webhooks"')
          assert.include(fresh.stdout, 'create table "erp"."items"')
          assert.match(fresh.stdout, /-- and [\d,]+ comments/)
          assert.include(fresh.stdout, "tributary schema apply")
          assert.lengthOf(yield* world.query("select 1 from pg_namespace where nspname = 'erp'"), 0)

          yield* world.control("PUT", "/dialect", { extraFields: 9 })
          const odd = { "Odd name": "o", [`${"long".repeat(16)}1`]: 1, [`${"long".repeat(16)}2`]: 2, ID: "i" }
          yield* world.control("POST", "/records", {
            company: 1,
            resource: "items",
            records: [{ id: 990_001, ...odd }]
          })
          const first = yield* run("sync")
          assert.strictEqual(first.code, 0, first.stderr + first.stdout)
          assert.include(first.stderr, "items: new fields, kept in _extra until they have columns: ")
          // A resource that only the configuration defines has its columns at once.
          assert.deepStrictEqual(
            yield* world.query("select url, events, paused, failcount, cancel, _extra from erp.webhooks order by id"),
            ["one", "two"].map((path) => ({
              url: `https://example.com/${path}`,
              events: ["orders.created"],
              paused: false,
              failcount: 0n,
              cancel: false,
              // The values of these fields were null so far, so their types are not inferred yet.
              _extra: { description: null, lastdeliverydate: null, disableddate: null }
            }))
          )

          const status = yield* world.query<{ field: string }>(
            "select field from tributary.inferred_columns where resource = 'webhooks' order by position"
          )
          assert.deepStrictEqual(
            status.map(({ field }) => field),
            ["url", "events", "paused", "failcount"]
          )

          const plan = yield* run("schema", "plan", "--json")
          assert.strictEqual(plan.code, 0, plan.stderr)
          assert.deepStrictEqual(
            new Set(json(plan.stdout).unknownFields.map((one) => `${one.resource}.${one.field} ${one.type}`)),
            new Set([
              ...["description", "disableddate", "lastdeliverydate"].map((field) => `webhooks.${field} null`),
              ...["x_detail json", "x_flag boolean", "x_note text", "x_rate number"].map((field) => `items.${field}`),
              ...Object.entries(odd).map(
                ([name, value]) => `items.${name} ${value === "o" || value === "i" ? "text" : "integer"}`
              )
            ])
          )

          const names = new Map(json(plan.stdout).names.map((one) => [one.name, one.inDatabase]))
          assert.deepStrictEqual(new Set(names.keys()), new Set(Object.keys(odd)))
          for (const name of names.values()) assert.match(name, /^[A-Za-z_]{2,54}_[0-9a-f]{8}$/)

          const rejected = yield* run("schema", "apply", "--field", "items.x_nope")
          assert.strictEqual(rejected.code, 2)
          assert.include(rejected.stderr, '"items.x_nope" is no unknown field of any record; there are: ')
          const one = yield* run("schema", "apply", "--field", "items.x_rate", "--type", "text", "--json")
          assert.strictEqual(one.code, 0, one.stderr)
          assert.deepStrictEqual(json(one.stdout).adopted, [
            { resource: "items", field: "x_rate", column: "x_rate", type: "text" }
          ] as never)
          const rest = yield* run("schema", "apply")
          assert.strictEqual(rest.code, 0, rest.stderr)
          assert.include(rest.stdout, "items.x_flag has the column x_flag (boolean) now")
          assert.deepStrictEqual(
            yield* world.query(
              `select count(*)::int as n from erp.items where _version > 1 or _extra ?| array['x_detail', 'x_flag', 'x_note']`
            ),
            [{ n: 0 }]
          )
          assert.deepStrictEqual(
            yield* world.query(
              `select ${[...names.values()].map((name) => `"${name}"`).join(", ")} from erp.items where id = 990001`
            ),
            [Object.fromEntries([...names].map(([name, column]) => [column, odd[name]]))].map((row) =>
              Object.fromEntries(
                Object.entries(row).map(([name, value]) => [name, typeof value === "number" ? BigInt(value) : value])
              )
            )
          )

          // The next full sync fills the inferred columns and rewrites no other value.
          const again = yield* run("sync", "--full")
          assert.strictEqual(again.code, 0, again.stderr)
          assert.match(again.stdout, /: nothing new \(/)
          assert.notInclude(again.stderr, "new fields")
          const verified = yield* run("verify", "--resource", "items")
          assert.strictEqual(verified.code, 0, verified.stderr + verified.stdout)

          const grants = yield* run("schema", "grants", "--reader", "analyst")
          assert.strictEqual(grants.code, 0, grants.stderr)
          assert.include(grants.stdout, 'to "analyst";')
          // A changed column type is reported, and nothing is changed.
          yield* world.query("drop view erp_history.items, erp_asof.items cascade")
          yield* world.query("alter table erp.items alter column x_flag type text")
          const conflict = yield* run("schema", "apply")
          assert.strictEqual(conflict.code, 2)
          assert.include(conflict.stderr, "erp.items: the column x_flag is text and should be boolean")
          assert.lengthOf(
            yield* world.query("select 1 from pg_views where schemaname = 'erp_history' and viewname = 'items'"),
            0
          )
        })
      ),
    { timeout: 120_000 }
  )
})

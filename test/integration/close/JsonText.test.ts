/** The text of a JSON object without `jsonb`, beside what Postgres prints from `jsonb`. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as JsonText from "../../../src/close/JsonText.ts"
import { literal } from "../../../src/warehouse/Identifier.ts"
import { layerSql, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

const kinds: Readonly<Record<JsonText.Member["kind"], ReadonlyArray<string>>> = {
  text: [
    "''::text",
    `E'"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\u00a0\\u2028ä😀'::text`,
    "'null'::text",
    "null::text"
  ],
  quoted: ["'1.50'::text", "null::text"],
  plain: ["0::bigint", "'-9223372036854775808'::bigint", "null::bigint"],
  boolean: ["true", "false", "null::boolean"],
  json: [
    `'{"bb": 1, "a": [null, {"c": null}], "d": {"e": null}}'::jsonb`,
    "'null'::jsonb",
    `'"null"'::jsonb`,
    "null::jsonb",
    "'1.50'::numeric",
    "'NaN'::numeric",
    "'1 day'::interval"
  ]
}
/** As `jsonb` takes the value. */
const objectOf = (members: ReadonlyArray<JsonText.Member>): string =>
  members.map(({ name, value }) => `jsonb_build_object(${literal(name)}, ${value})`).join(" || ")

suite("the text of a JSON object", layerSql, (test) => {
  const same = Effect.fnUntraced(function* (members: ReadonlyArray<JsonText.Member>) {
    const [row] = yield* sql.unsafe<{ own: string; postgres: string }>(
      `select ${JsonText.objectText(members)} as own, jsonb_strip_nulls(${objectOf(members)})::text as postgres`
    )
    assert.strictEqual(row!.own, row!.postgres)
    return row!.own
  })

  test("is that of jsonb for every value", function* () {
    const all: Array<JsonText.Member> = []
    for (const [kind, values] of Object.entries(kinds) as ReadonlyArray<
      [JsonText.Member["kind"], ReadonlyArray<string>]
    >) {
      for (const [index, value] of values.entries()) {
        const member: JsonText.Member = { name: `${kind} ${index}`, value, kind }
        all.push(member)
        const text = yield* same([member])
        if (value.startsWith("null")) assert.strictEqual(text, "{}")
      }
    }
    assert.isAbove((yield* same(all)).length, 200)
  })

  test("has its members in the order of jsonb, however many there are", function* () {
    const names = [..."id Z a ä aé zz zzz aaa \" ' 😀 _ A1 1A".split(" "), "", "\\", "\n", "\u007f"]
    const others = Array.from({ length: 230 }, (_, at) => `field${(at * 7919) % 230}`)
    const members = [...names, ...others].map((name, at): JsonText.Member => ({
      name,
      value: `${at}`,
      kind: "plain"
    }))
    assert.lengthOf(Object.keys(JSON.parse(yield* same(members)) as object), names.length + others.length)
  })
})

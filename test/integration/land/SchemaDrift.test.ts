/** Unknown fields of records: recorded, reported once, and promoted to columns without a new row version. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Decode from "../../../connectors/service-v2/client/Decode.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { SourceRecord } from "../../../src/connector/Connector.ts"
import * as SchemaDrift from "../../../src/land/SchemaDrift.ts"
import * as ColumnPromotion from "../../../src/warehouse/ColumnPromotion.ts"
import * as WarehouseCatalogue from "../../../src/warehouse/WarehouseCatalogue.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import * as TablePlan from "../../../src/warehouse/TablePlan.ts"
import { executeNamed } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"
import { execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { scripted, things, tiny } from "../../support/tiny.ts"
import { flowing } from "../../support/until.ts"
import { at, list, run } from "../sync/syncing.ts"
import { suite } from "../../support/suite.ts"
import { assertEach } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

/** A catalogue with one resource of this name, so that tests share a database and no table. */
const catalogueOf = (path: string) => {
  const resource: Resource = { ...things, path }
  const base: Catalogue = { ...tiny, resources: new Map([[path, resource]]) }
  return { base, resource }
}

const configured: WarehouseCatalogue.ConfiguredResource = {
  path: "things",
  area: null,
  modifiedSince: false,
  cancel: false,
  key: null
}

const read = (resource: Resource, records: ReadonlyArray<string>): ReadonlyArray<SourceRecord> => {
  const text = `[${records.join(",")}]`
  const { records: read, rejected } = Decode.make(resource).list(text, 0)
  assert.deepStrictEqual(rejected, [])
  return read
}

/** Lands records as a backfill reads them. Returns what the run remarks. */
const land = Effect.fnUntraced(function* (resource: Resource, records: ReadonlyArray<string>, companyId = 1n) {
  const table = tableOf(resource)
  yield* TablePlan.apply([table])
  const source = scripted(companyId, list(null, ...read(resource, records)))
  const { notes, status } = yield* run(source, companyId, { table, backfill: { since: at(0), until: null } })
  assert.strictEqual(status, "done")
  return notes.join("; ")
})

/** The fields of a resource that remarks name. */
const fieldsIn = (notes: string, path: string) =>
  [...notes.matchAll(new RegExp(`"${path}\\.(\\w+)"`, "g"))]
    .map(([, name]) => name!)
    .toSorted((a, b) => (a < b ? -1 : 1))

const recordsOf = (resource: Resource) =>
  Effect.map(
    execute<{ record: string }>(`select record::text as record from ${tableOf(resource).view} order by id, _version`),
    (rows) => rows.map(({ record }) => record)
  )

interface RegisteredField {
  readonly field: string
  readonly times: bigint
  readonly type_mismatches: bigint
  readonly sample_types: ReadonlyArray<string>
  readonly adopted: boolean
}
const registerOf = (path: string) =>
  execute<RegisteredField>(
    `select field, times, type_mismatches, sample_types, promoted_at is not null as adopted
       from tributary.unknown_fields where resource = $1 order by field`,
    [path]
  )

/** Promotes all candidates. Returns the resource with its new columns. */
const adoptAll = Effect.fnUntraced(function* (base: Catalogue, path: string) {
  const resource = (yield* WarehouseCatalogue.load(base)).resources.get(path)!
  const columns = (yield* ColumnPromotion.candidates([resource])).flatMap(({ field, type }) =>
    type === null ? [] : [{ field, type }]
  )
  const promotion = yield* ColumnPromotion.promote(resource, columns, datasetsDefault)
  return { ...promotion, resource: (yield* WarehouseCatalogue.load(base)).resources.get(path)! }
})

suite("schema drift", warehouse, (test) => {
  test("records unknown fields with the types of their values, and reports each field once", function* () {
    const { resource } = catalogueOf("noted")
    const first = yield* land(resource, [
      '{"id":1,"seen":"2024-01-01T00:00:00.123456789Z","x_flag":true,"x_amount":"12.50","x_code":"0012"}',
      '{"id":2,"x_flag":null,"x_when":"2024-02-29","x_at":"2024-02-29T10:00:00Z","x_rate":1.10,"x_more":{"a":[1]}}'
    ])
    // `seen` is in _extra because of its digits. It is a field of the catalogue, so it is not reported as new.
    assert.deepStrictEqual(fieldsIn(first, "noted").join(" "), "x_amount x_at x_code x_flag x_more x_rate x_when")
    assert.include(first, 'new fields, kept in _extra until they have columns: "noted.x_')
    assert.notInclude(first, "do not fit")
    const again = yield* land(resource, ['{"id":3,"x_flag":1,"x_count":9007199254740993}'])
    assert.deepStrictEqual(fieldsIn(again, "noted"), ["x_count"])
    assert.strictEqual(yield* land(resource, ['{"id":1,"x_flag":false}']), "")
    const register = yield* registerOf("noted")
    assertEach(register, ({ field, times, sample_types }) => `${field} ${times} ${sample_types.join("/")}`, [
      "x_amount 1 decimal",
      "x_at 1 timestamp",
      "x_code 1 text",
      "x_count 1 number",
      "x_flag 4 boolean/integer/null",
      "x_more 1 nested",
      "x_rate 1 number",
      "x_when 1 date"
    ])
  })

  test("runs no statement while there is no new field, and writes the counts at the end", function* () {
    const { resource } = catalogueOf("counted")
    const statements: Array<string> = []
    const real = yield* (yield* Database).connect
    const client = new Proxy(real, {
      get: (target, name) =>
        name === "query"
          ? (text: string, values: Array<unknown>) => {
              statements.push(text)
              return target.query(text, values)
            }
          : Reflect.get(target, name)
    })
    const drift = SchemaDrift.make({
      runStatement: (statement, ...values) => executeNamed(client, statement.name, statement, ...values),
      table: tableOf(resource),
      companyId: 1n,
      runId: 1n
    })
    assert.deepStrictEqual(yield* drift.note(['{"x":1}', null], false), { unknown: ["x"], typeMismatches: [] })
    for (let page = 0; page < 5; page++) {
      assert.deepStrictEqual(yield* drift.note([null, '{"x":2}', null], false), SchemaDrift.emptyDriftReport)
    }
    assert.lengthOf(statements, 1)
    yield* drift.note(['{"x":3}'], true)
    assert.lengthOf(statements, 2)
    yield* drift.note([], true)
    assert.lengthOf(statements, 2)
    assert.deepStrictEqual(valuesOf(yield* registerOf("counted"), "times"), [7n])
  })

  test("promotion adds columns that contain every value exactly, and creates no row version", function* () {
    const { base, resource: before } = catalogueOf("adopted")
    const records = [
      '{"id":1,"name":"a","flag2":true,"count":5,"rate":1.10,"amount":"12.50","zip":"01234","code":"77","born":"2024-02-29","at":"2024-02-29T10:00:00.5Z","more":{"b":1,"a":[1.50]},"mixed":"x"}',
      '{"id":2,"name":"b","flag2":null,"count":-7,"rate":3,"amount":"-1","zip":"9","code":"A","born":"1999-12-31","at":"2024-02-29T10:00:00Z","more":[1],"mixed":4.20}',
      '{"id":3,"name":"c"}'
    ]
    yield* land(before, records)
    yield* execute(`insert into erp_history.adopted__superseded (_company_id, id, name, _extra, _version, _origin, _observed_at, _valid_to)
                 values (1, 3, 'old', '{"count": 3, "gone": 1}', 1, 'scan', now(), now())`)
    yield* execute("update erp.adopted set _version = 2 where id = 3")
    const recordsBefore = yield* recordsOf(before)
    const { promotions, resource } = yield* adoptAll(base, "adopted")
    assert.sameMembers(
      promotions.map(({ field, column, type }) => `${field} ${column} ${type}`),
      ["flag2 flag2 boolean", "count count integer", "rate rate number", "amount amount decimal"].concat([
        "zip zip text",
        "code code text",
        "born born date",
        "at at timestamp",
        "more more json",
        "mixed mixed text"
      ])
    )
    const rows = yield* execute<Record<string, unknown>>(
      "select flag2, count, rate::text, amount::text, zip, code, born::text, at::text, more, mixed, _extra, _version from erp.adopted order by id"
    )
    assert.deepStrictEqual(rows[0], {
      flag2: true,
      count: 5n,
      rate: "1.10",
      amount: "12.50",
      zip: "01234",
      code: "77",
      born: "2024-02-29",
      at: "2024-02-29 10:00:00.5+00",
      more: { a: [1.5], b: 1 },
      mixed: "x",
      _extra: null,
      _version: 1n
    })
    // A number among texts is stored as text in the column, and as the original number in _extra.
    assert.deepStrictEqual([rows[1]!["mixed"], rows[1]!["_extra"]], ["4.20", { mixed: 4.2 }])
    const [old] = yield* execute("select count, _extra from erp_history.adopted__superseded where id = 3")
    assert.deepStrictEqual(old, { count: 3n, _extra: { gone: 1 } })
    // The records are the same as before, except the format of instants and omitted fields, which are null.
    const shorn = (texts: ReadonlyArray<string>) =>
      texts.map((text) =>
        Object.fromEntries(
          Object.entries(JSON.parse(text) as Record<string, unknown>).filter(
            ([name, value]) => name !== "at" && value !== null
          )
        )
      )
    assert.deepStrictEqual(shorn(yield* recordsOf(resource)), shorn(recordsBefore))
    assert.include((yield* recordsOf(resource))[0], '"rate": 1.10')

    // A second read of the records equals the rows, so it writes nothing.
    const written = execute("select id, xmin::text from erp.adopted order by id")
    const rowVersions = yield* written
    yield* land(resource, records)
    assert.deepStrictEqual(yield* written, rowVersions)
    assert.deepStrictEqual(yield* ColumnPromotion.candidates([resource]), [])
    assert.deepStrictEqual(yield* TablePlan.planFor([tableOf(resource)]), [])
    assert.isTrue((yield* registerOf("adopted")).every(({ adopted }) => adopted))
  })

  test("keeps values that do not fit an inferred column in _extra, and reports them", function* () {
    const { base, resource: unadopted } = catalogueOf("misfit")
    yield* land(unadopted, ['{"id":1,"size":5,"born":"2024-01-01"}'])
    const { resource } = yield* adoptAll(base, "misfit")
    const noted = yield* land(resource, [
      '{"id":2,"size":"XL","born":"2024-02-30"}',
      '{"id":3,"size":6,"born":null}',
      '{"id":4,"size":1e2}'
    ])
    assert.deepStrictEqual(fieldsIn(noted, "misfit"), ["born", "size"])
    assert.match(noted, /^values that do not fit their inferred column/)
    const rows = yield* execute("select size, born::text, _extra from erp.misfit order by id")
    assert.deepStrictEqual(rows, [
      { size: 5n, born: "2024-01-01", _extra: null },
      { size: null, born: null, _extra: { size: "XL", born: "2024-02-30" } },
      { size: 6n, born: null, _extra: null },
      { size: null, born: null, _extra: { size: 100 } }
    ])
    assert.include((yield* recordsOf(resource))[1], '"size": "XL"')
    assertEach(yield* registerOf("misfit"), ({ field, type_mismatches }) => [field, type_mismatches], [
      ["born", 1n],
      ["size", 2n]
    ])
    // A field of the catalogue has a known type. A value of another type makes the record invalid.
    const text = '[{"id":9,"price":"dear"}]'
    const { rejected } = Decode.make(resource).list(text, 0)
    assert.deepStrictEqual([rejected[0]!.id, rejected[0]!.field], ["9", "price"])
  })

  test("promotion finds a valid column name for any field name, and keeps it", function* () {
    const { base, resource: unadopted } = catalogueOf("named")
    const long = "b".repeat(63)
    const names = [
      `${long}1234567`,
      `${long}7654321`,
      "PRICE",
      "Price",
      "_version",
      "_company_id",
      "ID",
      'the "odd" one',
      "it's",
      "\\\\",
      "😀",
      "select",
      "ctid",
      "a.b",
      "__proto__",
      "constructor",
      "%s $1 ?",
      "$tributary$; drop table erp.named",
      "end $$"
    ]
    const record = (id: number, value: (name: string) => string) =>
      `{"id":${id},${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(value(name))}`).join(",")}}`
    yield* land(unadopted, [record(1, (name) => `first ${name}`)])
    const { resource, promotions } = yield* adoptAll(base, "named")
    assert.deepStrictEqual(new Set(promotions.map(({ field }) => field)), new Set(names))
    const columnNames = [...tableOf(resource).columns, ...tableOf(resource).meta].map(({ name }) => name.toLowerCase())
    assert.lengthOf(new Set(columnNames), columnNames.length)
    yield* land(resource, [record(2, (name) => `second ${name}`)])
    const [row] = yield* execute<Record<string, unknown>>("select * from erp.named where id = 2")
    for (const { field, column } of promotions) assert.strictEqual(row![column], `second ${field}`)
    assert.strictEqual(row!["_extra"], null)
    const [first, second] = (yield* recordsOf(resource)).map((text) => JSON.parse(text) as Record<string, unknown>)
    for (const name of names) {
      assert.strictEqual(first![name], `first ${name}`)
      assert.strictEqual(second![name], `second ${name}`)
    }
    // A later field with the name of such a column gets another column.
    const mapped = promotions.find(({ field }) => field === "a.b")!.column
    yield* land(resource, [`{"id":3,${JSON.stringify(mapped)}:"late"}`])
    const later = yield* adoptAll(base, "named")
    assert.notStrictEqual(later.promotions[0]!.column, mapped)
    assert.strictEqual(later.resource.field.get("a.b")!.inferred!.column, mapped)
    const [comment] = yield* execute<{ text: string }>(`
        select col_description('erp.named'::regclass, attnum) as text from pg_attribute
         where attrelid = 'erp.named'::regclass and attname = '${mapped}'`)
    assert.include(comment!.text, 'the field "a.b"')
  })

  test("converts a value in the same way before and after its column exists", function* () {
    const types = ["integer", "number", "decimal", "boolean", "text", "date", "timestamp", "json"] as const
    const values = [
      "null | true | false | 0 | -1 | 123456789012345678 | 1234567890123456789 | 1.10 | -0.5 | 0.0 | 100 | [] | {}",
      '[1, {"a": 2}] | "" | "x" | "\\u00e9\\n" | "true" | "0" | "-0" | "-0.00" | "01" | "1." | "12.50" | "-12.50" | "1e5"',
      '"123456789012345678.123456789012345678" | "1234567890123456789" | "٣"',
      '"2024-02-29" | "2023-02-29" | "2024-04-31" | "0000-01-01" | "9999-12-31" | "2024-1-1" | "2024-02-29 "',
      '"2024-02-29T23:59:59Z" | "2024-02-29T23:59:60Z" | "2024-02-30T00:00:00Z" | "2024-02-29T24:00:00Z"',
      '"2024-02-29T00:00:00.123456Z" | "2024-02-29T00:00:00.1234567Z" | "2024-02-29T00:00:00+00:00"'
    ].flatMap((line) => line.split(" | "))
    for (const type of types) {
      const resource = WarehouseCatalogue.withInferred(things, [{ name: "v", column: "v", type }])
      const place = resource.fields.length - 1
      const expectedRows = yield* execute<{ text: string | null; whole: boolean }>(
        `select case when $2 = 'json' then v::text else tributary.inferred_text(v, $2) end as text,
                  tributary.inferred_is_complete(v, $2) as whole
             from unnest($1::text[]) with ordinality as t (raw, n), lateral (select raw::jsonb as v) j order by n`,
        [values, type]
      )
      const asJson = (text: string | null | undefined) => JSON.stringify(JSON.parse(text ?? "null"))
      values.forEach((raw, index) => {
        const [record] = read(resource, [`{"id":1,"v":${raw}}`])
        const { text, whole } = expectedRows[index]!
        const value = record!.columns[place]
        assert.deepStrictEqual(
          [type === "json" ? asJson(value) : value, record!.extra === null],
          [type === "json" ? asJson(text) : text, whole],
          `${raw} as ${type}`
        )
      })
    }
  })

  test("promotion creates no column while all values are null, and uses the last of two members of a name", function* () {
    const { base, resource } = catalogueOf("twice")
    yield* land(resource, ['{"id":1,"dup":null}'])
    assertEach(yield* ColumnPromotion.candidates([resource]), ({ field, type }) => [field, type], [["dup", null]])
    assert.deepStrictEqual((yield* adoptAll(base, "twice")).promotions, [])
    yield* land(resource, ['{"id":7,"dup":1,"id":8,"dup":2}'])
    yield* adoptAll(base, "twice")
    assert.deepStrictEqual(yield* execute("select id, dup, _extra from erp.twice where id > 1"), [
      { id: 8n, dup: 2n, _extra: null }
    ])
  })

  test("promotion refuses a resource with an active run, and fences off older runs", function* () {
    const { base, resource } = catalogueOf("busy")
    yield* land(resource, ['{"id":1,"x":1}'], 4n)
    const { busy, fence } = yield* Effect.gen(function* () {
      const other = yield* (yield* Database).connect
      yield* Effect.promise(() => other.query("select pg_advisory_lock(hashtextextended('tributary:4:busy', 0))"))
      return {
        busy: yield* flowing(Effect.flip(adoptAll(base, "busy"))),
        fence: yield* execute<{ fence: bigint }>("select fence from tributary.checkpoints where resource = 'busy'")
      }
    }).pipe(Effect.scoped)
    assert.include(busy.message, "is being synced right now")
    assert.strictEqual(busy._tag === "TableConflict" && busy.isRetryable, true)
    assert.lengthOf(
      yield* execute("select 1 from pg_attribute where attrelid = 'erp.busy'::regclass and attname = 'x'"),
      0
    )
    assert.lengthOf((yield* adoptAll(base, "busy")).promotions, 1)
    const after = yield* execute<{ fence: bigint }>("select fence from tributary.checkpoints where resource = 'busy'")
    assert.strictEqual(after[0]!.fence, fence[0]!.fence + 1n)
  })

  test("promotion rolls back when a trigger of the user raises an error", function* () {
    const { base, resource } = catalogueOf("raising")
    yield* land(resource, ['{"id":1,"x":1}'])
    yield* execute(`create function public.raise_it() returns trigger language plpgsql as
                 $$ begin raise exception 'no updates on fridays'; end $$`)
    yield* execute("create trigger t before update on erp.raising for each row execute function public.raise_it()")
    assert.include((yield* Effect.flip(adoptAll(base, "raising"))).message, "no updates on fridays (P0001)")
    assert.strictEqual((yield* WarehouseCatalogue.load(base)).resources.get("raising"), resource)
    assert.deepStrictEqual(yield* execute("select _extra from erp.raising"), [{ _extra: { x: 1 } }])
    yield* execute("drop trigger t on erp.raising")
    assert.lengthOf((yield* adoptAll(base, "raising")).promotions, 1)
  })

  test("adds the columns of a resource that only the configuration defines as they appear", function* () {
    const path = "Sales/Work-Orders"
    const orders = { ...configured, path, modifiedSince: true, key: "code" }
    const nothing = { ...tiny, resources: new Map() }
    const base = yield* WarehouseCatalogue.addConfigured(nothing, [orders])
    const resourceNow = Effect.map(WarehouseCatalogue.load(base), ({ resources }) => resources.get(path)!)
    yield* land(yield* resourceNow, ['{"id":1,"code":"A","lastchangedate":"2024-01-01T00:00:00Z","size":4,"note":"n"}'])
    const inferred = yield* ColumnPromotion.infer(yield* resourceNow, datasetsDefault)
    assert.deepStrictEqual(inferred.map(({ field, type }) => `${field} ${type}`).sort(), ["note text", "size integer"])
    assert.deepStrictEqual(yield* ColumnPromotion.infer(yield* resourceNow, datasetsDefault), [])
    yield* land(yield* resourceNow, ['{"id":2,"code":"B","lastchangedate":"2024-01-02T00:00:00Z","size":5,"new":true}'])
    assert.lengthOf(yield* ColumnPromotion.infer(yield* resourceNow, datasetsDefault), 1)
    const { name } = tableOf(yield* resourceNow)
    assert.match(name, /^Sales_Work_Orders_[0-9a-f]{8}$/)
    assert.deepStrictEqual(yield* execute(`select id, code, size, note, new, _extra from erp."${name}" order by id`), [
      { id: 1n, code: "A", size: 4n, note: "n", new: null, _extra: null },
      { id: 2n, code: "B", size: 5n, note: null, new: true, _extra: null }
    ])
    assert.lengthOf(yield* recordsOf(yield* resourceNow), 2)
    assert.strictEqual(WarehouseCatalogue.inferredCount(yield* resourceNow), 3)
    assert.deepStrictEqual(yield* execute(`select ${WarehouseCatalogue.inferredCountSql("$1")} as n`, [path]), [
      { n: 3 }
    ])
    // A second resource whose name differs only by case has its own table, whichever is named first.
    const both = yield* WarehouseCatalogue.addConfigured(nothing, [{ ...configured, path: path.toLowerCase() }, orders])
    const tables = [...(yield* WarehouseCatalogue.load(both)).resources.values()].map((one) => tableOf(one).name)
    assert.strictEqual(tables[1], name)
    assert.notStrictEqual(tables[0]!.toLowerCase(), name.toLowerCase())
  })

  test("leaves the fields of the connector unchanged, and an empty overlay returns the catalogue", function* () {
    assert.strictEqual(yield* WarehouseCatalogue.addConfigured(tiny, []), tiny)
    const { base, resource } = catalogueOf("plain")
    assert.strictEqual((yield* WarehouseCatalogue.load(base)).resources.get("plain"), resource)
    const conflict = yield* Effect.flip(WarehouseCatalogue.addConfigured(tiny, [configured]))
    assert.include(conflict.message, "resources.things: the catalogue knows this resource already")
    // A field that the connector states later keeps the column that was inferred for it.
    yield* land(resource, ['{"id":1,"later":"x"}'])
    yield* adoptAll(base, "plain")
    const later = WarehouseCatalogue.withInferred(things, [{ name: "memo", column: "memo", type: "integer" }])
    assert.strictEqual(later.fields.length, things.fields.length)
    assert.strictEqual(tableOf(later).columns.find(({ name }) => name === "memo")!.sqlType, "bigint")
  })
})

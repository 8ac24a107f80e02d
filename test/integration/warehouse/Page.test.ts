/**
 * The generated parts of `docs/reference/tables.md`: tables, joins and diagrams from the catalogue, models, and the
 * control plane from the migrated database. `npm run docs` writes them.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { readModels } from "../../../connectors/service-v2/models/index.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { secretTables } from "../../../src/warehouse/Grants.ts"
import { currentColumns, tableOf } from "../../../src/warehouse/Table.ts"
import { assertGenerated, code, tableText } from "../../docs/generated.ts"
import { tablesByFolder, tablesWrittenBy } from "../../docs/writers.ts"
import { assertNone } from "../../support/assertions.ts"
import { layerWarehouse, sql } from "../../support/postgres.ts"
import { suite } from "../../support/suite.ts"

const resources = [...serviceV2.resources.values()]

/** The columns that hold the id of another record. */
const joinsOf = ({ fields }: Resource) =>
  fields.flatMap(({ name, reference }) => (reference?.half === "id" ? [{ name, to: reference.resource }] : []))

/** The purpose without its list of children, and the children. */
const purposeOf = ({ purpose }: Resource) => {
  const [holds, children] = purpose.split("; children: ")
  return { holds: holds!, children: children?.split(", ") ?? [] }
}

const entities = (own: ReadonlyArray<Resource>) =>
  tableText(
    ["table", "holds", "known by", "dates", "lines", "basis"],
    own.map((resource) => [
      `\`${resource.path}\``,
      purposeOf(resource).holds,
      resource.key === null ? "" : `\`${resource.key.field}\``,
      code(resource.fields.flatMap(({ name, type }) => (type._tag === "date" ? [name] : []))),
      code(purposeOf(resource).children),
      resource.basis
    ])
  )

const joins = (own: ReadonlyArray<Resource>) =>
  own
    .filter((resource) => joinsOf(resource).length > 0)
    .map(
      (resource) =>
        `- \`${resource.path}\`: ${joinsOf(resource)
          .map(({ name, to }) => `\`${name}\` → \`${to}.id\``)
          .join(", ")}\n`
    )
    .join("")

/** At most so many tables are in one diagram. */
const entitiesMax = 20

const diagram = (own: ReadonlyArray<Resource>) => {
  const lines = own.flatMap((resource) =>
    joinsOf(resource).map(({ name, to }) => `    ${to} |o--o{ ${resource.path} : "${name}"\n`)
  )
  const names = new Set(own.flatMap((resource) => joinsOf(resource).flatMap(({ to }) => [to, resource.path])))
  assert.isAtMost(names.size, entitiesMax, own[0]!.area)
  return lines.length === 0 ? "" : `\n\`\`\`mermaid\nerDiagram\n${lines.join("")}\`\`\`\n`
}

const areas = () =>
  serviceV2.areas
    .map(({ name, covers }) => ({
      name,
      covers,
      // Tables with lines first.
      own: resources
        .filter(({ area }) => area === name)
        .sort((a, b) => Number(purposeOf(b).children.length > 0) - Number(purposeOf(a).children.length > 0))
    }))
    .filter(({ own }) => own.length > 0)
    .map(({ name, covers, own }) => {
      const joined = joins(own)
      return `### ${name}\n\n${covers[0]!.toUpperCase()}${covers.slice(1)}.\n\n${entities(own)}${joined === "" ? "" : `\n${joined}`}${diagram(own)}`
    })
    .join("\n")

const columns = () => {
  const [anyTable] = resources
  const own = new Set(anyTable!.fields.map(({ name }) => name))
  return tableText(
    ["column", "type", "meaning"],
    currentColumns(tableOf(anyTable!))
      .filter(({ field }) => !own.has(field))
      .map(({ name, sqlType, comment }) => [`\`${name}\``, sqlType.split(" ")[0]!, comment])
  )
}

const models = () =>
  tableText(
    ["view", "question"],
    readModels().map(({ name, question }) => [`\`${name}\``, question])
  )

interface Relation {
  readonly name: string
  readonly comment: string
  readonly isView: boolean
  readonly columns: ReadonlyArray<{ readonly name: string; readonly type: string; readonly comment: string }>
}

/** The columns of a table or view, with what a reader does not see. */
const columnsOf = ({ name: relation, columns: own }: Relation) => {
  const shown = secretTables[relation]
  return tableText(
    ["column", "type", "meaning"],
    own.map(({ name, type, comment }) => [
      `\`${name}\``,
      type.replace("timestamp with time zone", "timestamptz"),
      shown === undefined || shown.includes(name) ? comment : `${comment} Readers do not see it.`
    ])
  )
}

/** Each table and view of the control plane with its columns and the folders and functions that write it. */
const control = Effect.gen(function* () {
  const relations = yield* sql.unsafe<Relation>(
    `select c.relname as name, obj_description(c.oid, 'pg_class') as comment, c.relkind = 'v' as "isView",
            (select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, null),
                                               'comment', col_description(c.oid, a.attnum)) order by a.attnum)
               from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
       from pg_class c where c.relnamespace = 'tributary'::regnamespace and c.relkind in ('r', 'v') order by 1`
  )
  const functions = yield* sql.unsafe<{ readonly name: string; readonly text: string }>(
    `select proname as name, prosrc as text from pg_proc where pronamespace = 'tributary'::regnamespace order by 1`
  )
  const writers = [
    ...tablesByFolder,
    ...functions.map(({ name, text }) => [`tributary.${name}()`, tablesWrittenBy(text)] as const)
  ]
  const writersOf = (table: string) => writers.flatMap(([name, tables]) => (tables.has(table) ? [name] : []))
  assertNone(
    relations,
    ({ isView, name }) => !isView && writersOf(name).length === 0,
    "no statement writes these tables"
  )
  const summary = tableText(
    ["table or view", "content", "written by"],
    relations.map(({ comment, isView, name }) => [
      `[\`${name}\`](#tributary${name})`,
      comment,
      isView ? "(a view)" : code(writersOf(name))
    ])
  )
  return [summary, ...relations.map((one) => `### tributary.${one.name}\n\n${columnsOf(one)}`)].join("\n")
})

suite("the page of the warehouse", layerWarehouse, (test) => {
  test("has the tables, joins and diagrams of the catalogue", function* () {
    const parts = { columns: columns(), areas: areas(), models: models(), control: yield* control }
    assertGenerated("docs/reference/tables.md", (written) => {
      let text = written
      for (const [name, part] of Object.entries(parts)) {
        const marks = new RegExp(`(<!-- ${name}: begin -->)[^]*(<!-- ${name}: end -->)`)
        assert.match(text, marks)
        text = text.replace(marks, (_all, begin: string, end: string) => `${begin}\n\n${part}\n${end}`)
      }
      return text
    })
    for (const { path } of resources) assert.include(parts.areas, `| \`${path}\` `)
  })
})

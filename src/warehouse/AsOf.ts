/**
 * The views of the records as of a moment: the setting `tributary.as_of` of the session.
 *
 * Promise: a view has the columns of its table, and at most one version of each record. The mode `warehouse` chooses the
 * latest version whose read had begun by the moment. The mode `source` chooses the latest version whose time of change is
 * not after the moment; a deletion, and a record without that time, count from the read that found them. A position of the
 * change feed chooses the versions that had landed by then: those of reads that had begun by its time, except the few
 * that landed after it. Without a moment, or for one before the retained history or of which rows or versions may be lost,
 * reading fails and says what to do.
 *
 * Each mode has two branches, of which Postgres runs those of the session's mode only: current rows, and superseded ones.
 */
import * as Digest from "./Digest.ts"
import { identifier, literal, nameFor } from "./Identifier.ts"
import { commentsOn, currentColumns, roleColumn, type Table } from "./Table.ts"

const mode = "(select tributary.as_of_mode())"
const moment = "(select tributary.as_of_time())"
const positionTime = "(select tributary.as_of_position_time())"

const isSameRecord = (one: string, other: string): string =>
  `${one}."_company_id" = ${other}."_company_id" and ${one}."id" = ${other}."id"`

/** An older read may bring a newer version, as when a request lasts long. The versions that such a version replaced. */
const isOvertaken = (alias: string): string => `${alias}."_valid_to" < ${alias}."_observed_at"`

/** Whether a version landed after the position, although its read had begun by the time of the position. */
const landedLater = (table: Table, alias: string, version: string): string =>
  `exists (select from tributary.landed_later(${literal(table.view)}) l where l.company_id = ${alias}."_company_id" ` +
  `and l.id = ${alias}."id" and l.version = ${version})`

/** The conditions of one relation in one mode; several are alternatives, of which a row fulfils at most one. */
interface Branch {
  readonly mode: string
  readonly current: string
  readonly superseded: ReadonlyArray<string>
}

const branchesOf = (table: Table): ReadonlyArray<Branch> => {
  const stamp = roleColumn(table, "modifiedAt")?.sql
  const later = (relation: string, alias: string, condition: string) =>
    `not exists (select from ${relation} ${alias} where ${isSameRecord(alias, "s")} and ${condition})`
  const observed: Branch = {
    mode: stamp === undefined ? "in ('warehouse', 'source')" : "= 'warehouse'",
    current: `c."_observed_at" <= ${moment}`,
    superseded: [
      `s."_observed_at" <= ${moment} and s."_valid_to" > ${moment} and ` +
        later(
          table.superseded,
          "h",
          `h."_version" > s."_version" and ${isOvertaken("h")} and h."_valid_to" <= ${moment} and h."_observed_at" > ${moment}`
        )
    ]
  }
  const landed = (alias: string) =>
    `${alias}."_observed_at" <= ${positionTime} and not ${landedLater(table, alias, `${alias}."_version"`)}`
  const changed: Branch = {
    mode: "= 'position'",
    current: landed("c"),
    superseded: [
      `${landed("s")} and s."_valid_to" > ${positionTime}`,
      `${landed("s")} and s."_valid_to" <= ${positionTime} and ${landedLater(table, "s", 's."_version" + 1')}`
    ]
  }
  if (stamp === undefined) return [observed, changed]
  const at = (alias: string) =>
    `case when ${alias}."_op" = 'delete' then ${alias}."_observed_at" else coalesce(${alias}.${stamp}, ${alias}."_observed_at") end`
  const stamped: Branch = {
    mode: "= 'source'",
    current: `${at("c")} <= ${moment}`,
    superseded: [
      `${at("s")} <= ${moment} and ${later(table.current, "c", `${at("c")} <= ${moment}`)} and ` +
        later(table.superseded, "h", `h."_version" > s."_version" and ${at("h")} <= ${moment}`)
    ]
  }
  return [observed, stamped, changed]
}

const queryOf = (table: Table, columns: ReadonlyArray<string>): string => {
  const select = (alias: string) => columns.map((name) => `${alias}.${identifier(name)}`).join(", ")
  const parts = branchesOf(table).flatMap((branch) => [
    `select ${select("c")} from ${table.current} c where ${mode} ${branch.mode} and ${branch.current}`,
    ...branch.superseded.map(
      (condition) => `select ${select("s")} from ${table.superseded} s where ${mode} ${branch.mode} and ${condition}`
    )
  ])
  const check = [table.resource.path, table.current, table.superseded, table.asOf].map(literal)
  return (
    `select * from (\n${parts.join("\nunion all\n")}\n) versions\n` +
    `where (select tributary.check_past(${check[0]}, ${check[1]}::regclass, ${check[2]}::regclass, ${check[3]}))`
  )
}

const commentOf = ({ resource }: Table): string =>
  `${resource.path} as of the setting tributary.as_of, a moment or a position of the change feed ('position 12345'): ${resource.purpose}. ` +
  "tributary.as_of_mode chooses versions by the reads of the warehouse (warehouse, the default) or by the source's times of change (source). " +
  "The source has no time of a deletion, which counts from the read that found it."

/**
 * An index of the few overtaken versions, and one of the times of pages: superseded versions are appended in the order of
 * their times, so that it costs a landing nothing that can be measured.
 */
const createIndexes = ({ name, superseded }: Table): ReadonlyArray<string> => {
  const indexName = (kind: string) => identifier(nameFor(`${name}__${kind}`, new Set()))
  return [
    `create index if not exists ${indexName("overtaken")} on ${superseded} ("_company_id", "id", "_version") where "_valid_to" < "_observed_at"`,
    `create index if not exists ${indexName("times")} on ${superseded} using brin ("_valid_to", "_observed_at") with (autosummarize = on)`
  ]
}

/** A relation as the plan of the tables finds it, with its columns in their order. */
export interface ExistingRelation {
  readonly comment: string | null
  readonly reads: ReadonlyArray<string> | null
  readonly columns: ReadonlyMap<string, unknown>
}

/** The columns of a table once the plan has run. */
const columnsOf = (table: Table, found: ExistingRelation | undefined): ReadonlySet<string> =>
  new Set([...(found?.columns.keys() ?? []), ...currentColumns(table).map(({ name }) => name)])

/**
 * The statements that make the view and its indexes; none when the view is up to date. Columns of a view keep their order when it is replaced, since Postgres only appends some.
 */
export const planView = (
  table: Table,
  existing: Readonly<Record<"current" | "superseded" | "view", ExistingRelation | undefined>>
): ReadonlyArray<string> => {
  const { datasets, name, supersededName } = table
  const superseded = columnsOf(table, existing.superseded)
  const columns = [...columnsOf(table, existing.current)].filter((column) => superseded.has(column))
  const shown = [...(existing.view?.columns.keys() ?? [])]
  const isAppended = shown.every((column) => columns.includes(column))
  const query = queryOf(table, isAppended ? [...new Set([...shown, ...columns])] : columns)
  const comments = commentsOn(table.asOf, currentColumns(table), undefined)
  const comment = Digest.mark(commentOf(table), Digest.of([query, ...comments].join("\n")))
  const isBound = [`${datasets.current}.${name}`, `${datasets.history}.${supersededName}`].every((one) =>
    existing.view?.reads?.includes(one)
  )
  if (isBound && existing.view?.comment === comment) return []
  return [
    ...createIndexes(table),
    ...(isAppended ? [] : [`drop view ${table.asOf}`]),
    `create or replace view ${table.asOf} as\n${query}`,
    `comment on view ${table.asOf} is ${literal(comment)}`,
    ...comments
  ]
}

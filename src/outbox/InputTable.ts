/**
 * The valid records of an input, in a temporary table.
 *
 * Promise: memory does not grow with the input.
 */
import type { Resource } from "../catalogue/Resource.ts"
import { createHash, type Hash } from "node:crypto"
import * as Effect from "effect/Effect"
import { copyValue } from "../land/CopyText.ts"
import { type Client, query, queryNamed } from "../postgres/driver/Connection.ts"
import { copyIn } from "../postgres/driver/Copy.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"
import { externalKeyOf, foldExternalidSql } from "./Externalid.ts"
import type { Problem } from "./Push.ts"
import { duplicateProblem, spellingProblem, type ValidInput } from "./ValidateInput.ts"

export interface InputTable {
  readonly client: Client
  /** The hash of the records and of the operation, by which the same input is found. */
  readonly hash: Hash
  records: number
  /** Rows that are not copied yet. */
  buffer: string
}

/** How much is copied at once, in characters. */
const bufferMax = 512 * 1024

export const runText = (client: Client, text: string) => query(client, "enqueue the input of a push", text)

export const createSql =
  "create temporary table push_input (line bigint not null, externalid text, record_id text, record text not null)"

/** Creates the table; `identity` is a part of the hash. */
export const openInputTable = (
  client: Client,
  identity: ReadonlyArray<string | null>
): Effect.Effect<InputTable, DatabaseError> =>
  Effect.as(runText(client, createSql), {
    client,
    hash: createHash("sha256").update(JSON.stringify(identity)),
    records: 0,
    buffer: ""
  })

export const flush = (table: InputTable): Effect.Effect<void, DatabaseError> =>
  Effect.suspend(() => {
    const { buffer, client } = table
    table.buffer = ""
    if (buffer === "") return Effect.void
    return Effect.asVoid(copyIn(client, "copy push_input (line, externalid, record_id, record) from stdin", [buffer]))
  })

export const addRecords = (
  table: InputTable,
  records: ReadonlyArray<ValidInput>
): Effect.Effect<void, DatabaseError> => {
  let identities = ""
  for (const { line, externalid, recordId, text } of records) {
    identities += `\n${JSON.stringify([externalid, recordId])}${text}`
    table.buffer += `${line}\t${copyValue(externalid)}\t${copyValue(recordId)}\t${copyValue(text)}\n`
  }
  table.hash.update(identities)
  table.records += records.length
  return table.buffer.length < bufferMax ? Effect.void : flush(table)
}

export const duplicatesStatement = Statement.make({
  name: "find duplicates in the input of a push",
  columns: { line: "int8", externalid: Statement.as<string>("text?"), first: "int8", other: "text" },
  text: `select line, externalid, first, other
  from (select line, externalid, min(line) over same as first, first_value(externalid) over (same order by line) as other
          from push_input window same as (partition by ${foldExternalidSql("externalid")})) g
  where line <> first order by line`
})

/** Open and rejected rows with another spelling of an externalid of the input. */
export const otherSpellingsStatement = Statement.make({
  name: "find other spellings in the outbox",
  params: ["text", "text"],
  columns: { line: "int8", externalid: Statement.as<string>("text?"), other: Statement.as<string>("text?") },
  text: `select g.line, g.externalid, o.externalid as other
  from push_input g join tributary.outbox o
    on ${foldExternalidSql("o.externalid")} = ${foldExternalidSql("g.externalid")} and o.externalid <> g.externalid
  where o.company = $1 and o.resource = $2 and o.operation = 'create' and o.state in ('pending', 'in_flight', 'rejected')
  order by g.line`
})

/** The problems of creates whose externalid another record of the input, or an open row, has or may have. */
export const findDuplicates = Effect.fnUntraced(function* (
  { client }: InputTable,
  company: string,
  resource: Resource
): Effect.fn.Return<ReadonlyArray<Problem>, DatabaseError> {
  const duplicates = yield* queryNamed(client, duplicatesStatement)
  const spellings = yield* queryNamed(client, otherSpellingsStatement, [company, resource.path])
  const field = externalKeyOf(resource)
  return [
    ...duplicates.map(({ externalid, first, line, other }) =>
      externalid === other
        ? duplicateProblem(field, Number(line), externalid, Number(first))
        : spellingProblem(field, Number(line), externalid, other, Number(first))
    ),
    ...spellings.map(({ externalid, line, other }) => spellingProblem(field, Number(line), externalid, other, null))
  ]
})

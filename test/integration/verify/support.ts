/**
 * A source in memory that sends bytes, and a loader in plain SQL that shares no code with the sync, for tests of
 * verify.
 */
import * as Effect from "effect/Effect"
import * as Decode from "../../../connectors/service-v2/client/Decode.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { ConnectorShape } from "../../../src/connector/Connector.ts"
import { SourceError, type SourceReason } from "../../../src/connector/SourceError.ts"
import { identifier } from "../../../src/warehouse/Identifier.ts"
import type { Table } from "../../../src/warehouse/Table.ts"
import { sql } from "../../support/postgres.ts"

export interface MemorySource {
  readonly connector: ConnectorShape
  /** JSON text by id, in the order of lists. */
  readonly records: Map<string, string>
  /** The requested pages and single records. */
  readonly requests: Array<string>
  /** Called before each response. It may change the records or fail. */
  before: (request: string) => SourceReason | null
}

/** A source that lists `pageSize` records at a time; a page token is the place of its first record. */
export const memorySource = (catalogue: Catalogue, companyId: bigint, pageSize: number): MemorySource => {
  const ask = (source: MemorySource, text: string) =>
    Effect.suspend(() => {
      source.requests.push(text)
      const reason = source.before(text)
      return reason === null
        ? Effect.void
        : Effect.fail(new SourceError({ reason, request: { method: "GET", path: `/${text}`, requestId: null } }))
    })
  const unscripted = () => Effect.die("not scripted")
  const source: MemorySource = {
    records: new Map(),
    requests: [],
    before: () => null,
    connector: {
      catalogue,
      identify: Effect.succeed({ companyId, sourceNumber: companyId, user: null, scopes: null, features: null }),
      page: unscripted,
      rawPage: ({ resource, token, where: [where] = [] }) =>
        Effect.map(
          ask(
            source,
            `${resource.path}?${where === undefined ? "" : `${where.field}=${where.value}&`}from=${token ?? 0}`
          ),
          () => {
            const all = [...source.records.values()].filter(
              (text) =>
                where === undefined ||
                String((JSON.parse(text) as Record<string, unknown>)[where.field]) === where.value
            )
            const from = Number(token ?? 0)
            const to = from + pageSize
            return { records: all.slice(from, to), next: to < all.length ? String(to) : null, attempts: 1 }
          }
        ),
      get: (resource: Resource, id) =>
        Effect.map(ask(source, `${resource.path}/${id}`), () => {
          const text = source.records.get(id)
          const outcome = text === undefined ? null : Decode.make(resource).one(text, 0, text.length)
          const isRejected = outcome !== null && Decode.isRejected(outcome)
          return {
            record: outcome === null || isRejected ? null : outcome,
            rejected: isRejected ? outcome : null,
            version: null,
            beganAt: 0,
            source: ""
          }
        }),
      write: unscripted,
      usage: Effect.succeed({ requests: 0, retries: 0, rateLimited: 0, bytes: 0 })
    }
  }
  return source
}

/** Writes the expected rows of these records to the warehouse. Postgres itself parses the JSON. */
export const load = Effect.fnUntraced(function* (table: Table, companyId: bigint, texts: Iterable<string>) {
  const columns = table.columns.map(({ name }) => identifier(name)).join(", ")
  const knownFields = ["custom_fields", ...table.columns.map(({ field }) => field)]
    .map((name) => `'${name}'`)
    .join(", ")
  yield* sql.unsafe(
    `insert into ${table.current} ("_company_id", ${columns}, "custom_fields", "_extra", "_origin", "_observed_at")
     select $1::bigint, ${table.columns.map(({ name }) => `r.${identifier(name)}`).join(", ")},
            nullif(one.record -> 'custom_fields', 'null'),
            nullif(one.record - array[${knownFields}], '{}'), 'scan', tributary.now()
       from unnest($2::text::jsonb[]) as one(record), jsonb_populate_record(null::${table.current}, one.record) r`,
    [companyId, arrayText([...texts])]
  )
})

/** An array literal of Postgres. */
const arrayText = (texts: ReadonlyArray<string>): string =>
  `{${texts.map((text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`).join(",")}}`

/** Ids at which the rows of a company and the records differ, by plain SQL: `except` in both directions. */
export const differingIds = Effect.fnUntraced(function* (table: Table, companyId: bigint, texts: Iterable<string>) {
  const columns = table.columns.map(({ name }) => `r.${identifier(name)}::text`).join(", ")
  const knownFields = ["custom_fields", ...table.columns.map(({ field }) => field)]
    .map((name) => `'${name}'`)
    .join(", ")
  const rows = yield* sql.unsafe<{ id: bigint }>(
    `with stored as (
       select ${columns}, r."custom_fields"::text as custom, r."_extra"::text as extra, r."id" as number
         from ${table.current} r where r."_company_id" = $1::bigint and r."_deleted_at" is null),
     sent as (
       select ${columns}, nullif(one.record -> 'custom_fields', 'null')::text,
              nullif(one.record - array[${knownFields}], '{}')::text, r."id"
         from unnest($2::text::jsonb[]) as one(record), jsonb_populate_record(null::${table.current}, one.record) r)
     select distinct number as id from ((table stored except table sent) union all (table sent except table stored)) d
      order by 1`,
    [companyId, arrayText([...texts])]
  )
  return rows.map(({ id }) => String(id))
})

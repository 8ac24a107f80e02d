/**
 * The page sizes of sources in the warehouse, shared by all processes on it.
 *
 * Promise: a process reads the sizes of a source once, before its first page. While the warehouse does not answer, sizes
 * are found out again: they save requests, and no sync depends on them.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { fromMap, type PageSize, PageSizes, type SourcePageSizes } from "../connector/PageSizes.ts"
import * as Statement from "../postgres/Statement.ts"

export const readStatement = Statement.make({
  name: "read the page sizes of a source",
  params: ["text"],
  columns: { resource: "text", accepted: "int4?", refused: "int4?", triedAt: "float8" },
  text: `select resource, accepted, refused, extract(epoch from tried_at)::float8 * 1000 as "triedAt"
           from tributary.page_sizes where source = $1`
})

export const writeStatement = Statement.make({
  name: "store a page size",
  params: ["text", "text", "int4?", "int4?", "float8"],
  text: `insert into tributary.page_sizes (source, resource, accepted, refused, tried_at)
         values ($1, $2, $3, $4, to_timestamp($5::float8 / 1000))
         on conflict (source, resource) do update
            set accepted = excluded.accepted, refused = excluded.refused, tried_at = excluded.tried_at`
})

/** Page sizes that processes share through the warehouse. */
export const layer: Layer.Layer<never, never, SqlClient.SqlClient> = Layer.effect(
  PageSizes,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const sources = new Map<string, SourcePageSizes>()
    /** Sizes that were found while the warehouse did not answer. */
    const unstored = new Map<string, SourcePageSizes>()
    const withoutWarehouse = (source: string) => {
      const sizes = unstored.get(source) ?? fromMap(new Map())
      unstored.set(source, sizes)
      return sizes
    }
    const read = Effect.fnUntraced(
      function* (source: string) {
        const rows = yield* Statement.run(readStatement, [source])
        const sizes = new Map(rows.map(({ resource, ...size }): [string, PageSize] => [resource, size]))
        const shared = fromMap(sizes, (resource, { accepted, refused, triedAt }) =>
          Statement.run(writeStatement, [source, resource, accepted, refused, triedAt]).pipe(
            Effect.provideService(SqlClient.SqlClient, sql),
            Effect.ignore
          )
        )
        // Of two reads at the same time, the first one counts: sizes may be stored in it already.
        const first = sources.get(source) ?? shared
        sources.set(source, first)
        return first
      },
      Effect.provideService(SqlClient.SqlClient, sql)
    )
    return {
      of: (source) =>
        Effect.suspend(() => {
          const known = sources.get(source)
          return known === undefined
            ? Effect.orElseSucceed(read(source), () => withoutWarehouse(source))
            : Effect.succeed(known)
        })
    }
  })
)

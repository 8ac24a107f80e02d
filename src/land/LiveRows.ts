/** The rows of a company that are not soft-deleted. */
import * as Effect from "effect/Effect"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ResourceLock } from "./ResourceLock.ts"

export const countLive = ({ run, table, companyId }: ResourceLock): Effect.Effect<number, DatabaseError> =>
  run<{ live: number }>(
    "count",
    `select count(*)::int as live from ${table.current} where "_company_id" = $1 and "_deleted_at" is null`,
    [companyId]
  ).pipe(Effect.map(({ rows }) => rows[0]!.live))

export const hasLive = ({ run, table, companyId }: ResourceLock): Effect.Effect<boolean, DatabaseError> =>
  run<{ has: boolean }>(
    "look for a live row of",
    `select exists (select 1 from ${table.current} where "_company_id" = $1 and "_deleted_at" is null) as has`,
    [companyId]
  ).pipe(Effect.map(({ rows }) => rows[0]!.has))

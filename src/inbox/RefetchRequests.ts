/** Refetch requests: children of changed parents that are to be read again. */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { requestSql } from "../land/Refetch.ts"
import { inboxQuery } from "./InboxQuery.ts"

/** Resources of the company with pending refetch requests. */
export const resourcesToRefetch = (
  companyId: bigint
): Effect.Effect<ReadonlyArray<string>, DatabaseError, SqlClient.SqlClient> =>
  inboxQuery<{ resource: string }>(
    "read the refetch requests beside",
    "select distinct resource from tributary.refetch_requests where company_id = $1",
    [companyId]
  ).pipe(Effect.map((rows) => rows.map(({ resource }) => resource)))

/** Requests the records whose field has one of these values, as a change of their parents does. */
export const requestRefetch = (
  companyId: bigint,
  resource: string,
  field: string,
  values: Iterable<string>
): Effect.Effect<void, DatabaseError, SqlClient.SqlClient> =>
  Effect.asVoid(
    inboxQuery(
      "request children beside",
      requestSql(
        `select $1::bigint, $2::text, $3::text, value, tributary.now() from jsonb_array_elements_text($4::text::jsonb) as requested(value)`
      ),
      [companyId, resource, field, JSON.stringify([...values])]
    )
  )

/** The values whose requests are not fulfilled yet. */
export const pendingRefetches = (
  companyId: bigint,
  resource: string,
  field: string
): Effect.Effect<ReadonlySet<string>, DatabaseError, SqlClient.SqlClient> =>
  inboxQuery<{ value: string }>(
    "read the refetch requests beside",
    "select value from tributary.refetch_requests where company_id = $1 and resource = $2 and field = $3",
    [companyId, resource, field]
  ).pipe(Effect.map((rows) => new Set(rows.map(({ value }) => value))))

/**
 * The permit store that all processes on a warehouse share: `tributary.budgets` and `tributary.budget_leases`.
 *
 * Promise: a lease costs one round trip, and processes take turns by the lock of the token's row. `tributary.now()` is the
 * only clock, so that the clocks of machines may differ. Permits of a killed process count as used until their time is
 * over. The token is stored nowhere; its fingerprint is.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { type PermitStore, PermitStoreError, spanMsDefault } from "./PermitStore.ts"
import type { PauseOrigin } from "./PermitPolicy.ts"

/** The timeout of one statement. */
const answerTimeoutMs = 10_000
/** Maximum time until a pause that another process reported is in force here, whatever was leased before. */
const cacheMaxMs = 250

export const leaseStatement = Statement.make({
  name: "lease permits",
  params: ["text", "int4?", "float8", "float8", "int4", "int4", "int4", "int8?", "int4?", "float8?"],
  columns: {
    lease_id: "int8?",
    ...Statement.columns("int4", "granted_urgent", "granted_live", "granted_backfill"),
    ...Statement.columns("float8", "wait_ms", "paused_ms", "effective"),
    is_probe: "bool",
    release_count: "int8",
    by_origin: Statement.as<PauseOrigin | null>("text?"),
    by_status: "int4",
    by_request: "text?",
    ...Statement.columns("float8", "by_stated_ms", "by_ago_ms")
  },
  text: "select * from tributary.lease_budget($1, $2, $3::float8, $4::float8, $5, $6, $7, $8, $9, $10::float8)"
})

export const pauseStatement = Statement.make({
  name: "report a pause",
  params: ["text", "int4?", "float8", "float8", "bool", "text", "int4", "text?"],
  columns: { paused_ms: "float8" },
  text: "select tributary.report_pause($1, $2, $3::float8, $4::float8, $5, $6, $7, $8) as paused_ms"
})

export const endProbeStatement = Statement.make({
  name: "end a probe",
  params: ["text", "text", "bool"],
  columns: { end_probe: "void" },
  text: "select tributary.end_probe($1, $2, $3)"
})

/** A message of Postgres contains no token: only its fingerprint is sent there. */
const toStoreError = ({ code, message }: DatabaseError) =>
  new PermitStoreError({ detail: code === readOnly ? takesNoWrites : message })
const readOnly = "25006"
const takesNoWrites =
  "it accepts no writes: its role or database has default_transaction_read_only = on, or the server is a standby; " +
  "tributary doctor shows which"

/** Runs outside the caller's transaction: a rollback must not undo the use of a permit. */
const outsideTransaction = <A>(sql: SqlClient.SqlClient, effect: Sql.Query<A>): Effect.Effect<A, PermitStoreError> =>
  Effect.provideService(effect, SqlClient.SqlClient, sql).pipe(
    Effect.mapError(toStoreError),
    Effect.updateContext((context: Context.Context<never>) => Context.omit(sql.transactionService)(context)),
    Effect.timeoutOrElse({
      duration: answerTimeoutMs,
      orElse: () => Effect.fail(new PermitStoreError({ detail: `no answer within ${answerTimeoutMs / 1000} s` }))
    })
  )

export interface PermitStoreOptions {
  /** Null for no limit but Retry-After. */
  readonly perMinute: number | null
  /** How long a permit counts, for tests that cannot wait for minutes. */
  readonly spanMs?: number | undefined
}

/** The store of one token. */
export const make = (sql: SqlClient.SqlClient, fingerprint: string, options: PermitStoreOptions): PermitStore => {
  const { perMinute } = options
  const spanMs = options.spanMs ?? spanMsDefault
  return {
    perMinute,
    cacheMaxMs,
    lease: (request) =>
      outsideTransaction(
        sql,
        Statement.run(leaseStatement, [
          fingerprint,
          perMinute,
          spanMs,
          request.validMs,
          request.wanted.urgent,
          request.wanted.live,
          request.wanted.backfill,
          request.settled?.id ?? null,
          request.settled?.used ?? null,
          request.settled?.ageMs ?? null
        ])
      ).pipe(
        Effect.flatMap(([row]) =>
          row === undefined
            ? Effect.fail(new PermitStoreError({ detail: "the statement returned no row" }))
            : Effect.succeed({
                leaseId: row.lease_id,
                granted: { urgent: row.granted_urgent, live: row.granted_live, backfill: row.granted_backfill },
                waitMs: row.wait_ms,
                pausedMs: row.paused_ms,
                effectivePerMinute: row.effective,
                pausedBy:
                  row.by_origin === null
                    ? null
                    : {
                        origin: row.by_origin,
                        status: row.by_status,
                        request: row.by_request,
                        statedMs: row.by_stated_ms,
                        agoMs: row.by_ago_ms
                      },
                isProbe: row.is_probe,
                releases: Number(row.release_count)
              })
        )
      ),
    pause: (request) =>
      outsideTransaction(
        sql,
        Statement.run(pauseStatement, [
          fingerprint,
          perMinute,
          spanMs,
          request.statedMs,
          request.limited,
          request.origin,
          request.status,
          request.request
        ])
      ).pipe(Effect.map(([row]) => row?.paused_ms ?? 0)),
    endProbe: (request, isAnswered) =>
      Effect.asVoid(outsideTransaction(sql, Statement.run(endProbeStatement, [fingerprint, request, isAnswered])))
  }
}

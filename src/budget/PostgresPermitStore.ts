/**
 * The ledger that every process on a warehouse shares: `tributary.budgets` and `tributary.budget_leases`.
 *
 * Promise: one round trip for an ask; processes stand in line at the token's row, and `tributary.now()` is the only
 * clock that is read, so that machines may disagree about the time. What a killed process held counts as used until its
 * time is over. The token stands nowhere: its fingerprint does.
 */
import { createHash } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import { type PermitStore, PermitStoreError, type PermitStoreOptions, spanMsDefault } from "./PermitStore.ts"
import type { PauseOrigin } from "./PermitPolicy.ts"

/** Longer than this a permit is not waited for in one question. */
const answerTimeoutMs = 10_000
/** A hold that another process reported is learnt no later than this, whatever was leased before. */
const reliedUponMs = 250

/** What the token is called in the ledger; with `install` all tokens of an address share one budget. */
export const fingerprintOf = (baseUrl: string, token: Redacted.Redacted, scope: "token" | "install"): string =>
  createHash("sha256")
    .update(baseUrl.trim().replace(/\/+$/, ""))
    .update("\n")
    .update(scope === "token" ? Redacted.value(token) : "")
    .digest("hex")

interface LeaseRow {
  readonly lease_id: bigint | null
  readonly granted_urgent: number
  readonly granted_live: number
  readonly granted_backfill: number
  readonly wait_ms: number
  readonly held_ms: number
  readonly effective: number
  readonly is_probe: boolean
  readonly release_count: bigint
  readonly by_origin: PauseOrigin | null
  readonly by_status: number
  readonly by_request: string | null
  readonly by_stated_ms: number
  readonly by_ago_ms: number
}

/** The text of Postgres says nothing of a token: only its fingerprint is sent there. */
const failed = (error: SqlError) => {
  const { code, message } = toDatabaseError(error)
  return new PermitStoreError({ detail: code === readOnly ? takesNoWrites : message })
}
const readOnly = "25006"
const takesNoWrites =
  "it takes no writes: its role or database has default_transaction_read_only = on, or the server is a standby; " +
  "npx tributary doctor says which"
const toDatabaseError = DatabaseError.from("ask for a permit")

/** Never part of a transaction of whoever asks: a permit that was used is not taken back. */
const asked = <A>(sql: SqlClient.SqlClient, effect: Effect.Effect<A, SqlError>): Effect.Effect<A, PermitStoreError> =>
  effect.pipe(
    Effect.mapError(failed),
    Effect.updateContext((context: Context.Context<never>) => Context.omit(sql.transactionService)(context)),
    Effect.timeoutOrElse({
      duration: answerTimeoutMs,
      orElse: () => Effect.fail(new PermitStoreError({ detail: `no answer within ${answerTimeoutMs / 1000} s` }))
    })
  )

/** The ledger of one token. */
export const make = (sql: SqlClient.SqlClient, fingerprint: string, options: PermitStoreOptions): PermitStore => {
  const { perMinute } = options
  const spanMs = options.spanMs ?? spanMsDefault
  return {
    perMinute,
    reliedUponMs,
    lease: (ask) =>
      asked(
        sql,
        sql.unsafe<LeaseRow>(
          `select * from tributary.lease_budget($1, $2, $3::float8, $4::float8, $5, $6, $7, $8, $9, $10::float8)`,
          [
            fingerprint,
            perMinute,
            spanMs,
            ask.validMs,
            ask.wanted.urgent,
            ask.wanted.live,
            ask.wanted.backfill,
            ask.settled?.id ?? null,
            ask.settled?.used ?? null,
            ask.settled?.ageMs ?? null
          ]
        )
      ).pipe(
        Effect.flatMap(([row]) =>
          row === undefined
            ? Effect.fail(new PermitStoreError({ detail: "the question was answered with no row" }))
            : Effect.succeed({
                leaseId: row.lease_id,
                granted: { urgent: row.granted_urgent, live: row.granted_live, backfill: row.granted_backfill },
                waitMs: row.wait_ms,
                heldMs: row.held_ms,
                effectivePerMinute: row.effective,
                heldBy:
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
    hold: (hold) =>
      asked(
        sql,
        sql.unsafe<{ readonly held: number }>(
          `select tributary.report_hold($1, $2, $3::float8, $4::float8, $5, $6, $7, $8) as held`,
          [fingerprint, perMinute, spanMs, hold.statedMs, hold.limited, hold.origin, hold.status, hold.request]
        )
      ).pipe(Effect.map(([row]) => row?.held ?? 0)),
    endProbe: (request, isAnswered) =>
      asked(sql, sql.unsafe(`select tributary.end_probe($1, $2, $3)`, [fingerprint, request, isAnswered])).pipe(
        Effect.asVoid
      )
  }
}

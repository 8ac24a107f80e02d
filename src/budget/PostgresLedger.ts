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
import { type Ledger, LedgerError, type LedgerOptions, spanMsDefault, unlimited } from "./Ledger.ts"

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
}

/** The text of Postgres says nothing of a token: only its fingerprint is sent there. */
const failed = (error: SqlError) => new LedgerError({ detail: toDatabaseError(error).message })
const toDatabaseError = DatabaseError.from("ask for a permit")

/** Never part of a transaction of whoever asks: a permit that was used is not taken back. */
const asked = <A>(sql: SqlClient.SqlClient, effect: Effect.Effect<A, SqlError>): Effect.Effect<A, LedgerError> =>
  effect.pipe(
    Effect.mapError(failed),
    Effect.updateContext((context: Context.Context<never>) => Context.omit(sql.transactionService)(context)),
    Effect.timeoutOrElse({
      duration: answerTimeoutMs,
      orElse: () => Effect.fail(new LedgerError({ detail: `no answer within ${answerTimeoutMs / 1000} s` }))
    })
  )

/** The ledger of one token. */
export const make = (sql: SqlClient.SqlClient, fingerprint: string, options: LedgerOptions): Ledger => {
  const { perMinute } = options
  const spanMs = options.spanMs ?? spanMsDefault
  return {
    perMinute,
    reliedUponMs,
    lease: (ask) =>
      perMinute === null
        ? asked(
            sql,
            sql<{ readonly held_ms: number }>`
            select tributary.budget_ms(held_until) - tributary.budget_ms(tributary.now()) as held_ms
              from tributary.budgets where fingerprint = ${fingerprint} and held_until is not null`
          ).pipe(Effect.map((rows) => unlimited(ask, rows[0]?.held_ms ?? 0)))
        : asked(
            sql,
            sql.unsafe<LeaseRow>(
              `select * from tributary.lease_permits($1, $2, $3::float8, $4::float8, $5, $6, $7, $8, $9, $10::float8)`,
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
                ? Effect.fail(new LedgerError({ detail: "the question was answered with no row" }))
                : Effect.succeed({
                    leaseId: row.lease_id,
                    granted: { urgent: row.granted_urgent, live: row.granted_live, backfill: row.granted_backfill },
                    waitMs: row.wait_ms,
                    heldMs: row.held_ms,
                    effectivePerMinute: row.effective
                  })
            )
          ),
    hold: (durationMs, limited) =>
      asked(
        sql,
        sql.unsafe(`select tributary.hold_budget($1, $2, $3::float8, $4::float8, $5)`, [
          fingerprint,
          perMinute,
          spanMs,
          durationMs,
          limited
        ])
      ).pipe(Effect.asVoid)
  }
}

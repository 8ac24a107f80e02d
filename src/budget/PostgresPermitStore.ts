/**
 * The permit store that all processes on a warehouse share: one row of `tributary.budgets` for each token.
 *
 * Promise: permits are taken in one statement, and processes take turns by the lock of the row. Any other change is stored
 * only where no other process has changed the row since it was read; else it is repeated on the new row. So a process that
 * stops between two statements stops no other one. `tributary.now()` is the only clock, so that the clocks of machines may
 * differ. The token is stored nowhere; its fingerprint is.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { Selectable } from "kysely"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Query from "../postgres/Query.ts"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { control, type ControlTables } from "../postgres/Tables.ts"
import { emptyState, type PermitRequest, type PermitState, type RuleMemory, take } from "./PermitRule.ts"
import { type Change, type PermitStore, PermitStoreError } from "./PermitStore.ts"

/** The timeout of one change. */
const answerTimeoutMs = 10_000
/** Budgets of tokens that are no longer used are removed. */
const unusedMs = 30 * 86_400_000

/** The rows of budgets, and the time. */
export const rows = control
  .selectFrom("tributary.budgets")
  .selectAll()
  .select(Query.now.as("now"))
  .$narrowType<{ rule: Partial<RuleMemory> }>()

type Row = Omit<Selectable<ControlTables["tributary.budgets"]>, "rule"> & { readonly rule: Partial<RuleMemory> }

/** The state that a row stores. */
export const stateOf = (row: Row): PermitState => ({
  perMinute: row.requests_per_minute,
  at: row.updated_at.getTime(),
  used: row.used,
  pausedUntil: row.retry_after_at?.getTime() ?? 0,
  refusals: Number(row.rate_limited_count),
  refusedAt: row.last_429_at?.getTime() ?? null,
  memory: { ...emptyState(null).memory, ...row.rule }
})

const rowOf = (state: PermitState) => ({
  requests_per_minute: state.perMinute,
  used: state.used,
  retry_after_at: state.pausedUntil > 0 ? new Date(state.pausedUntil) : null,
  rate_limited_count: BigInt(state.refusals),
  last_429_at: state.refusedAt === null ? null : new Date(state.refusedAt),
  rule: JSON.stringify(state.memory),
  updated_at: new Date(state.at)
})

/** Stores the state; false where the row has another version. */
const write = (fingerprint: string, version: bigint, state: PermitState): Sql.Query<boolean> => {
  const row = { ...rowOf(state), version: version + 1n }
  return Effect.map(
    Query.run(
      control
        .insertInto("tributary.budgets")
        .values({ fingerprint, ...row })
        .onConflict((conflict) =>
          conflict.column("fingerprint").doUpdateSet(row).where("tributary.budgets.version", "=", version)
        )
        .returning("version")
    ),
    ({ length }) => length > 0
  )
}

const removeUnused = Query.run(
  control.deleteFrom("tributary.budgets").where("updated_at", "<", Query.nowPlus(-unusedMs))
)

/** Applies a change to the row of a token. */
export const change = <A>(fingerprint: string, apply: Change<A>): Sql.Query<A> =>
  Effect.gen(function* () {
    for (;;) {
      const [row] = yield* Query.run(rows.where("fingerprint", "=", fingerprint))
      const now = row?.now ?? (yield* Query.run(control.selectNoFrom(Query.now.as("now"))))[0]!.now
      const state = row === undefined ? emptyState(null) : stateOf(row)
      const [next, answer] = apply(state, now.getTime())
      if (next === state) return answer
      if (row === undefined) yield* removeUnused
      if (yield* write(fingerprint, row?.version ?? 0n, next)) return answer
    }
  })

export const takeStatement = Statement.make({
  name: "take permits",
  params: ["text", "int4", "int4", "int4", "int4", "float8"],
  columns: { ...Statement.columns("int4", "urgent", "live", "backfill"), waitMs: "float8" },
  text: `select urgent, live, backfill, wait_ms as "waitMs" from tributary.take_permits($1, $2, $3, $4, $5, $6)`
})

/** Takes permits in one statement; in a pause, before a probe and for a new token by a change. */
const takePermits = Effect.fnUntraced(function* (
  fingerprint: string,
  request: PermitRequest,
  perMinute: number | null
) {
  const { backfill, live, urgent } = request.wanted
  if (perMinute !== null) {
    const values = [fingerprint, perMinute, urgent, live, backfill, request.validMs] as const
    const [row] = yield* Statement.run(takeStatement, values)
    if (row !== undefined) {
      const { waitMs, ...granted } = row
      return { granted, waitMs, pausedMs: 0, pausedBy: null, isProbe: false }
    }
  }
  return yield* change(fingerprint, (state, now) => take(state, request, perMinute, now))
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

/** The store of one token; `perMinute` is null for no limit but Retry-After. */
export const make = (sql: SqlClient.SqlClient, fingerprint: string, perMinute: number | null): PermitStore => ({
  perMinute,
  isShared: true,
  change: (apply) => outsideTransaction(sql, change(fingerprint, apply)),
  take: (request) => outsideTransaction(sql, takePermits(fingerprint, request, perMinute))
})

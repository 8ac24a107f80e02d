/**
 * What the tools work with: the warehouse as its reader, and the two commands that plan and check without effects.
 *
 * Promise: a tool reads in a read-only transaction of the reader, with a time limit, and a few tools run at once. A failure
 * has a sentence and what to do next; it shows no address, no password and no internal state of this program.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import { CurrentTransformer } from "effect/sql/Statement"
import type { Operation, Problem } from "../outbox/Push.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Remedy from "../postgres/Remedy.ts"
import * as Statement from "../postgres/Statement.ts"
import type * as Reader from "../warehouse/Reader.ts"
import { readOnly } from "../warehouse/ReaderTransaction.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { type Answer, isToolFailure, type SqlText, type ToolFailure, toolFailure } from "./Answer.ts"
import * as Freshness from "./Freshness.ts"

/** The connections for fixed statements. */
export interface Pools {
  /** As the reader. */
  readonly pages: Reader.Pages
  /** As the owner. */
  readonly context: Context.Context<Database | SqlClient.SqlClient>
}

/** A connected warehouse. */
export interface OpenWarehouse {
  readonly context: Context.Context<Database>
  /** A session of the reader for one query. */
  readonly connect: Reader.Pages["connect"]
  readonly pools: Effect.Effect<Pools, ToolFailure>
}

export interface PlanRequest {
  readonly companies: ReadonlyArray<string>
  readonly resources: ReadonlyArray<string>
  readonly full: boolean
}

export interface DryRunRequest {
  readonly company: string | null
  readonly resource: string
  readonly operation: Operation
  /** Lines of JSON. */
  readonly records: string
}

export interface DryRunResult {
  readonly company: string
  readonly problems: ReadonlyArray<Problem>
  /** Valid records. */
  readonly given: number
  readonly bytes: number
  readonly calls: { readonly batch: number; readonly single: number }
  /** The first bodies, as they would be sent. */
  readonly first: ReadonlyArray<string>
}

export class Capabilities extends Context.Service<
  Capabilities,
  {
    readonly version: string
    readonly datasets: Datasets
    /** The warehouse; fails while it does not answer. */
    readonly warehouse: Effect.Effect<OpenWarehouse, ToolFailure>
    /** Plans the next sync from the warehouse alone, in transactions of its own. */
    readonly plan: (request: PlanRequest) => Effect.Effect<object, ToolFailure | DatabaseError, SqlClient.SqlClient>
    /** Checks the records of a push, and sends and stores nothing. */
    readonly dryRun: (request: DryRunRequest) => Effect.Effect<DryRunResult, ToolFailure>
    /** Limits the concurrent tools. */
    readonly slots: Semaphore.Semaphore
  }
>()("tributary/mcp/Capabilities") {}

export const unreachable = toolFailure(
  "warehouse_unreachable",
  "The warehouse does not answer.",
  "Try again in a moment; tributary doctor shows the cause to the operator."
)

const timedOut = "57014"

/** The failure of a fixed statement. */
export const failureOf = (error: ToolFailure | DatabaseError): ToolFailure => {
  if (isToolFailure(error)) return error
  if (error.isRetryable || error.operation === "connect") return unreachable
  if (error.code === timedOut) {
    return toolFailure(
      "timeout",
      "The warehouse did not answer within the time limit.",
      "Ask for less: name a company, a resource or a smaller limit."
    )
  }
  if (Remedy.isDamage(error)) {
    return toolFailure(
      "warehouse_incomplete",
      "The warehouse has no tables of this version yet.",
      "The operator runs tributary sync, which creates them."
    )
  }
  return toolFailure("warehouse_failed", error.message, "tributary doctor shows the cause to the operator.")
}

/** Records the SQL of the statements that the effect runs. */
export const recordSql = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<readonly [A, ReadonlyArray<SqlText>], E, R> =>
  Effect.suspend(() => {
    const texts: Array<SqlText> = []
    const recorded = Effect.provideService(effect, CurrentTransformer, (statement) => {
      const [text, params] = statement.compile()
      texts.push({ text: text.trim(), parameters: params.map(parameterText) })
      return Effect.succeed(statement)
    })
    return Effect.map(recorded, (result) => [result, texts] as const)
  })

const parameterText = (value: unknown): string | null => {
  if (value === null || value === undefined) return null
  if (typeof value === "string") return value
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return `{${value.map((one) => parameterText(one) ?? "null").join(",")}}`
  return typeof value === "bigint" ? value.toString() : JSON.stringify(value)
}

/** The data of an answer, and where it was read from. */
export interface Finding<Data> {
  readonly data: Data
  readonly scope: Freshness.Scope
  readonly remarks?: ReadonlyArray<string>
  /** SQL that ran before. */
  readonly sql?: ReadonlyArray<SqlText>
}

/** Reads the data of an answer, and the freshness of its tables, in one transaction of the reader. */
export const readAnswer = <Data>(
  find: Effect.Effect<Finding<Data>, ToolFailure | DatabaseError, SqlClient.SqlClient>
): Effect.Effect<Answer<Data>, ToolFailure, Capabilities> =>
  Effect.gen(function* () {
    const { warehouse } = yield* Capabilities
    const { pages } = yield* Effect.flatMap(warehouse, ({ pools }) => pools)
    return yield* readOnly(
      pages,
      Effect.gen(function* () {
        const [{ data, scope, remarks = [], sql: earlier = [] }, sql] = yield* recordSql(find)
        const context = yield* Freshness.read(Statement.run, scope)
        return { data, ...context, sql: [...earlier, ...sql], remarks: [...remarks, ...context.remarks] }
      })
    )
  }).pipe(Effect.mapError(failureOf))

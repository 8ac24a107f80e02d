/** The tools `plan_sync` and `dry_run_push`: what a command would do. Neither sends a request to the source. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import * as Tool from "effect/ai/Tool"
import type { Operation } from "../outbox/Push.ts"
import { answer, cut, printable, ToolFailure } from "./Answer.ts"
import { Capabilities, failureOf, readAnswer, recordSql } from "./Capabilities.ts"

const namesMax = 100
/** Below the limit of a request to the dashboard. */
const recordsCharactersMax = 50_000
const problemsMax = 100
const bodyCharactersMax = 5_000

const Name = Schema.String.check(Schema.isMaxLength(200))

export const planSync = Tool.make("plan_sync", {
  description:
    "Estimates the requests and minutes of the next sync from the warehouse alone: no request is sent, and nothing runs. " +
    "To sync, the operator runs tributary sync.",
  parameters: Schema.Struct({
    resources: Schema.optionalKey(
      Schema.Array(Name)
        .check(Schema.isMaxLength(namesMax))
        .annotate({ description: "default: all that are configured" })
    ),
    company: Schema.optionalKey(Name.annotate({ description: "Its name; default: all" })),
    full: Schema.optionalKey(Schema.Boolean.annotate({ description: "Plan the read of every record" }))
  }),
  success: answer(Schema.Json),
  failure: ToolFailure
})

export const handlePlan = (given: {
  readonly resources?: ReadonlyArray<string>
  readonly company?: string
  readonly full?: boolean
}) =>
  Effect.gen(function* () {
    const { plan, warehouse } = yield* Capabilities
    const { pages } = yield* Effect.flatMap(warehouse, ({ pools }) => pools)
    const { resources = [], company, full = false } = given
    const [planned, sql] = yield* recordSql(
      plan({ resources, companies: company === undefined ? [] : [company], full })
    ).pipe(Effect.provideService(SqlClient.SqlClient, pages.sql), Effect.mapError(failureOf))
    return yield* readAnswer(
      Effect.succeed({
        data: printable(planned) as Schema.Json,
        scope: { resources: resources.length === 0 ? null : resources, company: company ?? null },
        sql
      })
    )
  })

export const dryRunPush = Tool.make("dry_run_push", {
  description:
    "Checks records that a person wants to write to the source, and shows the requests of a push. Nothing is sent or " +
    "stored. To push, the operator runs tributary push with a file of the same lines.",
  parameters: Schema.Struct({
    resource: Name,
    records: Schema.String.check(Schema.isNonEmpty(), Schema.isMaxLength(recordsCharactersMax)).annotate({
      description: "One record as a JSON object on each line, decimals as text"
    }),
    operation: Schema.optionalKey(
      Schema.Literals(["create", "update", "cancel"]).annotate({ description: "default create" })
    ),
    company: Schema.optionalKey(Name.annotate({ description: "Its name; required where there are several" }))
  }),
  success: answer(
    Schema.Struct({
      company: Schema.String,
      resource: Schema.String,
      operation: Schema.String,
      is_valid: Schema.Boolean,
      valid_records: Schema.Int,
      problems: Schema.Array(
        Schema.Struct({
          line: Schema.NullOr(Schema.Int),
          field: Schema.NullOr(Schema.String),
          message: Schema.String
        })
      ),
      requests: Schema.Struct({ batch: Schema.Int, single: Schema.Int }),
      bytes: Schema.Int,
      first: Schema.Array(Schema.String).annotate({ description: "The first bodies, as they would be sent" })
    })
  ),
  failure: ToolFailure
})

export const handleDryRun = (given: {
  readonly resource: string
  readonly records: string
  readonly operation?: Operation
  readonly company?: string
}) =>
  Effect.gen(function* () {
    const { dryRun } = yield* Capabilities
    const { company = null, operation = "create", records, resource } = given
    const result = yield* dryRun({ company, operation, records, resource })
    const { problems } = result
    return yield* readAnswer(
      Effect.succeed({
        data: {
          company: result.company,
          resource,
          operation,
          is_valid: problems.length === 0,
          valid_records: result.given,
          problems: problems.slice(0, problemsMax),
          requests: result.calls,
          bytes: result.bytes,
          first: result.first.map((body) => cut(body, bodyCharactersMax))
        },
        scope: { resources: [resource], company: result.company },
        remarks: problems.length > problemsMax ? [`Only the first ${problemsMax} problems are shown.`] : []
      })
    )
  })

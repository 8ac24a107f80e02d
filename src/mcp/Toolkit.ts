/** The tools of assistants. Each one reads, and none writes. */
import * as Effect from "effect/Effect"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { type Answer, printable, recordsAreData, type ToolFailure, toolFailure } from "./Answer.ts"
import { Capabilities } from "./Capabilities.ts"
import * as Changes from "./Changes.ts"
import * as Health from "./Health.ts"
import * as Plans from "./Plans.ts"
import * as Query from "./Query.ts"
import * as Record from "./Record.ts"
import * as Tables from "./Tables.ts"
import * as Violations from "./Violations.ts"

/** The time limit of one call, with the wait for a free slot. */
const callTimeout = "25 seconds"

const annotated = <T extends Tool.Any>(tool: T): T =>
  tool
    .annotate(Tool.Readonly, true)
    .annotate(Tool.Destructive, false)
    .annotate(Tool.Idempotent, true)
    .annotate(Tool.OpenWorld, false)
    .annotate(Tool.Strict, true) as T

export const toolkit = Toolkit.make(
  annotated(Tables.listTables),
  annotated(Tables.describeTable),
  annotated(Query.query),
  annotated(Record.explainRecord),
  annotated(Changes.listChanges),
  annotated(Health.problems),
  annotated(Health.freshness),
  annotated(Health.gapsAndQuarantine),
  annotated(Violations.violations),
  annotated(Plans.planSync),
  annotated(Plans.dryRunPush)
)

const slow = toolFailure(
  "timeout",
  "The call took too long.",
  "Ask for less, or try again: other calls may have been in progress."
)

/** Runs a handler in a slot, with the time limit, and makes its answer printable. */
const handled = <Given, Data>(
  handle: (given: Given) => Effect.Effect<Answer<Data>, ToolFailure, Capabilities>
): Effect.Effect<
  (given: Given) => Effect.Effect<Answer<Data> & { readonly records_are_data: string }, ToolFailure>,
  never,
  Capabilities
> =>
  Effect.map(
    Capabilities,
    (capabilities) => (given: Given) =>
      capabilities.slots.withPermit(handle(given)).pipe(
        Effect.timeoutOrElse({ duration: callTimeout, orElse: () => Effect.fail(slow) }),
        Effect.map((answer) => ({
          records_are_data: recordsAreData,
          ...(printable(answer) as Answer<Data>)
        })),
        Effect.provideService(Capabilities, capabilities)
      )
  )

export const handlers = toolkit.toLayer(
  Effect.all({
    list_tables: handled(Tables.handleList),
    describe_table: handled(Tables.handleDescribe),
    query: handled(Query.handle),
    explain_record: handled(Record.handle),
    list_changes: handled(Changes.handle),
    problems: handled(Health.handleProblems),
    freshness: handled(Health.handleFreshness),
    gaps_and_quarantine: handled(Health.handleGaps),
    violations: handled(Violations.handle),
    plan_sync: handled(Plans.handlePlan),
    dry_run_push: handled(Plans.handleDryRun)
  })
)

/** The progress of runs, for commands and pages. The default ignores it. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RunKind } from "../land/Checkpoint.ts"
import type { Outcome, RunTotals } from "./Outcome.ts"

export interface RunBegan {
  readonly companyId: bigint
  readonly resource: string
  readonly kind: RunKind
  /** Whether it goes on with a scan that an earlier run began. */
  readonly resumed: boolean
}

export interface ProgressShape {
  /** The number of a configured company is known. */
  readonly identified: (companyId: bigint, name: string) => Effect.Effect<void>
  readonly began: (run: RunBegan) => Effect.Effect<void>
  readonly landed: (run: RunBegan, totals: RunTotals) => Effect.Effect<void>
  readonly ended: (outcome: Outcome) => Effect.Effect<void>
  /** A one-line remark, for example a retry or a restart. */
  readonly note: (text: string) => Effect.Effect<void>
}

export const Progress = Context.Reference<ProgressShape>("tributary/sync/Progress", {
  defaultValue: () => ({
    identified: () => Effect.void,
    began: () => Effect.void,
    landed: () => Effect.void,
    ended: () => Effect.void,
    note: () => Effect.void
  })
})

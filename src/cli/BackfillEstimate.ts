/**
 * The expected size of each run of a backfill: at first an estimate from the warehouse, for long runs the answer of the
 * source.
 */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { Priority } from "../budget/Budget.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { plan, type PlanCompany, type PlanOptions } from "../sync/Estimate.ts"
import type { RunTotals } from "../sync/Outcome.ts"
import type { ProgressShape } from "../sync/Progress.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import { type Expectations, type Expected, keyOf } from "./SyncProgress.ts"

/** Interval at which the remaining size of long runs is requested from the source. */
const refineEvery = "15 seconds"

export const make = Effect.fnUntraced(function* (
  settings: Configuration,
  backfill: NonNullable<PlanOptions["backfill"]>,
  targets: ReadonlyArray<SyncCompany>
) {
  const { concurrency, datasets, freshnessOf } = settings
  const options = { backfill, concurrency, datasets, freshnessOf, full: false }
  const identified = yield* Effect.forEach(
    targets,
    (target) =>
      // The backfill itself reports the failure.
      Effect.option(Effect.map(target.connector.identify, ({ companyId }) => ({ ...target, companyId }))),
    { concurrency: "unbounded" }
  )
  const companies = Arr.getSomes(identified)
  const planned = yield* plan({ ...options, companies, probe: false })

  const remarks: Array<string> = []
  const expected = new Map<string, Expected>()
  /** Each run without an estimate, as a company with this resource only. */
  const unknown = new Map<string, PlanCompany>()
  for (const [company, { resources }] of Arr.zip(companies, planned.companies)) {
    for (const one of resources) {
      const key = keyOf({ companyId: company.companyId, resource: one.resource })
      if (one.because !== null) remarks.push(`${one.resource}: ${one.because}`)
      if (one.resumesAt !== null) remarks.push(`${one.resource}: resumes at page ${one.resumesAt}`)
      if (one.certainty === "about") expected.set(key, one)
      else unknown.set(key, { ...company, resources: company.resources.filter(({ path }) => path === one.resource) })
    }
  }

  /** The totals so far of each run in progress. */
  const active = new Map<string, Pick<RunTotals, "records" | "requests">>()
  const watch = (progress: ProgressShape): ProgressShape => ({
    ...progress,
    began: (run) =>
      Effect.suspend(() => {
        active.set(keyOf(run), { records: 0, requests: 0 })
        return progress.began(run)
      }),
    landed: (run, totals) =>
      Effect.suspend(() => {
        active.set(keyOf(run), totals)
        return progress.landed(run, totals)
      }),
    ended: (outcome) =>
      Effect.suspend(() => {
        active.delete(keyOf(outcome))
        return progress.ended(outcome)
      })
  })

  const requestUnknown = Effect.gen(function* () {
    for (const [key, before] of active) {
      const company = unknown.get(key)
      if (company === undefined) continue
      unknown.delete(key)
      const [answer] = (yield* plan({ ...options, companies: [company], probe: true })).companies
      const left = answer?.resources[0]
      if (left === undefined || left.records === null || left.certainty === "atLeast") continue
      const now = active.get(key) ?? before
      expected.set(key, { records: now.records + left.records, requests: now.requests + left.requests })
    }
  })
  return {
    remarks,
    watch,
    expectations: ((run) => expected.get(keyOf(run)) ?? null) satisfies Expectations,
    /** Requests the unknown sizes of the runs in progress, without end. */
    refine: requestUnknown.pipe(
      Effect.ignore,
      Effect.repeat(Schedule.spaced(refineEvery)),
      Effect.delay(refineEvery),
      Effect.provideService(Priority, { class: "backfill", dueAt: Number.POSITIVE_INFINITY })
    )
  }
})

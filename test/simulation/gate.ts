/**
 * The seeds and planted bugs of the gate (`npm run simulate -- --gate`), beside every seed of `regressions.ts`.
 *
 * Promise: the list is the same for each commit. Together its seeds have every class of faults (`simulation.test.ts`).
 */
import type { Plan, PlanOptions } from "./Plan.ts"
import type { Regression } from "./regressions.ts"

export const overridesOf: Readonly<Record<Regression["kind"], Partial<Pick<Plan, "hooks" | "pushes">>>> = {
  syncs: {},
  "webhooks only": { hooks: "only" },
  "webhooks beside": { hooks: "beside" },
  "pushes only": { pushes: "only" },
  "pushes beside": { pushes: "beside" }
}

type GateKind = Regression["kind"] | "rules" | InstallationsKind

const installations = {
  "installations, syncs": { hooks: "off" },
  "installations, webhooks": { hooks: "beside" },
  "installations, pushes": { pushes: "beside" }
} as const

type InstallationsKind = keyof typeof installations

const isOfInstallations = (kind: GateKind): kind is InstallationsKind => kind in installations

/**
 * Only seeds of the kind `rules` have privacy rules, and only those of `installations` several installations: the others
 * are as they were before these were drawn.
 */
export const gateOptionsOf = (kind: GateKind): PlanOptions =>
  kind === "rules"
    ? { on: ["G3"], off: ["G4"] }
    : isOfInstallations(kind)
      ? { on: ["G4"], off: ["G3"], overrides: installations[kind] }
      : { off: ["G3", "G4"], overrides: overridesOf[kind] }

/** The first seed of each kind runs twice and must have the same trace. */
export const gateSeeds: Readonly<Record<GateKind, ReadonlyArray<number>>> = {
  syncs: [
    1312, 1389, 1475, 1525, 1583, 1753, 1909, 1911, 1913, 2000, 2083, 2337, 2368, 2373, 2423, 2447, 2483, 2499, 2683,
    2708, 2793, 2816, 3144, 3356, 3551, 3631, 3727, 3869, 3912, 3955
  ],
  "webhooks only": [4008, 4328, 4362, 4489, 4993, 5081, 5324, 5895, 5906],
  "webhooks beside": [6798, 7326, 7422, 7661, 7870],
  "pushes only": [8082, 8359, 8399, 8402, 8793, 8881, 8957, 9254, 9515, 9809, 9886, 9990],
  "pushes beside": [10488, 10783, 11272, 11712],
  rules: [12001, 12002, 12003, 12004, 12005, 12006],
  "installations, syncs": [13001, 13002],
  "installations, webhooks": [13101, 13102],
  "installations, pushes": [13201, 13202]
}

/** Planted bugs, each with the seed that catches it: one or two for each area of the code. */
export const gateBugs: Readonly<Record<string, number>> = {
  "retry-on-4xx": 1,
  "cancelled-records-forgotten": 1,
  "one-refusal-stops-all": 1,
  "null-stamps-excluded": 8,
  "empty-page-is-the-end": 9,
  "checkpoint-before-rows": 1,
  "unchanged-rows-rewritten": 1,
  "deletions-ignored": 9,
  "lost-table-not-noticed": 1,
  "rows-of-the-future-stay": 2,
  "history-dropped": 7,
  "refilled-table-is-the-same": 14,
  "quarantine-dropped": 7,
  "ack-before-insert": 2,
  "no-window": 2,
  "settled-before-landed": 6,
  "delivered-not-compared": 1,
  "proven-at-the-check": 3,
  "push-key-not-stored": 1,
  "push-by-position": 9,
  "push-adopted-unseen": 1,
  "push-not-landed": 1,
  "owner-resolves-first": 1,
  "owner-sends-its-own-key": 1,
  "reader-is-not-behind": 2,
  "rules-forget-versions": 1,
  "rules-forget-records": 3,
  "rules-end-no-run": 12,
  "rules-without-a-full-read": 6,
  "unselected-records-stay": 19,
  "installation-not-compared": 1,
  "number-of-the-source": 1,
  "event-of-the-warehouse-number": 1,
  "event-answered-by-any-company": 3,
  "deleted-by-id": 1,
  "pushed-to-the-number-of-the-source": 7,
  "verified-by-id": 1
}

/** How many other seeds try a planted bug that its seed does not catch. */
export const gateBugSeedsMax = 12

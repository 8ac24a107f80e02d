/** Bugs of privacy rules: what is kept of a value, the rewrite of the past, and processes that have other rules. */
import { just, type Mutants } from "./Mutant.ts"

const rewrite = "src/warehouse/PrivacyRewrite.ts"
const connector = "src/connector/ProtectedConnector.ts"
const identity = "src/land/CheckpointIdentity.ts"
const selected = "src/connector/SelectedConnector.ts"
const lock = "src/land/ResourceLock.ts"

/** Each landing compares the rules again: without this change it would hide the others. */
const landsUnderOtherRules = {
  file: "src/land/CheckpointStore.ts",
  find: "yield* lock.checkFence(rows[0]!.same_values ? 1 : 0)",
  replace: "yield* lock.checkFence(rows.length)"
}

export const rules: Mutants = {
  "rules-forget-versions": {
    why: ["rewrite of the past", "the table is rewritten, and its history follows with the next versions"],
    file: rewrite,
    find: "if (found === undefined) continue\n    if (found.kind",
    replace: "if (found === undefined || quoted === table.superseded) continue\n    if (found.kind",
    options: just(["G3", "S5"])
  },
  "rules-forget-records": {
    why: ["rewrite of the past", "the rows are the warehouse; quarantine and inbox are working tables"],
    file: rewrite,
    find: "yield* rewriteRecords(resource.path, changed)",
    replace: "if (rows < 0) yield* rewriteRecords(resource.path, changed)",
    options: just(["G3", "S13"])
  },
  "rules-without-a-full-read": {
    why: ["checkpoint identity", "the rewrite has changed every row, so that nothing is left to read"],
    changes: [
      {
        file: identity,
        find: "    ...(resource.protection === null ? {} : { privacy: resource.protection.statement }),\n",
        replace: ""
      },
      {
        file: identity,
        find: "fields: fieldsHash(resource),",
        replace: "fields: fieldsHash(resource.protection?.sent ?? resource),"
      }
    ],
    options: just(["G3"])
  },
  "rules-not-compared": {
    why: ["processes with other rules", "every process applies its rules before it reads"],
    changes: [
      {
        file: lock,
        find: 'if ((own.privacy ?? "") !== rules)',
        replace: "if (own.privacy === undefined)"
      },
      landsUnderOtherRules
    ],
    options: just(["G3", "C4", "C3", "N5"])
  },
  "rules-end-no-run": {
    why: ["processes with other rules", "a run under the earlier rules ends soon by itself"],
    changes: [
      {
        file: rewrite,
        find: "yield* fenceOff(resource.path)",
        replace: "if (stored.fields === null) yield* fenceOff(resource.path)"
      },
      landsUnderOtherRules
    ],
    options: just(["G3", "C4"], {
      resources: ["worktypes"],
      pageSize: 2,
      batchRecordsMax: 2,
      records: 24,
      delayMax: 3_000_000,
      cycleEvery: 4_000_000
    })
  },
  "rules-for-stated-fields-only": {
    why: ["what is kept", "a rule names a field, and the catalogue has the fields"],
    file: connector,
    find: "extra: protectExtra(protection, extra)",
    replace: "extra",
    options: just(["G3", "S12"])
  },
  "unselected-records-stay": {
    why: ["which records are kept", "a record that does not pass the filters is left out"],
    file: selected,
    find: "if (!isKept) unselected.push({ id: record.id, changedAt: changedAt(record) })",
    replace: "if (unselected.length < 0) unselected.push({ id: record.id, changedAt: changedAt(record) })",
    options: just(["G3", "S5"], { resources: ["worktypes"], records: 24, writes: 45, rewriteShare: 0.6 })
  },
  "weakest-rule-wins": {
    why: ["what is kept", "of several rules, the last one counts"],
    file: "src/catalogue/Protection.ts",
    find: 'const order: ReadonlyArray<FieldRule["kind"]> = ["exclude", "hash", "mask"]',
    replace: 'const order: ReadonlyArray<FieldRule["kind"]> = ["mask", "hash", "exclude"]',
    options: just(["G3"])
  }
}

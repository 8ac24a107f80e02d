/** Bugs of landing: transactions, fences, merging, deleting, quarantine. */
import { noneLater } from "../Plan.ts"
import type { Change, Mutant } from "./Mutant.ts"

const identity = "src/land/CheckpointIdentity.ts"
const checkpoints = "src/land/CheckpointStore.ts"
const clock = "src/land/WarehouseClock.ts"
const confirm = "src/land/ConfirmIdentity.ts"
const lock = "src/land/ResourceLock.ts"
const merge = "src/land/MergeSql.ts"
const quarantine = "src/land/Quarantine.ts"
const session = "src/land/WriteSession.ts"
const softDelete = "src/land/SoftDelete.ts"

/** No landing compares its fence. */
export const fenceUnchecked: ReadonlyArray<Change> = [
  {
    file: lock,
    find: "affected === 1 ? Effect.void : Effect.fail(new FenceLost({ resource, fence }))",
    replace: "affected >= 0 ? Effect.void : Effect.fail(new FenceLost({ resource, fence }))"
  },
  {
    file: checkpoints,
    find: "and lane = $3 and fence = $4\n",
    replace: "and lane = $3 and $4::bigint is not null\n"
  }
]

export const land: ReadonlyArray<Mutant> = [
  {
    name: "checkpoint-before-rows",
    origin: "museum 8",
    story: "save the position first, then write",
    file: session,
    find: "session.lock.transaction(writeLanding(session, landing))",
    replace:
      "session.lock.transaction(saveCheckpoint(session, { scan: landing.complete ? null : landing.scan, completed: landing.complete ? landing.scan : null, lateMs: 0 })).pipe(Effect.andThen(session.lock.transaction(writeLanding(session, landing))))",
    options: { on: ["C1", "D2"], off: ["S9", "S7x"] }
  },
  {
    name: "state-ahead-of-records",
    origin: "museum 9",
    story: "the cursor of an open scan can be stored already",
    file: checkpoints,
    find: "completed?.syncedThrough ?? null,\n    completed === null",
    replace: "(completed ?? scan)?.syncedThrough ?? null,\n    completed === null",
    options: { on: ["C1", "C8"] }
  },
  {
    name: "progress-not-saved",
    origin: "museum 10",
    story: "a scan that was not completed begins again",
    file: session,
    find: "scan: complete ? null : scan,\n    completed",
    replace: "scan: null,\n    completed",
    options: { on: ["C8", "C1"] }
  },
  {
    name: "same-second-dropped",
    origin: "museum 12",
    story: "newer is later, in whole seconds",
    file: merge,
    find: "${keptAt} is null or ${sentAt} is null or ${keptAt} = ${sentAt} ` +\n    `then ${later} else ${sentAt} > ${keptAt} end)`",
    replace:
      "${keptAt} is null or ${sentAt} is null ` +\n    `then ${later} else date_trunc('second', ${sentAt}) > date_trunc('second', ${keptAt}) end)`",
    options: { on: ["S5"] }
  },
  {
    name: "wall-clock-of-the-machine",
    origin: "museum 12",
    story: "every machine knows what time it is",
    file: clock,
    find: "const timeOf = (at: number) => at + aheadMs",
    replace: "const timeOf = (at: number) => at - monotonicMs() + clock.currentTimeMillisUnsafe()",
    options: { on: ["K1", "K2", "C4"] }
  },
  {
    name: "unknown-commit-taken-for-done",
    origin: "museum 13",
    story: "a COMMIT that was sent has happened",
    file: lock,
    find: 'yield* run("commit landing of", "commit")',
    replace: 'yield* Effect.ignore(run("commit landing of", "commit"))',
    options: { on: ["D3"] }
  },
  {
    name: "unchanged-rows-rewritten",
    origin: "museum 14",
    story: "writing the same again changes nothing",
    file: merge,
    find: 'return `(t."_deleted_at" is not null or (${side("t")}) is distinct from (${side(sent)}))`',
    replace: 'return `(t."_deleted_at" is not null or (${side("t")}) is distinct from (${side(sent)}) or true)`'
  },
  {
    name: "cursor-rounded-up",
    origin: "museum 15",
    story: "milliseconds are precise enough for a cursor",
    file: checkpoints,
    find: "completed?.syncedThrough ?? null,\n    completed === null",
    replace:
      '(completed?.syncedThrough ?? null)?.replace(/(\\.\\d{3})(\\d+)Z$/, (_all, kept: string) => `.${String(Math.min(999, Number(kept.slice(1)) + 1)).padStart(3, "0")}Z`) ?? null,\n    completed === null',
    options: { on: ["B1"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  {
    name: "no-fence",
    origin: "no fence",
    story: "the lock is enough",
    file: lock,
    find: "do update set fence = c.fence + 1, identity_fence = c.identity_fence + 1,",
    replace: "do update set fence = c.fence, identity_fence = c.identity_fence,",
    options: { on: ["C3", "D8", "C4"] }
  },
  {
    name: "fence-not-checked",
    origin: "fence not checked",
    story: "no process acquires the lane without the lock",
    changes: fenceUnchecked,
    options: { on: ["C3", "D8", "C4"] }
  },
  {
    name: "last-write-wins-by-arrival",
    origin: "LWW by arrival",
    story: "the last version to arrive is the newest",
    changes: [
      {
        file: merge,
        find: 'const later = isBefore(\'t."_observed_at"\', began, "<=")',
        replace: 'const later = `(${began} is not null or t."_observed_at" is null)`'
      },
      {
        file: merge,
        find: 'if (authority === "source" || column === undefined) return later',
        replace: "if (authority !== undefined) return later"
      }
    ],
    options: {
      on: ["BF", "S5", "C3"],
      only: ["BF", "S5", "C3", "N5", "D12"],
      overrides: {
        resources: ["worktypes"],
        companies: 1,
        rewriteShare: 0.5,
        writes: 70,
        safety: 90_000_000,
        pageSize: 40,
        cycleEvery: 5_000_000,
        pauseRate: 0.015
      }
    }
  },
  {
    name: "stale-read-resurrects",
    origin: "tombstone resurrect",
    story: "a record that is shown exists",
    file: merge,
    find: 'const later = isBefore(\'t."_observed_at"\', began, "<=")',
    replace: 'const later = `(${began} >= t."_observed_at" or t."_deleted_at" is not null)`',
    options: {
      on: ["BF", "S11", "C3"],
      only: ["BF", "S11", "C3", "N5", "S12", "S6"],
      overrides: {
        resources: ["areas"],
        companies: 1,
        rewriteShare: 0.05,
        writes: 70,
        safety: 90_000_000,
        pageSize: 40,
        cycleEvery: 5_000_000,
        pauseRate: 0.015,
        delayMax: 200_000
      }
    }
  },
  {
    name: "ids-of-all-lanes",
    origin: "scan_ids not lane-separated",
    story: "one list of ids is enough",
    file: softDelete,
    find: '"delete from tributary.scan_ids where company_id = $1 and resource = $2 and lane = $3"',
    replace: '"delete from tributary.scan_ids where company_id = $1 and resource = $2 and $3::text is not null"',
    options: {
      on: ["BF", "N5"],
      overrides: { resources: ["areas", "producttypetaxes"], pageSize: 3, batchRecordsMax: 3 }
    }
  },
  {
    name: "children-not-asked-for",
    origin: "child re-read dropped",
    story: "children change without their parent",
    file: "src/land/BatchLoader.ts",
    find: "if (written > 0 && children.length > 0) {",
    replace: "if (written < 0 && children.length > 0) {",
    options: { on: ["CH"] }
  },
  {
    name: "deletions-ignored",
    origin: "delete ignored",
    story: "records are never removed, only cancelled",
    file: softDelete,
    find: "if (gone === 0) return { ...nothing, kept }",
    replace: "if (gone >= 0) return { ...nothing, kept }",
    options: { on: ["S11"] }
  },
  {
    name: "everything-believed-deleted",
    origin: "mass-delete guard off",
    story: "a record that a full scan does not show is gone, however many there are",
    file: softDelete,
    find: "if (!context.acceptsDeletions && unseen > unguardedDeletionsMax",
    replace: "if (unseen < 0 && unseen > unguardedDeletionsMax",
    options: { on: ["S4e"] }
  },
  {
    name: "guard-counts-deletions-only",
    origin: "mass-delete guard evaded",
    story: "the guard bounds the number of deletions, and rows that are kept are not deleted",
    file: softDelete,
    find: "const { live, unseen } = yield* countUnseen(lock, sql)",
    replace: "const { live } = yield* countUnseen(lock, sql); const unseen = gone",
    options: {
      only: ["S4e", "BF", "C4", "S15"],
      on: ["S4e", "BF", "C4", "S15"],
      overrides: {
        network: [["S4e empty list", 0.6]],
        records: 63,
        pageSize: 17,
        delayMax: 3_000_000,
        cycleEvery: 4_000_000
      }
    }
  },
  {
    name: "two-empty-lists-are-proof",
    origin: "empty list believed",
    story: "an empty list is a mistake once, and not twice",
    file: "src/extract/Scan.ts",
    find: "if (!areUnguarded ||",
    replace: "if (areUnguarded ||",
    options: {
      only: ["S4e"],
      on: ["S4e"],
      overrides: { network: [["S4e empty list", 0.5]], records: 9, pageSize: 17 }
    }
  },
  {
    name: "disbelieved-scan-counts",
    origin: "a list that is empty by mistake covers pending events",
    story: "the scan reached its end, so everything was read",
    file: session,
    find: "const completedScan = complete && landed.massDeleteBlocked === null ? scan : null",
    replace: "const completedScan = complete ? scan : null",
    options: { on: ["S4e", "W11"], overrides: { hooks: "beside" } }
  },
  {
    name: "lost-table-not-noticed",
    origin: "checkpoint identity",
    story: "a cursor stays good for a table of the same name",
    file: confirm,
    find: "live.table_identity === null\n",
    replace: "live.table_identity !== undefined\n",
    options: { only: ["T1"], on: ["T1"], overrides: { resources: ["worktypes"] } }
  },
  {
    name: "table-replaced-under-a-run",
    origin: "checkpoint identity",
    story: "the table was checked when the run began",
    file: checkpoints,
    find: "if (!rows[0]!.same_table) return",
    replace: "if (rows.length === 0) return",
    options: {
      only: ["T1"],
      on: ["T1"],
      overrides: { pageSize: 2, batchRecordsMax: 2, records: 24, later: { ...noneLater, tableLosses: 6 } }
    }
  },
  {
    name: "refilled-table-is-the-same",
    origin: "warehouse restored",
    story: "a recreated table has another oid, and nothing else changes",
    file: identity,
    find: "`tributary.table_identity(to_regclass(${table}), to_regclass(${history}))`",
    replace:
      "`regexp_replace(tributary.table_identity(to_regclass(${table}), to_regclass(${history})), ' (file|historyfile|control)=[0-9]+', '', 'g')`",
    options: {
      only: ["T2"],
      on: ["T2"],
      overrides: { resources: ["worktypes"], later: { ...noneLater, warehouseRestores: 3 } }
    }
  },
  {
    name: "restored-control-plane-is-believed",
    origin: "warehouse restored",
    story: "an earlier checkpoint only reads more than it must",
    file: identity,
    find: "`tributary.table_identity(to_regclass(${table}), to_regclass(${history}))`",
    replace:
      "`regexp_replace(tributary.table_identity(to_regclass(${table}), to_regclass(${history})), ' (checkpoints|control)=[0-9]+', '', 'g')`",
    options: { only: ["T2", "CH"], on: ["T2", "CH"], overrides: { later: { ...noneLater, warehouseRestores: 3 } } }
  },
  {
    name: "restored-row-keeps-its-time",
    origin: "warehouse restored",
    story: "a row that is restored was read when it was read",
    file: merge,
    find: `"_observed_at" = greatest(t."_observed_at", h.ended) `,
    replace: `"_observed_at" = t."_observed_at" `,
    options: { only: ["T2"], on: ["T2"], overrides: { later: { ...noneLater, warehouseRestores: 3 } } }
  },
  {
    name: "lost-past-is-forgotten",
    origin: "warehouse restored",
    story: "the full scan repairs the table, so that nothing is lost",
    file: confirm,
    find: "set past_from = 'infinity', past_batch = null, past_until = null",
    replace: "set past_from = null, past_batch = null, past_until = null",
    options: {
      only: ["T1", "T2"],
      on: ["T1", "T2"],
      overrides: { later: { ...noneLater, tableLosses: 3, warehouseRestores: 2 } }
    }
  },
  {
    name: "scan-goes-on-after-a-restore",
    origin: "warehouse restored",
    story: "the next full scan begins where the last one ended",
    file: confirm,
    find: "full_scan_reason = case when lane = 'live' then $6 else full_scan_reason end,\n       ${forgetScanSql}, updated_at",
    replace: "full_scan_reason = case when lane = 'live' then $6 else full_scan_reason end,\n       updated_at",
    options: {
      only: ["T2", "C1", "C8"],
      on: ["T2", "C1", "C8"],
      overrides: {
        resources: ["worktypes"],
        pageSize: 2,
        batchRecordsMax: 2,
        records: 24,
        later: { ...noneLater, warehouseRestores: 3 }
      }
    }
  },
  {
    name: "rows-of-the-future-stay",
    origin: "warehouse clock set back",
    story: "the time of the warehouse only grows",
    file: merge,
    find: 'const later = isBefore(\'t."_observed_at"\', began, "<=")',
    replace: 'const later = `(${began} >= t."_observed_at")`',
    options: { only: ["K3"], on: ["K3"], overrides: { resources: ["areas"], rewriteShare: 0.6 } }
  },
  {
    name: "rows-of-the-future-never-gone",
    origin: "warehouse clock set back",
    story: "rows seen after the scan began exist",
    file: merge,
    find: `\${isBefore('t."_observed_at"', "$3::timestamptz")} and not exists`,
    replace: '(t."_observed_at" < $3::timestamptz) and not exists',
    options: { only: ["K3", "S11"], on: ["K3", "S11"], overrides: { resources: ["areas"] } }
  },
  {
    name: "quarantine-of-the-future-stays",
    origin: "warehouse clock set back",
    story: "rows last seen before the full scan began are missing from it",
    changes: [
      { file: quarantine, find: '${isBefore("last_seen_at", "$3::timestamptz")}', replace: "last_seen_at < $3" }
    ],
    options: { only: ["K3", "S13", "S14"], on: ["K3", "S13", "S14"], overrides: { resources: ["areas"] } }
  },
  {
    name: "stale-page-wins",
    origin: "a replica that is behind",
    story: "a later read is newer",
    file: merge,
    find: "else ${sentAt} > ${keptAt} end)",
    replace: "else ${later} end)",
    options: {
      on: ["S16", "Pp", "BF", "T1"],
      only: ["S16", "S5", "Pp", "BF", "T1"],
      overrides: {
        resources: ["jobs"],
        rewriteShare: 0.6,
        writes: 70,
        pageSize: 5,
        later: { ...noneLater, replicaRate: 0.5 }
      }
    }
  },
  {
    name: "visible-late-is-gone",
    origin: "an answer of a cache, and a record that is visible late",
    story: "a record is visible from its stamp on",
    file: merge,
    find: "case when cursor.at is null then 0 else $4::float8 end",
    replace: "0 * $4::float8",
    options: {
      on: ["K3", "N9", "S7"],
      only: ["K3", "N9", "S7"],
      overrides: {
        overlap: 300_000_000,
        resources: ["jobs"],
        pageSize: 40,
        records: 12,
        writes: 40,
        delayMax: 50_000,
        cycleEvery: 4_000_000,
        later: { ...noneLater, cacheRate: 0.7, clockStep: 0.9 }
      }
    }
  },
  {
    name: "restored-source-not-accepted",
    origin: "an operator's decision is not carried out",
    story: "the newer version wins, always",
    file: merge,
    find: 'if (authority === "source" || column === undefined) return later',
    replace: "if (column === undefined) return later",
    options: { on: ["S18"], overrides: { resources: ["jobs"], later: { ...noneLater, backs: 4 } } }
  },
  {
    name: "older-versions-not-told",
    origin: "a restored source that no run reports",
    story: "the newer version was kept, so all is well",
    file: merge,
    find: 'column !== undefined && authority === "newer"\n        ? `select count',
    replace: 'column !== undefined && authority !== "newer"\n        ? `select count',
    options: { on: ["S14"], off: ["S4e"] }
  },
  {
    name: "accepting-reads-changes-only",
    origin: "an operator's decision is not carried out",
    story: "the next runs read what the source has now",
    file: "src/sync/SyncResource.ts",
    find: "full: mode.full === true || mode.acceptRestored === true",
    replace: "full: mode.full === true",
    options: { on: ["S14"], off: ["S4e"], overrides: { resources: ["jobs"] } }
  },
  {
    name: "ignored-fields-shape-nothing",
    origin: "a configuration that changes",
    story: "a setting applies from now on",
    file: "src/land/CheckpointIdentity.ts",
    find: 'resource.ignoredFields.length === 0 ? "none" : [...resource.ignoredFields].sort().join(",")',
    replace: 'resource.ignoredFields.length < 0 ? "none" : ""',
    options: { on: ["G1"], off: ["G2", "S4e", "S9", "S15"], overrides: { resources: ["jobs"] } }
  },
  {
    name: "older-catalogue-writes",
    origin: "an older release beside a newer one",
    story: "each release keeps the rows as it knows them",
    file: lock,
    find: "if (writtenBy > identity.generation && options.acceptsOlderCatalogue !== true) {",
    replace: "if (writtenBy > identity.generation && options.acceptsOlderCatalogue === false && writtenBy < 0) {",
    options: { on: ["G2"], off: ["S4e"] }
  },
  {
    name: "raised-without-identity-unnoticed",
    origin: "an older release beside a newer one",
    story: "every release confirms the identity of a checkpoint",
    file: confirm,
    find: "own.unconfirmed || own.identity_fence !== own.fence ?",
    replace: "own.unconfirmed && own.identity_fence === null && own.fence < 0n ?",
    options: { on: ["G2"], off: ["S4e", "S9", "S15"], overrides: { resources: ["jobs"] } }
  },
  {
    name: "catalogue-shapes-nothing",
    origin: "an older release beside a newer one",
    story: "a new field is filled as records change",
    file: "src/land/CheckpointIdentity.ts",
    find: "catalogue: String(generation),\n    fields: fieldsHash(resource),",
    replace: "catalogue: String(generation > 0 ? 1 : 1),\n    fields: fieldsHash(resource).slice(99),",
    options: { on: ["G2"], off: ["S4e", "S9", "S15"], overrides: { resources: ["jobs"] } }
  },
  {
    name: "tombstone-never-lifted",
    origin: "tombstone resurrect",
    story: "a deleted record stays deleted",
    file: merge,
    find: `"_deleted_at" = null, \` +`,
    replace: `"_deleted_at" = t."_deleted_at", \` +`,
    options: { on: ["S11", "S11r"], overrides: { resources: ["areas"], rewriteShare: 0.5, writes: 60 } }
  },
  {
    name: "resumed-pages-forgotten",
    origin: "full scan absence without the pages before",
    story: "the pages of this run are the pages of the scan",
    file: session,
    find: "if (evaluatesAbsence && pages.length > 0)",
    replace: "if (evaluatesAbsence && session.options.run.resumed !== true && pages.length > 0)",
    options: { on: ["C1", "C8"] }
  },
  {
    name: "quarantine-dropped",
    origin: "silent skip",
    story: "one bad record is not worth reporting",
    changes: [
      { file: session, find: "yield* quarantine(session, rejected)", replace: "yield* quarantine(session, [])" }
    ],
    options: { on: ["S13"] }
  },
  {
    name: "quarantine-never-released",
    origin: "quarantine drains",
    story: "a person will look at it",
    changes: [
      { file: quarantine, find: "hasQuarantine && ids.length > 0\n", replace: "hasQuarantine && ids.length > 1e9\n" }
    ],
    options: { on: ["S13"] }
  },
  {
    name: "no-room-blamed-on-the-record",
    origin: "a shortage of the server handled as a bad value",
    story: "a record that cannot be loaded goes to quarantine",
    file: "src/land/BatchLoader.ts",
    find: '(code?.startsWith("22") === true || code === "54000")',
    replace: '(code?.startsWith("22") === true || code?.startsWith("53") === true || code === "54000")',
    options: {
      on: ["D6"],
      only: ["D6"],
      overrides: {
        resources: ["jobs"],
        companies: 1,
        overlap: 0,
        writes: 60,
        safety: 90_000_000,
        cycleEvery: 5_000_000,
        pageSize: 2,
        batchRecordsMax: 2,
        later: { ...noneLater, fullRate: 0.02 }
      }
    }
  },
  {
    name: "history-dropped",
    origin: "history with gaps",
    story: "the last version is what counts",
    changes: [
      {
        file: merge,
        find: '`where ${wins(table, authority, "s", `s."_began"`)} and ${differs(table, "s")}`,\n    merge:',
        replace:
          '`where ${wins(table, authority, "s", `s."_began"`)} and ${differs(table, "s")} and t."_version" % 3 <> 2`,\n    merge:'
      },
      {
        file: merge,
        find: "from merged where ${oldVersion} is not null)",
        replace: "from merged where ${oldVersion} % 3 <> 2)"
      }
    ],
    options: { on: ["S5"] }
  },
  {
    name: "deletions-not-in-feed",
    origin: "a change feed that misses deletions",
    story: "the feed has what a merge returns",
    file: merge,
    find: 'ChangeBatch.insert(table, "gone", { company: "$1::bigint", began: "$2::timestamptz" })',
    replace: '"select from gone"',
    options: { on: ["S9"], off: ["S4e"] }
  },
  {
    name: "feed-ignores-replaced-table",
    origin: "a change feed that misses what a restore did",
    story: "the full scan after a loss lands what is missing",
    file: lock,
    find: "if (!own.feeds || result?.isFed === false)",
    replace: "if (!own.feeds)",
    options: { on: ["T1", "T2"] }
  },
  {
    name: "feed-ignores-older-release",
    origin: "two releases beside each other",
    story: "every program that runs has been updated",
    changes: [
      { file: lock, find: "own.feeds && differences.all", replace: "differences.all" },
      { file: lock, find: "if (!own.feeds || result?.isFed === false)", replace: "if (result?.isFed === false)" }
    ],
    options: { on: ["G2"] }
  }
]

/** Bugs of landing: transactions, fences, merging, deleting, quarantine. */
import { type Change, just, type Mutants, rates } from "./Mutant.ts"

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
    find: "and lane = ${at.lane} and fence = ${at.fence}\n",
    replace: "and lane = ${at.lane} and ${at.fence}::bigint is not null\n"
  }
]

export const land: Mutants = {
  "checkpoint-before-rows": {
    why: ["museum 8", "save the position first, then write"],
    file: session,
    find: "session.lock.transaction(writeLanding(session, landing))",
    replace:
      "session.lock.transaction(Effect.andThen(landing.complete || landing.scan === null ? Effect.void : saveScan(session, landing.scan, null), saveCheckpoint(session, { scan: landing.complete ? null : landing.scan, completed: landing.complete ? landing.scan : null, lateMs: 0 }))).pipe(Effect.andThen(session.lock.transaction(writeLanding(session, landing))))",
    options: { on: ["C1", "D2"], off: ["S9", "S7x"] }
  },
  "state-ahead-of-records": {
    why: ["museum 9", "the cursor of an open scan can be stored already"],
    file: checkpoints,
    find: "cursor: completed?.syncedThrough ?? null,\n    cursorReadAt",
    replace: "cursor: (completed ?? scan)?.syncedThrough ?? null,\n    cursorReadAt",
    options: { on: ["C1", "C8"] }
  },
  "progress-not-saved": {
    why: ["museum 10", "a scan that was not completed begins again"],
    file: session,
    find: "scan: complete ? null : scan,\n    completed",
    replace: "scan: null,\n    completed",
    options: { on: ["C8", "C1"] }
  },
  "same-second-dropped": {
    why: ["museum 12", "newer is later, in whole seconds"],
    file: merge,
    find: "${keptAt} is null or ${sentAt} is null or ${keptAt} = ${sentAt} ` +\n    `then ${later} else ${sentAt} > ${keptAt} end)`",
    replace:
      "${keptAt} is null or ${sentAt} is null ` +\n    `then ${later} else date_trunc('second', ${sentAt}) > date_trunc('second', ${keptAt}) end)`",
    options: { on: ["S5"] }
  },
  "wall-clock-of-the-machine": {
    why: ["museum 12", "every machine knows what time it is"],
    file: clock,
    find: "const timeOf = (at: number) => at + aheadMs",
    replace: "const timeOf = (at: number) => at - monotonicMs() + clock.currentTimeMillisUnsafe()",
    options: { on: ["K1", "K2", "C4"] }
  },
  "unknown-commit-taken-for-done": {
    why: ["museum 13", "a COMMIT that was sent has happened"],
    file: lock,
    find: 'yield* run("commit landing of", "commit")',
    replace: 'yield* Effect.ignore(run("commit landing of", "commit"))',
    options: { on: ["D3"] }
  },
  "unchanged-rows-rewritten": {
    why: ["museum 14", "writing the same again changes nothing"],
    file: merge,
    find: 'return `(t."_deleted_at" is not null or (${side("t")}) is distinct from (${side(sent)}))`',
    replace: 'return `(t."_deleted_at" is not null or (${side("t")}) is distinct from (${side(sent)}) or true)`'
  },
  "cursor-rounded-up": {
    why: ["museum 15", "milliseconds are precise enough for a cursor"],
    file: checkpoints,
    find: "cursor: completed?.syncedThrough ?? null,\n    cursorReadAt",
    replace:
      'cursor: (completed?.syncedThrough ?? null)?.replace(/(\\.\\d{3})(\\d+)Z$/, (_all, kept: string) => `.${String(Math.min(999, Number(kept.slice(1)) + 1)).padStart(3, "0")}Z`) ?? null,\n    cursorReadAt',
    options: { on: ["B1"], off: ["S9", "S7x", "Pb", "S8"], overrides: { overlap: 0 } }
  },
  "no-fence": {
    why: ["no fence", "the lock is enough"],
    file: lock,
    find: "do update set fence = c.fence + 1, updated_at",
    replace: "do update set fence = c.fence, updated_at",
    options: { on: ["C3", "D8", "C4"] }
  },
  "fence-not-checked": {
    why: ["fence not checked", "no process acquires the lane without the lock"],
    changes: fenceUnchecked,
    options: { on: ["C3", "D8", "C4"] }
  },
  "last-write-wins-by-arrival": {
    why: ["LWW by arrival", "the last version to arrive is the newest"],
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
  "stale-read-resurrects": {
    why: ["tombstone resurrect", "a record that is shown exists"],
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
  "ids-of-all-lanes": {
    why: ["scan_ids not lane-separated", "one list of ids is enough"],
    file: checkpoints,
    find: "delete from tributary.scans where company_id = ${at.company} and resource = ${at.resource} and lane = ${at.lane} and",
    replace:
      "delete from tributary.scans where company_id = ${at.company} and resource = ${at.resource} and ${at.lane}::text is not null and",
    options: {
      on: ["BF", "N5"],
      overrides: { resources: ["areas", "producttypetaxes"], pageSize: 3, batchRecordsMax: 3 }
    }
  },
  "children-not-asked-for": {
    why: ["child re-read dropped", "children change without their parent"],
    file: "src/land/BatchLoader.ts",
    find: "if (written > 0 && children.length > 0) {",
    replace: "if (written < 0 && children.length > 0) {",
    options: { on: ["CH"] }
  },
  "deletions-ignored": {
    why: ["delete ignored", "records are never removed, only cancelled"],
    file: softDelete,
    find: "if (gone === 0) return { ...nothing, kept }",
    replace: "if (gone >= 0) return { ...nothing, kept }",
    options: { on: ["S11"] }
  },
  "everything-believed-deleted": {
    why: ["mass-delete guard off", "a record that a full scan does not show is gone, however many there are"],
    file: softDelete,
    find: "if (!context.acceptsDeletions && unseen > unguardedDeletionsMax",
    replace: "if (unseen < 0 && unseen > unguardedDeletionsMax",
    options: { on: ["S4e"] }
  },
  "guard-counts-deletions-only": {
    why: [
      "mass-delete guard evaded",
      "the guard bounds the number of deletions, and rows that are kept are not deleted"
    ],
    file: softDelete,
    find: "const { live, unseen } = yield* countUnseen(lock, sql)",
    replace: "const { live } = yield* countUnseen(lock, sql); const unseen = gone",
    options: just(["S4e", "BF", "C4", "S15"], {
      network: [["S4e empty list", 0.6]],
      records: 63,
      pageSize: 17,
      delayMax: 3_000_000,
      cycleEvery: 4_000_000
    })
  },
  "two-empty-lists-are-proof": {
    why: ["empty list believed", "an empty list is a mistake once, and not twice"],
    file: "src/extract/Scan.ts",
    find: "if (!areUnguarded ||",
    replace: "if (areUnguarded ||",
    options: just(["S4e"], { network: [["S4e empty list", 0.5]], records: 9, pageSize: 17 })
  },
  "disbelieved-scan-counts": {
    why: ["a list that is empty by mistake covers pending events", "the scan reached its end, so everything was read"],
    file: session,
    find: "const completedScan = complete && landed.massDeleteBlocked === null ? scan : null",
    replace: "const completedScan = complete ? scan : null",
    options: { on: ["S4e", "W11"], overrides: { hooks: "beside" } }
  },
  "lost-table-not-noticed": {
    why: ["checkpoint identity", "a cursor stays good for a table of the same name"],
    file: confirm,
    find: "live.table_identity === null\n",
    replace: "live.table_identity !== undefined\n",
    options: just(["T1"], { resources: ["worktypes"] })
  },
  "table-replaced-under-a-run": {
    why: ["checkpoint identity", "the table was checked when the run began"],
    file: checkpoints,
    find: "if (!rows[0]!.same_table) return",
    replace: "if (rows.length === 0) return",
    options: just(["T1"], { pageSize: 2, batchRecordsMax: 2, records: 24, later: rates({ tableLosses: 6 }) })
  },
  "refilled-table-is-the-same": {
    why: ["warehouse restored", "a recreated table has another oid, and nothing else changes"],
    file: identity,
    find: "`tributary.table_identity(to_regclass(${table}), to_regclass(${history}))`",
    replace:
      "`regexp_replace(tributary.table_identity(to_regclass(${table}), to_regclass(${history})), ' (file|historyfile|control)=[0-9]+', '', 'g')`",
    options: just(["T2"], { resources: ["worktypes"], later: rates({ warehouseRestores: 3 }) })
  },
  "restored-control-plane-is-believed": {
    why: ["warehouse restored", "an earlier checkpoint only reads more than it must"],
    file: identity,
    find: "`tributary.table_identity(to_regclass(${table}), to_regclass(${history}))`",
    replace:
      "`regexp_replace(tributary.table_identity(to_regclass(${table}), to_regclass(${history})), ' (checkpoints|control)=[0-9]+', '', 'g')`",
    options: just(["T2", "CH"], { later: rates({ warehouseRestores: 3 }) })
  },
  "restored-row-keeps-its-time": {
    why: ["warehouse restored", "a row that is restored was read when it was read"],
    file: merge,
    find: `"_observed_at" = greatest(t."_observed_at", h.ended) `,
    replace: `"_observed_at" = t."_observed_at" `,
    options: just(["T2"], { later: rates({ warehouseRestores: 3 }) })
  },
  "lost-past-is-forgotten": {
    why: ["warehouse restored", "the full scan repairs the table, so that nothing is lost"],
    file: confirm,
    find: "set past_from = 'infinity', past_batch = null, past_until = null",
    replace: "set past_from = null, past_batch = null, past_until = null",
    options: just(["T1", "T2"], { later: rates({ tableLosses: 3, warehouseRestores: 2 }) })
  },
  "scan-goes-on-after-a-restore": {
    why: ["warehouse restored", "the next full scan begins where the last one ended"],
    file: confirm,
    find: "yield* runStatement(forgetScansStatement, [companyId, resource])",
    replace: "",
    options: just(["T2", "C1", "C8"], {
      resources: ["worktypes"],
      pageSize: 2,
      batchRecordsMax: 2,
      records: 24,
      later: rates({ warehouseRestores: 3 })
    })
  },
  "rows-of-the-future-stay": {
    why: ["warehouse clock set back", "the time of the warehouse only grows"],
    file: merge,
    find: 'const later = isBefore(\'t."_observed_at"\', began, "<=")',
    replace: 'const later = `(${began} >= t."_observed_at")`',
    options: just(["K3"], { resources: ["areas"], rewriteShare: 0.6 })
  },
  "rows-of-the-future-never-gone": {
    why: ["warehouse clock set back", "rows seen after the scan began exist"],
    file: merge,
    find: `\${isBefore('t."_observed_at"', "$3::timestamptz")} and \${isDecided`,
    replace: '(t."_observed_at" < $3::timestamptz) and ${isDecided',
    options: just(["K3", "S11"], { resources: ["areas"] })
  },
  "quarantine-of-the-future-stays": {
    why: ["warehouse clock set back", "rows last seen before the full scan began are missing from it"],
    changes: [
      { file: quarantine, find: '${isBefore("last_seen_at", "$3::timestamptz")}', replace: "last_seen_at < $3" }
    ],
    options: just(["K3", "S13", "S14"], { resources: ["areas"] })
  },
  "stale-page-wins": {
    why: ["a replica that is behind", "a later read is newer"],
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
        later: rates({ replicaRate: 0.5 })
      }
    }
  },
  "visible-late-is-gone": {
    why: ["an answer of a cache, and a record that is visible late", "a record is visible from its stamp on"],
    file: merge,
    find: "case when cursor.at is null then 0 else $4::float8 end",
    replace: "0 * $4::float8",
    options: just(["K3", "N9", "S7"], {
      overlap: 300_000_000,
      resources: ["jobs"],
      pageSize: 40,
      records: 12,
      writes: 40,
      delayMax: 50_000,
      cycleEvery: 4_000_000,
      later: rates({ cacheRate: 0.7, clockStep: 0.9 })
    })
  },
  "restored-source-not-accepted": {
    why: ["an operator's decision is not carried out", "the newer version wins, always"],
    file: merge,
    find: 'if (authority === "source" || column === undefined) return later',
    replace: "if (column === undefined) return later",
    options: { on: ["S18"], overrides: { resources: ["jobs"], later: rates({ backs: 4 }) } }
  },
  "older-versions-not-told": {
    why: ["a restored source that no run reports", "the newer version was kept, so all is well"],
    file: merge,
    find: 'column !== undefined && authority === "newer"\n        ? `select count',
    replace: 'column !== undefined && authority !== "newer"\n        ? `select count',
    options: { on: ["S14"], off: ["S4e"] }
  },
  "accepting-reads-changes-only": {
    why: ["an operator's decision is not carried out", "the next runs read what the source has now"],
    file: "src/sync/SyncResource.ts",
    find: "full: mode.full === true || mode.acceptRestored === true",
    replace: "full: mode.full === true",
    options: { on: ["S14"], off: ["S4e"], overrides: { resources: ["jobs"] } }
  },
  "ignored-fields-shape-nothing": {
    why: ["a configuration that changes", "a setting applies from now on"],
    file: "src/land/CheckpointIdentity.ts",
    find: 'resource.ignoredFields.length === 0 ? "none" : [...resource.ignoredFields].sort().join(",")',
    replace: 'resource.ignoredFields.length < 0 ? "none" : ""',
    options: { on: ["G1"], off: ["G2", "S4e", "S9", "S15"], overrides: { resources: ["jobs"] } }
  },
  "older-catalogue-writes": {
    why: ["an older release beside a newer one", "each release keeps the rows as it knows them"],
    file: lock,
    find: "if (writtenBy > identity.generation && options.acceptsOlderCatalogue !== true) {",
    replace: "if (writtenBy > identity.generation && options.acceptsOlderCatalogue === false && writtenBy < 0) {",
    options: { on: ["G2"], off: ["S4e"] }
  },
  "catalogue-shapes-nothing": {
    why: ["an older release beside a newer one", "a new field is filled as records change"],
    file: "src/land/CheckpointIdentity.ts",
    find: "catalogue: String(generation),\n    fields: fieldsHash(resource),",
    replace: "catalogue: String(generation > 0 ? 1 : 1),\n    fields: fieldsHash(resource).slice(99),",
    options: { on: ["G2"], off: ["S4e", "S9", "S15"], overrides: { resources: ["jobs"] } }
  },
  "tombstone-never-lifted": {
    why: ["tombstone resurrect", "a deleted record stays deleted"],
    file: merge,
    find: `"_deleted_at" = null, \` +`,
    replace: `"_deleted_at" = t."_deleted_at", \` +`,
    options: { on: ["S11", "S11r"], overrides: { resources: ["areas"], rewriteShare: 0.5, writes: 60 } }
  },
  "resumed-pages-forgotten": {
    why: ["full scan absence without the pages before", "the pages of this run are the pages of the scan"],
    file: session,
    find: "evaluatesAbsence && pages.length > 0 ? scannedIds",
    replace: "evaluatesAbsence && session.options.run.resumed !== true && pages.length > 0 ? scannedIds",
    options: { on: ["C1", "C8"] }
  },
  "quarantine-dropped": {
    why: ["silent skip", "one bad record is not worth reporting"],
    changes: [
      { file: session, find: "yield* quarantine(session, rejected)", replace: "yield* quarantine(session, [])" }
    ],
    options: { on: ["S13"] }
  },
  "quarantine-never-released": {
    why: ["quarantine drains", "a person will look at it"],
    changes: [
      { file: quarantine, find: "hasQuarantine && ids.length > 0\n", replace: "hasQuarantine && ids.length > 1e9\n" }
    ],
    options: { on: ["S13"] }
  },
  "no-room-blamed-on-the-record": {
    why: ["a shortage of the server handled as a bad value", "a record that cannot be loaded goes to quarantine"],
    file: "src/land/BatchLoader.ts",
    find: '(code?.startsWith("22") === true || code === "54000")',
    replace: '(code?.startsWith("22") === true || code?.startsWith("53") === true || code === "54000")',
    options: just(["D6"], {
      resources: ["jobs"],
      companies: 1,
      overlap: 0,
      writes: 60,
      safety: 90_000_000,
      cycleEvery: 5_000_000,
      pageSize: 2,
      batchRecordsMax: 2,
      later: rates({ fullRate: 0.02 })
    })
  },
  "history-dropped": {
    why: ["history with gaps", "the last version is what counts"],
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
  "deletions-not-in-feed": {
    why: ["a change feed that misses deletions", "the feed has what a merge returns"],
    file: merge,
    find: 'ChangeBatch.insert(table, "gone", { company: "$1::bigint", began: "$2::timestamptz" })',
    replace: '"select from gone"',
    options: { on: ["S9"], off: ["S4e"] }
  },
  "feed-ignores-replaced-table": {
    why: ["a change feed that misses what a restore did", "the full scan after a loss lands what is missing"],
    file: lock,
    find: "if (isFirst || !result.isFed)",
    replace: "if (isFirst)",
    options: { on: ["T1", "T2"] }
  }
}

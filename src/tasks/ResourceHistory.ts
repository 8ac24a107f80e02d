/** The last syncs of a resource, as the warehouse stores them. */
import * as Effect from "effect/Effect"
import * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { readToEnd } from "../warehouse/RunConditions.ts"

export interface ResourceHistory {
  /** The time up to which the resource was last synced, in milliseconds since 1970. */
  readonly syncedMs: number
  /** The last successful run of any process or command. */
  readonly lastRun: {
    readonly runId: bigint
    readonly isFull: boolean
    /** Whether it put no record into quarantine. */
    readonly isComplete: boolean
    readonly beganMs: number
  } | null
}

export const readStatement = Statement.make({
  name: "read the last syncs of a resource",
  params: ["int8", "text"],
  columns: {
    ...Statement.columns("float8?", "cursorMs", "fullScanMs"),
    runId: "int8?",
    ...Statement.columns("text?", "kind", "status"),
    beganMs: "float8?"
  },
  text: `select ${Sql.epochMs("c.cursor_read_at")} as "cursorMs", ${Sql.epochMs("c.full_scan_at")} as "fullScanMs",
            r.id as "runId", r.kind, r.status, ${Sql.epochMs("r.started_at")} as "beganMs"
       from (select 1) one
       left join tributary.checkpoints c on c.company_id = $1 and c.resource = $2 and c.lane = 'live'
       left join lateral (select id, kind, status, started_at from tributary.runs
                           where company_id = $1 and resource = $2 and ${readToEnd("runs")}
                           order by id desc limit 1) r on true`
})

export const readHistory = (companyId: bigint, resource: string): Sql.Query<ResourceHistory> =>
  Effect.map(Statement.run(readStatement, [companyId, resource]), ([row]) => {
    const { beganMs, cursorMs, fullScanMs, kind, runId, status } = row!
    return {
      syncedMs: Math.max(cursorMs ?? 0, fullScanMs ?? 0),
      lastRun:
        runId === null ? null : { runId, isFull: kind === "full", isComplete: status === "done", beganMs: beganMs ?? 0 }
    }
  })

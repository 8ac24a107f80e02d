/** The versions of a record that a run brought, and the version that was valid at a moment. */
import * as Effect from "effect/Effect"
import * as Sql from "../postgres/Sql.ts"
import { identifier } from "../warehouse/Identifier.ts"
import type { Datasets } from "../warehouse/Table.ts"
import { findHistory } from "./Explain.ts"

export interface LandedVersion {
  readonly version: bigint
  /** When the read that brought it began. */
  readonly validFrom: Date
  /** Null while it is the current one. */
  readonly validTo: Date | null
  readonly op: string
  readonly origin: string
  /** The request that brought it. */
  readonly source: string | null
  readonly runId: bigint | null
  /** Whether the run brought it, or its origin is the expected one; else it is only the version of that moment. */
  readonly isBrought: boolean
}

/** A record, and what may have brought a version of it. */
export interface Landing {
  readonly companyId: bigint
  readonly resource: string
  readonly recordId: string
  readonly runId: bigint | null
  /** The origin of the version that was valid at the moment; null where only the run shows that it was brought. */
  readonly origin: "push" | null
  readonly at: Date
}

const versionsMax = 10
const idShape = /^-?\d{1,18}$/

/** The newest versions of a landing, newest first; none where the warehouse has no history of the resource. */
export const readLandedVersions = Effect.fnUntraced(function* (datasets: Datasets, landing: Landing) {
  if (!idShape.test(landing.recordId)) return []
  const history = yield* findHistory(datasets, landing.resource)
  if (history === null) return []
  return yield* Sql.rows<LandedVersion>(
    `select v.version, v."validFrom", v."validTo", v.op, v.origin, v.source, v."runId",
            v."isOfRun" or coalesce(v.origin = $4::text, false) as "isBrought"
       from (select h."_version" as version, h."_valid_from" as "validFrom", h."_valid_to" as "validTo", h."_op" as op,
              h."_origin" as origin, h."_source" as source, h."_run_id" as "runId",
              coalesce(h."_run_id" = $3::bigint, false) as "isOfRun"
         from ${identifier(datasets.history)}.${identifier(history.view)} h
        where h."id" = $1::bigint and h."_company_id" = $2::bigint) v
      where v."isOfRun" or (v."validFrom" <= $5::timestamptz and (v."validTo" is null or v."validTo" > $5::timestamptz))
      order by v.version desc limit ${versionsMax}`,
    [landing.recordId, landing.companyId, landing.runId, landing.origin, landing.at]
  )
})

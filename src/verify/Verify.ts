/**
 * Verification of one resource of one company: a comparison of the warehouse with the source, value by value.
 *
 * Promise: nothing unequal is reported as equal. The source is read as bytes and parsed here, never by the code that
 * loads records; a sample that is read record by record is the exception, and its report shows it. The source changes
 * while it is compared, so a difference counts only when a second comparison of both sides finds it again. A record
 * that the next sync reads is marked as not yet synced; it still counts as a difference. Records and rows that changed
 * before the resource's `since` are not compared.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import type { Table } from "../warehouse/Table.ts"
import type { RulesChanged } from "../warehouse/RulesChanged.ts"
import type { TableDamaged } from "../warehouse/TableDamage.ts"
import { begin, compareEverything, type FirstComparison, type Sides } from "./FirstComparison.ts"
import { failureOf, type Mismatch, type RepairReport, type ResourceReport } from "./Report.ts"
import { compareSample } from "./SampleComparison.ts"
import { confirm } from "./SecondComparison.ts"
import * as SourceSide from "./SourceSide.ts"
import * as WarehouseRows from "./WarehouseRows.ts"
import { plural } from "../text/Count.ts"

/** Fetches records again by their numbers; answers the reason of a failure, or null. */
export type Repair<R> = (ids: ReadonlyArray<string>) => Effect.Effect<string | null, never, R>

export interface VerifyOptions<R> {
  readonly companyId: bigint
  readonly connector: ConnectorShape
  readonly table: Table
  /** Damage of its table, or other privacy rules of its rows: then they are not compared. */
  readonly damage?: Pick<TableDamaged | RulesChanged, "message" | "remedy"> | null
  /** How many records to draw; null compares everything. */
  readonly sample: number | null
  readonly seed: number
  /** Null leaves the differences as they are. */
  readonly repair: Repair<R> | null
  /** Whether a person named the resource; then an access block is a failure, even when no row of it is stored. */
  readonly named?: boolean
  /** Whether a resource that was never synced, and that no person named, is left out; default: it is compared. */
  readonly skipsUnsynced?: boolean
  /** Differences that are kept with their fields; more are counted. */
  readonly findingsMax?: number
}

const findingsMaxDefault = 100_000

const countQuarantined = (companyId: bigint, resource: string) =>
  Effect.map(
    Query.first(
      control
        .selectFrom("tributary.quarantine")
        .select((of) => of.fn.countAll<bigint>().as("count"))
        .where((is) => is.and({ company_id: companyId, resource }))
        .where("resolved_at", "is", null)
    ),
    (row) => Number(row!.count)
  )

export const quarantineReasonsStatement = Statement.make({
  name: "read why records are quarantined",
  params: ["int8", "text"],
  columns: { id: "text?", reason: "text" },
  text: `select record_id as id, max(coalesce(field || ' ', '') || reason) as reason from tributary.quarantine
          where company_id = $1 and resource = $2 and resolved_at is null and record_id is not null
          group by record_id`
})

const addQuarantineReasons = Effect.fnUntraced(function* (
  { companyId, table }: Sides,
  mismatches: ReadonlyArray<Mismatch>
) {
  if (mismatches.length === 0) return mismatches
  const rows = yield* Statement.run(quarantineReasonsStatement, [companyId, table.resource.path])
  const reasons = new Map(rows.map(({ id, reason }) => [id, reason]))
  return mismatches.map((mismatch) => ({ ...mismatch, quarantined: reasons.get(mismatch.id) ?? null }))
})

/** Fetches the mismatches again, and compares them once more. */
const repairMismatches = Effect.fnUntraced(function* <R>(
  sides: Sides,
  repair: Repair<R>,
  first: FirstComparison,
  mismatches: ReadonlyArray<Mismatch>
) {
  const asked = mismatches.length
  const failure = yield* repair(mismatches.map(({ id }) => id))
  const candidates = mismatches.map(({ id }) => ({ id, page: first.candidates.get(id)?.page ?? null }))
  const left = yield* confirm(sides, candidates, first)
  const report: RepairReport = { asked, mended: asked - left.length, left: left.length, failure }
  return { report, mismatches: left }
})

/** The results of a comparison, from which the report is made. */
interface Findings {
  readonly first: FirstComparison
  readonly mismatches: ReadonlyArray<Mismatch>
  /** Candidates that the second comparison did not find again. */
  readonly moved: number
  readonly repair: RepairReport | null
  readonly remarks: ReadonlyArray<string>
}

const reportOf = Effect.fnUntraced(function* (
  { companyId, table: { resource }, source, candidatesMax }: Sides,
  { first, mismatches, moved, repair, remarks }: Findings
) {
  const { distinct, repeated } = first.seen.counts()
  const { unreadable, beyond } = first
  const countOf = (kind: Mismatch["kind"]) => mismatches.filter((one) => one.kind === kind).length + beyond[kind]
  const more = beyond.missing + beyond.surplus + beyond.different
  const notYetSynced = mismatches.filter((mismatch) => mismatch.notYetSynced).length
  const wrong = mismatches.length - notYetSynced + more + unreadable
  const allRemarks = [
    ...remarks,
    ...(repeated > 0 && first.sample === null
      ? [`the source showed ${plural(repeated, "record")} more than once; each time was compared`]
      : []),
    ...(unreadable > 0 ? [`${plural(unreadable, "record")} of the source without a number that a row could have`] : []),
    ...(more > 0 ? [`${more} differences beyond the first ${candidatesMax} were compared once only`] : []),
    ...(wrong > 0 && !resource.modifiedSince
      ? [
          "its records carry no time of change, so a change after the last sync looks like a fault: sync, then verify again"
        ]
      : [])
  ]
  return {
    companyId,
    resource: resource.path,
    status: wrong > 0 ? "unequal" : notYetSynced > 0 ? "waiting" : "equal",
    sample: first.sample,
    source: distinct + unreadable,
    warehouse: first.warehouse,
    quarantined: yield* countQuarantined(companyId, resource.path),
    missing: countOf("missing"),
    surplus: countOf("surplus"),
    different: countOf("different"),
    notYetSynced,
    unreadable,
    repeated: first.sample === null ? repeated : 0,
    moved,
    requests: source.requests,
    findings: mismatches,
    more,
    repair,
    remarks: allRemarks,
    failure: null
  } satisfies ResourceReport
})

/** Compares both sides twice, and repairs the mismatches on request. */
const compareSides = Effect.fnUntraced(function* <R>(
  sides: Sides,
  options: VerifyOptions<R>
): Effect.fn.Return<ResourceReport, SourceError | DatabaseError, SqlClient.SqlClient | R> {
  const remarks: Array<string> = []
  const first =
    options.sample === null
      ? yield* compareEverything(sides)
      : yield* compareSample(sides, { records: options.sample, seed: options.seed }, remarks)
  const confirmed = yield* confirm(sides, [...first.candidates.values()], first)
  const repaired =
    options.repair === null || confirmed.length === 0
      ? null
      : yield* repairMismatches(sides, options.repair, first, confirmed)
  if (repaired !== null && !SourceSide.canRetrieve(sides.source)) {
    remarks.push("records of this resource cannot be read by number: the repair read its list")
  }
  return yield* reportOf(sides, {
    first,
    mismatches: yield* addQuarantineReasons(sides, repaired?.mismatches ?? confirmed),
    moved: first.candidates.size - confirmed.length,
    repair: repaired?.report ?? null,
    remarks
  })
})

const isAccessBlock = ({ disposition }: SourceError): boolean =>
  disposition === "blocked" || disposition === "unsupported"

/** The report on a resource that was not compared. */
const emptyReport = (sides: Sides, live: number) =>
  reportOf(sides, {
    first: { ...begin(false), warehouse: live },
    mismatches: [],
    moved: 0,
    repair: null,
    remarks: []
  })

/** The report on a resource whose comparison failed at the source. */
const failedReport = Effect.fnUntraced(function* (
  sides: Sides,
  error: SourceError,
  isNamed: boolean
): Effect.fn.Return<ResourceReport, DatabaseError, SqlClient.SqlClient> {
  const { live } = yield* sides.rows.extent
  const report = yield* emptyReport(sides, live)
  // A resource with an access block and without a row needs no comparing.
  return isAccessBlock(error) && live === 0 && !isNamed
    ? { ...report, status: "skipped", remarks: [`not compared: ${error.message}`] }
    : { ...report, status: "failed", failure: failureOf(error) }
})

/** The remark of a resource that was left out because it was never synced. */
export const notSynced = "not synced, so not compared"

/** Whether a load was completed. */
const isLoaded = (companyId: bigint, resource: string) =>
  Query.hasRows(
    control
      .selectFrom("tributary.checkpoints")
      .select("lane")
      .where((is) => is.and({ company_id: companyId, resource }))
      .where((is) => is.or([is("cursor", "is not", null), is("full_scan_at", "is not", null)]))
  )

/** Whether no load was completed and no row is there: nothing says that the warehouse should have the records. */
const isUnsynced = Effect.fnUntraced(function* ({ companyId, table, rows }: Sides) {
  return !(yield* isLoaded(companyId, table.resource.path)) && (yield* rows.extent).live === 0
})

/** Verifies one resource of one company. A failure of the source is part of the report. */
export const verifyResource = Effect.fn("verifyResource")(function* <R = never>(
  options: VerifyOptions<R>
): Effect.fn.Return<ResourceReport, DatabaseError, SqlClient.SqlClient | R> {
  const { companyId, connector, table } = options
  const sides: Sides = {
    companyId,
    table,
    source: SourceSide.make(connector, table),
    rows: yield* WarehouseRows.make(table, companyId),
    candidatesMax: options.findingsMax ?? findingsMaxDefault
  }
  if (options.damage !== undefined && options.damage !== null) {
    const { message, remedy } = options.damage
    const failure = { message, remedy, disposition: "configuration" as const }
    return { ...(yield* emptyReport(sides, 0)), status: "failed", failure } satisfies ResourceReport
  }
  if (options.skipsUnsynced === true && options.named !== true && (yield* isUnsynced(sides)))
    return { ...(yield* emptyReport(sides, 0)), status: "skipped", remarks: [notSynced] } satisfies ResourceReport
  return yield* compareSides(sides, options).pipe(
    Effect.catchTag("SourceError", (error) => failedReport(sides, error, options.named === true))
  )
})

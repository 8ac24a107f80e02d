/**
 * The interface of checkers of pushes: what a checker sees and returns.
 *
 * Promise: a checker sees the ledger as a second session sees it, the requests as the network carried them, and the
 * changes by the source's own history. It uses no code of `src/outbox`. It returns null, or one sentence.
 */
import type { PushPlan } from "../PushPlan.ts"
import type { Meddling, PlannedRow } from "../world/People.ts"
import type { Source } from "../world/Source.ts"
import type { WriteEffect, Read, Sending } from "../world/WriteNetwork.ts"

/** A row of the outbox, as SQL returns it. */
export interface OutboxRow {
  readonly number: string
  readonly company: number
  readonly resource: string
  readonly operation: string
  readonly externalid: string | null
  readonly recordId: string | null
  readonly record: string
  readonly push: string | null
  readonly state: string
  readonly outcome: string | null
  readonly call: string | null
  readonly code: string | null
  readonly field: string | null
  readonly reason: string | null
  readonly differences: string | null
}

/** A push request, as SQL returns it. */
export interface CallRow {
  readonly number: string
  readonly key: string
  readonly state: string
  readonly body: string | null
  /** In microseconds; null while it is open. */
  readonly settledAt: number | null
}

/** A row of a resource's table. */
export interface WarehouseRow {
  readonly id: string
  readonly origin: string
  readonly deleted: boolean
}

export interface PushSetting {
  readonly source: Source
  readonly plan: PushPlan
  readonly planned: ReadonlyArray<PlannedRow>
  readonly meddlings: ReadonlyArray<Meddling>
  /** Ids of the records that other people created under an externalid. */
  readonly others: ReadonlyMap<string, ReadonlyArray<number>>
  readonly sendings: ReadonlyArray<Sending>
  readonly effects: ReadonlyArray<WriteEffect>
  readonly reads: ReadonlyArray<Read>
}

/** A write that leaves, with the ledger at that moment. */
export interface SendMoment {
  readonly sending: Sending
  /** The push request with the key of the write; null when there is none. */
  readonly call: CallRow | null
}

/** After a commit. */
export interface LedgerMoment {
  readonly rows: ReadonlyArray<OutboxRow>
}

/** When everything was pushed, and before any sync. */
export interface PushEnd {
  readonly rows: ReadonlyArray<OutboxRow>
  readonly calls: ReadonlyArray<CallRow>
  /** Rows of the warehouse by `company/resource`, each by its id. */
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, WarehouseRow>>
  /** Tables that a scan has read too. */
  readonly scanned: ReadonlySet<string>
  /** The reported results of the pushes that finished: the number of rows by result. */
  readonly said: ReadonlyArray<{ readonly push: string; readonly counts: Readonly<Record<string, number>> }>
  /** Pushes that are not finished. */
  readonly unfinished: ReadonlyArray<string>
}

export interface PushChecker {
  readonly name: string
  readonly holds: string
  readonly sent?: (moment: SendMoment) => string | null
  /** A write was processed. */
  readonly done?: (effect: WriteEffect) => string | null
  readonly committed?: (moment: LedgerMoment) => string | null
  readonly pushed?: (end: PushEnd) => string | null
}

export type PushCheckerOf = (setting: PushSetting) => PushChecker

/** The row of the outbox for a planned record. */
export const rowOf = (rows: ReadonlyArray<OutboxRow>, planned: PlannedRow): OutboxRow | undefined => {
  const { company, resource, operation, externalid, recordId, sets } = planned
  return rows.find(
    (row) =>
      row.company === company &&
      row.resource === resource &&
      row.operation === operation &&
      (sets === null
        ? // A row that is done also has the record's id, beside its key.
          externalid === null
          ? row.recordId === recordId
          : row.externalid === externalid
        : row.record.includes(JSON.stringify(sets.value)))
  )
}

export const describeRow = ({ company, resource, operation, externalid, recordId, sets }: PlannedRow): string =>
  `${operation} of ${company}/${resource} ${externalid ?? recordId}${sets === null ? "" : ` (${sets.value})`}`

/** Whether a sent write contains the planned record. */
export const carries = (sending: Sending, planned: PlannedRow): boolean => {
  if (sending.company !== planned.company || sending.resource !== planned.resource) return false
  const { body, method } = sending
  switch (planned.operation) {
    case "create":
      return method === "POST" && body !== null && body.includes(`"${planned.externalid}"`)
    case "update":
      return method === "PATCH" && body !== null && body.includes(`"${planned.sets!.value}"`)
    case "cancel":
      return method === "DELETE"
  }
}

/**
 * What a checker of pushes is given, and what it may say.
 *
 * Promise: it sees the ledger as a second session sees it, the requests as the network carried them, and what was done as
 * the source's own history tells it; nothing of `src/outbox` is used. It answers null, or one sentence.
 */
import type { PushPlan } from "../PushPlan.ts"
import type { Meddling, Wanted } from "../world/People.ts"
import type { Source } from "../world/Source.ts"
import type { Done, Read, Sending } from "../world/WriteNetwork.ts"

/** A row of the outbox, as SQL answers it. */
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

/** A call, as SQL answers it. */
export interface CallRow {
  readonly number: string
  readonly key: string
  readonly state: string
  readonly body: string | null
  /** In microseconds; null while it is open. */
  readonly settledAt: number | null
}

/** A row of a resource's table. */
export interface PushedRow {
  readonly id: string
  readonly origin: string
  readonly deleted: boolean
}

export interface PushSetting {
  readonly source: Source
  readonly plan: PushPlan
  readonly wanted: ReadonlyArray<Wanted>
  readonly meddlings: ReadonlyArray<Meddling>
  /** Numbers of the records that others made under an externalid. */
  readonly others: ReadonlyMap<string, ReadonlyArray<number>>
  readonly sendings: ReadonlyArray<Sending>
  readonly effects: ReadonlyArray<Done>
  readonly reads: ReadonlyArray<Read>
}

/** A write leaves, and what stands in the ledger in that moment. */
export interface Sent {
  readonly sending: Sending
  /** The call with the key of the write; null when there is none. */
  readonly call: CallRow | null
}

/** After a commit. */
export interface Ledger {
  readonly rows: ReadonlyArray<OutboxRow>
}

/** When everything was pushed, and before any sync. */
export interface Pushed {
  readonly rows: ReadonlyArray<OutboxRow>
  readonly calls: ReadonlyArray<CallRow>
  /** Rows of the warehouse by `company/resource`, each by its number. */
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, PushedRow>>
  /** Tables that a scan has read, too. */
  readonly scanned: ReadonlySet<string>
  /** What pushes said that came to their end: how many rows by what became of them. */
  readonly said: ReadonlyArray<{ readonly push: string; readonly counts: Readonly<Record<string, number>> }>
  /** Pushes that are not finished. */
  readonly unfinished: ReadonlyArray<string>
}

export interface PushChecker {
  readonly name: string
  readonly holds: string
  readonly sent?: (given: Sent) => string | null
  /** A write was done. */
  readonly done?: (given: Done) => string | null
  readonly committed?: (given: Ledger) => string | null
  readonly pushed?: (given: Pushed) => string | null
}

export type PushCheckerOf = (setting: PushSetting) => PushChecker

/** Which row of the outbox holds what was wanted. */
export const rowOf = (rows: ReadonlyArray<OutboxRow>, wanted: Wanted): OutboxRow | undefined => {
  const { company, resource, operation, externalid, recordId, sets } = wanted
  return rows.find(
    (row) =>
      row.company === company &&
      row.resource === resource &&
      row.operation === operation &&
      (sets === null
        ? // Once it is done, a row knows the record's number beside its key.
          externalid === null
          ? row.recordId === recordId
          : row.externalid === externalid
        : row.record.includes(JSON.stringify(sets.value)))
  )
}

export const told = ({ company, resource, operation, externalid, recordId, sets }: Wanted): string =>
  `${operation} of ${company}/${resource} ${externalid ?? recordId}${sets === null ? "" : ` (${sets.value})`}`

/** Whether a write that was sent carries what was wanted. */
export const carries = (sending: Sending, wanted: Wanted): boolean => {
  if (sending.company !== wanted.company || sending.resource !== wanted.resource) return false
  const { body, method } = sending
  switch (wanted.operation) {
    case "create":
      return method === "POST" && body !== null && body.includes(`"${wanted.externalid}"`)
    case "update":
      return method === "PATCH" && body !== null && body.includes(`"${wanted.sets!.value}"`)
    case "cancel":
      return method === "DELETE"
  }
}

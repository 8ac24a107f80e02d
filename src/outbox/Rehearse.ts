/**
 * The rehearsal of a push: the records of an input are written to a sandbox, which has the source's rules and the records of
 * the warehouse.
 *
 * Promise: the real source gets no request, and nothing is stored. A record is created, found or changed by the decisions
 * of a push. Records of one input follow each other in its order, each on what those before it have left.
 */
import * as Effect from "effect/Effect"
import type { ConnectorShape } from "../connector/Connector.ts"
import type { SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import * as Scan from "../extract/Scan.ts"
import { resolveExisting } from "./Deduplicate.ts"
import { differences } from "./DiffWritten.ts"
import { rowsPerBatch } from "./DryRun.ts"
import { externalKeyOf, foldExternalid } from "./Externalid.ts"
import { onlyIdOf } from "./IdentifyRecords.ts"
import type { OutboxRow } from "./OutboxRow.ts"
import { planChange } from "./PushChanges.ts"
import type { Operation, Outcome, RejectedRow } from "./Push.ts"
import { createRequestOf, type NewRequest } from "./RequestStore.ts"
import { done, rejected, type RejectedResolution, rejectedBySource, type RowResolution } from "./RowResolution.ts"
import { findByExternalid, idOf, valueOf } from "./SourceLookup.ts"
import type { ValidInput } from "./ValidateInput.ts"
import { shapeOf } from "./WriteSchema.ts"

/** A record that the sandbox rejected. */
export type RehearsedRejection = Pick<
  RejectedRow,
  "line" | "externalid" | "recordId" | "code" | "field" | "reason" | "problems"
>

export interface RehearsalReport {
  /** Records by what a push would do to them. */
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>
  /** Records that exist, or that were written, with other values than were given. */
  readonly different: number
  readonly rejected: ReadonlyArray<RehearsedRejection>
  /**
   * Records that were rejected for a reference to a resource that the warehouse does not have. Whether the source rejects
   * them is not known.
   */
  readonly uncertain: ReadonlyArray<RehearsedRejection>
}

export interface RehearsalOptions {
  /** Connected to the sandbox. */
  readonly connector: ConnectorShape
  readonly resource: Resource
  readonly operation: Operation
  readonly batchRecordsMax: number
  readonly useBatch: boolean
  /** Whether the warehouse has records of the resource, so that the sandbox has them. */
  readonly isLoaded: (resource: string) => boolean
}

export interface Rehearsal {
  /** Writes the next records of the input. */
  readonly write: (records: ReadonlyArray<ValidInput>) => Effect.Effect<void, SourceError>
  readonly report: () => RehearsalReport
}

const rowOf = ({ externalid, line, recordId, text }: ValidInput, operation: Operation): OutboxRow => ({
  id: BigInt(line),
  operation,
  externalid,
  recordId,
  text,
  isOwn: true,
  requestIndex: null,
  attempts: 0,
  conflictRetries: 0,
  expectedValues: null
})

/** The path of the resource that a field of the body names a record of; null where it names none. */
const referredBy = (resource: Resource, operation: Operation, field: string | null): string | null => {
  const name = field?.split(/[[.]/)[0] ?? ""
  return shapeOf(resource, operation).get(name)?.refers?.resource ?? null
}

/** Collects the results of the records. */
const makeResults = ({ resource, operation, isLoaded }: RehearsalOptions) => {
  const outcomes: Partial<Record<Outcome, number>> = {}
  const refused: Array<RehearsedRejection> = []
  const uncertain: Array<RehearsedRejection> = []
  let different = 0

  const reject = (row: OutboxRow, { code, field, reason, problems }: RejectedResolution) => {
    const { externalid, recordId } = row
    const fields = problems.length === 0 ? [field] : problems.map((problem) => problem.field)
    const isKnown = fields.some((one) => {
      const referred = referredBy(resource, operation, one)
      return referred === null || isLoaded(referred)
    })
    const one = { line: Number(row.id), externalid, recordId, code, field, reason, problems }
    if (isKnown) refused.push(one)
    else uncertain.push(one)
  }
  const note = (row: OutboxRow, resolution: RowResolution) => {
    if (resolution.state === "rejected") return reject(row, resolution)
    if (resolution.state === "pending") return reject(row, rejected("unclear", null, resolution.reason ?? ""))
    outcomes[resolution.outcome] = (outcomes[resolution.outcome] ?? 0) + 1
    if (resolution.differences.length > 0) different += 1
  }
  return { note, report: (): RehearsalReport => ({ outcomes, different, rejected: refused, uncertain }) }
}

/**
 * Whether a record with the externalid may be in the sandbox, by one list of it: a lookup of each externalid takes most of
 * the time of a long input. The list is read before the first write, and no input has an externalid twice.
 */
const readExternalids = Effect.fnUntraced(function* ({ connector, resource }: RehearsalOptions) {
  const field = externalKeyOf(resource)
  const folded = new Set<string>()
  let isReadable = true
  yield* Scan.readList(connector, { resource, isEmptyUnlikely: false }, ({ records, rejected }) => {
    for (const record of records) folded.add(foldExternalid(valueOf(resource, record, field) ?? ""))
    isReadable = rejected.length === 0
    return isReadable
  })
  return (externalid: string): boolean => !isReadable || folded.has(foldExternalid(externalid))
})

/** Makes a rehearsal, which has written nothing yet. */
export const make = (options: RehearsalOptions): Rehearsal => {
  const { connector, resource, operation } = options
  const { note, report } = makeResults(options)
  let requests = 0
  let mayExist: ((externalid: string) => boolean) | null = null

  /** Sends a request. When it is rejected as a whole, each of its records is sent alone. */
  const send = (request: NewRequest): Effect.Effect<void, SourceError> =>
    Effect.gen(function* () {
      const { body, ifMatch, recordId: id, rows } = request
      const idempotencyKey = `rehearsal-${++requests}`
      const answer = yield* connector.write({
        resource,
        operation: request.operation,
        id,
        body,
        ifMatch,
        idempotencyKey
      })
      for (const [index, row] of rows.entries()) {
        const item = answer.items.find((one) => one.index === index)
        if (item?._tag === "WriteRejected") note(row, rejectedBySource(item))
        else if (item?._tag === "WriteSucceeded") {
          const shown = operation === "cancel" ? null : item.record
          const values = shown === null ? [] : differences(resource, operation, row.text, shown)
          note(row, done(written[operation], item.id, values))
        } else note(row, rejected("unclear", null, item?.detail ?? "the answer does not show its result"))
      }
    }).pipe(
      Effect.catchTag("SourceError", (error) => {
        const { reason } = error
        const { rows } = request
        if (rows.length > 1) return Effect.forEach(rows, (row) => send(createRequestOf([row])), { discard: true })
        const [row] = rows
        if (row === undefined || reason._tag !== "Refused") return Effect.fail(error)
        return Effect.sync(() => note(row, rejectedBySource(reason)))
      })
    )

  const create = Effect.fnUntraced(function* (rows: ReadonlyArray<OutboxRow>) {
    const absent: Array<OutboxRow> = []
    mayExist ??= yield* readExternalids(options)
    for (const row of rows) {
      if (row.externalid === null || !mayExist(row.externalid)) absent.push(row)
      else {
        const readings = yield* findByExternalid(connector, resource, row.externalid)
        const resolution = resolveExisting(resource, row, readings, {
          wasSent: false,
          absent: { state: "pending", reason: null }
        })
        if (resolution.state === "pending") absent.push(row)
        else note(row, resolution)
      }
    }
    const recordsMax = rowsPerBatch(options)
    for (let start = 0; start < absent.length; start += recordsMax) {
      yield* send(createRequestOf(absent.slice(start, start + recordsMax)))
    }
  })

  /** The record that a change is about; a resolution of the row where there is not exactly one. */
  const find = Effect.fnUntraced(function* (row: OutboxRow) {
    if (row.recordId !== null) return yield* connector.get(resource, row.recordId)
    const id = onlyIdOf(resource, yield* findByExternalid(connector, resource, row.externalid ?? ""))
    return typeof id === "string" ? yield* connector.get(resource, id) : id
  })

  const change = Effect.fnUntraced(function* (row: OutboxRow) {
    const found = yield* find(row)
    if ("state" in found) return note(row, found)
    const planned = planChange(resource, { ...row, recordId: row.recordId ?? idOf(found) }, found)
    if ("state" in planned) return note(row, planned)
    yield* send(planned)
  })

  return {
    write: (records) => {
      const rows = records.map((record) => rowOf(record, operation))
      return operation === "create" ? create(rows) : Effect.forEach(rows, change, { discard: true })
    },
    report
  }
}

const written: Readonly<Record<Operation, Outcome>> = { create: "created", update: "updated", cancel: "cancelled" }

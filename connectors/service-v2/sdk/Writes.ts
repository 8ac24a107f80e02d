/**
 * Writes of one record and of many.
 *
 * Promise: every write carries an idempotency key, so that all attempts of one call have at most one effect. A result is
 * `created` only where the answer says so under the record's own index.
 */
import * as Effect from "effect/Effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { WriteRequest } from "../../../src/connector/Connector.ts"
import type { WriteResult } from "../../../src/connector/WriteResult.ts"
import { limits } from "../catalogue/limits.ts"
import { newKey } from "../client/IdempotencyKey.ts"
import { write } from "../client/Writes.ts"
import type { BatchItem, BatchResult, UpdateOptions, WriteOptions, Written } from "./Api.ts"
import { BadRequestError, IncompleteBatchError, OutcomeUnknownError, ServiceApiError } from "./Errors.ts"
import { errorOfItem } from "./Failures.ts"
import { valueOf } from "./RecordDecoder.ts"
import { invalidRecord } from "./RecordList.ts"
import type { Session } from "./Session.ts"
import type { ResourceShape } from "./Values.ts"

type Item = BatchItem<ResourceShape>
type Created = Written<ResourceShape>

/** A wrong argument of a call; nothing was sent. */
export const wrongArgument = (field: string, problem: string, remedy: string) =>
  new BadRequestError(`${field} ${problem}: ${remedy}`, { code: "invalid_argument", field, remedy })

/** The path of a record's number. */
export const idText = (id: number | string): string => {
  const text = typeof id === "number" && !Number.isSafeInteger(id) ? "" : String(id)
  if (!/^[1-9]\d{0,18}$/.test(text)) throw wrongArgument("id", `is ${String(id)}`, "give the record's number")
  return text
}

export const bodyText = (input: unknown): string => {
  try {
    const text: unknown = JSON.stringify(input)
    if (typeof text === "string") return text
  } catch {
    // A bigint or a circle.
  }
  throw wrongArgument("input", "is no JSON", "give plain values: decimals as text, integers as numbers")
}

/** A key of at most 255 printable characters; a random one where none is given. */
export const keyOf = ({ idempotencyKey }: WriteOptions): string => {
  if (idempotencyKey === undefined) return Effect.runSync(newKey)
  // Later requests of a batch add a number.
  const lengthMax = limits.idempotencyKeyLengthMax - 10
  if (idempotencyKey.length <= lengthMax && /^[\x21-\x7e]+$/.test(idempotencyKey)) return idempotencyKey
  throw wrongArgument("idempotencyKey", "cannot be sent", `give 1 to ${lengthMax} printable ASCII characters`)
}

const unknownOutcome = (path: string, index: number | null, detail: string, idempotencyKey: string) => {
  const remedy = "repeat the call under the same idempotency key, or look the record up"
  const where = index === null ? path : `${path}, record ${index}`
  const facts = { code: "outcome_unknown", isOutcomeUnknown: true, idempotencyKey, remedy } as const
  return new OutcomeUnknownError(`${where}: ${detail}: ${remedy}`, facts)
}

/** The written record as the answer shows it, or why it cannot be shown. */
const writtenOf = (resource: Resource, result: WriteResult, index: number | null, key: string) => {
  const { path } = resource
  switch (result._tag) {
    case "WriteRejected":
      return errorOfItem(path, result, key)
    case "WriteUncertain":
      return unknownOutcome(path, index, result.detail, key)
    case "WriteSucceeded": {
      const { id, record, rejected } = result
      if (record !== null) return valueOf(record) as Created
      if (rejected !== null) {
        const { bytes, ...invalid } = rejected
        return invalidRecord(path, { ...invalid, json: bytes })
      }
      if (id !== null && Number.isSafeInteger(Number(id))) return { id: Number(id) } as Created
      return unknownOutcome(path, index, "it was written, but the answer does not name its number", key)
    }
  }
}

/** Sends a write of one record. */
export const writeOne = async (
  session: Session,
  resource: Resource,
  given: Pick<WriteRequest, "operation" | "id" | "body">,
  options: UpdateOptions = {}
): Promise<Created> => {
  const idempotencyKey = keyOf(options)
  const request: WriteRequest = { ...given, resource, idempotencyKey, ifMatch: options.ifMatch ?? null }
  const answer = await session.run((context) => write(context, request), { signal: options.signal, idempotencyKey })
  const written = writtenOf(resource, answer.items[0]!, null, idempotencyKey)
  if (written instanceof ServiceApiError) throw written
  return written
}

/** The results of the records of one request; the first of them has the index `from`. */
const itemsOf = (
  resource: Resource,
  results: ReadonlyArray<WriteResult>,
  from: number,
  count: number,
  key: string
): ReadonlyArray<Item> => {
  const byIndex = new Map<number, WriteResult>()
  const repeated = new Set<number>()
  for (const result of results) {
    if (byIndex.has(result.index)) repeated.add(result.index)
    byIndex.set(result.index, result)
  }
  return Array.from({ length: count }, (_, place): Item => {
    const index = from + place
    const result = byIndex.get(place)
    if (result === undefined || repeated.has(place)) {
      const detail = result === undefined ? "the answer has no result for it" : "the answer has several results for it"
      return { index, status: "unknown", error: unknownOutcome(resource.path, index, detail, key) }
    }
    const written = writtenOf(resource, { ...result, index }, index, key)
    if (!(written instanceof ServiceApiError)) return { index, status: "created", record: written }
    return { index, status: result._tag === "WriteRejected" ? "rejected" : "unknown", error: written }
  })
}

/** Results for the records of a request that failed as a whole, and of those after it. */
const itemsAfter = (error: ServiceApiError, from: number, sent: number, all: number): ReadonlyArray<Item> =>
  Array.from({ length: all - from }, (_, place): Item => {
    const index = from + place
    if (place >= sent) return { index, status: "notSent" }
    return { index, status: error.isOutcomeUnknown ? "unknown" : "rejected", error }
  })

/** Sends the records in as many requests as they need, one after the other. */
export const writeBatch = async (
  session: Session,
  resource: Resource,
  inputs: ReadonlyArray<unknown>,
  options: WriteOptions = {}
): Promise<BatchResult<ResourceShape>> => {
  const idempotencyKey = keyOf(options)
  const size = limits.batchRecordsMax
  const bodies: Array<string> = []
  for (let from = 0; from < inputs.length; from += size) bodies.push(bodyText(inputs.slice(from, from + size)))
  const items: Array<Item> = []
  for (const [place, body] of bodies.entries()) {
    const from = place * size
    const count = Math.min(size, inputs.length - from)
    const key = place === 0 ? idempotencyKey : `${idempotencyKey}-${place + 1}`
    const request: WriteRequest = { resource, operation: "batch", id: null, body, idempotencyKey: key, ifMatch: null }
    try {
      const answer = await session.run((context) => write(context, request), {
        signal: options.signal,
        idempotencyKey: key
      })
      items.push(...itemsOf(resource, answer.items, from, count, key))
    } catch (error) {
      if (place === 0 || !(error instanceof ServiceApiError)) throw error
      const results = [...items, ...itemsAfter(error, from, count, inputs.length)]
      const remedy = "repeat the whole batch under the same idempotency key: what was created is not created again"
      throw new IncompleteBatchError(
        `${resource.path}: ${from} of ${inputs.length} records were answered, then: ${error.message}: ${remedy}`,
        { code: "incomplete_batch", isOutcomeUnknown: true, idempotencyKey, isRetryable: error.isRetryable, remedy },
        results,
        error
      )
    }
  }
  const failures = items.filter((item) => item.status !== "created")
  return { items, idempotencyKey, failures }
}

/**
 * A connector to a small ledger: the minimum that the engine needs.
 *
 * Field names, paging and the header of the token differ from Service API v2. There are no webhooks, batches or
 * cancels. `src/connector/README.md` explains it step by step.
 */
import { Clock, Effect, Schedule } from "effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type { ConnectorShape, FetchedRecord, PageRequest, WriteAnswer } from "../../../src/connector/Connector.ts"
import * as SourceError from "../../../src/connector/SourceError.ts"
import type { Rejected, SourceRecord } from "../../../src/connector/SourceRecord.ts"
import type { WriteResult } from "../../../src/connector/WriteResult.ts"
import { ledger } from "./catalogue.ts"

interface Answer {
  readonly body: string
  readonly beganAt: number
}

interface Call {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | null
}

// Step 2: every failure becomes a reason.
const reasonOf = (status: number, detail: string): SourceError.SourceReason => {
  if (status === 401) return new SourceError.Unauthorized({ kind: "unknown", code: "unknown_token" })
  if (status === 404) return new SourceError.NotFound({ detail })
  if (status >= 500) return new SourceError.ServerFault({ status, code: null, retryAfter: null })
  return new SourceError.Refused({
    kind: "other",
    status,
    code: "refused",
    field: null,
    detail,
    problems: [],
    current: null
  })
}

const failed = ({ method, path }: Call, reason: SourceError.SourceReason) =>
  new SourceError.SourceError({ reason, request: { method, path, requestId: null } })

// Step 3: a record is exact text in the order of the fields. A record that does not fit is rejected with its bytes.
const fits: Readonly<Record<string, (value: unknown) => boolean>> = {
  integer: Number.isSafeInteger,
  decimal: (value) => typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value),
  timestamp: (value) => typeof value === "string" && value.endsWith("Z"),
  string: (value) => typeof value === "string"
}

const decode = ({ fields }: Resource, bytes: string): SourceRecord | Rejected => {
  const members = JSON.parse(bytes) as Readonly<Record<string, string | number | null | undefined>>
  const id = String(members["entryno"])
  const unfit = fields.find(({ name, type }) => (members[name] ?? null) !== null && !fits[type._tag]!(members[name]))
  if (unfit !== undefined) return { id, field: unfit.name, reason: `is no ${unfit.type._tag}`, bytes }
  const columns = fields.map(({ name }) => {
    const value = members[name]
    return value === undefined ? undefined : value === null ? null : String(value)
  })
  return { id, columns, partial: columns.includes(undefined), customFields: null, extra: null }
}

const isRejected = (read: SourceRecord | Rejected): read is Rejected => "bytes" in read

/** Connects to the ledger at this address. */
export const makeLedger = (address: string, token: string): ConnectorShape => {
  const once = (call: Call): Effect.Effect<Answer, SourceError.SourceError> =>
    Effect.gen(function* () {
      // The engine compares reads by their start times.
      const beganAt = Number(yield* Clock.monotonicTimeNanos) / 1e6
      const { method, path, headers, body = null } = call
      const [status, text] = yield* Effect.tryPromise({
        try: async (signal) => {
          const request = { method, body, signal, headers: { "x-ledger-token": token, ...headers } }
          const response = await fetch(address + path, request)
          return [response.status, await response.text()] as const
        },
        catch: (cause) => failed(call, new SourceError.Unreachable({ detail: String(cause) }))
      })
      if (status !== 200) return yield* failed(call, reasonOf(status, text))
      return { body: text, beganAt }
    })
  const send = (call: Call, before: Effect.Effect<void, SourceError.SourceError> = Effect.void) =>
    Effect.retry(Effect.andThen(before, once(call)), {
      while: ({ isRetryable }) => isRetryable,
      schedule: Schedule.exponential("20 millis").pipe(Schedule.upTo({ times: 3 }))
    })

  // Step 4: a page token contains the page number and the edition of the list.
  const list = Effect.fnUntraced(function* ({ resource, since, token, where = [] }: PageRequest) {
    const [page = 1, edition = null] = token === null ? [] : token.split("@").map(Number)
    const query = new URLSearchParams({ page: String(page) })
    if (since !== null) query.set("since", since)
    for (const { field, value } of where) query.set(field, value)
    const call = { method: "GET", path: `/${resource.path}?${query.toString()}` }
    const { body, beganAt } = yield* send(call)
    const [head = "{}", ...lines] = body.split("\n")
    const pageHead = JSON.parse(head) as { readonly pages: number; readonly edition: number; readonly at: string }
    if (edition !== null && pageHead.edition !== edition) {
      return yield* failed(call, new SourceError.PageDrift({ detail: "an entry was removed" }))
    }
    const next = page < pageHead.pages ? `${page + 1}@${pageHead.edition}` : null
    return { lines, next, beganAt, at: pageHead.at, bytes: body.length, source: `GET ${call.path}` }
  })

  const get = (resource: Resource, id: string): Effect.Effect<FetchedRecord, SourceError.SourceError> =>
    send({ method: "GET", path: `/${resource.path}/${id}` }).pipe(
      Effect.map(({ body, beganAt }) => {
        const read = decode(resource, body)
        const [record, rejected] = isRejected(read) ? [null, read] : [read, null]
        return { record, rejected, version: null, beganAt, source: `GET /${resource.path}/${id}` }
      }),
      Effect.catchIf(
        ({ reason }) => reason._tag === "NotFound",
        () => Effect.succeed({ record: null, rejected: null, version: null, beganAt: 0, source: "" })
      )
    )

  return {
    catalogue: ledger,
    source: { address, settings: {} },
    identify: Effect.map(send({ method: "GET", path: "/me" }), ({ body }) => {
      const { company } = JSON.parse(body) as { readonly company: number }
      return { companyId: BigInt(company), sourceNumber: BigInt(company), user: null, scopes: null, features: null }
    }),
    page: (request) =>
      Effect.map(list(request), ({ lines, next, beganAt, at, bytes, source }) => {
        const read = lines.map((line) => decode(request.resource, line))
        const records = read.filter((one): one is SourceRecord => !isRejected(one))
        return {
          records,
          rejected: read.filter(isRejected),
          next,
          syncedThrough: at,
          beganAt,
          source,
          bytes,
          attempts: 1
        }
      }),
    rawPage: (request) => Effect.map(list(request), ({ lines, next }) => ({ records: lines, next, attempts: 1 })),
    get,
    // Step 5: every attempt of a write has the same key, and the engine can prevent further attempts.
    write: ({ resource, operation, id, body, idempotencyKey, mayBeSent = Effect.succeed(true) }) => {
      const method = operation === "create" ? "POST" : "PUT"
      const call = { method, path: `/${resource.path}${id === null ? "" : `/${id}`}`, body }
      const cancelled = failed(call, new SourceError.SendCancelled({ attempts: 0 }))
      const before = Effect.flatMap(mayBeSent, (may) => (may ? Effect.void : Effect.fail(cancelled)))
      return Effect.map(
        send({ ...call, headers: { "x-request-key": idempotencyKey } }, before),
        (answer): WriteAnswer => {
          const read = decode(resource, answer.body)
          const [record, rejected] = isRejected(read) ? [null, read] : [read, null]
          const item: WriteResult = { _tag: "WriteSucceeded", index: 0, id: read.id, record, rejected }
          return { status: 200, body: answer.body, items: [item], source: `${method} ${call.path}` }
        }
      )
    },
    usage: Effect.succeed({ requests: 0, retries: 0, rateLimited: 0, bytes: 0 })
  }
}

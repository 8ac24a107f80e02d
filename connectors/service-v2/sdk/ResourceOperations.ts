/** The operations of one resource: those that the catalogue gives it, and no others. */
import type * as Effect from "effect/Effect"
import type { Operation, Resource } from "../../../src/catalogue/Resource.ts"
import type { SourceError } from "../../../src/connector/SourceError.ts"
import { isObject, parse, Unreadable } from "../client/Envelope.ts"
import type { Call } from "../client/Exchange.ts"
import type { ClientContext } from "../client/ClientContext.ts"
import { malformed, whenOk } from "../client/Listing.ts"
import { getExistingRecord, recordPath } from "../client/Records.ts"
import type { CallOptions, Operations, RecordId, ResourceClient, WriteOptions } from "./Api.ts"
import { exactJson, valueOf } from "./RecordDecoder.ts"
import * as RecordList from "./RecordList.ts"
import type { Session } from "./Session.ts"
import type { JsonObject, ResourceShape } from "./Values.ts"
import { bodyText, idText, keyOf, wrongArgument, writeBatch, writeOne } from "./Writes.ts"

const readVersioned = async (session: Session, resource: Resource, id: RecordId, { signal }: CallOptions) => {
  const text = idText(id)
  const fetched = await session.run((context) => getExistingRecord(context, resource, text), { signal })
  const { record, rejected, version } = fetched
  if (record !== null) return { record: valueOf(record), version }
  if (rejected !== null) {
    const { bytes, ...invalid } = rejected
    throw RecordList.invalidRecord(resource.path, { ...invalid, json: bytes })
  }
  throw new Error("the answer has neither a record nor the reason why it has none")
}

const jsonType = /^application\/(?:[\w.+-]+\+)?json\b/i

/** Sends a request below a record and reads a JSON object. */
const jsonBelow =
  (call: Call) =>
  ({ exchange }: ClientContext): Effect.Effect<JsonObject, SourceError> =>
    exchange.send(
      call,
      whenOk((answer) => {
        const parsed = parse(answer.bytes)
        if (parsed instanceof Unreadable) return malformed(answer, parsed)
        if (!isObject(parsed.value)) return malformed(answer, new Unreadable("the body is not an object", true))
        return exactJson(parsed.text) as JsonObject
      })
    )

/** Sends a request below a record and reads a file. */
const fileBelow =
  (call: Call) =>
  ({ exchange }: ClientContext): Effect.Effect<Uint8Array, SourceError> =>
    exchange.send(
      { ...call, headers: { accept: "application/pdf, image/png, application/json;q=0.5" } },
      whenOk((answer) =>
        jsonType.test(answer.headers["content-type"] ?? "application/json")
          ? malformed(answer, new Unreadable("the body is JSON and no file: use `read`", true))
          : new Uint8Array(answer.bytes)
      )
    )

/** The path of a special endpoint that the resource has. */
const specialPath = (resource: Resource, method: "GET" | "POST", name: string, id: RecordId): string => {
  const names = resource.specials.filter((one) => one.method === method).map((one) => one.name)
  if (!names.includes(name)) {
    const known = names.length === 0 ? "it has none" : `give one of ${names.join(", ")}`
    throw wrongArgument("name", `${name} is no path below a record of ${resource.path}`, known)
  }
  return `${recordPath(resource, idText(id))}/${name}`
}

const reading = (path: string): Call => ({ method: "GET", path, headers: {}, body: null, pageParameters: null })

/** All operations; the catalogue selects. */
const allOperations = (session: Session, resource: Resource): Operations<ResourceShape> => ({
  list: (filters, options) => RecordList.make(session, resource, filters, options),
  get: async (id, options = {}) => (await readVersioned(session, resource, id, options)).record,
  getVersioned: (id, options = {}) => readVersioned(session, resource, id, options),
  create: async (input, options) =>
    writeOne(session, resource, { operation: "create", id: null, body: bodyText(input) }, options),
  batch: (inputs, options) => writeBatch(session, resource, inputs, options),
  update: async (id, changes, options) =>
    writeOne(session, resource, { operation: "update", id: idText(id), body: bodyText(changes) }, options),
  cancel: async (id, options) =>
    writeOne(session, resource, { operation: "cancel", id: idText(id), body: null }, options),
  read: async (name, id, { signal } = {}) =>
    session.run(jsonBelow(reading(specialPath(resource, "GET", name, id))), { signal }),
  download: async (name, id, { signal } = {}) =>
    session.run(fileBelow(reading(specialPath(resource, "GET", name, id))), { signal }),
  perform: async (name, id, input, options: WriteOptions = {}) => {
    const path = specialPath(resource, "POST", name, id)
    const idempotencyKey = keyOf(options)
    const body = input === undefined ? null : new TextEncoder().encode(bodyText(input))
    const headers = { "idempotency-key": idempotencyKey }
    return session.run(jsonBelow({ method: "POST", path, headers, body, pageParameters: null }), {
      signal: options.signal,
      idempotencyKey
    })
  }
})

const namesOf: Readonly<Record<Operation, ReadonlyArray<keyof Operations<ResourceShape>>>> = {
  L: ["list"],
  C: ["create"],
  B: ["batch"],
  R: ["get", "getVersioned"],
  U: ["update"],
  D: ["cancel"]
}

export const make = (session: Session, resource: Resource): ResourceClient<ResourceShape> => {
  const all = allOperations(session, resource)
  const names = new Set(resource.operations.flatMap((operation) => namesOf[operation]))
  for (const { method } of resource.specials) {
    for (const name of method === "GET" ? (["read", "download"] as const) : (["perform"] as const)) names.add(name)
  }
  return Object.fromEntries([...names].map((name) => [name, all[name]])) as unknown as ResourceClient<ResourceShape>
}

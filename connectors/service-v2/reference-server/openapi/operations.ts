/**
 * Endpoints as OpenAPI operations: parameters, body, and every possible status with its codes.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Filter, Resource } from "../../../../src/catalogue/Resource.ts"
import { limits } from "../../catalogue/limits.ts"
import type { Endpoint } from "./endpoints.ts"
import { codesBut, failure, sharedHeaders } from "./failures.ts"
import type { Schema } from "./Schema.ts"
import { described, refer } from "./Schema.ts"
import { page } from "./records.ts"
import { specialShape } from "./specials.ts"
import { filterValue, recordId, sentInstant } from "./values.ts"

const json = "application/json"

const parameter = (where: "query" | "header" | "path", name: string, schema: Schema, description: string): Schema => ({
  name,
  in: where,
  ...(where === "path" ? { required: true } : {}),
  ...(description === "" ? {} : { description }),
  schema
})

/** Components that operations refer to. */
export const parameters: Readonly<Record<string, Schema>> = {
  id: parameter("path", "id", recordId, "the record's number"),
  limit: parameter(
    "query",
    "limit",
    { type: "integer", minimum: 1, maximum: limits.pageRecordsMax, default: limits.pageRecordsDefault },
    "records of a page (A-03)"
  ),
  cursor: parameter(
    "query",
    "cursor",
    { type: "string", pattern: "^[A-Za-z0-9_-]+$" },
    "next_cursor of the page before; carries the rest of the query (A-02)"
  ),
  cancel: parameter(
    "query",
    "cancel",
    { type: "string", enum: ["true", "false", "any"] },
    "whether cancelled records are listed; default false, with modifiedsince any (A-07)"
  ),
  cancelOnly: parameter(
    "query",
    "cancel",
    { type: "string", enum: ["true", "false", "any"] },
    "true lists cancelled records only (A-08); default false, with modifiedsince any"
  ),
  modifiedsince: parameter(
    "query",
    "modifiedsince",
    sentInstant,
    "records changed at this time or later, cancelled ones included; RFC 3339 in UTC (A-06)"
  ),
  include: parameter("query", "include", { type: "string", enum: ["custom_fields"] }, "embeds custom_fields (A-12)"),
  externalid: parameter("query", "externalid", { type: "string" }, "exact match (FIELD-12)"),
  IdempotencyKey: parameter(
    "header",
    "Idempotency-Key",
    { type: "string", minLength: 1, maxLength: limits.idempotencyKeyLengthMax, pattern: "^[ -~]*[!-~][ -~]*$" },
    "the same key and request get the first answer again for 24 hours (B-05..B-08)"
  ),
  IfMatch: parameter("header", "If-Match", { type: "string" }, "the ETag, *, or lastchangedate as it was read (B-01)")
}

const use = (name: keyof typeof parameters): Schema => ({ $ref: `#/components/parameters/${name}` })

const filterParameter = (resource: Resource, { field: name, match }: Filter): Schema => {
  const field = resource.field.get(name)!
  const how = match === "partial" ? "case-insensitive part of the text" : "exact match"
  return parameter("query", name, filterValue(field), field.note === "" ? how : `${field.note}; ${how}`)
}

const listParameters = (resource: Resource): ReadonlyArray<Schema> => [
  ...resource.filters.map((filter) => filterParameter(resource, filter)),
  use(resource.cancelFilter === "only" ? "cancelOnly" : "cancel"),
  ...(resource.field.has("externalid") ? [use("externalid")] : []),
  ...(resource.modifiedSince ? [use("modifiedsince")] : []),
  use("include"),
  use("limit"),
  use("cursor")
]

const flag = (name: string): Schema => parameter("query", name, { type: "boolean" }, "")

const parametersOf = ({ call, method, owner, special, resource, path }: Endpoint): ReadonlyArray<Schema> => {
  const isWrite = method !== "GET"
  const query =
    call === "list" && resource !== null
      ? listParameters(resource)
      : call === "retrieve"
        ? [use("include")]
        : owner !== "webhooks" || isWrite
          ? []
          : special === "deliveries"
            ? [flag("delivered"), flag("abandoned"), parameter("query", "eventtype", { type: "string" }, "exact match")]
            : path === "/webhooks"
              ? [use("cancel")]
              : []
  return [
    ...(path.includes("{id}") ? [use("id")] : []),
    ...query,
    ...(owner === "webhooks" && (special === "deliveries" || (path === "/webhooks" && !isWrite))
      ? [use("limit"), use("cursor")]
      : []),
    ...(isWrite ? [use("IdempotencyKey")] : []),
    ...(method === "PATCH" ? [use("IfMatch")] : [])
  ]
}

interface Success {
  readonly status: number
  readonly schema: Schema
  readonly contentType: string
  readonly hasETag: boolean
  readonly description: string
}

const meSchema: Schema = refer("me")

const successOf = (endpoint: Endpoint): Success => {
  const { call, owner, special, resource, path, method } = endpoint
  const answer = (status: number, schema: Schema, description: string, hasETag = false): Success => ({
    status,
    schema,
    contentType: json,
    hasETag,
    description
  })
  if (owner === "webhooks") {
    if (special === "test") return answer(200, refer("webhooks_test"), "what the receiver answered")
    if (special === "deliveries") return answer(200, page(refer("webhooks_delivery"), false), "attempts, newest first")
    if (path === "/webhooks" && method === "GET") return answer(200, page(refer("webhooks"), false), "subscriptions")
    return method === "POST"
      ? answer(201, refer("webhooks_created"), "the subscription with its secret", true)
      : answer(200, refer("webhooks"), "the subscription", true)
  }
  switch (call) {
    case "me":
      return answer(200, meSchema, "the token and what it can do")
    case "list":
      return answer(200, refer(`${owner}_page`), `a page of ${owner}`)
    case "create": {
      const name = endpoint.resource === null ? owner : createdName(endpoint.resource)
      return answer(201, refer(name), "the record as it was made", true)
    }
    case "batch":
      return answer(207, refer(`${owner}_results`), "what became of each record, in order")
    case "special": {
      const shape = specialShape(owner, special)
      return {
        status: shape.status,
        schema: shape.answer,
        contentType: shape.contentType,
        hasETag: shape.isRecord,
        description: endpoint.purpose
      }
    }
    default:
      return answer(200, refer(resource?.path ?? owner), "the record", true)
  }
}

/** The component of a create's answer. */
const createdName = ({ path }: Resource): string => (withMore.has(path) ? `${path}_created` : path)
/** Resources whose create answers have members beside those of the record (I-05). */
export const withMore: ReadonlySet<string> = new Set(["invoicelines", "payments", "apbilllines"])

const bodyOf = ({ call, owner, special, method, path }: Endpoint): Schema | null => {
  const needed = (schema: Schema): Schema => ({ required: true, content: { [json]: { schema } } })
  if (owner === "webhooks") {
    if (special === "test") return { content: { [json]: { schema: specialShape("invoices", "post").body } } }
    if (method === "POST" && path === "/webhooks") return needed(refer("webhooks_create"))
    return method === "PATCH" ? needed(refer("webhooks_update")) : null
  }
  switch (call) {
    case "create":
      return needed(refer(`${owner}_create`))
    case "update":
      return needed(refer(`${owner}_update`))
    case "batch":
      return needed({
        type: "array",
        items: refer(`${owner}_create`),
        maxItems: limits.batchRecordsMax,
        description: "each record is a write of its own; one that is refused does not stop the others (G-02)"
      })
    case "special": {
      const shape = specialShape(owner, special)
      return shape.body === null ? null : { content: { [json]: { schema: shape.body } } }
    }
    default:
      return null
  }
}

const idempotencyCodes = ["idempotency_replay", "request_in_progress"]
const parameterCodes = ["unknown_parameter", "invalid_request"]

/** The codes of each status that an endpoint can answer. */
const codesOf = (catalogue: Catalogue, endpoint: Endpoint): ReadonlyMap<number, ReadonlyArray<string>> => {
  const { call, method, owner, path, special, resource, feature } = endpoint
  const all = (status: number, ...without: ReadonlyArray<string>) => codesBut(catalogue, status, without)
  const codes = new Map<number, ReadonlyArray<string>>()
  const isWrite = method !== "GET"
  const isWebhook = owner === "webhooks"
  const does = isWebhook
    ? special === "test"
      ? "special"
      : method === "GET"
        ? "list"
        : method === "POST"
          ? "create"
          : method === "PATCH"
            ? "update"
            : "cancel"
    : call
  const bad =
    does === "list" || does === "retrieve"
      ? [...parameterCodes, "invalid_type", "invalid_enum"]
      : does === "create" || does === "update"
        ? all(400, "batch_too_large")
        : does === "batch"
          ? [...parameterCodes, "invalid_json", "batch_too_large"]
          : does === "special"
            ? [...parameterCodes, "invalid_json", "invalid_type"]
            : parameterCodes
  codes.set(400, bad)
  codes.set(401, all(401))
  const creates = does === "create" && resource?.capped === true
  codes.set(403, [
    ...(endpoint.scope === null ? [] : ["insufficient_scope"]),
    "forbidden",
    ...(feature === null ? [] : ["feature_not_licensed"]),
    ...(creates ? ["record_limit_reached"] : [])
  ])
  const shape = does === "special" && !isWebhook ? specialShape(owner, special) : null
  const ofShape = (status: number) => all(status).filter((code) => shape?.codes.includes(code))
  if (path.includes("{id}")) codes.set(404, all(404))
  if (does === "create" || does === "cancel") codes.set(409, all(409, "stale_record", "not_posted"))
  else if (does === "update") codes.set(409, all(409, "not_posted"))
  else if (isWrite) codes.set(409, [...idempotencyCodes, ...ofShape(409)])
  else if (shape !== null && ofShape(409).length > 0) codes.set(409, ofShape(409))
  if (does === "batch" || special.endsWith("/batch")) codes.set(415, all(415))
  if (does === "create" || does === "update" || does === "cancel") codes.set(422, all(422))
  else if (isWebhook && special === "test") codes.set(422, ["rule_violation"])
  else if (shape !== null && ofShape(422).length > 0) codes.set(422, ofShape(422))
  codes.set(429, all(429))
  codes.set(500, all(500))
  if (shape !== null && ofShape(501).length > 0) codes.set(501, ofShape(501))
  return codes
}

const header = (name: string): Schema => ({ $ref: `#/components/headers/${name}` })

const responsesOf = (catalogue: Catalogue, endpoint: Endpoint): Schema => {
  const { status, schema, contentType, hasETag, description } = successOf(endpoint)
  const responses: Record<string, Schema> = {}
  if (status < 400) {
    responses[String(status)] = {
      description: description === "" ? "done" : description,
      headers: {
        ...sharedHeaders,
        ...(hasETag ? { ETag: header("ETag") } : {}),
        ...(endpoint.method === "GET" ? {} : { "Idempotent-Replayed": header("IdempotentReplayed") })
      },
      content: { [contentType]: { schema } }
    }
  }
  const current = endpoint.method === "PATCH" ? refer(endpoint.owner) : null
  for (const [refused, codes] of codesOf(catalogue, endpoint)) {
    responses[String(refused)] = failure(catalogue, refused, codes, refused === 409 ? current : null)
  }
  return responses
}

const verbs: Readonly<Record<string, string>> = {
  list: "lists",
  create: "makes one of",
  batch: "makes up to 250 of",
  retrieve: "reads one of",
  update: "changes one of",
  cancel: "cancels one of"
}

const summaryOf = ({ call, owner, purpose, method, path, special }: Endpoint): string => {
  if (call === "me") return "what the calling token is and can do"
  if (purpose !== "") return special.endsWith("/batch") ? "refused: a file cannot be asked for in a batch" : purpose
  if (special === "test") return "sends a test event now and tells what the receiver answered"
  if (special === "deliveries") return "lists every delivery attempt, newest first"
  const webhookCall =
    method === "GET"
      ? path === "/webhooks"
        ? "list"
        : "retrieve"
      : ({ POST: "create", PATCH: "update", DELETE: "cancel" } as Record<string, string>)[method]!
  return `${verbs[call === "webhooks" ? webhookCall : call] ?? call} ${owner}`
}

const operationId = ({ call, owner, special, method, path }: Endpoint): string => {
  if (call === "me") return "me"
  if (special !== "") return `${owner}_${special.replace("/", "_")}`
  const ofMethod: Readonly<Record<string, string>> = { POST: "create", PATCH: "update", DELETE: "cancel" }
  const word = call === "webhooks" ? (ofMethod[method] ?? (path === "/webhooks" ? "list" : "retrieve")) : call
  return word === "create" || word === "update" ? `${word}_${owner}` : `${owner}_${word}`
}

export const operation = (catalogue: Catalogue, endpoint: Endpoint): Schema => {
  const { resource, scope, feature, call } = endpoint
  const body = bodyOf(endpoint)
  const area = resource?.area ?? (call === "me" ? "token" : "setup")
  return {
    operationId: operationId(endpoint),
    tags: [area],
    summary: described({}, summaryOf(endpoint))["description"] ?? "",
    security: [{ bearer: scope === null ? [] : [scope] }],
    parameters: parametersOf(endpoint),
    ...(body === null ? {} : { requestBody: body }),
    responses: responsesOf(catalogue, endpoint),
    "x-basis": resource?.basis ?? "documented",
    ...(scope === null ? {} : { "x-scope": scope }),
    ...(feature === null ? {} : { "x-module": feature })
  }
}

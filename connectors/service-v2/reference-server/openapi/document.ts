/**
 * The OpenAPI 3.1 document of the implemented API (DESIGN.md 5.3).
 *
 * Promise: all content is derived from the catalogue and the router, and describes the server in its default dialect
 * and limits; the effects of other dialects are listed in `http/dialect.ts`. The document is made once per catalogue
 * and is always the same text.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Endpoint } from "./endpoints.ts"
import { endpointsOf } from "./endpoints.ts"
import { batchError, codesBut, failure, headers, problems } from "./failures.ts"
import { operation, parameters, withMore } from "./operations.ts"
import { body, created, page, record, results } from "./records.ts"
import type { Schema } from "./Schema.ts"
import { arrayOf, exactly, nullable, refer } from "./Schema.ts"
import { subscriptionSchemas } from "./subscriptions.ts"
import { recordId, shownInstant } from "./values.ts"

const description = `A JSON interface to an ERP and accounting application, as the reference server answers it.

* A token is bound to one user and one company; a record of another company is 404 not_found.
* Every failure is one object with the key \`error\`; branch on \`error.code\`.
* A query parameter that an operation does not name is refused with 400 unknown_parameter, and so is an unknown field of a body. A parameter is sent once.
* A method that a path does not take is 405 method_not_allowed, with Allow (see the response MethodNotAllowed); a path that is not here is 404 not_found.
* Decimals are strings and are never rounded: too many decimals are 400 invalid_precision.
* Every field of a record is there, null when it is empty; \`custom_fields\` is there with include=custom_fields.
* Read-only fields may be sent back and are ignored.

\`x-basis\` tells how far the service's documents back a resource: documented in full, named without its fields, or inferred from what refers to it. What the documents leave open was decided; the decisions are named by letter and number (A-01 and so on).`

const me = (catalogue: Catalogue): Schema => {
  const scopes = catalogue.areas.flatMap(({ name }) => ["read", "write", "cancel"].map((access) => `${name}:${access}`))
  return exactly({
    tokenid: recordId,
    userid: recordId,
    user: { type: "string" },
    companyid: recordId,
    scopes: arrayOf({ type: "string", enum: scopes }, { uniqueItems: true }),
    expires: { ...nullable(shownInstant), description: "null when it does not expire" },
    features: arrayOf({ type: "string", enum: catalogue.features }, { description: "modules that are licensed" }),
    resources: {
      type: "object",
      additionalProperties: arrayOf({ type: "string", enum: ["L", "C", "B", "R", "U", "D"] }),
      description: "the operations of each resource: list, create, batch, retrieve, update, cancel"
    }
  })
}

const schemasOf = (catalogue: Catalogue, endpoints: ReadonlyArray<Endpoint>): Readonly<Record<string, Schema>> => {
  const schemas: Record<string, Schema> = { me: me(catalogue), BatchError: batchError(catalogue), Problems: problems }
  for (const resource of catalogue.resources.values()) {
    const { path, operations, modifiedSince } = resource
    schemas[path] = record(catalogue, resource)
    schemas[`${path}_page`] = page(refer(path), modifiedSince)
    const more = withMore.has(path) ? created(catalogue, resource) : null
    if (more !== null) schemas[`${path}_created`] = more
    if (operations.includes("C") || operations.includes("B")) schemas[`${path}_create`] = body(resource, "create")
    if (operations.includes("U")) schemas[`${path}_update`] = body(resource, "update")
    if (operations.includes("B")) {
      schemas[`${path}_results`] = results(refer(more === null ? path : `${path}_created`))
    }
  }
  return endpoints.some(({ owner }) => owner === "webhooks")
    ? { ...schemas, ...subscriptionSchemas(catalogue) }
    : schemas
}

const self: Schema = {
  get: {
    operationId: "openapi",
    tags: ["token"],
    summary: "this document; no token is needed",
    security: [],
    responses: {
      "200": {
        description: "this document",
        content: { "application/json": { schema: { type: "object", required: ["openapi", "info", "paths"] } } }
      }
    }
  }
}

/** Refusals that several operations share, stored once each: named by their status and a number. */
class Refusals {
  readonly components: Record<string, Schema> = {}
  private readonly names = new Map<string, string>()
  private readonly counts = new Map<string, number>()

  share(responses: Schema): Schema {
    return Object.fromEntries(
      Object.entries(responses).map(([status, response]) =>
        Number(status) < 400 ? [status, response] : [status, this.refer(status, response as Schema)]
      )
    )
  }

  private refer(status: string, response: Schema): Schema {
    const text = JSON.stringify(response)
    let name = this.names.get(text)
    if (name === undefined) {
      const count = (this.counts.get(status) ?? 0) + 1
      this.counts.set(status, count)
      name = `Refused${status}_${count}`
      this.names.set(text, name)
      this.components[name] = response
    }
    return { $ref: `#/components/responses/${name}` }
  }
}

/** The document without its servers. */
const documentOf = (catalogue: Catalogue): Schema => {
  const endpoints = endpointsOf(catalogue)
  const refusals = new Refusals()
  const paths: Record<string, Record<string, Schema>> = {}
  for (const endpoint of endpoints) {
    const item = (paths[endpoint.path] ??= {})
    const { responses, ...rest } = operation(catalogue, endpoint)
    item[endpoint.method.toLowerCase()] = { ...rest, responses: refusals.share(responses as Schema) }
  }
  return {
    info: { title: catalogue.name, version: catalogue.version, description },
    tags: [
      { name: "token", description: "the calling token" },
      ...catalogue.areas.map(({ name, covers }) => ({ name, description: covers }))
    ],
    paths: { ...paths, "/openapi.json": self },
    components: {
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "Authorization: Bearer <ACCESS_TOKEN>. The scope that an operation needs is its x-scope."
        }
      },
      parameters,
      headers,
      schemas: schemasOf(catalogue, endpoints),
      responses: {
        ...refusals.components,
        MethodNotAllowed: failure(catalogue, 405, codesBut(catalogue, 405)),
        UnknownPath: failure(catalogue, 404, codesBut(catalogue, 404))
      }
    }
  }
}

const rendered = new WeakMap<Catalogue, string>()

/** The document as JSON text; `base` is the absolute base address. */
export const openApi = (catalogue: Catalogue, base: string): string => {
  let rest = rendered.get(catalogue)
  if (rest === undefined) {
    rest = JSON.stringify(documentOf(catalogue)).slice(1)
    rendered.set(catalogue, rest)
  }
  return `{"openapi":"3.1.0","servers":${JSON.stringify([{ url: base }])},${rest}`
}

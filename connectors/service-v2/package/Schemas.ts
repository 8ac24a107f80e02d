/**
 * JSON Schemas (2020-12) of the records, and of the bodies that write them.
 *
 * Promise: they are the schemas of the OpenAPI document, so that both accept the same records. Each schema stands
 * alone: `$defs` has its bodies.
 */
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { body, record } from "../reference-server/openapi/records.ts"
import type { Schema } from "../reference-server/openapi/Schema.ts"

const dialect = "https://json-schema.org/draft/2020-12/schema"

const schemaOf = (catalogue: Catalogue, resource: Resource): Schema => {
  const { operations, path } = resource
  const bodies = {
    ...(operations.includes("C") || operations.includes("B") ? { create: body(resource, "create") } : {}),
    ...(operations.includes("U") ? { update: body(resource, "update") } : {})
  }
  return {
    $schema: dialect,
    $id: `urn:tributary:service-v2:${path}`,
    title: path,
    ...record(catalogue, resource),
    ...(Object.keys(bodies).length === 0 ? {} : { $defs: bodies })
  }
}

const declarations = `import type { ResourceName } from "./connectors/service-v2/package/records.js"

/** A JSON Schema of draft 2020-12. */
export interface JsonSchema {
  readonly $schema: string
  /** \`urn:tributary:service-v2:<resource>\`. */
  readonly $id: string
  readonly title: string
  readonly type: "object"
  readonly properties: Readonly<Record<string, object>>
  readonly required: ReadonlyArray<string>
  /** The bodies that write the record, where the resource has them. */
  readonly $defs?: { readonly create?: object; readonly update?: object }
  readonly [keyword: string]: unknown
}

/** The schema of each resource's record, by name. */
export declare const schemas: Readonly<Record<ResourceName, JsonSchema>>
`

/** The module `tributary-sync/schemas`, its declarations, and a file for each resource. */
export const schemaFiles = (catalogue: Catalogue): ReadonlyArray<readonly [path: string, text: string]> => {
  const schemas = [...catalogue.resources.values()].map((one) => [one.path, schemaOf(catalogue, one)] as const)
  // A text is parsed in less time than the same object as code.
  const text = JSON.stringify(JSON.stringify(Object.fromEntries(schemas)))
  return [
    ["types/schemas.d.ts", declarations],
    ["src/schemas.js", `export const schemas = JSON.parse(${text})\n`],
    ...schemas.map(([path, schema]) => [`schemas/${path}.json`, `${JSON.stringify(schema)}\n`] as const)
  ]
}

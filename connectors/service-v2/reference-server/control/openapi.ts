/**
 * The OpenAPI 3.1 document of the control plane.
 *
 * Promise: all content is derived from the declared calls: a new one appears without further work.
 */
import * as Schema from "effect/Schema"
import { json } from "../http/Message.ts"
import type { Schema as JsonSchema } from "../openapi/Schema.ts"
import { exactly, refer } from "../openapi/Schema.ts"
import type { ControlRoute } from "./Route.ts"

const description = `What a test or an operator may do to the reference server beside its API.

* Bodies are JSON objects. A field that a call does not name is refused, and so is a query parameter.
* Every refusal is 400 with one sentence that names the field. A refused call changes nothing.
* The listener accepts connections of this machine only, unless it was started otherwise, and no request with the header \`Origin\`.
* Changes by the control plane fire no events.
* Every call but those of \`/worlds\` exists below \`/worlds/{name}\` too, for that world.`

/** The JSON Schema of a form; decoded texts of parameters are described as their values. */
const jsonSchemaOf = (schema: Schema.Constraint): JsonSchema =>
  Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }).schema

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
}

const parametersOf = ({ path, parameters, example }: ControlRoute): ReadonlyArray<JsonSchema> => {
  if (parameters === null) return []
  const { properties = {}, required = [] } = jsonSchemaOf(Schema.toType(parameters)) as ObjectSchema
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: path.includes(`{${name}}`) ? "path" : "query",
    required: required.includes(name),
    description,
    schema,
    ...(example.parameters?.[name] === undefined ? {} : { example: example.parameters[name] })
  }))
}

const bodyOf = ({ input, example, takesLines }: ControlRoute): JsonSchema => {
  if (input === null) return {}
  const schema = jsonSchemaOf(input)
  const { required = [] } = schema as ObjectSchema
  const content = {
    [json]: { schema, example: example.input ?? {} },
    ...(takesLines === true ? { "application/x-ndjson": { schema: { type: "string" } } } : {})
  }
  return { requestBody: { required: required.length > 0, content } }
}

const operationOf = (route: ControlRoute): JsonSchema => {
  const { method, path, summary, description, output, example, errors = [] } = route
  const { status, type, schema } = output
  const isLines = type !== json
  const refusals = ["The input has not the described form.", ...errors]
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[/{}.]+(\w?)/g, (_all, letter: string) => letter.toUpperCase())}`,
    summary,
    ...(description === undefined ? {} : { description }),
    parameters: parametersOf(route),
    ...bodyOf(route),
    responses: {
      [status]: {
        description: isLines ? "Done. One JSON value a line; the schema describes a line." : "Done.",
        content: { [type]: { schema: jsonSchemaOf(schema), example: example.output } }
      },
      "400": { description: refusals.join(" "), content: { [json]: { schema: refer("Refusal") } } }
    }
  }
}

export const controlOpenApi = (routes: ReadonlyArray<ControlRoute>): JsonSchema => {
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route)
  return {
    openapi: "3.1.0",
    info: { title: "Control plane of the reference server", version: "1.0.0", description },
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: { Refusal: exactly({ error: { type: "string", description: "a sentence that names the field" } }) }
    }
  }
}

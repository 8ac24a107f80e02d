/**
 * Makes a reference server behave as a recorded installation, by its control plane.
 *
 * Promise: dialect, limit, modules and the records with differences are as recorded, for company 1. What cannot be the
 * same is returned, one sentence each.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Reference, ReferenceFailed } from "../../../src/connector/Demo.ts"
import * as ControlPlane from "../demo/ControlPlane.ts"
import { eachMember } from "../client/JsonText.ts"
import { format } from "./Recording.ts"

const Recording = Schema.fromJsonString(
  Schema.Struct({
    format: Schema.Literal(format),
    reference: Schema.Struct({
      dialect: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Int, Schema.Boolean, Schema.Null])),
      limits: Schema.Struct({ requestsPerMinute: Schema.optionalKey(Schema.Int) }),
      features: Schema.Record(Schema.String, Schema.Boolean),
      scopes: Schema.NullOr(Schema.Array(Schema.String)),
      records: Schema.Array(Schema.Struct({ resource: Schema.String, records: Schema.Array(Schema.String) }))
    }),
    notReproduced: Schema.Array(Schema.String)
  })
)

/** The record under another number, so that the first page of its list has it. */
const numbered = (text: string, id: number): string => {
  const parts: Array<string> = []
  eachMember(text, 0, (name, from, to) =>
    parts.push(`${JSON.stringify(name)}:${name === "id" ? id : text.slice(from, to)}`)
  )
  return `{${parts.join(",")}}`
}

/** Reads a recording and applies it. */
export const apply = Effect.fn("radar.apply")(function* (reference: Reference, text: string) {
  const recording = yield* Schema.decodeEffect(Recording)(text).pipe(
    Effect.mapError(
      (issue) => new ReferenceFailed({ message: `the file is no recording of the radar: ${issue.message}` })
    )
  )
  const { dialect, features, limits, records, scopes } = recording.reference
  for (const { resource, records: texts } of records) {
    const all = texts.map((one, at) => numbered(one, at + 1)).join(",")
    yield* ControlPlane.call(
      reference,
      "POST",
      "/records",
      `{"company":1,"resource":${JSON.stringify(resource)},"records":[${all}]}`
    )
  }
  if (Object.keys(features).length > 0)
    yield* ControlPlane.call(reference, "PUT", "/companies/1", JSON.stringify({ features }))
  yield* ControlPlane.call(reference, "PUT", "/dialect", JSON.stringify(dialect))
  if (limits.requestsPerMinute !== undefined)
    yield* ControlPlane.call(reference, "PUT", "/limits", JSON.stringify(limits))
  return [
    ...recording.notReproduced,
    ...(scopes === null
      ? []
      : [`the token: issue one with the ${scopes.length} scopes of reference.scopes in the file`])
  ]
})

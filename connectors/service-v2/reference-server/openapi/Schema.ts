/** JSON Schema 2020-12, as OpenAPI 3.1 uses it, in the few forms that the document needs. */

export type Schema = Readonly<Record<string, unknown>>

export const refer = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** An object with exactly these properties, all required unless stated otherwise. */
export const exactly = (
  properties: Readonly<Record<string, Schema>>,
  required: ReadonlyArray<string> = Object.keys(properties)
): Schema => ({
  type: "object",
  properties,
  ...(required.length === 0 ? {} : { required }),
  additionalProperties: false
})

export const arrayOf = (items: Schema, more: Schema = {}): Schema => ({ type: "array", items, ...more })

/** The schema of a value that may also be null. */
export const nullable = (schema: Schema): Schema => {
  const { type, enum: values } = schema
  if (typeof type !== "string") return schema
  return {
    ...schema,
    type: [type, "null"],
    ...(Array.isArray(values) ? { enum: [...(values as ReadonlyArray<unknown>), null] } : {})
  }
}

export const described = (schema: Schema, description: string): Schema =>
  description === "" ? schema : { ...schema, description }

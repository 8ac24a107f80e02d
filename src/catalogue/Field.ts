/**
 * The types and constructors by which a catalogue states the fields of a record.
 *
 * Promise: a field states everything about one value on the wire, once. The server's validation, the client's decoding,
 * the warehouse's columns and comments are all derived from it, so none of them can disagree about a length, a number of
 * decimals or who may write.
 */

/** The type of one value on the wire, with its precision. */
export type FieldType =
  /** A JSON number without a fraction; kept as a 64-bit integer. */
  | { readonly _tag: "integer" }
  /**
   * A decimal as a JSON string. `scale` is the number of decimal places the field holds; `shown` is how many the
   * service returns where that differs from what it stores.
   */
  | {
      readonly _tag: "decimal"
      readonly kind: "money" | "qty" | "number"
      readonly scale: number
      readonly shown: number
    }
  | { readonly _tag: "boolean" }
  /** `maxLength` in characters (Unicode code points); null is text without a practical limit. */
  | { readonly _tag: "string"; readonly maxLength: number | null }
  /** A calendar day, `YYYY-MM-DD`. */
  | { readonly _tag: "date" }
  /** An instant, RFC 3339 in UTC. */
  | { readonly _tag: "timestamp" }
  /** Lines carried inside the record; kept as JSON. */
  | { readonly _tag: "list"; readonly of: ReadonlyArray<Field> }

/** One of a closed set of values, with its meaning. */
export interface AllowedValue {
  readonly value: number | string
  readonly meaning: string
}

/** A reference of a field: its value names a record of another resource. */
export interface Reference {
  /** Path of the resource referred to. */
  readonly resource: string
  /** `id`: the number of the record. `code`: the record's code, name or key. */
  readonly half: "id" | "code"
  /** The field that carries the other half of the pair; null when the reference is by id only. */
  readonly pairedWith: string | null
  /** The field of the other resource which a code carries; null on the id half. */
  readonly by: string | null
}

/**
 * The type of a column that was made for a field that no catalogue states, from the values seen: text unless all of them
 * fit better. `number` is a JSON number with any decimals, `decimal` a plain numeral in a string, `json` anything.
 */
export type InferredType = "integer" | "number" | "decimal" | "boolean" | "text" | "date" | "timestamp" | "json"

/** The type and the column of an inferred field. */
export interface Inferred {
  readonly type: InferredType
  /** The column's name in the warehouse: the field's own where a database can have it. */
  readonly column: string
}

/** One field of a record. */
export interface Field {
  readonly name: string
  readonly type: FieldType
  readonly note: string
  /** Generated or maintained by the service: a value sent for it is ignored. */
  readonly readOnly: boolean
  /** The closed set of values where the documents list one. */
  readonly values: ReadonlyArray<AllowedValue> | null
  readonly reference: Reference | null
  /** False where the documents name the field without giving its type, so that readers are lenient. */
  readonly typed: boolean
  /**
   * Null for a field that a catalogue states. The type of an inferred field is a guess, so that a value which does not fit
   * it is no fault of the record: the value stays beside the columns, under the field's name.
   */
  readonly inferred: Inferred | null
}

/** The options of a field besides its name and type. */
export type FieldOptions = Partial<Pick<Field, "note" | "readOnly" | "values" | "typed">>

const field = (name: string, type: FieldType, options: FieldOptions = {}): Field => ({
  name,
  type,
  note: options.note ?? "",
  readOnly: options.readOnly ?? false,
  values: options.values ?? null,
  reference: null,
  typed: options.typed ?? true,
  inferred: null
})

/** The nearest type that a catalogue would have stated. */
const typeInferred: Readonly<Record<InferredType, FieldType>> = {
  integer: { _tag: "integer" },
  number: { _tag: "decimal", kind: "number", scale: 18, shown: 18 },
  decimal: { _tag: "decimal", kind: "number", scale: 18, shown: 18 },
  boolean: { _tag: "boolean" },
  text: { _tag: "string", maxLength: null },
  date: { _tag: "date" },
  timestamp: { _tag: "timestamp" },
  json: { _tag: "list", of: [] }
}

/** A field that is inferred from records. */
export const inferredField = (name: string, inferred: Inferred): Field => ({
  ...field(name, typeInferred[inferred.type], { note: "inferred from the records" }),
  inferred
})

/** `values({ 1: "cash", 2: "check" })`: the closed set of an integer field. */
export const values = (meanings: Readonly<Record<number, string>>): ReadonlyArray<AllowedValue> =>
  Object.entries(meanings).map(([value, meaning]) => ({ value: Number(value), meaning }))

/** `words({ quote: "…" })`: the closed set of a text field. */
export const words = (meanings: Readonly<Record<string, string>>): ReadonlyArray<AllowedValue> =>
  Object.entries(meanings).map(([value, meaning]) => ({ value, meaning }))

export const integer = (name: string, options?: FieldOptions): Field => field(name, { _tag: "integer" }, options)

export const boolean = (name: string, options?: FieldOptions): Field => field(name, { _tag: "boolean" }, options)

/** At most `maxLength` characters. */
export const string = (name: string, maxLength: number, options?: FieldOptions): Field =>
  field(name, { _tag: "string", maxLength }, options)

/** A string without a practical limit. */
export const text = (name: string, options?: FieldOptions): Field =>
  field(name, { _tag: "string", maxLength: null }, options)

export const date = (name: string, options?: FieldOptions): Field => field(name, { _tag: "date" }, options)

export const timestamp = (name: string, options?: FieldOptions): Field => field(name, { _tag: "timestamp" }, options)

/** Lines carried inside the record. */
export const list = (name: string, of: ReadonlyArray<Field>, options?: FieldOptions): Field =>
  field(name, { _tag: "list", of }, options)

/** `shown` is the number of decimals in answers where it differs from the stored `dp`. */
export interface DecimalOptions extends FieldOptions {
  readonly dp?: number
  readonly shown?: number
}

const decimal =
  (kind: "money" | "qty" | "number", dpDefault: number) =>
  (name: string, options: DecimalOptions = {}) => {
    const scale = options.dp ?? dpDefault
    return field(name, { _tag: "decimal", kind, scale, shown: options.shown ?? scale }, options)
  }

/** A decimal string with 4 decimals unless `dp` says otherwise. */
export const money = decimal("money", 4)

/** A decimal string with 6 decimals unless `dp` says otherwise. */
export const qty = decimal("qty", 6)

/** A numeric string that is not money; its decimals are always stated. */
export const number = decimal("number", 0)

/** The record's own number, given by the service. */
export const id = (): Field => integer("id", { readOnly: true, note: "the record's number" })

/** A reference that has no code alternative: `ref("shelfid", "shelves")`. */
export const ref = (name: string, resource: string, options?: FieldOptions): Field => ({
  ...integer(name, options),
  reference: { resource, half: "id", pairedWith: null, by: null }
})

/** The options of a reference pair. */
export interface PairOptions extends FieldOptions {
  /** The field of the other resource that the code half carries. */
  readonly by: string
  /** Length of the code half in characters; null is text. */
  readonly length: number | null
  /** The id half is maintained by the service while the code half may be written, or the other way round. */
  readonly readOnlyId?: boolean
}

/**
 * A reference pair: `pair("shelf", "shelves", { by: "code", length: 100 })` is the two fields `shelfid` and `shelf`. A
 * writer sends one of them.
 */
export const pair = (name: string, resource: string, options: PairOptions): ReadonlyArray<Field> => {
  const idName = `${name}id`
  return [
    {
      ...integer(idName, { ...options, readOnly: options.readOnlyId ?? options.readOnly ?? false }),
      reference: { resource, half: "id", pairedWith: name, by: null }
    },
    {
      ...field(name, { _tag: "string", maxLength: options.length }, options),
      reference: { resource, half: "code", pairedWith: idName, by: options.by }
    }
  ]
}

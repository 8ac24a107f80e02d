/** The fields that most resources of Service API v2 have, and the functions that define all others. */
import { boolean, type Field, type FieldOptions, string, timestamp } from "../../../src/catalogue/Field.ts"

export * from "../../../src/catalogue/Field.ts"

/** The caller's own key, stored verbatim and scoped to the company. */
export const externalid = (): Field =>
  string("externalid", 100, { note: "the caller's own key, stored verbatim, scoped to the company" })

/** The cancel flag: a cancelled record stays readable. */
export const cancel = (): Field =>
  boolean("cancel", { note: "true when cancelled; the record stays readable and lists hide it unless asked" })

export const lastchangedate = (): Field =>
  timestamp("lastchangedate", { readOnly: true, note: "time of the last change; drives modifiedsince" })

export const entrydate = (options?: FieldOptions): Field =>
  timestamp("entrydate", { note: "creation time", ...options })

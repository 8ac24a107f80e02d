/**
 * Names in SQL.
 *
 * Promise: a name reaches SQL only through {@link identifier}, which refuses what Postgres would cut, fold or misread.
 * Values never come this way: they are parameters. {@link nameFor} maps any name of an API to a valid, recognisable
 * one. No other name of the table equals it, even when case is ignored.
 */
import { createHash } from "node:crypto"

/** Postgres cuts longer names with no more than a notice. */
export const bytesMax = 63

/** The suffix of the table of superseded versions, after the name of the resource. */
export const supersededSuffix = "__superseded"

/** A checked, quoted SQL identifier. Throws on a name that is not plain, which is a defect of the caller. */
export const identifier = (name: string): string => {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || Buffer.byteLength(name) > bytesMax) {
    throw new Error(`"${name}" cannot be a name in the database: letters, digits and _, at most ${bytesMax} bytes`)
  }
  return `"${name}"`
}

/** A SQL string literal, for the few statements that take no parameters (comments, defaults). */
export const literal = (text: string): string => {
  const quoted = `'${text.replaceAll("'", "''")}'`
  return text.includes("\\") ? ` E${quoted.replaceAll("\\", "\\\\")}` : quoted
}

/** Columns that Postgres itself has in every table, and those of ours that do not begin with an underscore. */
const reserved: ReadonlySet<string> = new Set(["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "custom_fields"])

/** Digits of the hash behind a mapped name; more where names still clash. */
const hashDigits = 8

/**
 * The name in the database for a name of the API: the same name where it is plain and free, otherwise its readable
 * characters and a hash. `used` has lower-case names. Throws on a name that is no text, which never passes decoding.
 */
export const nameFor = (apiName: string, used: ReadonlySet<string>, lengthMax = bytesMax): string => {
  if (apiName.includes("\0") || !apiName.isWellFormed()) {
    throw new Error("a name with NUL or half a surrogate pair cannot be a name in the database")
  }
  const isFree = (name: string) => !used.has(name.toLowerCase()) && !reserved.has(name.toLowerCase())
  const isPlain = /^[A-Za-z][A-Za-z0-9_]*$/.test(apiName) && !apiName.toLowerCase().endsWith(supersededSuffix)
  // Names that begin with an underscore belong to Tributary, also in later versions.
  if (isPlain && apiName.length <= lengthMax && isFree(apiName)) return apiName
  const readable = apiName
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .replace(/^[0-9_]+|_+$/g, "")
  const hash = createHash("sha256").update(apiName).digest("hex")
  for (let digits = hashDigits; ; digits += 4) {
    const name = `${(readable === "" ? "field" : readable).slice(0, lengthMax - digits - 1)}_${hash.slice(0, digits)}`
    if (isFree(name) || digits >= hash.length) return name
  }
}

/**
 * Names in SQL.
 *
 * Promise: a name reaches SQL only through {@link identifier}, which refuses what Postgres would cut, fold or
 * misread. Values never come this way: they are parameters.
 */

/** Postgres cuts longer names with no more than a notice. */
const bytesMax = 63

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

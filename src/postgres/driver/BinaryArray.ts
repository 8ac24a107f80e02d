/**
 * Arrays of text and of bytes in the binary format of Postgres, for the parameters of a bulk statement.
 *
 * Promise: every value arrives byte for byte, and null as null, without quoting and without hexadecimal.
 */

/** The element types by their numbers in Postgres. */
const textOid = 25
const byteaOid = 17

const headBytes = 20

const head = (buffer: Buffer, oid: number, count: number, hasNull: boolean) => {
  // A single dimension that begins at 1.
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(hasNull ? 1 : 0, 4)
  buffer.writeInt32BE(oid, 8)
  buffer.writeInt32BE(count, 12)
  buffer.writeInt32BE(1, 16)
}

const empty = (oid: number): Buffer => {
  const buffer = Buffer.alloc(12)
  buffer.writeInt32BE(oid, 8)
  return buffer
}

/** A `text[]`. */
export const texts = <A>(given: ReadonlyArray<A>, of: (one: A) => string | null): Buffer => {
  if (given.length === 0) return empty(textOid)
  let bytesMax = headBytes
  for (const one of given) bytesMax += 4 + 3 * (of(one)?.length ?? 0)
  const buffer = Buffer.allocUnsafe(bytesMax)
  let hasNull = false
  let at = headBytes
  for (const one of given) {
    const text = of(one)
    const written = text === null ? -1 : buffer.write(text, at + 4)
    hasNull ||= written < 0
    buffer.writeInt32BE(written, at)
    at += 4 + Math.max(0, written)
  }
  head(buffer, textOid, given.length, hasNull)
  return buffer.subarray(0, at)
}

/** A `bytea[]`. */
export const bytes = <A>(given: ReadonlyArray<A>, of: (one: A) => Uint8Array): Buffer => {
  if (given.length === 0) return empty(byteaOid)
  let size = headBytes
  for (const one of given) size += 4 + of(one).length
  const buffer = Buffer.allocUnsafe(size)
  head(buffer, byteaOid, given.length, false)
  let at = headBytes
  for (const one of given) {
    const body = of(one)
    buffer.writeInt32BE(body.length, at)
    buffer.set(body, at + 4)
    at += 4 + body.length
  }
  return buffer
}

/**
 * A buffer for a body that arrives in chunks.
 *
 * Promise: it allocates at most twice the bytes that have arrived, or 16 KiB, however small the chunks are. A body of one
 * chunk is not copied.
 */

export interface BodyBuffer {
  /** Allocated bytes; never more than `sizeMax`. */
  readonly capacity: number
  readonly size: number
  /** Appends a chunk. The caller ensures that the size stays within `sizeMax`. */
  readonly add: (chunk: Uint8Array) => void
  /** Returns all bytes, and empties the buffer. */
  readonly takeAll: () => Uint8Array
}

const capacityMin = 16 * 1024

/** A buffer for at most `sizeMax` bytes. */
export const make = (sizeMax: number): BodyBuffer => {
  let buffer: Uint8Array = new Uint8Array()
  let size = 0
  return {
    get capacity() {
      return buffer.length
    },
    get size() {
      return size
    },
    add: (chunk) => {
      const needed = size + chunk.length
      if (size === 0) buffer = chunk
      else {
        if (needed > buffer.length) {
          const grown = new Uint8Array(Math.min(sizeMax, Math.max(needed, capacityMin, 2 * buffer.length)))
          grown.set(buffer)
          buffer = grown
        }
        buffer.set(chunk, size)
      }
      size = needed
    },
    takeAll: () => {
      const all = buffer.length === size ? buffer : buffer.slice(0, size)
      buffer = new Uint8Array()
      size = 0
      return all
    }
  }
}

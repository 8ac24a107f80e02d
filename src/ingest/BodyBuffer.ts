/**
 * A body as it comes in, piece by piece.
 *
 * Promise: it takes no more memory than it says, and that is at most twice what has come, or 16 KiB, however small the
 * pieces are. A body that comes in one piece is not copied.
 */

export interface BodyBuffer {
  /** What it takes, in bytes; never more than `most`. */
  readonly held: number
  readonly size: number
  /** Takes a piece over. The caller sees to it that there is never more than `most`. */
  readonly add: (piece: Uint8Array) => void
  /** Hands everything that has come over, in memory of its own length; nothing is held any longer. */
  readonly handOver: () => Uint8Array
}

const heldMin = 16 * 1024

/** `most` is as many bytes as may come. */
export const make = (most: number): BodyBuffer => {
  let buffer: Uint8Array = new Uint8Array()
  let size = 0
  return {
    get held() {
      return buffer.length
    },
    get size() {
      return size
    },
    add: (piece) => {
      const needed = size + piece.length
      if (size === 0) buffer = piece
      else {
        if (needed > buffer.length) {
          const grown = new Uint8Array(Math.min(most, Math.max(needed, heldMin, 2 * buffer.length)))
          grown.set(buffer)
          buffer = grown
        }
        buffer.set(piece, size)
      }
      size = needed
    },
    handOver: () => {
      const all = buffer.length === size ? buffer : buffer.slice(0, size)
      buffer = new Uint8Array()
      size = 0
      return all
    }
  }
}

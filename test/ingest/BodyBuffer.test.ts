import { assert, describe, it } from "@effect/vitest"
import * as BodyBuffer from "../../src/ingest/BodyBuffer.ts"

const bytesOf = (size: number) => Uint8Array.from({ length: size }, (_, index) => index % 251)

describe("BodyBuffer", () => {
  it("returns the bytes it received and allocates at most twice their size or 16 KiB", () => {
    for (const size of [0, 1, 100, 16 * 1024, 16 * 1024 + 1, 40_000]) {
      for (const pieceSize of [1, 7, 1_000, 65_536]) {
        const all = bytesOf(size)
        const body = BodyBuffer.make(1024 * 1024)
        for (let at = 0; at < size; at += pieceSize) {
          body.add(all.slice(at, at + pieceSize))
          const isBounded = body.capacity >= body.size && body.capacity <= Math.max(2 * body.size, 16 * 1024)
          if (!isBounded) assert.fail(`${body.capacity} bytes allocated for ${body.size}`)
        }
        assert.strictEqual(body.size, size)
        const handed = body.takeAll()
        assert.isTrue(Buffer.from(all).equals(handed))
        assert.strictEqual(handed.buffer.byteLength, size)
        assert.strictEqual(body.capacity, 0)
      }
    }
  })

  it("never allocates more than the maximum body size", () => {
    for (const most of [10, 16 * 1024, 50_000]) {
      const all = bytesOf(most)
      const body = BodyBuffer.make(most)
      for (const byte of all) {
        body.add(Uint8Array.of(byte))
        if (body.capacity > most) assert.fail(`${body.capacity} bytes allocated, limit ${most}`)
      }
      assert.isTrue(Buffer.from(all).equals(body.takeAll()))
    }
  })

  it("returns a body that arrives in one piece without copying it", () => {
    const all = bytesOf(500)
    const body = BodyBuffer.make(500)
    body.add(all)
    assert.strictEqual(body.takeAll(), all)
  })
})

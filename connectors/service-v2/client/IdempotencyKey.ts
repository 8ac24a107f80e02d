/** Random idempotency keys, for writes whose caller gives none. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/** 128 random bits in hex. */
export const newKey = Effect.map(
  Effect.all(Array.from({ length: 4 }, () => Random.nextIntBetween(0, 0xffff_ffff))),
  (parts) => parts.map((part) => part.toString(16).padStart(8, "0")).join("")
)

/** Tests of programs, whose bodies are generators of effects. They have the time of the machine, and end their scope. */
import { it } from "@effect/vitest"
import { Effect, type Scope } from "effect"

export const liveTest = (
  title: string,
  body: () => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, unknown>,
  timeout?: number
): void => it.live(title, () => Effect.gen(body), timeout)

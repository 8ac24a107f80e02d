/** Tests whose bodies are generators of effects. They have a test clock, and end their scope. */
import { it, layer, type Vitest } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"

type Body<R> = () => Generator<Effect.Effect<unknown, unknown, R | Scope.Scope>, unknown>
type Test<R> = (title: string, body: Body<R>) => void

export const test: Test<never> = (title, body) => it.effect(title, () => Effect.gen(body))

/** Such tests by the methods of a layer. */
export const testOf =
  <R>(methods: Vitest.MethodsNonLive<R>): Test<R> =>
  (title, body) =>
    methods.effect(title, () => Effect.gen(body))

/** Tests that share what a layer makes. `methods` are for tests of another form. */
export const suite = <R, E>(
  name: string,
  shared: Layer.Layer<R, E>,
  tests: (test: Test<R>, methods: Vitest.MethodsNonLive<R>) => void
) => layer(shared)(name, (methods) => tests(testOf(methods), methods))

/** Tests that each make what the layer makes for themselves. */
export const testWith =
  <R, E>(own: Layer.Layer<R, E>, timeout?: number): Test<R> =>
  (title, body) =>
    it.effect(title, () => Effect.gen(body).pipe(Effect.scoped, Effect.provide(own)), timeout)

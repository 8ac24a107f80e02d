/** Assertions on what a function gives for each of several values. */
import { assert } from "vitest"

/** The function gives these results for the values, in their order. */
export const assertEach = <A, B>(
  values: Iterable<A>,
  resultOf: (value: A) => B,
  expected: ReadonlyArray<B>,
  message?: string
): void =>
  assert.deepStrictEqual(
    Array.from(values, (value) => resultOf(value)),
    expected,
    message
  )

/** So many of the values have the property. */
export const assertCount = <A>(
  values: Iterable<A>,
  has: (value: A) => boolean,
  count: number,
  message?: string
): void => assert.lengthOf(Array.from(values).filter(has), count, message)

/** None of the values has the property. The failure shows those that have. */
export const assertNone = <A>(values: Iterable<A>, has: (value: A) => boolean, message?: string): void =>
  assert.deepStrictEqual(Array.from(values).filter(has), [], message)

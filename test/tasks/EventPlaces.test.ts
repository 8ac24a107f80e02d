/** Which resources with due events get a place. */
import { assert, describe, it } from "@effect/vitest"
import { admit } from "../../src/tasks/EventWork.ts"

const events = (name: string, ...paths: ReadonlyArray<string>) =>
  paths.map((path) => ({ name, path, kind: "events" as const }))
const reads = (name: string, ...paths: ReadonlyArray<string>) =>
  paths.map((path) => ({ name, path, kind: "read" as const }))
const paths = ({ admitted }: { readonly admitted: ReadonlyArray<{ readonly path: string }> }) =>
  admitted.map(({ path }) => path)

describe("admit", () => {
  it("gives a company a bounded number of places of each kind, in the given order", () => {
    const work = [...events("acme", "a", "b", "c", "d", "e"), ...reads("acme", "a", "b", "c", "d")]
    const all = admit(work, [], 100)
    assert.deepStrictEqual(paths(all), ["a", "b", "c", "d", "a", "b", "c"])
    assert.deepStrictEqual(all.crowded, new Set(["acme"]), "reads that wait end nothing")
    assert.deepStrictEqual(admit(events("acme", "a"), [], 100).crowded, new Set())
  })

  it("counts work that is under way", () => {
    const busy = events("acme", "a", "b", "c")
    const next = admit([...events("acme", "d", "e"), ...events("other", "a")], busy, 100)
    assert.deepStrictEqual(paths(next), ["d", "a"])
    assert.deepStrictEqual(next.crowded, new Set(["acme"]))
  })

  it("asks all companies to end early when the process has no place left", () => {
    const next = admit([...events("one", "a"), ...events("two", "a")], events("three", "a"), 2)
    assert.deepStrictEqual([paths(next).length, next.crowded], [1, "all"])
    assert.deepStrictEqual(admit([], events("three", "a", "b"), 2).crowded, new Set(), "nothing waits")
    assert.lengthOf(
      admit(reads("one", "a"), events("three", "a", "b"), 2).admitted,
      1,
      "reads have places of their own"
    )
  })
})

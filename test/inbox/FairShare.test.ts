/** The order in which resources get slots, with a clock that the test advances. */
import { assert, describe, it } from "@effect/vitest"
import * as FairShare from "../../src/inbox/FairShare.ts"

const makeStand = () => {
  let nowMs = 0
  const turns = FairShare.make(() => nowMs)
  const events = (...paths: ReadonlyArray<string>) => paths.map((path): FairShare.Task => ({ path, kind: "events" }))
  /** The resources that get a slot. */
  const admit = (...paths: ReadonlyArray<string>) => turns.admit(events(...paths)).map(({ path }) => path)
  const pathsToYield = (since: number, ...paths: ReadonlyArray<string>) =>
    paths.filter((path) => turns.shouldYield(path, since))
  const end = (path: string) => turns.end({ path, kind: "events" })
  const wait = (ms: number) => {
    nowMs += ms
  }
  return { turns, admit, pathsToYield, end, wait }
}

describe("FairShare", () => {
  it("admits as many tasks of each kind as there are slots", () => {
    const { turns, admit } = makeStand()
    assert.deepStrictEqual(admit("a", "b", "c", "d", "e"), ["a", "b", "c", "d"])
    assert.lengthOf(turns.admit(["a", "b", "c", "d"].map((path): FairShare.Task => ({ path, kind: "scan" }))), 3)
    assert.isTrue(turns.isBusy("events", "d"))
    assert.isFalse(turns.isBusy("scan", "d"))
  })

  it("ends a slice early only when another resource waits for its slot", () => {
    const { admit, pathsToYield, end, wait } = makeStand()
    admit("a", "b", "c", "d", "e")
    assert.deepStrictEqual(pathsToYield(0, "a", "b", "c", "d"), [], "each resource has its full slice first")
    wait(FairShare.sliceMs)
    assert.deepStrictEqual(pathsToYield(0, "a", "b", "c", "d"), ["a"])
    assert.deepStrictEqual(pathsToYield(0, "a", "b", "c", "d"), ["a"], "a second call returns the same")
    end("a")
    assert.deepStrictEqual(pathsToYield(0, "b", "c", "d"), [], "a slot is free for the waiting resource")
    assert.deepStrictEqual(admit("a", "e"), ["e"])
    assert.deepStrictEqual(pathsToYield(0, "b", "c", "d"), ["b"])
    const calm = makeStand()
    calm.admit("a", "b", "c", "d")
    calm.wait(60_000)
    assert.deepStrictEqual(calm.pathsToYield(0, "a", "b", "c", "d"), [])
  })

  it("serves all resources equally often", () => {
    const { admit, end, wait } = makeStand()
    const all = ["a", "b", "c", "d", "e", "f", "g"]
    const served = new Map<string, number>()
    const busy = new Set<string>()
    for (let round = 0; round < 70; round += 1) {
      for (const path of admit(...all.filter((one) => !busy.has(one)))) {
        busy.add(path)
        served.set(path, (served.get(path) ?? 0) + 1)
      }
      wait(FairShare.sliceMs)
      const [first] = busy
      busy.delete(first!)
      end(first!)
    }
    const counts = all.map((path) => served.get(path) ?? 0)
    assert.isAtMost(Math.max(...counts) - Math.min(...counts), 1, counts.join(" "))
  })
})

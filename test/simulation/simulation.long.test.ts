/**
 * A short run of the simulation: a few seeds pass, a seed gives the same trace twice, and some planted bugs are
 * detected. `npm run simulate` runs thousands of seeds.
 */
import { afterAll, beforeAll, expect, inject, test } from "vitest"
import { mutants } from "./mutants/index.ts"
import { misfit } from "./mutants/Mutant.ts"
import { pending } from "./Plan.ts"
import { Worker } from "./Pool.ts"
import { prepare } from "./world/Server.ts"

const url = () => inject("postgresUrl")
/** A small world: these tests check the simulation, not the engine. */
const overrides = { safety: 20_000_000, writes: 8, records: 5, companies: 1, resources: ["worktypes"] }
const smallPushes = { safety: 8_000_000, records: 2, companies: 1, resources: ["salesmen"] }
let worker: Worker | undefined

beforeAll(async () => {
  await prepare(url())
  worker = new Worker(url(), "simulation_test")
})
afterAll(() => worker?.close())

test("a simulated seed ends with warehouse and source equal, and repeats its trace", { timeout: 60_000 }, async () => {
  const hashes: Array<string> = []
  for (const seed of [11, 21, 11]) {
    const answer = await worker!.run({ seed, options: { overrides }, keep: false })
    expect({ seed, failure: answer.failure, defect: answer.defect }).toEqual({ seed, failure: null, defect: null })
    hashes.push(answer.hash)
  }
  expect(hashes[2]).toBe(hashes[0])
  expect(hashes[1]).not.toBe(hashes[0])
})

test("a simulated seed with deliveries processes them all, and repeats its trace", { timeout: 60_000 }, async () => {
  const hashes: Array<string> = []
  for (const [seed, hooks] of [
    [4, "only"],
    [7, "beside"],
    [4, "only"]
  ] as const) {
    const { failure, defect, hash } = await worker!.run({
      seed,
      options: { overrides: { ...overrides, hooks } },
      keep: false
    })
    expect({ seed, failure, defect }).toEqual({ seed, failure: null, defect: null })
    hashes.push(hash)
  }
  expect(hashes[2]).toBe(hashes[0])
})

test("a simulated seed with pushes applies each once, and repeats its trace", { timeout: 60_000 }, async () => {
  const hashes: Array<string> = []
  for (const [seed, pushes] of [
    [8, "only"],
    [3, "beside"],
    [8, "only"]
  ] as const) {
    const { failure, defect, hash } = await worker!.run({
      seed,
      options: { overrides: { ...smallPushes, pushes } },
      keep: false
    })
    expect({ seed, failure, defect }).toEqual({ seed, failure: null, defect: null })
    hashes.push(hash)
  }
  expect(hashes[2]).toBe(hashes[0])
})

test.each(["ack-before-insert", "checkpoint-before-rows", "retry-on-4xx", "push-key-not-stored"])(
  "the simulation detects the planted bug %s",
  { timeout: 60_000 },
  async (name) => {
    const mutant = mutants.find((one) => one.name === name)!
    const isOfPushes = mutant.options?.overrides?.pushes !== undefined
    const small = isOfPushes ? smallPushes : overrides
    const smaller = { ...mutant.options, overrides: { ...mutant.options?.overrides, ...small } }
    const planted = new Worker(url(), `simulation_test_${name.replaceAll("-", "_")}`, name)
    try {
      let objection: string | null = null
      for (let seed = 1; seed <= 12 && objection === null; seed++) {
        const { failure, defect } = await planted.run({ seed, options: smaller, keep: false })
        expect(defect).toBeNull()
        objection = failure?.checker ?? null
      }
      expect(objection).not.toBeNull()
      expect(objection).not.toBe("simulation")
    } finally {
      planted.close()
    }
  }
)

test("every planted bug can be planted", () => {
  expect(mutants.map(misfit).filter((problem) => problem !== null)).toEqual([])
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
  const museum = new Set(
    mutants.flatMap(({ origin }) => (origin.startsWith("museum ") ? [Number(origin.slice(7))] : []))
  )
  expect([...museum].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 15 }, (_, index) => index + 1))
})

test("no fault class is excluded from the simulation", () => {
  expect(Object.keys(pending)).toEqual([])
})

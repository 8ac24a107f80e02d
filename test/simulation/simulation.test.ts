/** What is true of the simulation without a run: every planted bug can be planted, and the gate has every class of faults. */
import { expect, test } from "vitest"
import { gateBugs, gateOptionsOf, gateSeeds } from "./gate.ts"
import { mutants } from "./mutants/index.ts"
import { misfit } from "./mutants/Mutant.ts"
import { classNames, pending } from "./Plan.ts"
import { planOf } from "./PushPlan.ts"
import { regressions } from "./regressions.ts"

test("every planted bug can be planted, and has a name of its own", () => {
  expect(mutants.map(misfit).filter((problem) => problem !== null)).toEqual([])
  const names = mutants.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  const used = [
    ...Object.keys(gateBugs),
    ...regressions.flatMap(({ planOf: name }) => (name === undefined ? [] : [name]))
  ]
  expect(used.filter((name) => !names.includes(name))).toEqual([])
  const museum = new Set(
    mutants.flatMap(({ origin }) => (origin.startsWith("museum ") ? [Number(origin.slice(7))] : []))
  )
  expect([...museum].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 15 }, (_, index) => index + 1))
})

test("the seeds of the gate have every class of faults, and none is excluded from the simulation", () => {
  const kinds = Object.entries(gateSeeds) as ReadonlyArray<[keyof typeof gateSeeds, ReadonlyArray<number>]>
  const plans = kinds.flatMap(([kind, seeds]) => seeds.map((seed) => planOf(seed, gateOptionsOf(kind))))
  const on = new Set(plans.flatMap((plan) => [...plan.on]))
  expect(classNames.filter((name) => !on.has(name))).toEqual([])
  expect(Object.keys(pending)).toEqual([])
  const releases = new Set(plans.flatMap(({ later }) => later.periods.map(({ release }) => release)))
  expect([...releases].toSorted()).toEqual(["current", "older"])
})

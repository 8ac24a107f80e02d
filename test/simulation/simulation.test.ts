/** What is true of the simulation without a run: every planted bug can be planted, and the gate has every class of faults. */
import { expect, test } from "vitest"
import { fenceStatement } from "../../src/land/ChangeBatch.ts"
import { confirmStatement, readStatement } from "../../src/land/ConfirmIdentity.ts"
import { prepareStatement, raiseStatement } from "../../src/land/ResourceLock.ts"
import { gateBugs, gateOptionsOf, gateSeeds } from "./gate.ts"
import { mutants } from "./mutants/index.ts"
import { misfit } from "./mutants/Mutant.ts"
import { classNames, pending } from "./Plan.ts"
import { planOf } from "./PushPlan.ts"
import { regressions } from "./regressions.ts"
import { beforeIdentity } from "./world/Programs.ts"

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
  expect([...releases].toSorted()).toEqual(["current", "older", "unaware"])
})

test("the release without identity sends each statement of a landing without the identity of a checkpoint", () => {
  for (const { text } of [prepareStatement, raiseStatement, readStatement, confirmStatement, fenceStatement]) {
    const before = beforeIdentity(text)
    expect(before).not.toMatch(/(?:identity_fence|feed_fence) =|[co]\.(?:identity|feed)_fence/)
    // A parameter that is not in the text has no type.
    const parameters = (of: string) => [...new Set(of.match(/\$\d+/g))].toSorted()
    expect(parameters(before)).toEqual(parameters(text))
  }
})

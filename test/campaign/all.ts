/**
 * Every campaign, one after the other, and how long each took.
 *
 *   npm run campaign                    all of them in full: about an hour and a half on two cores
 *   npm run campaign -- --slice         what a CI run does: fresh seeds and places, drawn from the commit
 *   npm run campaign -- --slice --from COMMIT   the same again for another commit
 *   npm run campaign -- --only pushes,planted   some of them
 *
 * A slice never asks less of a seed or a kill than the full campaign does: it only runs fewer of them. Exit code 1 when
 * one of them fails; the others are run all the same. The last line counts the campaigns.
 */
import { execFileSync, spawn } from "node:child_process"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    slice: { type: "boolean", default: false },
    from: { type: "string" },
    only: { type: "string" }
  }
})

/** Seeds of slices begin beyond those that were looked at one by one. */
const sliceFrom = 10_000_000
/** In so many slices, every planted bug is hunted once. */
const mutantParts = 4

const commit = values.from ?? execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim()
if (!/^[0-9a-f]{7,40}$/.test(commit)) {
  process.stderr.write(`--from takes the hash of a commit, not ${commit}\n`)
  process.exit(2)
}
const drawn = Number.parseInt(commit.slice(0, 7), 16)
const seed = String(values.slice ? sliceFrom + drawn : 1)

interface Part {
  readonly name: string
  readonly program: "kills" | "webhooks" | "pushes" | "simulate"
  readonly full: ReadonlyArray<string>
  /** Null when it is no part of a slice. */
  readonly slice: ReadonlyArray<string> | null
}

const parts: ReadonlyArray<Part> = [
  { name: "regressions", program: "simulate", full: ["--regressions"], slice: ["--regressions"] },
  {
    name: "seeds",
    program: "simulate",
    full: ["--seeds", "3000", "--from", seed],
    slice: ["--seeds", "300", "--from", seed]
  },
  {
    name: "push-seeds",
    program: "simulate",
    full: ["--pushes", "only", "--seeds", "500", "--from", seed],
    slice: ["--pushes", "only", "--seeds", "60", "--from", seed]
  },
  {
    name: "push-seeds-beside",
    program: "simulate",
    full: ["--pushes", "beside", "--seeds", "500", "--from", seed],
    slice: ["--pushes", "beside", "--seeds", "40", "--from", seed]
  },
  {
    name: "planted",
    program: "simulate",
    full: ["--mutants", "--limit", "1000"],
    slice: ["--mutants", "--limit", "1000", "--part", `${drawn % mutantParts}/${mutantParts}`]
  },
  { name: "planted-plain", program: "simulate", full: ["--mutants", "--plain", "--limit", "100"], slice: null },
  {
    name: "kills",
    program: "kills",
    full: ["--kills", "200", "--postgres-kills", "20", "--zombies", "10", "--seed", seed],
    slice: ["--kills", "50", "--postgres-kills", "5", "--zombies", "3", "--seed", seed]
  },
  {
    name: "webhooks",
    program: "webhooks",
    full: ["--deliveries", "10000", "--seed", seed],
    slice: ["--deliveries", "3000", "--seed", seed]
  },
  {
    name: "pushes",
    program: "pushes",
    full: ["--kills", "50", "--postgres-kills", "3", "--seed", seed],
    slice: ["--kills", "15", "--postgres-kills", "1", "--records", "400", "--seed", seed]
  }
]

const programs = {
  kills: "test/campaign/kills.ts",
  webhooks: "test/campaign/webhooks.ts",
  pushes: "test/campaign/pushes.ts",
  simulate: "test/simulation/run.ts"
} as const

const names = values.only?.split(",") ?? parts.map(({ name }) => name)
const unknown = names.find((name) => !parts.some((part) => part.name === name))
if (unknown !== undefined) {
  process.stderr.write(`there is no campaign ${unknown}; there are ${parts.map(({ name }) => name).join(", ")}\n`)
  process.exit(2)
}

const run = (file: string, given: ReadonlyArray<string>) =>
  new Promise<boolean>((resolve) => {
    const child = spawn(process.execPath, [file, ...given], { stdio: "inherit" })
    child.on("error", () => resolve(false))
    child.on("exit", (code) => resolve(code === 0))
  })

const told: Array<string> = []
const counts = { passed: 0, failed: 0 }
for (const { name, program, full, slice } of parts) {
  const given = values.slice ? slice : full
  if (given === null || !names.includes(name)) continue
  const startedAt = performance.now()
  const file = programs[program]
  process.stdout.write(`\n== ${name}: node ${file} ${given.join(" ")}\n`)
  const isGood = await run(file, given)
  counts[isGood ? "passed" : "failed"] += 1
  told.push(
    `${name.padEnd(18)} ${isGood ? "passed" : "FAILED"} ${((performance.now() - startedAt) / 1000).toFixed(0).padStart(6)} s`
  )
}
process.stdout.write(`\n${told.join("\n")}\n`)
if (values.slice)
  process.stdout.write(`drawn from commit ${commit}; again: npm run campaign -- --slice --from ${commit}\n`)
process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed\n`)
process.exitCode = counts.failed === 0 ? 0 : 1

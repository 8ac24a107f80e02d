/**
 * The command `npm run simulate`: seeds, planted bugs, and the analysis of one red seed.
 *
 *   --seeds N --from S    N seeds (200) from seed S (1)
 *   --seed S              one seed, with its whole trace
 *   --mutants             every planted bug, until it is caught or --limit seeds (1,000) have run
 *   --mutant NAME[,NAME]  some of them
 *   --minutes M           no new seed begins after M minutes
 *   --plain               planted bugs without the classes that suit them: how soon a plain seed catches each
 *   --gate                what every change must pass: every seed that ever failed, the seeds and planted bugs of `gate.ts`
 *   --regressions         every seed that ever failed; with --seed S the trace of that one
 *   --workers N           processes (2); --report FILE.json writes a report
 *   --reduce              also finds the classes that the first red seed needs (as --seed does)
 *   --hooks off|beside|only   whether rows come by webhooks, in every seed
 *   --pushes off|beside|only  whether records are pushed, in every seed: never, beside scheduled syncs, or alone
 *   --only A,B --on A,B --off A,B   classes of faults
 *
 * Exit code 1: a violation, two traces of one seed, a planted bug that all seeds missed, a class of faults that never
 * struck (in 200 seeds or more, and 60 more seeds that have it). A planted bug whose seeds were cut short by `--minutes` is
 * listed as not tried.
 */
import { writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import { gateBugs, gateBugSeedsMax, gateOptionsOf, gateSeeds, overridesOf } from "./gate.ts"
import type { Answer, Job } from "./Job.ts"
import { mutants } from "./mutants/index.ts"
import { misfit, type Mutant } from "./mutants/Mutant.ts"
import { classes, classNames, type FaultClass, later, pending, type PlanOptions } from "./Plan.ts"
import { type Lane, onLanes, Worker } from "./Pool.ts"
import { isOfPushes, isRaceOrCrash } from "./PushClasses.ts"
import { concernsPushes } from "./PushPlan.ts"
import { type Regression, regressions } from "./regressions.ts"
import { forgeries } from "./world/Sender.ts"
import { prepare, startServer } from "./world/Server.ts"

const texts = ["seeds", "from", "seed", "mutant", "minutes", "limit", "workers", "report", "only", "on", "off"] as const
const modes = ["hooks", "pushes"] as const
const flags = ["mutants", "gate", "plain", "regressions", "reduce"] as const
const values = parseArgs({
  options: Object.fromEntries([
    ...[...texts, ...modes].map((name) => [name, { type: "string" as const }]),
    ...flags.map((name) => [name, { type: "boolean" as const }])
  ])
}).values as { readonly [_ in (typeof texts | typeof modes)[number]]?: string } & {
  readonly [_ in (typeof flags)[number]]?: boolean
}

const print = (text: string) => process.stdout.write(`${text}\n`)
const number = (text: string | undefined, absent: number) => {
  const value = text === undefined ? absent : Number(text)
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${text} is not a number`)
  return value
}
const list = (text: string | undefined): ReadonlyArray<FaultClass> | undefined => {
  if (text === undefined) return undefined
  const names = text.split(",").filter((name) => name !== "")
  const unknown = names.find((name) => !(name in classes))
  if (unknown !== undefined) throw new Error(`there is no fault class ${unknown}; there are ${classNames.join(" ")}`)
  return names as ReadonlyArray<FaultClass>
}

const workers = Math.max(1, number(values.workers, 2))
const from = number(values.from, 1)
const minutes = values.minutes === undefined ? Number.POSITIVE_INFINITY : Number(values.minutes)
if (!(minutes > 0)) throw new Error(`--minutes must be a positive number, not ${values.minutes}`)
const isTimeUp = () => performance.now() >= minutes * 60_000
const drawnModes = modes.flatMap((flag) => {
  const mode = values[flag]
  if (mode === undefined) return []
  if (mode === "off" || mode === "beside" || mode === "only") return [[flag, mode]]
  throw new Error(`--${flag} must be off, beside or only, not ${mode}`)
})
/** Whether planted bugs run with plain seeds, without the classes that suit them. */
const isPlain = values.plain === true
const withPushes = values.pushes !== undefined && values.pushes !== "off"
const planOptions = Object.fromEntries(
  Object.entries({
    overrides: drawnModes.length === 0 ? undefined : Object.fromEntries(drawnModes),
    only: list(values.only),
    on: list(values.on),
    off: list(values.off)
  }).filter(([, value]) => value !== undefined)
) as PlanOptions
const objection = ({ failure, defect }: Answer): string | null =>
  defect !== null ? `the simulation failed: ${defect}` : failure === null ? null : `${failure.checker}: ${failure.what}`

/** The classes that a red seed needs: without one of them it is green. */
const reduce = async (worker: Pick<Worker, "run">, answer: Answer): Promise<ReadonlyArray<FaultClass>> => {
  const without: Array<FaultClass> = []
  for (const name of answer.on) {
    const again = await worker.run({
      seed: answer.seed,
      options: { ...planOptions, off: [...(planOptions.off ?? []), ...without, name] },
      keep: false
    })
    if (again.failure?.checker === answer.failure?.checker) without.push(name)
  }
  return answer.on.filter((name) => !without.includes(name))
}

const tell = (answer: Answer, needed: ReadonlyArray<FaultClass> | null, sought: FaultClass | null = null) => {
  print(`\nRED seed ${answer.seed}: ${objection(answer)}`)
  if (answer.failure !== null) print(`  promise: ${answer.failure.holds}`)
  print(`  classes on: ${answer.on.join(" ")}`)
  if (needed !== null)
    print(
      `  needed classes: ${needed.map((name) => `${name} (${classes[name]})`).join(", ") || "none: it is red without any fault"}`
    )
  print(`  drawn: ${answer.drawn}`)
  const flags = `${withPushes ? `--pushes ${values.pushes} ` : ""}${sought === null ? "" : `--on ${sought} `}`
  print(`  replay: npm run simulate -- ${flags}--seed ${answer.seed}`)
}

/** The class of a fault: the first word of the fault's name. */
const classOf = (fired: string): string => fired.split(" ")[0]!

/** Classes that are visible in the plan only. They count as struck in the seeds in which they are on. */
const ofThePlan: ReadonlySet<FaultClass> = new Set([
  "S5",
  "S8",
  "S10s",
  "S11r",
  "S12",
  "Pp",
  "Pl",
  "Pb",
  "Pe",
  "Pt",
  "Pd",
  "N15",
  "C4",
  "K1",
  "U11",
  "U12"
])

/** Classes that have struck when each of these faults has. Their other faults may happen without an effect. */
const mattering: Readonly<Partial<Record<FaultClass, ReadonlyArray<string>>>> = {
  S4m: ["S4m a list", "S4m an announced page"],
  S8p: ["S8p a first page", "S8p a later page"],
  S16: ["S16 an earlier page, with other content"],
  N9: ["N9 an earlier answer, with other content"],
  D3: ["D3 commit lost, applied", "D3 commit lost, not applied"],
  D5: ["57P01", "57P03", "08006", "25P03"].map((code) => `D5 ${code} in a transaction`),
  D6: ["D6 53200", "D6 53100"],
  T1: [
    ...["dropped", "truncated", "recreated", "rows deleted"].map((what) => `T1 ${what}`),
    "T1 history lost",
    "T1 in the middle of a run",
    "T1 read again"
  ],
  T2: [
    ...["rows and control plane", "rows", "current rows", "history", "control plane"].map(
      (what) => `T2 ${what} restored`
    ),
    "T2 rows went back",
    "T2 in the middle of a run",
    "T2 ids of runs are used again",
    "T2 read again"
  ],
  G1: ["G1 a configuration changed during a run", "G1 an ignored field changed"],
  G2: ["G2 an older release was refused", "G2 an older release wrote after a newer one"],
  G3: ["G3 the rules changed", "G3 the rules changed during a run", "G3 a run was refused"],
  G4: ["G4 rows of two companies with equal ids"],
  S14: ["a version went back", "a later record is gone", "an id was used again", "a full scan reported it"].map(
    (what) => `S14 ${what}`
  ),
  K3: ["K3 the clock is set right, back", "K3 the clock is set back", "K3 a run noticed it"],
  W1: ["W1 dropped", "W1 all dropped", "W1 swallowed and acknowledged"],
  W5: ["W5 read too early", "W5 shown as it was before"],
  W6: ["both", "swapped", "new only", "old only", "a foreign key first"].map((what) => `W6 signed with ${what}`),
  W7: ["W7 replayed in the window", "W7 replayed out of the window"],
  W8: forgeries.map((what) => `W8 ${what}`),
  W9: ["W9 filled"],
  W11: ["W11 only event of a record"],
  W12: ["answered 410", "paused", "disabled", "cancelled", "enabled again by hand"].map((what) => `W12 ${what}`),
  W13: ["W13 a change before the proven time", "W13 a new proof"],
  R1: ["R1 down", "R1 no listener"],
  R2: ["R2 killed after storing", "R2 answer lost"],
  R7: ["R7 read in vain"],
  R8: ["R8 delivered again after its removal"]
}

/** A campaign of fewer seeds cannot reach every class. */
const largeCampaign = 200
/** Number of additional seeds with the classes that no drawn seed struck, before these count as never struck. */
const soughtSeeds = 60

const campaign = async (url: string): Promise<boolean> => {
  const seeds = number(values.seeds, 200)
  const fired = new Map<string, number>()
  const seen = new Map<FaultClass, number>()
  const red: Array<Answer> = []
  const unequal: Array<number> = []
  let [next, done, steps, kills] = [from, 0, 0, 0]
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1000
  const add = (answer: Answer) => {
    done++
    steps += answer.steps
    kills += answer.kills
    for (const [what, times] of answer.fired) fired.set(what, (fired.get(what) ?? 0) + times)
    for (const name of answer.on) seen.set(name, (seen.get(name) ?? 0) + 1)
  }
  await onLanes(url, workers, () => {
    if (next >= from + seeds || isTimeUp()) return null
    const seed = next++
    return async (worker) => {
      const answer = await worker.run({ seed, options: planOptions, keep: false })
      add(answer)
      if (objection(answer) !== null) {
        red.push(answer)
        // Only of the first one, since the reduction takes long.
        tell(
          answer,
          red.length === 1 && answer.defect === null && values.reduce === true ? await reduce(worker, answer) : null
        )
      } else if (answer.seed % 50 === 0 && !isTimeUp()) {
        // The same seed must have the same trace.
        const again = await worker.run({ seed: answer.seed, options: planOptions, keep: false })
        if (again.hash !== answer.hash) {
          unequal.push(answer.seed)
          print(`\nseed ${answer.seed} has two traces: ${answer.hash} and ${again.hash}`)
        }
      }
      if (done % 25 === 0)
        print(
          `${done} of ${seeds} seeds, ${red.length} red, ${(done / seconds()).toFixed(2)} seeds/s, ${(steps / seconds()).toFixed(0)} steps/s`
        )
    }
  })
  const drawnSeeds = done
  const notStruck = () => {
    const struck = new Set([...fired.keys()].map(classOf))
    return classNames.flatMap((name) => {
      if (planOptions.only !== undefined || (withPushes ? !concernsPushes(name) : isOfPushes(name))) return []
      if (planOptions.off?.includes(name) === true || name in pending) return []
      const isDead = ofThePlan.has(name)
        ? (seen.get(name) ?? 0) === 0
        : !struck.has(name) && !struck.has(name.replace("x", ""))
      if (isDead) return [{ name, what: `${name} (${classes[name]})` }]
      return (mattering[name] ?? []).filter((what) => !fired.has(what)).map((what) => ({ name, what }))
    })
  }
  const isLarge = drawnSeeds >= largeCampaign
  let sought = 0
  const soughtClass = new Map<number, FaultClass>()
  await onLanes(url, workers, () => {
    const missing = notStruck()
    const missingClass = missing[sought % Math.max(1, missing.length)]
    if (!isLarge || missingClass === undefined || sought >= soughtSeeds) return null
    const seed = from + seeds + sought++
    soughtClass.set(seed, missingClass.name)
    const required = { ...planOptions, on: [...(planOptions.on ?? []), missingClass.name] }
    return async (worker) => {
      const answer = await worker.run({ seed, options: required, keep: false })
      add(answer)
      if (objection(answer) === null) return
      red.push(answer)
      tell(answer, null, missingClass.name)
    }
  })
  if (sought > 0)
    print(
      `\n${sought} additional seeds with ${[...new Set(soughtClass.values())].join(" ")}: no drawn seed had struck them`
    )
  const dead = notStruck().map(({ what }) => what)
  print("\nfaults that struck:")
  for (const [what, times] of [...fired].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    print(`  ${what.padEnd(44)} ${times}`)
  for (const what of dead) print(`  ${what} NEVER STRUCK${isLarge ? "" : " (too few seeds to count)"}`)
  for (const [name, why] of Object.entries(pending)) print(`  ${name} (${classes[name as FaultClass]}) is off: ${why}`)
  if (withPushes) {
    const races = [...fired].reduce((sum, [what, times]) => sum + (isRaceOrCrash(what) ? times : 0), 0)
    print(`${races} races and crashes of pushes struck, ${kills} of them kills`)
  }
  print(
    `${done} seeds from ${from}, ${steps} steps, ${kills} kills, ${red.length} red, ${unequal.length} not deterministic, ` +
      `${seconds().toFixed(1)} s, ${(done / seconds()).toFixed(2)} seeds/s, ${(steps / seconds()).toFixed(0)} steps/s`
  )
  if (drawnSeeds < seeds) print(`${drawnSeeds} of ${seeds} seeds in ${minutes} minutes`)
  if (red.length > 0) print(`red seeds: ${red.map(({ seed }) => seed).join(" ")}`)
  report.campaign = {
    seeds: done,
    from,
    steps,
    kills,
    seconds: seconds(),
    red: red.map((answer) => ({ ...answer, lines: [] })),
    dead,
    notDeterministic: unequal,
    fired: Object.fromEntries(fired)
  }
  return red.length === 0 && unequal.length === 0 && (dead.length === 0 || !isLarge)
}

const report: Record<string, unknown> = {}

/** Runs tasks on all workers. */
const onTasks = async (url: string, tasks: ReadonlyArray<(lane: Lane) => Promise<void>>): Promise<void> => {
  const queue = [...tasks]
  await onLanes(url, workers, () => queue.shift() ?? null)
}

/**
 * Webhooks would repair what a bug of a sync loses, and so would the full scan after a change of privacy rules. They are
 * off unless the bug concerns them, and so are several installations.
 */
const optionsOf = (mutant: Mutant): PlanOptions => {
  const { hooks: ofHooks = "off", pushes: ofPushes } = mutant.options?.overrides ?? {}
  const { on = [], off = [] } = mutant.options ?? {}
  const drawn = { hooks: ofHooks, ...(ofPushes === undefined ? {} : { pushes: ofPushes }) }
  return isPlain
    ? { ...planOptions, overrides: { ...drawn, ...planOptions.overrides } }
    : {
        ...mutant.options,
        off: [...off, ...(["G3", "G4"] as const).filter((name) => !on.includes(name))],
        ...planOptions,
        overrides: { hooks: "off", ...mutant.options?.overrides, ...planOptions.overrides }
      }
}

interface Hunt {
  readonly end: "caught" | "missed" | "not tried"
  /** Number of seeds until it was caught; null otherwise. */
  readonly seeds: number | null
  readonly by: string
}

/** Runs seeds until a checker reports a violation. Without the bug, that seed must be green, unless it is `known`. */
const hunt = async (lane: Lane, mutant: Mutant, seeds: ReadonlyArray<number>, known: number | null): Promise<Hunt> => {
  const missed = (by: string): Hunt => ({ end: "missed", seeds: null, by })
  const problem = misfit(mutant)
  if (problem !== null) return missed(`it cannot be planted: ${problem}`)
  const search = async (worker: Worker): Promise<Hunt> => {
    for (const [before, seed] of seeds.entries()) {
      if (isTimeUp())
        return { end: "not tried", seeds: null, by: `the time was over after ${before} of ${seeds.length} seeds` }
      const job: Job = { seed, options: optionsOf(mutant), keep: false }
      const answer = await worker.run(job)
      if (answer.defect !== null || answer.failure?.checker === "simulation")
        return missed(`the simulation failed: ${answer.defect ?? answer.failure?.what}`)
      if (answer.failure === null) continue
      const without = seed === known ? null : objection(await lane.run(job))
      if (without !== null) {
        print(`\nRED without any planted bug: seed ${seed} with the plan of ${mutant.name}: ${without}`)
        return missed("the seed is red without the bug")
      }
      return { end: "caught", seeds: before + 1, by: `seed ${seed}: ${answer.failure.checker}: ${answer.failure.what}` }
    }
    return missed(`${seeds.length} seeds without a violation`)
  }
  return lane.planted(mutant.name, search).catch((error: unknown) => missed(String(error)))
}

/** `count` seeds, from `first` on. */
const seedsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)

const hunts = async (url: string, selected: ReadonlyArray<Mutant>): Promise<boolean> => {
  const seeds = seedsFrom(from, number(values.limit, 1000))
  const results: Array<Hunt & Pick<Mutant, "name" | "origin">> = []
  await onTasks(
    url,
    selected.map((mutant) => async (lane) => {
      const { name, origin } = mutant
      const found = await hunt(lane, mutant, seeds, null)
      results.push({ name, origin, ...found })
      print(
        `${found.end === "missed" ? "MISSED" : found.end} ${name.padEnd(32)} ${origin.padEnd(44)} ${found.seeds === null ? "" : `${found.seeds} seeds`} ${found.by.slice(0, 160)}`
      )
    })
  )
  const counts = results.flatMap(({ seeds }) => (typeof seeds === "number" ? [seeds] : [])).toSorted((a, b) => a - b)
  print(
    `\n${counts.length} of ${selected.length} planted bugs caught${isPlain ? " by plain seeds, without the classes that suit them" : ""}; ` +
      `median ${counts[Math.floor(counts.length / 2)] ?? "-"} seeds, most ${counts.at(-1) ?? "-"}`
  )
  const notTried = results.filter(({ end }) => end === "not tried")
  if (notTried.length > 0) print(`not tried in ${minutes} minutes: ${notTried.map(({ name }) => name).join(" ")}`)
  report[isPlain ? "plainMutants" : "mutants"] = results
  // The result with plain seeds is a figure, not a promise.
  return isPlain || results.every(({ end }) => end !== "missed")
}

/** The plan that the seed had when it failed. */
const optionsOfRegression = ({ kind, on: required = [], later: existing = [], planOf }: Regression): PlanOptions => {
  if (planOf !== undefined) {
    const planted = mutants.find(({ name }) => name === planOf)
    if (planted === undefined) throw new Error(`there is no planted bug ${planOf}`)
    return optionsOf(planted)
  }
  return {
    // The classes that it had when it failed.
    off: [...later, "S2h" as const].filter((name) => !existing.includes(name) && !required.includes(name)),
    on: required,
    overrides: overridesOf[kind]
  }
}

interface Tally {
  seeds: number
  steps: number
  red: number
}

const tally = (): Tally => ({ seeds: 0, steps: 0, red: 0 })

/** A task that runs one seed and counts it. A seed that is `repeated` must have the same trace again. */
const checked =
  (counts: Tally, name: string, job: Job, isRepeated: boolean) =>
  async (lane: Lane): Promise<void> => {
    const answer = await lane.run(job)
    counts.seeds += 1
    counts.steps += answer.steps
    let what = objection(answer)
    if (what === null && isRepeated) {
      const again = await lane.run(job)
      if (again.hash !== answer.hash) what = `two traces: ${answer.hash} and ${again.hash}`
    }
    if (what === null) return
    counts.red += 1
    print(`RED ${name}: ${what}`)
  }

const ofRegressions = (counts: Tally) =>
  regressions.map((one) =>
    checked(
      counts,
      `again: --regressions --seed ${one.seed} (${one.kind}; ${one.cause})`,
      { seed: one.seed, options: optionsOfRegression(one), keep: false },
      false
    )
  )

const secondsSince = (startedAt: number) => ((performance.now() - startedAt) / 1000).toFixed(1)

/** Runs every seed that ever failed. */
const repeatRegressions = async (url: string): Promise<boolean> => {
  const [counts, startedAt] = [tally(), performance.now()]
  await onTasks(url, ofRegressions(counts))
  print(`${counts.seeds} seeds that failed before, ${counts.red} red, ${secondsSince(startedAt)} s`)
  return counts.red === 0
}

/** Runs what every change must pass. */
const gate = async (url: string): Promise<boolean> => {
  const startedAt = performance.now()
  const [before, fixed] = [tally(), tally()]
  let missed = 0
  const kinds = Object.entries(gateSeeds) as ReadonlyArray<[keyof typeof gateSeeds, ReadonlyArray<number>]>
  const seeds = kinds.flatMap(([kind, ofKind]) =>
    ofKind.map((seed, place) => {
      const options = gateOptionsOf(kind)
      const { on = [], off = [], overrides: { hooks = "", pushes = "" } = {} } = options
      const flags = Object.entries({ hooks, pushes, on: on.join(), off: off.join() }).flatMap(([flag, value]) =>
        value === "" ? [] : [`--${flag} ${value} `]
      )
      const job = { seed, options, keep: false }
      return checked(fixed, `${flags.join("")}--seed ${seed}`, job, place === 0)
    })
  )
  const bugs = Object.entries(gateBugs).map(([name, known]) => async (lane: Lane) => {
    const mutant = mutants.find((one) => one.name === name)
    if (mutant === undefined) throw new Error(`there is no planted bug ${name}`)
    const others = seedsFrom(1, gateBugSeedsMax).filter((seed) => seed !== known)
    const found = await hunt(lane, mutant, [known, ...others], known)
    if (found.end === "caught" && found.seeds === 1) return
    if (found.end !== "caught") missed += 1
    print(`${found.end === "caught" ? "caught, but not by its seed:" : "MISSED"} ${name}: ${found.by}`)
  })
  await onTasks(url, [...bugs, ...ofRegressions(before), ...seeds])
  print(
    `${before.seeds} seeds that failed before, ${before.red} red; ${fixed.seeds} fixed seeds, ${fixed.red} red; ` +
      `${bugs.length} planted bugs, ${missed} missed; ${before.steps + fixed.steps} steps, ${secondsSince(startedAt)} s`
  )
  const failed = before.red + fixed.red + missed
  print(`\n${before.seeds + fixed.seeds + bugs.length - failed} passed, ${failed} failed`)
  return failed === 0
}

const replay = async (url: string, seed: number): Promise<boolean> => {
  const mutant = values.mutant
  const worker = new Worker(url, "simulation_replay", mutant)
  const planted = mutants.find(({ name }) => name === mutant)
  const before = values.regressions === true ? regressions.find((one) => one.seed === seed) : undefined
  if (before === undefined && values.regressions === true) throw new Error(`seed ${seed} is not in regressions.ts`)
  const options =
    before !== undefined ? optionsOfRegression(before) : planted === undefined ? planOptions : optionsOf(planted)
  try {
    const answer = await worker.run({ seed, options, keep: true })
    for (const line of answer.lines) print(line)
    if (objection(answer) !== null)
      tell(
        answer,
        answer.defect === null && planted === undefined && before === undefined ? await reduce(worker, answer) : null
      )
    else print(`seed ${seed}: no violation; ${answer.steps} steps, trace ${answer.hash}`)
    return objection(answer) === null
  } finally {
    worker.close()
  }
}

const server = await startServer()
/** An interrupted run also stops its server. */
const interrupted = () => void server.stop().finally(() => process.exit(130))
process.once("SIGINT", interrupted)
process.once("SIGTERM", interrupted)
let isGood = false
try {
  await prepare(server.url)
  if (values.seed !== undefined) isGood = await replay(server.url, number(values.seed, 1))
  else if (values.mutant !== undefined) {
    const selected = mutants.filter(({ name }) => values.mutant!.split(",").includes(name))
    if (selected.length === 0)
      throw new Error(
        `there is no planted bug ${values.mutant}; there are ${mutants.map(({ name }) => name).join(" ")}`
      )
    isGood = await hunts(server.url, selected)
  } else if (values.mutants === true) isGood = await hunts(server.url, mutants)
  else if (values.gate === true) isGood = await gate(server.url)
  else if (values.regressions === true) isGood = await repeatRegressions(server.url)
  else isGood = await campaign(server.url)
  if (values.report !== undefined) writeFileSync(values.report, `${JSON.stringify(report, null, 2)}\n`)
} finally {
  await server.stop()
}
process.exitCode = isGood ? 0 : 1

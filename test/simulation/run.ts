/**
 * The command `npm run simulate`: seeds, planted bugs, and the analysis of one red seed.
 *
 *   --seeds N --from S    N seeds (200) from seed S (1)
 *   --seed S              one seed, with its whole trace
 *   --mutants             every planted bug, until it is caught or --limit seeds (1,000) have run
 *   --mutant NAME[,NAME]  some of them
 *   --part K/N            each N-th planted bug, from the (K mod N)-th on; K / N selects the first of them
 *   --minutes M           no new seed begins after M minutes
 *   --at-least N          fails when fewer seeds or planted bugs were run by then (1)
 *   --plain               planted bugs without the classes that suit them: how soon a plain seed catches each
 *   --regressions         every seed that ever failed
 *   --workers N           processes (2); --report FILE.json writes a report
 *   --reduce              also finds the classes that the first red seed needs (as --seed does)
 *   --hooks off|beside|only   whether rows come by webhooks, in every seed
 *   --pushes off|beside|only  whether records are pushed, in every seed: never, beside scheduled syncs, or alone
 *   --only A,B --on A,B --off A,B   classes of faults
 *
 * Exit code 1: a violation, two traces of one seed, a planted bug that all seeds missed, a class of faults that never
 * struck (in 200 seeds or more, and 60 more seeds that have it), fewer seeds or planted bugs than `--at-least`. A planted
 * bug whose seeds were cut short by `--minutes` is listed as not tried.
 */
import { writeFileSync } from "node:fs"
import { parseArgs } from "node:util"
import type { Answer, Job } from "./Job.ts"
import { mutants } from "./mutants/index.ts"
import { misfit, type Mutant } from "./mutants/Mutant.ts"
import {
  classes,
  classNames,
  type FaultClass,
  type Hooks,
  later,
  pending,
  type Pushes,
  type PlanOptions
} from "./Plan.ts"
import { onWorkers, Worker } from "./Pool.ts"
import { isOfPushes, isRaceOrCrash } from "./PushClasses.ts"
import { concernsPushes } from "./PushPlan.ts"
import { type Regression, regressions } from "./regressions.ts"
import { forgeries } from "./world/Sender.ts"
import { prepare, startServer } from "./world/Server.ts"

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string" },
    seed: { type: "string" },
    mutants: { type: "boolean" },
    mutant: { type: "string" },
    part: { type: "string" },
    minutes: { type: "string" },
    "at-least": { type: "string" },
    plain: { type: "boolean" },
    regressions: { type: "boolean" },
    limit: { type: "string" },
    workers: { type: "string" },
    report: { type: "string" },
    only: { type: "string" },
    on: { type: "string" },
    off: { type: "string" },
    reduce: { type: "boolean" },
    hooks: { type: "string" },
    pushes: { type: "string" }
  }
})

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
const atLeast = number(values["at-least"], 1)
const [only, on, off] = [list(values.only), list(values.on), list(values.off)]
const hooks = ((mode = values.hooks): Hooks | undefined => {
  if (mode === undefined || mode === "off" || mode === "beside" || mode === "only") return mode
  throw new Error(`--hooks must be off, beside or only, not ${mode}`)
})()
const pushes = ((mode = values.pushes): Pushes | undefined => {
  if (mode === undefined || mode === "off" || mode === "beside" || mode === "only") return mode
  throw new Error(`--pushes must be off, beside or only, not ${mode}`)
})()
/** Whether planted bugs run with plain seeds, without the classes that suit them. */
const isPlain = values.plain === true
const withPushes = pushes !== undefined && pushes !== "off"
const planOptions: PlanOptions = {
  ...(hooks === undefined && pushes === undefined
    ? {}
    : { overrides: { ...(hooks === undefined ? {} : { hooks }), ...(pushes === undefined ? {} : { pushes }) } }),
  ...(only === undefined ? {} : { only }),
  ...(on === undefined ? {} : { on }),
  ...(off === undefined ? {} : { off })
}

const objection = ({ failure, defect }: Answer): string | null =>
  defect !== null ? `the simulation failed: ${defect}` : failure === null ? null : `${failure.checker}: ${failure.what}`

/** The classes that a red seed needs: without one of them it is green. */
const reduce = async (worker: Worker, answer: Answer): Promise<ReadonlyArray<FaultClass>> => {
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
  const flags = `${withPushes ? `--pushes ${pushes} ` : ""}${sought === null ? "" : `--on ${sought} `}`
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
  const cycles = new Map<number, number>()
  let [next, done, steps, kills] = [from, 0, 0, 0]
  let slowest: Pick<Answer, "seed" | "milliseconds"> = { seed: 0, milliseconds: 0 }
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1000
  const add = (answer: Answer) => {
    done++
    steps += answer.steps
    kills += answer.kills
    if (answer.milliseconds > slowest.milliseconds) slowest = answer
    cycles.set(answer.cycles, (cycles.get(answer.cycles) ?? 0) + 1)
    for (const [what, times] of answer.fired) fired.set(what, (fired.get(what) ?? 0) + times)
    for (const name of answer.on) seen.set(name, (seen.get(name) ?? 0) + 1)
  }
  await onWorkers(
    url,
    workers,
    () => (next < from + seeds && !isTimeUp() ? { seed: next++, options: planOptions, keep: false } : null),
    async (answer, _job, worker) => {
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
  )
  const drawnSeeds = done
  const notStruck = () => {
    const struck = new Set([...fired.keys()].map(classOf))
    return classNames.flatMap((name) => {
      if (only !== undefined || (withPushes ? !concernsPushes(name) : isOfPushes(name))) return []
      if (off?.includes(name) === true || name in pending) return []
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
  await onWorkers(
    url,
    workers,
    () => {
      const missing = notStruck()
      const missingClass = missing[sought % Math.max(1, missing.length)]
      if (!isLarge || missingClass === undefined || sought >= soughtSeeds) return null
      const seed = from + seeds + sought++
      soughtClass.set(seed, missingClass.name)
      return { seed, options: { ...planOptions, on: [...(planOptions.on ?? []), missingClass.name] }, keep: false }
    },
    (answer) => {
      add(answer)
      if (objection(answer) === null) return
      red.push(answer)
      tell(answer, null, soughtClass.get(answer.seed))
    }
  )
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
  print(
    `\ncycles after healing until equal: ${[...cycles]
      .toSorted(([a], [b]) => a - b)
      .map(([count, times]) => `${count}: ${times} seeds`)
      .join(", ")}`
  )
  print(`the most cycles after healing: ${Math.max(0, ...cycles.keys())}`)
  print(
    `commits of unknown outcome: ${fired.get("D3 commit lost, applied") ?? 0} applied, ` +
      `${fired.get("D3 commit lost, not applied") ?? 0} not applied`
  )
  if (withPushes) {
    const races = [...fired].reduce((sum, [what, times]) => sum + (isRaceOrCrash(what) ? times : 0), 0)
    print(`${races} races and crashes of pushes struck, ${kills} of them kills`)
  }
  print(
    `${done} seeds from ${from}, ${steps} steps, ${kills} kills, ${red.length} red, ${unequal.length} not deterministic, ` +
      `${seconds().toFixed(1)} s, ${(done / seconds()).toFixed(2)} seeds/s, ${(steps / seconds()).toFixed(0)} steps/s`
  )
  const isEnough = drawnSeeds >= Math.min(atLeast, seeds)
  if (drawnSeeds < seeds)
    print(
      `${isEnough ? "" : "TOO FEW: "}${drawnSeeds} of ${seeds} seeds in ${minutes} minutes, at least ${atLeast} must be`
    )
  print(`the slowest seed is ${slowest.seed} with ${(slowest.milliseconds / 1000).toFixed(1)} s`)
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
  return red.length === 0 && unequal.length === 0 && (dead.length === 0 || !isLarge) && isEnough
}

const report: Record<string, unknown> = {}

/** Webhooks would repair what a bug of a sync loses. They are off unless the bug concerns webhooks. */
const optionsOf = (mutant: Mutant): PlanOptions => {
  const { hooks: ofHooks = "off", pushes: ofPushes } = mutant.options?.overrides ?? {}
  const drawn = { hooks: ofHooks, ...(ofPushes === undefined ? {} : { pushes: ofPushes }) }
  return isPlain
    ? { ...planOptions, overrides: { ...drawn, ...planOptions.overrides } }
    : {
        ...mutant.options,
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

/** Runs seeds until a checker reports a violation. */
const hunt = async (url: string, mutant: Mutant, place: number, limit: number): Promise<Hunt> => {
  const missed = (by: string): Hunt => ({ end: "missed", seeds: null, by })
  const cutShort = (seeds: number): Hunt => ({
    end: "not tried",
    seeds: null,
    by: `the time was over after ${seeds} of ${limit} seeds`
  })
  if (isTimeUp()) return cutShort(0)
  const worker = new Worker(url, `simulation_m${place}`, mutant.name)
  try {
    for (let seed = from; seed < from + limit; seed++) {
      if (isTimeUp()) return cutShort(seed - from)
      const job: Job = { seed, options: optionsOf(mutant), keep: false }
      const answer = await worker.run(job)
      if (answer.defect !== null || answer.failure?.checker === "simulation")
        return missed(`the simulation failed: ${answer.defect ?? answer.failure?.what}`)
      if (answer.failure !== null) {
        // Without the bug the seed must be green. Otherwise something else was caught.
        const clean = new Worker(url, `simulation_clean${place}`)
        const without = await clean.run(job).finally(() => clean.close())
        if (objection(without) !== null) {
          print(`\nRED without any planted bug: seed ${seed} with the plan of ${mutant.name}: ${objection(without)}`)
          return missed("the seed is red without the bug")
        }
        return { end: "caught", seeds: seed - from + 1, by: `${answer.failure.checker}: ${answer.failure.what}` }
      }
    }
    return missed(`${limit} seeds without a violation`)
  } catch (error) {
    return missed(String(error))
  } finally {
    worker.close()
  }
}

const hunts = async (url: string, selected: ReadonlyArray<Mutant>): Promise<boolean> => {
  const limit = number(values.limit, 1000)
  const misfits = selected.map(misfit).filter((problem) => problem !== null)
  for (const problem of misfits) print(`NEEDS CARE ${problem}`)
  const queue = selected.filter((mutant) => misfit(mutant) === null)
  let missed = misfits.length
  const notTried: Array<string> = []
  const results: Array<Record<string, unknown>> = []
  await Promise.all(
    Array.from({ length: Math.min(workers, queue.length) }, async (_, place) => {
      for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
        const { end, seeds, by } = await hunt(url, mutant, place, limit)
        if (end === "missed") missed++
        if (end === "not tried") notTried.push(mutant.name)
        results.push({ name: mutant.name, origin: mutant.origin, end, seeds, by })
        print(
          `${end === "missed" ? "MISSED" : end} ${mutant.name.padEnd(32)} ${mutant.origin.padEnd(44)} ${seeds === null ? "" : `${seeds} seeds`} ${by.slice(0, 160)}`
        )
      }
    })
  )
  const counts = results.flatMap(({ seeds }) => (typeof seeds === "number" ? [seeds] : [])).toSorted((a, b) => a - b)
  print(
    `\n${counts.length} of ${selected.length} planted bugs caught${isPlain ? " by plain seeds, without the classes that suit them" : ""}; ` +
      `median ${counts[Math.floor(counts.length / 2)] ?? "-"} seeds, most ${counts.at(-1) ?? "-"}`
  )
  const tried = results.length - notTried.length
  const isEnough = tried >= Math.min(atLeast, selected.length)
  if (notTried.length > 0) {
    print(`${isEnough ? "" : "TOO FEW: "}${tried} tried in ${minutes} minutes, at least ${atLeast} must be`)
    print(`not tried: ${notTried.join(" ")}`)
  }
  report[isPlain ? "plainMutants" : "mutants"] = results
  // The result with plain seeds is a figure, not a promise.
  return (missed === 0 && isEnough) || isPlain
}

const overridesOf = {
  "webhooks only": { hooks: "only" },
  "webhooks beside": { hooks: "beside" },
  "pushes only": { pushes: "only" },
  "pushes beside": { pushes: "beside" }
} as const

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
    ...(kind === "syncs" ? {} : { overrides: overridesOf[kind] })
  }
}

/** Runs every seed that ever failed. */
const repeatRegressions = async (url: string): Promise<boolean> => {
  const queue = [...regressions]
  const startedAt = performance.now()
  let red = 0
  await Promise.all(
    Array.from({ length: Math.min(workers, queue.length) }, async (_, place) => {
      const worker = new Worker(url, `simulation_r${place}`)
      try {
        for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
          const { kind, seed, cause } = one
          const answer = await worker.run({ seed, options: optionsOfRegression(one), keep: false })
          const what = objection(answer)
          if (what === null) continue
          red += 1
          print(`RED again: ${kind} seed ${seed} (${cause}): ${what}`)
        }
      } finally {
        worker.close()
      }
    })
  )
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  print(`${regressions.length} seeds that failed before, ${red} red, ${seconds} s`)
  return red === 0
}

/** Each N-th planted bug. K moves the first one, so that each run of limited time begins elsewhere. */
const partOf = (all: ReadonlyArray<Mutant>): ReadonlyArray<Mutant> => {
  if (values.part === undefined) return all
  const match = /^(\d+)\/([1-9]\d*)$/.exec(values.part)
  if (match === null) throw new Error(`--part must be K/N, not ${values.part}`)
  const [which, every] = [Number(match[1]), Number(match[2])]
  const part = all.filter((_, place) => place % every === which % every)
  const first = Math.floor(which / every) % Math.max(1, part.length)
  return [...part.slice(first), ...part.slice(0, first)]
}

const replay = async (url: string, seed: number): Promise<boolean> => {
  const mutant = values.mutant
  const worker = new Worker(url, "simulation_replay", mutant)
  const planted = mutants.find(({ name }) => name === mutant)
  try {
    const answer = await worker.run({
      seed,
      options: planted === undefined ? planOptions : optionsOf(planted),
      keep: true
    })
    for (const line of answer.lines) print(line)
    if (objection(answer) !== null)
      tell(answer, answer.defect === null && planted === undefined ? await reduce(worker, answer) : null)
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
  } else if (values.mutants === true) isGood = await hunts(server.url, partOf(mutants))
  else if (values.regressions === true) isGood = await repeatRegressions(server.url)
  else isGood = await campaign(server.url)
  if (values.report !== undefined) writeFileSync(values.report, `${JSON.stringify(report, null, 2)}\n`)
} finally {
  await server.stop()
}
process.exitCode = isGood ? 0 : 1

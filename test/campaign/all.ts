/**
 * The command `npm run campaign`: every campaign, one after the other, with the time of each.
 *
 *   npm run campaign                    all of them in full, with seeds and places drawn from the commit
 *   npm run campaign -- --slice         what a CI run does: the first of the same seeds, fewer kills
 *   npm run campaign -- --slice --minutes 10    a slice that takes 10 minutes at most (15)
 *   npm run campaign -- --slice --from COMMIT   the same slice for another commit
 *   npm run campaign -- --only pushes,planted   some of them
 *
 * A slice uses seeds and kills of the same strength as the full campaign, only fewer of them. Failed seeds and real
 * processes run first and take the time that they need, then fresh seeds and planted bugs share the remaining time. A
 * campaign of a slice that does not end within its limit has failed. Exit code 1 when one of them fails. The others still
 * run, and the last lines of the failed ones are printed again at the end. The last line counts the campaigns.
 */
import { execFileSync, spawn } from "node:child_process"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: {
    slice: { type: "boolean", default: false },
    minutes: { type: "string", default: "15" },
    from: { type: "string" },
    only: { type: "string" }
  }
})

/** Seeds begin beyond those that were examined one by one. */
const firstSeed = 10_000_000
/** Number of slices in which every planted bug is tried once. */
const mutantParts = 4
/**
 * Usual time from the start of the last seed to the end of its campaign: the seed, its repetition, the server's stop.
 */
const lastSeedSeconds = 30
/** Limit of a campaign whose amount of work is fixed: several times what it needs on a slow machine. */
const fixedLimitSeconds = 600
/** Lines of a failed campaign that are printed again at the end. */
const shownAgain = 40
/** Time for a terminated campaign to stop its servers. */
const termSeconds = 15

const commit = values.from ?? execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim()
if (!/^[0-9a-f]{7,40}$/.test(commit)) {
  process.stderr.write(`--from must be the hash of a commit, not ${commit}\n`)
  process.exit(2)
}
const drawn = Number.parseInt(commit.slice(0, 7), 16)
/** The same for both, so that a slice is a part of the full campaign of its commit. */
const seed = String(firstSeed + drawn)

interface Part {
  readonly name: string
  readonly program: "kills" | "webhooks" | "pushes" | "owners" | "deliveries" | "simulate"
  readonly full: ReadonlyArray<string>
  /** The arguments in a slice; null when it is not part of one. */
  readonly slice: ReadonlyArray<string> | null
  /**
   * Campaigns of fresh seeds share a slice's remaining time in the ratio of `share`. When the time is over they run fewer
   * seeds, but at least this many. Without it the amount of work is fixed.
   */
  readonly fresh?: { readonly share: number; readonly atLeast: number }
}

/** In the order in which a slice runs them. */
const parts: ReadonlyArray<Part> = [
  {
    name: "regressions",
    program: "simulate",
    full: ["--regressions"],
    slice: ["--regressions"]
  },
  {
    name: "kills",
    program: "kills",
    full: ["--kills", "200", "--postgres-kills", "20", "--zombies", "10", "--seed", seed],
    slice: ["--kills", "20", "--postgres-kills", "3", "--zombies", "3", "--seed", seed]
  },
  {
    name: "webhooks",
    program: "webhooks",
    full: ["--deliveries", "10000", "--seed", seed],
    slice: ["--deliveries", "1500", "--kills", "4", "--companies", "4", "--seed", seed]
  },
  {
    name: "pushes",
    program: "pushes",
    full: ["--kills", "50", "--postgres-kills", "3", "--seed", seed],
    slice: ["--kills", "9", "--postgres-kills", "1", "--records", "240", "--seed", seed]
  },
  {
    name: "owners",
    program: "owners",
    full: ["--disturbances", "100", "--seed", seed],
    slice: null
  },
  {
    name: "deliveries",
    program: "deliveries",
    full: ["--changes", "200000", "--kills", "60", "--seed", seed],
    slice: ["--changes", "10000", "--kills", "8", "--down-days", "2", "--latency", "0", "--seed", seed]
  },
  {
    name: "seeds",
    program: "simulate",
    full: ["--seeds", "3000", "--from", seed],
    slice: ["--seeds", "300", "--from", seed],
    fresh: { share: 3, atLeast: 10 }
  },
  {
    name: "push-seeds",
    program: "simulate",
    full: ["--pushes", "only", "--seeds", "500", "--from", seed],
    slice: ["--pushes", "only", "--seeds", "60", "--from", seed],
    fresh: { share: 1, atLeast: 2 }
  },
  {
    name: "push-seeds-beside",
    program: "simulate",
    full: ["--pushes", "beside", "--seeds", "500", "--from", seed],
    slice: ["--pushes", "beside", "--seeds", "40", "--from", seed],
    fresh: { share: 1, atLeast: 2 }
  },
  {
    name: "planted",
    program: "simulate",
    full: ["--mutants", "--limit", "1000"],
    slice: ["--mutants", "--limit", "1000", "--part", `${drawn}/${mutantParts}`],
    fresh: { share: 3, atLeast: 2 }
  },
  {
    name: "planted-plain",
    program: "simulate",
    full: ["--mutants", "--plain", "--limit", "25"],
    slice: null
  }
]

const programs = {
  kills: "test/campaign/kills.ts",
  webhooks: "test/campaign/webhooks.ts",
  pushes: "test/campaign/pushes.ts",
  owners: "test/campaign/owners.ts",
  deliveries: "test/campaign/deliveries.ts",
  simulate: "test/simulation/run.ts"
} as const

const minutes = Number(values.minutes)
if (!(minutes > 0)) {
  process.stderr.write(`--minutes must be a positive number, not ${values.minutes}\n`)
  process.exit(2)
}
const names = values.only?.split(",") ?? parts.map(({ name }) => name)
const unknown = names.find((name) => !parts.some((part) => part.name === name))
if (unknown !== undefined) {
  process.stderr.write(`there is no campaign ${unknown}; there are ${parts.map(({ name }) => name).join(", ")}\n`)
  process.exit(2)
}

interface End {
  readonly result: "passed" | "FAILED" | "TIMED OUT"
  readonly lastLines: string
}

let stop = () => {}
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    stop()
    process.exit(1)
  })

const run = (file: string, args: ReadonlyArray<string>, limitSeconds: number | null) =>
  new Promise<End>((resolve) => {
    // A process group of its own: the processes that it has started end with it.
    const child = spawn(process.execPath, [file, ...args], {
      stdio: ["inherit", "pipe", "pipe"],
      detached: limitSeconds !== null
    })
    let lastLines = ""
    const show = (stream: NodeJS.WriteStream) => (chunk: Buffer) => {
      stream.write(chunk)
      lastLines = `${lastLines}${chunk.toString()}`.split("\n").slice(-shownAgain).join("\n")
    }
    child.stdout.on("data", show(process.stdout))
    child.stderr.on("data", show(process.stderr))
    let isLate = false
    const killGroup = () => {
      try {
        process.kill(-child.pid!, "SIGKILL")
      } catch {
        // All processes of the group have ended.
      }
    }
    const timers: Array<NodeJS.Timeout> = []
    const end = () => {
      isLate = true
      child.kill("SIGTERM")
      timers.push(setTimeout(killGroup, termSeconds * 1000))
    }
    if (limitSeconds !== null) timers.push(setTimeout(end, limitSeconds * 1000))
    stop = () => {
      child.kill("SIGTERM")
      if (limitSeconds !== null) killGroup()
    }
    const done = (code: number | null) => {
      for (const timer of timers) clearTimeout(timer)
      stop = () => {}
      if (isLate) killGroup()
      resolve({ result: isLate ? "TIMED OUT" : code === 0 ? "passed" : "FAILED", lastLines })
    }
    child.on("error", () => done(null))
    // A remaining process may keep the pipes open. They get a second after its end.
    child.on("exit", (code) => {
      const ended = setTimeout(() => done(code), 1000)
      child.once("close", () => {
        clearTimeout(ended)
        done(code)
      })
    })
  })

const endsAt = minutes * 60
const seconds = () => performance.now() / 1000

const summaries: Array<string> = []
const failures: Array<string> = []
const counts = { passed: 0, failed: 0 }
const chosen = parts.filter(({ name, slice }) => names.includes(name) && (!values.slice || slice !== null))
for (const [place, { name, program, full, slice, fresh }] of chosen.entries()) {
  const startedAt = seconds()
  let args = full
  let limitSeconds: number | null = null
  if (values.slice) {
    args = slice ?? full
    limitSeconds = fixedLimitSeconds
    if (fresh !== undefined) {
      const left = Math.max(0, endsAt - startedAt)
      const shares = chosen.slice(place).reduce((sum, one) => sum + (one.fresh?.share ?? 0), 0)
      const ofSeeds = Math.max(lastSeedSeconds, (left * fresh.share) / shares - lastSeedSeconds)
      args = [...args, "--minutes", (ofSeeds / 60).toFixed(2), "--at-least", String(fresh.atLeast)]
      limitSeconds = ofSeeds + 3 * lastSeedSeconds
    }
  }
  const file = programs[program]
  process.stdout.write(`\n== ${name}: node ${file} ${args.join(" ")}\n`)
  const { result, lastLines } = await run(file, args, limitSeconds)
  counts[result === "passed" ? "passed" : "failed"] += 1
  summaries.push(`${name.padEnd(18)} ${result.padEnd(9)} ${(seconds() - startedAt).toFixed(0).padStart(6)} s`)
  if (result !== "passed") failures.push(`== last lines of ${name}\n${lastLines}`)
}
process.stdout.write(`\n${[...failures, summaries.join("\n")].join("\n\n")}\n`)
if (values.slice)
  process.stdout.write(`drawn from commit ${commit}; to repeat: npm run campaign -- --slice --from ${commit}\n`)
process.stdout.write(`\n${counts.passed} passed, ${counts.failed} failed\n`)
process.exitCode = counts.failed === 0 ? 0 : 1

/**
 * The command `npm run measure`: every suite that draws or measures, one after the other, with its figures.
 *
 *   npm run measure                         all of them; the seed comes from the clock and is printed
 *   npm run measure -- --from 10000001      with the seed of an earlier run
 *   npm run measure -- --only seeds,kills   some of them
 *
 * The last lines have the result, the time and the figures of each suite. Exit code 1 when one failed; the others still
 * run. `test/KNOWN.md` lists the failures whose cause is known.
 */
import { spawn } from "node:child_process"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  options: { from: { type: "string" }, only: { type: "string" }, help: { type: "boolean", default: false } }
})

const refuse = (text: string): never => {
  process.stderr.write(`${text}\n`)
  process.exit(2)
}

/** Seeds begin beyond those that were examined one by one. */
const seedMin = 10_000_000
const seedCount = 1_000_000_000
const seed = Number(values.from ?? seedMin + (Math.floor(Date.now() / 1000) % seedCount))
if (!Number.isSafeInteger(seed) || seed < 0) refuse(`--from must be a whole number from 0, not ${values.from}`)

interface Suite {
  readonly name: string
  /** The command and its arguments. */
  readonly run: ReadonlyArray<string>
  /** The line of its output with its figures; the last one counts. */
  readonly figures: RegExp
}

const simulation = (name: string, ...args: ReadonlyArray<string>): Suite => ({
  name,
  run: ["node", "test/simulation/run.ts", ...args],
  figures: /^\d+ (?:seeds from|of \d+ planted bugs) .*$/gm
})
const campaign = (name: string, ...args: ReadonlyArray<string>): Suite => ({
  name,
  run: ["node", "test/campaign/run.ts", name, "--seed", String(seed), ...args],
  figures: /^.*, seed \d+.*$/gm
})
const vitest = (name: string, script: string, ...args: ReadonlyArray<string>): Suite => ({
  name,
  run: ["npm", "run", "--silent", script, "--", ...args],
  figures: /^\d+ passed, \d+ failed.*$/gm
})

const suites: ReadonlyArray<Suite> = [
  simulation("seeds", "--seeds", "3000", "--from", String(seed)),
  simulation("push-seeds", "--pushes", "only", "--seeds", "500", "--from", String(seed)),
  simulation("push-seeds-beside", "--pushes", "beside", "--seeds", "500", "--from", String(seed)),
  simulation("planted", "--mutants", "--limit", "1000"),
  simulation("planted-plain", "--mutants", "--plain", "--limit", "25"),
  campaign("kills"),
  campaign("webhooks"),
  campaign("pushes"),
  campaign("owners"),
  campaign("deliveries"),
  { name: "conformance", run: ["npm", "run", "--silent", "conformance"], figures: /^tests .*$/gm },
  {
    name: "fuzz",
    run: ["node", "test/fuzz/fuzz.ts", "--requests", "100000", "--seed", String(seed)],
    figures: /^.*requests.*$/gm
  },
  vitest("long", "test:long"),
  vitest("postgres", "test:postgres", "--full"),
  { name: "image", run: ["node", "test/deploy/Image.ts"], figures: /^\d+ checks passed.*$/gm },
  { name: "bench", run: ["node", "test/bench/bench.ts"], figures: /^.*$/gm }
]

if (values.help) {
  process.stdout.write(`npm run measure -- [--from SEED] [--only NAME,…]\n`)
  for (const { name, run } of suites) process.stdout.write(`  ${name.padEnd(18)} ${run.join(" ")}\n`)
  process.exit(0)
}

const names = values.only?.split(",") ?? suites.map(({ name }) => name)
const unknown = names.find((name) => !suites.some((suite) => suite.name === name))
if (unknown !== undefined)
  refuse(`there is no suite ${unknown}; there are ${suites.map(({ name }) => name).join(", ")}`)

let child: ReturnType<typeof spawn> | null = null
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    child?.kill("SIGTERM")
    process.exit(1)
  })

/** Runs a suite and shows its output. Returns whether it passed, and its figures. */
const measure = ({ run: [command, ...args], figures }: Suite): Promise<{ hasPassed: boolean; line: string }> =>
  new Promise((resolve) => {
    const running = spawn(command === "node" ? process.execPath : command!, args, {
      stdio: ["inherit", "pipe", "inherit"]
    })
    child = running
    let text = ""
    running.stdout.on("data", (chunk: Buffer) => {
      process.stdout.write(chunk)
      text += chunk.toString()
    })
    running.on("error", (error) => resolve({ hasPassed: false, line: String(error) }))
    running.on("close", (code) => {
      const lines = [...text.matchAll(figures)].flatMap(([line]) => (line.trim() === "" ? [] : [line.trim()]))
      resolve({ hasPassed: code === 0, line: lines.at(-1) ?? "no figures" })
    })
  })

process.stdout.write(`from seed ${seed}\n`)
const results: Array<string> = []
for (const suite of suites) {
  if (!names.includes(suite.name)) continue
  process.stdout.write(`\n== ${suite.name}: ${suite.run.join(" ")}\n`)
  const began = performance.now()
  const { hasPassed, line } = await measure(suite)
  if (!hasPassed) process.exitCode = 1
  const seconds = ((performance.now() - began) / 1000).toFixed(0)
  results.push(`${suite.name.padEnd(18)} ${hasPassed ? "passed" : "FAILED"} ${seconds.padStart(6)} s  ${line}`)
}
process.stdout.write(`\nfrom seed ${seed}\n${results.join("\n")}\n`)

/**
 * A worker process that runs seeds for `run.ts`: a database of its own, and optionally a planted bug in the code that
 * it loads.
 */
import type { Job, Answer } from "./Job.ts"
import { mutants } from "./mutants/index.ts"
import { plant } from "./mutants/Mutant.ts"

const [, , url, name, mutantName] = process.argv
const mutant = mutantName === undefined ? undefined : mutants.find((one) => one.name === mutantName)
if (mutant !== undefined) plant(mutant)

// Loaded after the bug was planted, so that the code contains it.
const { openBench } = await import("./world/Server.ts")
const { simulate } = await import("./Simulation.ts")

const bench = await openBench(url!, name!)
const send = (answer: Answer) => process.send!(answer)

const work = async ({ seed, options, keep }: Job) => {
  try {
    const { fired, plan, ...result } = await simulate(bench, seed, options, keep)
    const { on, ...drawn } = plan
    send({ ...result, fired: [...fired], on: [...on], drawn: JSON.stringify(drawn), defect: null })
  } catch (error) {
    const defect = error instanceof Error ? (error.stack ?? error.message) : String(error)
    send({
      seed,
      defect,
      hash: "",
      failure: null,
      steps: 0,
      kills: 0,
      fired: [],
      on: [],
      drawn: "",
      lines: []
    })
  }
}

let turn = Promise.resolve()
process.on("message", (job: Job) => {
  turn = turn.then(() => work(job))
})
process.on("disconnect", () => process.exit(0))
process.send!({ ready: true })

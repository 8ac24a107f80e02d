/**
 * The worker processes of a campaign.
 *
 * Promise: every job gets an answer, or the pool fails with the worker's last output. No worker outlives {@link
 * Pool.close}.
 */
import { type ChildProcess, fork } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Answer, Job } from "./Job.ts"

const program = fileURLToPath(new URL("./worker.ts", import.meta.url))

/** The Node that `npm ci` installs. It runs TypeScript and can patch modules while they are loaded. */
const brought = fileURLToPath(new URL("../../node_modules/.bin/node", import.meta.url))

export class Worker {
  private readonly child: ChildProcess
  private waiting: ((answer: Answer) => void) | null = null
  private failed: ((error: Error) => void) | null = null
  private words = ""
  private readonly ready: Promise<void>

  constructor(url: string, name: string, mutant?: string) {
    this.child = fork(program, [url, name, ...(mutant === undefined ? [] : [mutant])], {
      ...(existsSync(brought) ? { execPath: brought } : {}),
      execArgv: ["--no-warnings"],
      stdio: ["ignore", "pipe", "pipe", "ipc"]
    })
    const listen = (chunk: Buffer) => {
      this.words = `${this.words}${chunk.toString()}`.slice(-4000)
    }
    this.child.stdout?.on("data", listen)
    this.child.stderr?.on("data", listen)
    this.ready = new Promise((resolve, reject) => {
      this.failed = reject
      this.child.on("message", (message: Answer | { readonly ready: true }) => {
        if ("ready" in message) resolve()
        else this.waiting?.(message)
      })
      this.child.on("exit", (code) => this.failed?.(new Error(`worker ${name} ended with ${code}: ${this.words}`)))
    })
    this.ready.catch(() => {})
  }

  async run(job: Job): Promise<Answer> {
    await this.ready
    return new Promise((resolve, reject) => {
      this.waiting = resolve
      this.failed = reject
      this.child.send(job)
    })
  }

  close(): void {
    this.failed = null
    this.child.removeAllListeners("exit")
    this.child.kill("SIGKILL")
  }
}

/** A place in which one seed after another runs: a worker without a planted bug, and workers with one. */
export class Lane {
  private readonly url: string
  private readonly name: string
  private worker: Worker | null = null

  constructor(url: string, name: string) {
    this.url = url
    this.name = name
  }

  async run(job: Job): Promise<Answer> {
    const worker = (this.worker ??= new Worker(this.url, this.name))
    const answer = await worker.run(job)
    // After an error of the simulation itself, the next seed gets another process and database.
    if (answer.defect !== null || answer.failure?.checker === "simulation") {
      worker.close()
      this.worker = null
    }
    return answer
  }

  async planted<A>(mutant: string, use: (worker: Worker) => Promise<A>): Promise<A> {
    const worker = new Worker(this.url, `${this.name}_planted`, mutant)
    try {
      return await use(worker)
    } finally {
      worker.close()
    }
  }

  close(): void {
    this.worker?.close()
  }
}

/** Runs tasks in several lanes. `next` returns null when none is left. */
export const onLanes = async (
  url: string,
  count: number,
  next: () => ((lane: Lane) => Promise<void>) | null
): Promise<void> => {
  const lanes = Array.from({ length: count }, (_, index) => new Lane(url, `simulation_w${index}`))
  try {
    await Promise.all(
      lanes.map(async (lane) => {
        for (let task = next(); task !== null; task = next()) await task(lane)
      })
    )
  } finally {
    for (const lane of lanes) lane.close()
  }
}

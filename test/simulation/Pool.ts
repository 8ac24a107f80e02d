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

/** Runs jobs on several workers, in no fixed order. `next` returns null when none are left. */
export const onWorkers = async (
  url: string,
  count: number,
  next: () => Job | null,
  answered: (answer: Answer, job: Job, worker: Worker) => Promise<void> | void,
  options: { readonly mutant?: string; readonly prefix?: string } = {}
): Promise<void> => {
  const workers = Array.from(
    { length: count },
    (_, index) => new Worker(url, `simulation_${options.prefix ?? "w"}${index}`, options.mutant)
  )
  try {
    await Promise.all(
      workers.map(async (worker) => {
        for (let job = next(); job !== null; job = next()) await answered(await worker.run(job), job, worker)
      })
    )
  } finally {
    for (const worker of workers) worker.close()
  }
}

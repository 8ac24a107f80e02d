/**
 * The product's own processes, for tests that kill and measure: the reference server and commands, started as a user
 * starts them.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import type * as Effect from "effect/Effect"
import { until } from "./until.ts"

export const root = fileURLToPath(new URL("../..", import.meta.url))
const launcher = fileURLToPath(new URL("../../src/cli/launch.js", import.meta.url))

export interface ReferenceProcess {
  readonly baseUrl: string
  readonly controlUrl: string
  readonly pid: number
  /** Calls the control plane. Throws on an answer that is not a success. */
  readonly control: (method: string, path: string, body?: unknown) => Promise<unknown>
  /** Lines of an NDJSON answer of the control plane. */
  readonly lines: (path: string) => Promise<ReadonlyArray<string>>
  readonly token: (company: number, scopes?: ReadonlyArray<string>) => Promise<string>
  readonly stop: () => Promise<void>
}

const exited = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once("exit", () => resolve()))

/** Calls of the control plane, with its token where it has one. */
export const callsOf = (controlUrl: string, controlToken?: string) => {
  const authorization = controlToken === undefined ? {} : { authorization: `Bearer ${controlToken}` }
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${controlUrl}${path}`, {
      method,
      headers: { ...authorization, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return text
  }
  return {
    control: async (method: string, path: string, body?: unknown) => {
      const text = await call(method, path, body)
      return text === "" ? undefined : (JSON.parse(text) as unknown)
    },
    lines: async (path: string) => (await call("GET", path)).split("\n").filter((line) => line !== ""),
    token: async (company: number, scopes: ReadonlyArray<string> = ["*"]) =>
      (JSON.parse(await call("POST", "/tokens", { company, scopes })) as { token: string }).token
  }
}

/** Starts a reference server. */
export const startReference = async (
  options: ReadonlyArray<string> = ["--data", "empty"],
  env: Readonly<Record<string, string>> = {}
): Promise<ReferenceProcess> => {
  const child = spawn(process.execPath, [launcher, "reference-server", ...options], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const ready = await new Promise<{ baseUrl: string; controlUrl: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve(JSON.parse(line) as never))
    child.once("exit", (code) => reject(new Error(`the reference server ended with ${code} before it was ready`)))
  })
  return {
    ...ready,
    ...callsOf(ready.controlUrl),
    pid: child.pid!,
    stop: async () => {
      child.kill("SIGTERM")
      await exited(child)
    }
  }
}

export interface CommandRun {
  readonly child: ChildProcess
  readonly done: Promise<{
    readonly code: number | null
    readonly signal: NodeJS.Signals | null
    readonly stdout: string
    readonly stderr: string
  }>
}

/** The first line that a command prints. Rejects when it ends before, with its messages. */
export const firstLine = ({ child, done }: CommandRun): Promise<string> =>
  new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).once("line", resolve)
    void done.then(({ code, stderr }) => reject(new Error(`ended with ${code} before it was ready: ${stderr}`)))
  })

/** Starts a `tributary` command in the given folder. */
export const startCommand = (
  args: ReadonlyArray<string>,
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string>> }
): CommandRun => {
  const child = spawn(process.execPath, [launcher, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], CI: "true", ...options.env },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let stdout = ""
  let stderr = ""
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
  return {
    child,
    done: new Promise((resolve) => {
      child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
    })
  }
}

/** Starts commands in a folder, and ends those that still run. */
export const commandsIn = (cwd: string) => {
  const running = new Set<CommandRun>()
  return {
    start: (args: ReadonlyArray<string>, env: Readonly<Record<string, string>>): CommandRun => {
      const run = startCommand(args, { cwd, env })
      running.add(run)
      void run.done.then(() => running.delete(run))
      return run
    },
    close: async (): Promise<void> => {
      for (const { child, done } of running) {
        child.kill("SIGKILL")
        await done
      }
    }
  }
}

/** {@link until} without a limit of its own: the timeout of the test ends it. A loaded machine only takes longer. */
export const untilSeen = <A, R = never>(
  what: string,
  question: Effect.Effect<A, never, R>,
  isExpected: (answer: A) => boolean
) => until(what, question, isExpected, Infinity)

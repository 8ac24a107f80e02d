/** Helpers for tests of the embedded Postgres: folders for clusters, and other processes that use the server. */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { beforeAll } from "@effect/vitest"
import { Effect } from "effect"
import { connect, query } from "../../../src/postgres/driver/Connection.ts"
import { type EmbeddedServer, start } from "../../../src/postgres/EmbeddedPostgres.ts"
import { makeFolder } from "../../support/servers.ts"
import { until } from "../../support/until.ts"

export const program = fileURLToPath(new URL("./embedded-user.ts", import.meta.url))
export const isRoot = process.getuid?.() === 0

/** A folder for one server. A server that a failed test left running is killed. */
export const emptyRoot = Effect.acquireRelease(
  Effect.sync(() => join(makeFolder("embedded"), "postgres")),
  (root) =>
    Effect.gen(function* () {
      const pid = serverPid(root)
      if (pid !== undefined && isAlive(pid)) process.kill(pid, "SIGQUIT")
      if (pid !== undefined) yield* eventually("the end of the server", () => !isAlive(pid))
      rmSync(join(root, ".."), { recursive: true, force: true })
    })
)

/** A folder with a cluster: a copy of one that is created once, which is faster than initdb. */
export const temporaryRoot = Effect.tap(emptyRoot, (root) =>
  Effect.sync(() => execFileSync("cp", ["-a", template, root]))
)
let template = ""
beforeAll(async () => {
  const folder = makeFolder("embedded")
  template = join(folder, "postgres")
  await Effect.runPromise(Effect.scoped(start({ root: template, port: 0, durable: false })))
  return () => rmSync(folder, { recursive: true })
})

export const serverPid = (root: string): number | undefined => {
  const file = join(root, "pg18", "postmaster.pid")
  return existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : undefined
}

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
  } catch {
    return false
  }
}

/** Waits without a limit of its own: the timeout of the test ends it. */
export const eventually = (what: string, check: () => boolean): Effect.Effect<void> =>
  until(what, Effect.sync(check), (isSo) => isSo, Infinity)

interface User {
  readonly child: ReturnType<typeof spawn>
  readonly entered: { readonly pid: number; readonly port: number; readonly adopted: boolean }
  /** Closes the input of the process and waits for its exit. */
  readonly leave: Effect.Effect<number | null>
  readonly kill: (signal: NodeJS.Signals) => Effect.Effect<void>
}

/** Another process that uses the server. */
export const user = (root: string, port?: number, durable?: "durable") =>
  Effect.acquireRelease(
    Effect.promise(async (): Promise<User> => {
      const child = spawn(
        process.execPath,
        [program, root, ...[port, durable].flatMap((one) => (one === undefined ? [] : [String(one)]))],
        {
          stdio: ["pipe", "pipe", "pipe"]
        }
      )
      let output = ""
      child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
      const exited = once(child, "exit")
      const first = once(createInterface(child.stdout), "line")
      const line: unknown = (await Promise.race([first, exited.then(() => [`exited: ${output}`])]))[0]
      return {
        child,
        entered: JSON.parse(String(line)) as User["entered"],
        leave: Effect.promise(async () => {
          child.stdin.end()
          await exited
          return child.exitCode
        }),
        kill: (signal) =>
          Effect.promise(async () => {
            child.kill(signal)
            await exited
          })
      }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

export const ask = (server: EmbeddedServer, text: string) =>
  Effect.scoped(Effect.flatMap(connect(server), (client) => query<Record<string, unknown>>(client, "ask", text)))

/**
 * The servers and commands of a campaign: a Postgres at default durability, a reference server, and the real commands,
 * each behind a tap.
 *
 * Promise: everything that is started here ends with {@link Stand.close}. Nothing else is ever killed.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Effect, Exit, Logger, Redacted, Scope } from "effect"
import pg from "pg"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"
import { type CommandRun, type ReferenceProcess, startCommand, startReference } from "../support/reference.ts"
import { openTap, type Tap } from "../support/tap.ts"

export interface Stand {
  readonly reference: ReferenceProcess
  /** Creates an empty database and returns its URL. */
  readonly database: () => Promise<string>
  /** Runs the work with a connection of its own. Waits while the server is down, up to a limit. */
  readonly withClient: <A>(databaseUrl: string, work: (client: pg.Client) => Promise<A>) => Promise<A>
  readonly configure: (name: string, yaml: string) => string
  readonly openTap: (databaseUrl: string) => Promise<Tap>
  /** Starts a command, with or without a tap. */
  readonly start: (
    args: ReadonlyArray<string>,
    upstream: { readonly databaseUrl: string; readonly baseUrl: string }
  ) => CommandRun
  /** Kills the postmaster with -9. Its children are killed at once, or when they do not end. Waits for a new one. */
  readonly killPostgres: (andChildren: boolean) => Promise<void>
  /** Also closes this, before the servers. */
  readonly alsoClose: (close: () => Promise<void>) => void
  readonly close: () => Promise<void>
}

/** One part of a whole number; all parts add up to it. */
export const shareOf = (whole: number, parts: number, place: number): number =>
  Math.floor((whole * (place + 1)) / parts) - Math.floor((whole * place) / parts)

export const quantile = (sorted: ReadonlyArray<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!

/**
 * Node options that redirect connections from one port to another. All commands have the same configured address, since
 * another address is another source. So each tap needs a redirection.
 */
const redirect = (from: string, to: string): string => {
  const code = `import net from "node:net"
const connect = net.connect
net.connect = (options, ...rest) => connect(String(options.port) === "${new URL(from).port}" ? { ...options, port: ${new URL(to).port} } : options, ...rest)`
  return from === to ? "" : `--import=data:text/javascript,${encodeURIComponent(code)}`
}

const statOf = (pid: number): { readonly parent: number; readonly state: string } | null => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1")
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return { state: fields[0]!, parent: Number(fields[1]) }
  } catch {
    return null
  }
}

const childrenOf = (pid: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && statOf(Number(name))?.parent === pid)
    .map(Number)

const kill = (pid: number, signal: NodeJS.Signals) => {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended already.
  }
}

const pollMs = 20

/** Suspends a process. When this has returned, the process is stopped. */
export const freeze = async (pid: number): Promise<void> => {
  kill(pid, "SIGSTOP")
  for (let state = statOf(pid)?.state; state !== undefined && state !== "T"; state = statOf(pid)?.state) {
    if (state === "Z" || state === "X") return
    await sleep(1)
  }
}

/** Resumes a suspended process. */
export const thaw = (pid: number): void => kill(pid, "SIGCONT")

const childrenEndMs = 5_000
/** A server that is away for longer counts as lost. */
const awayMaxMs = 120_000

export const openStand = async (
  companies: ReadonlyArray<number>
): Promise<Stand & { readonly tokens: ReadonlyMap<number, string> }> => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-campaign-"))
  // mkdtemp makes it private. As root, Postgres runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const scope = Scope.makeUnsafe()
  const postgres = await Effect.runPromise(
    start({ root: join(folder, "postgres"), port: 0 }).pipe(
      Effect.provideService(Scope.Scope, scope),
      Effect.provideService(Logger.LogToStderr, true),
      // The campaign expects lost connections.
      Effect.provide(Logger.layer([]))
    )
  )
  const reference = await startReference(["--data", "demo"])
  await reference.control("PUT", "/limits", { requestsPerMinute: null })
  const tokens = new Map<number, string>()
  for (const company of companies) tokens.set(company, await reference.token(company))
  const taps: Array<Tap> = []
  const children = new Set<CommandRun>()

  const urlOf = (database: string) => {
    const { host, port, user, password } = postgres.endpoint
    return `postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`
  }

  const withClient: Stand["withClient"] = async (databaseUrl, work) => {
    const giveUpAt = Date.now() + awayMaxMs
    for (;;) {
      const client = new pg.Client({ connectionString: databaseUrl })
      client.on("error", () => {})
      try {
        await client.connect()
      } catch (error) {
        if (Date.now() >= giveUpAt) throw error
        await sleep(pollMs)
        continue
      }
      try {
        return await work(client)
      } finally {
        await client.end().catch(() => undefined)
      }
    }
  }

  const others: Array<() => Promise<void>> = []
  const closeAll = async () => {
    for (const one of others) await one()
    for (const { child, done } of children) {
      child.kill("SIGKILL")
      await done
    }
    for (const tap of taps) await tap.close()
    await reference.stop()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(folder, { recursive: true, force: true })
  }
  let closing: Promise<void> | null = null
  const close = () => (closing ??= closeAll())
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      void close().finally(() => process.exit(130))
    })
  }

  let databases = 0
  return {
    reference,
    tokens,
    withClient,
    database: async () => {
      const name = `campaign_${(databases += 1)}`
      await withClient(urlOf("postgres"), (client) => client.query(`create database ${name}`))
      return urlOf(name)
    },
    configure: (name, yaml) => {
      const path = join(folder, name)
      writeFileSync(path, yaml)
      return path
    },
    openTap: async (databaseUrl) => {
      const tap = await openTap({ baseUrl: reference.baseUrl, databaseUrl })
      taps.push(tap)
      return tap
    },
    start: (args, { databaseUrl, baseUrl }) => {
      const env = Object.fromEntries([...tokens].map(([company, token]) => [`TOKEN_${company}`, token]))
      const command = startCommand(args, {
        cwd: folder,
        env: {
          DATABASE_URL: databaseUrl,
          SERVICE_API_URL: reference.baseUrl,
          NODE_OPTIONS: redirect(reference.baseUrl, baseUrl),
          ...env
        }
      })
      children.add(command)
      void command.done.then(() => children.delete(command))
      return command
    },
    killPostgres: async (andChildren) => {
      const postmaster = postgres.pid()
      const workers = childrenOf(postmaster)
      kill(postmaster, "SIGKILL")
      if (andChildren) for (const pid of workers) kill(pid, "SIGKILL")
      const isBackend = (pid: number) => {
        const stat = statOf(pid)
        return stat !== null && stat.state !== "Z" && workers.includes(pid)
      }
      for (let waitedMs = 0; workers.some(isBackend); waitedMs += pollMs) {
        if (waitedMs >= childrenEndMs) for (const pid of workers.filter(isBackend)) kill(pid, "SIGKILL")
        await sleep(pollMs)
      }
      const giveUpAt = Date.now() + awayMaxMs
      while (postgres.pid() === postmaster) {
        if (Date.now() >= giveUpAt) throw new Error("Postgres was killed, and does not restart")
        await sleep(pollMs)
      }
      await withClient(urlOf("postgres"), (client) => client.query("select 1"))
    },
    alsoClose: (one) => void others.push(one),
    close
  }
}

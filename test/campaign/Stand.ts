/**
 * The servers and commands of a campaign: a Postgres at default durability, a reference server, and the real commands,
 * each behind a tap.
 *
 * Promise: everything that is started here ends with `close`. Nothing else is ever killed.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import pg from "pg"
import { childrenOf, statOf } from "../bench/Processes.ts"
import { commandsIn, startReference } from "../support/reference.ts"
import { closing, databaseAt, makeFolder, startPostgres } from "../support/servers.ts"
import { openTap } from "../support/tap.ts"

export type Stand = Awaited<ReturnType<typeof openStand>>

/** One part of a whole number; all parts add up to it. */
export const shareOf = (whole: number, parts: number, place: number): number =>
  Math.floor((whole * (place + 1)) / parts) - Math.floor((whole * place) / parts)

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

export const openStand = async (companies: ReadonlyArray<number>) => {
  const folder = makeFolder("campaign")
  const postgres = await startPostgres(folder)
  const reference = await startReference(["--data", "demo"])
  await reference.control("PUT", "/limits", { requestsPerMinute: null })
  const tokens = new Map<number, string>()
  for (const company of companies) tokens.set(company, await reference.token(company))
  const env = Object.fromEntries([...tokens].map(([company, token]) => [`TOKEN_${company}`, token]))
  const commands = commandsIn(folder)

  /** Runs the work with a connection of its own. Waits while the server is down, up to a limit. */
  const withClient = async <A>(databaseUrl: string, work: (client: pg.Client) => Promise<A>): Promise<A> => {
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
  const alsoClose = (close: () => Promise<void>) => void others.push(close)
  let databases = 0
  return {
    reference,
    tokens,
    withClient,
    /** Creates an empty database and returns its URL. */
    database: async () => {
      const name = `campaign_${(databases += 1)}`
      await withClient(postgres.url, (client) => client.query(`create database ${name}`))
      return databaseAt(postgres.url, name)
    },
    /** Writes a file and returns its path. */
    configure: (name: string, text: string) => {
      const path = join(folder, name)
      writeFileSync(path, text)
      return path
    },
    openTap: async (databaseUrl: string, baseUrl = reference.baseUrl) => {
      const tap = await openTap({ baseUrl, databaseUrl })
      alsoClose(tap.close)
      return tap
    },
    /** Starts a command, with or without a tap. */
    start: (
      args: ReadonlyArray<string>,
      { databaseUrl, baseUrl }: { readonly databaseUrl: string; readonly baseUrl: string }
    ) =>
      commands.start(args, {
        DATABASE_URL: databaseUrl,
        SERVICE_API_URL: reference.baseUrl,
        NODE_OPTIONS: redirect(reference.baseUrl, baseUrl),
        ...env
      }),
    /** Kills the postmaster with -9. Its children are killed at once, or when they do not end. Waits for a new one. */
    killPostgres: async (andChildren: boolean) => {
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
      await withClient(postgres.url, (client) => client.query("select 1"))
    },
    /** Also closes this, before the servers. */
    alsoClose,
    close: closing(async () => {
      await commands.close()
      for (const close of others) await close()
      await reference.stop()
      await postgres.stop()
    })
  }
}

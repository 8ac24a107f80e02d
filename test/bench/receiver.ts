/**
 * The acknowledged, durable deliveries per second, beside the same receiver without a database.
 *
 * Promise: the receiver, the sender and Postgres are processes of their own. The sender keeps 64 connections busy,
 * each with one delivery at a time. Every acknowledgement is compared with the rows of the inbox afterwards.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Layer, Redacted, Scope } from "effect"
import pg from "pg"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { start } from "../../src/postgres/EmbeddedPostgres.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"

const receiverProgram = fileURLToPath(new URL("../support/receiver.ts", import.meta.url))
const senderProgram = fileURLToPath(new URL("./sender.ts", import.meta.url))
const secret = "whsec_bench"

export interface SenderResult {
  readonly acks: number
  readonly others: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface ReceiverFigures {
  readonly connections: number
  readonly stored: SenderResult & { readonly perSecond: number; readonly rows: number }
  /** The same without a database: the limit of HTTP, the signature and reading the body. */
  readonly ceiling: SenderResult & { readonly perSecond: number }
  /** Acknowledgements per second as a share of the ceiling. */
  readonly share: number
}

export interface ReceiverOptions {
  /** A server with an empty database, at its default durability. A new one is started when this is absent. */
  readonly databaseUrl?: string | undefined
  readonly seconds?: number | undefined
  readonly connections?: number | undefined
  readonly writers?: number | undefined
}

const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).once("line", resolve)
    child.once("exit", (code) => reject(new Error(`ended with ${code} before it printed a line`)))
  })

const startProgram = (program: string, args: ReadonlyArray<string>): ChildProcess =>
  spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] })

/** One round against a receiver of its own. */
const round = async (
  args: ReadonlyArray<string>,
  { seconds = 5, connections = 64 }: ReceiverOptions
): Promise<SenderResult & { readonly perSecond: number }> => {
  const receiver = startProgram(receiverProgram, ["--secret", secret, ...args])
  try {
    const { port } = JSON.parse(await firstLine(receiver)) as { readonly port: number }
    const sender = startProgram(senderProgram, [String(port), secret, String(seconds), String(connections)])
    const sent = JSON.parse(await firstLine(sender)) as SenderResult
    return { ...sent, perSecond: sent.acks / sent.seconds }
  } finally {
    receiver.stdin!.end()
  }
}

const ownServer = async (): Promise<{ readonly url: string; readonly close: () => Promise<void> }> => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-bench-"))
  // mkdtemp makes it private. As root, Postgres runs as another user, who needs access.
  chmodSync(folder, 0o755)
  const scope = Scope.makeUnsafe()
  const { endpoint } = await Effect.runPromise(
    start({ root: join(folder, "postgres"), port: 0 }).pipe(Effect.provideService(Scope.Scope, scope))
  )
  const { host, port, user, password } = endpoint
  return {
    url: `postgres://${user}:${Redacted.value(password)}@${host}:${port}/postgres`,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Measures both, one after the other. */
export const measureReceiver = async (options: ReceiverOptions = {}): Promise<ReceiverFigures> => {
  const server =
    options.databaseUrl === undefined ? await ownServer() : { url: options.databaseUrl, close: async () => {} }
  try {
    const layer = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(server.url))))
    await Effect.runPromise(Migrations.migrate().pipe(Effect.provide(layer)))
    const ceiling = await round([], options)
    const stored = await round(["--database", server.url, "--writers", String(options.writers ?? 2)], options)
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const { rows } = await client.query<{ readonly count: string }>("select count(*) as count from tributary.inbox")
    await client.end()
    return {
      connections: options.connections ?? 64,
      stored: { ...stored, rows: Number(rows[0]!.count) },
      ceiling,
      share: stored.perSecond / ceiling.perSecond
    }
  } finally {
    await server.close()
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [seconds, connections, writers] = process.argv.slice(2).map(Number)
  console.log(JSON.stringify(await measureReceiver({ seconds, connections, writers }), null, 2))
}

/**
 * The acknowledged, durable deliveries per second, beside the same receiver without a database.
 *
 * Promise: the receiver, the sender and Postgres are processes of their own. The sender keeps 64 connections busy,
 * each with one delivery at a time. Every acknowledgement is compared with the rows of the inbox afterwards.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { Effect, Layer, Redacted } from "effect"
import pg from "pg"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import * as Migrations from "../../src/postgres/Migrations.ts"

const receiverProgram = fileURLToPath(new URL("../support/receiver.ts", import.meta.url))
const senderProgram = fileURLToPath(new URL("./sender.ts", import.meta.url))
const secret = "whsec_bench"
const seconds = 5
const writers = 2

export interface SenderResult {
  readonly acks: number
  readonly others: number
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface ReceiverFigures {
  readonly stored: SenderResult & { readonly perSecond: number; readonly rows: number }
  /** The same without a database: the limit of HTTP, the signature and reading the body. */
  readonly ceiling: SenderResult & { readonly perSecond: number }
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
  connections: number
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

/** Measures both, one after the other. The database is empty, its server at its default durability. */
export const measureReceiver = async (databaseUrl: string, connections: number): Promise<ReceiverFigures> => {
  const layer = sqlLayer.pipe(Layer.provideMerge(Database.layerUrl(Redacted.make(databaseUrl))))
  await Effect.runPromise(Migrations.migrate().pipe(Effect.provide(layer)))
  const ceiling = await round([], connections)
  const stored = await round(["--database", databaseUrl, "--writers", String(writers)], connections)
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  const { rows } = await client.query<{ readonly count: string }>("select count(*) as count from tributary.inbox")
  await client.end()
  return { stored: { ...stored, rows: Number(rows[0]!.count) }, ceiling }
}

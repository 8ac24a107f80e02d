/**
 * Real sessions of the real database, lent to simulated connections.
 *
 * Promise: a session is lent without a transaction, a lock, a temporary table or a setting of its earlier user. All
 * work here is part of the kernel's real work, one piece at a time.
 */
import { closeSync, openSync, writeSync } from "node:fs"
import { Effect, Redacted } from "effect"
import type { Client } from "pg"
import type { Server } from "../../../src/postgres/Server.ts"
import { open } from "../../../src/postgres/driver/Connection.ts"
import { Database } from "../../../src/postgres/Database.ts"

export interface Session {
  readonly client: Client
  readonly pid: number
  /** Whether it was not used since it was reset. */
  clean: boolean
}

/** A deadlock is found before the first check whether a statement waits for a lock (`Connections.ts`). */
const begun =
  "select set_config('TimeZone', 'UTC', false), set_config('deadlock_timeout', '2ms', false), pg_backend_pid() as pid"

/** `rollback`, the parts of `discard all`, which cannot be sent with other statements, and {@link begun}: one round trip. */
const renewed = `rollback; close all; set session authorization default; reset all; deallocate all; unlisten *;
  select pg_advisory_unlock_all(); discard plans; discard temp; discard sequences; ${begun}`

export class Sessions {
  private readonly server: Server
  private readonly idle: Array<Session> = []
  private readonly lent = new Set<Session>()
  /** Checks locks and ends sessions; never lent. */
  readonly monitor: Client
  /** The file that `tributary.now()` reads. */
  private readonly clock: number

  private constructor(server: Server, monitor: Client, clock: number) {
    this.server = server
    this.monitor = monitor
    this.clock = clock
  }

  static async make(url: string): Promise<Sessions> {
    const server = await Effect.runPromise(
      Effect.provide(
        Effect.map(Database, ({ endpoint, describe, embedded }) => ({ endpoint, describe, embedded })),
        Database.layerUrl(Redacted.make(url))
      )
    )
    const monitor = await Effect.runPromise(open(server))
    await monitor.query(begun)
    const { rows } = await monitor.query<{ path: string }>("select public.clock_path() as path")
    const sessions = new Sessions(server, monitor, openSync(rows[0]!.path, "w"))
    sessions.tellTime(0)
    return sessions
  }

  /** Number of sessions that are lent now. */
  get busy(): number {
    return this.lent.size
  }

  async lend(): Promise<Session> {
    let session = this.idle.pop()
    if (session === undefined) {
      const client = await Effect.runPromise(open(this.server))
      const { rows } = await client.query<{ pid: number }>(begun)
      session = { client, pid: rows[0]!.pid, clean: true }
    }
    this.lent.add(session)
    return session
  }

  /** Takes a session back: rolls back its transaction and releases its locks. */
  async takeBack(session: Session): Promise<void> {
    if (!this.lent.delete(session)) return
    try {
      await session.client.query(renewed)
      // The driver remembers what it has prepared.
      Object.assign((session.client as unknown as { connection: object }).connection, { parsedStatements: {} })
      this.idle.push(session)
    } catch {
      await this.destroy(session)
    }
  }

  /** Ends a session that is executing a statement. */
  async terminate(session: Session): Promise<void> {
    this.lent.delete(session)
    await this.monitor.query("select pg_terminate_backend($1, 2000)", [session.pid])
    await this.destroy(session)
  }

  private async destroy(session: Session): Promise<void> {
    await session.client.end().catch(() => {})
  }

  async takeAllBack(): Promise<void> {
    for (const session of this.lent) await this.takeBack(session)
  }

  /** Sets the result of `tributary.now()`, in microseconds since 1970, also for statements that wait. */
  tellTime(micros: number): void {
    writeSync(this.clock, String(micros).padStart(16, "0"), 0)
  }

  /** Whether a session waits for a lock of another one. */
  async isBlocked(session: Session): Promise<boolean> {
    const { rows } = await this.monitor.query<{ blocked: boolean }>(
      "select cardinality(pg_blocking_pids($1)) > 0 as blocked",
      [session.pid]
    )
    return rows[0]?.blocked === true
  }

  async close(): Promise<void> {
    await this.takeAllBack()
    for (const { client } of this.idle) await client.end().catch(() => {})
    await this.monitor.end().catch(() => {})
    closeSync(this.clock)
  }
}

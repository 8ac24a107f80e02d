/**
 * The simulated database connections: real statements, virtual time, drawn faults.
 *
 * Promise: the real database runs the SQL of the production code, in the order of virtual time. The answer arrives
 * after a drawn time. The seed draws the faults: an error in place of the statement (a real one, so that the
 * transaction is really aborted), a connection lost before or after the statement, a server that is gone for a while,
 * locks that are lost without an error. A session that lost its client is rolled back later.
 */
import { Context, Effect, Redacted, type Scope, Stream } from "effect"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { ConnectionError, SqlError, UnknownError } from "effect/sql/SqlError"
import * as ConnectionBudget from "../../../src/postgres/ConnectionBudget.ts"
import * as ConnectionPool from "../../../src/postgres/driver/ConnectionPool.ts"
import { type DatabaseShape, Database } from "../../../src/postgres/Database.ts"
import { DatabaseError } from "../../../src/postgres/DatabaseError.ts"
import * as SessionLocks from "../../../src/postgres/SessionLocks.ts"
import { chance } from "../kernel/Chance.ts"
import type { Owner } from "../kernel/Kernel.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import type { Session, Sessions } from "./Sessions.ts"

/** SQLSTATEs of a session that the server ends. */
const endings = ["57P01", "57P03", "08006", "25P03"] as const
/** SQLSTATEs of missing memory and of a full disk. */
const shortages = ["53200", "53100"] as const

export interface Hooks {
  /**
   * Called after a COMMIT, and after a write of checkpoints, runs or events outside a transaction. Awaited before
   * anything else happens.
   */
  readonly committed: (owner: Owner) => Promise<void>
  /** A process is about to send a statement, or one was processed: the moment for a kill. */
  readonly stepped: (owner: Owner, what: string) => void
}

interface CopyStream extends NodeJS.EventEmitter {
  readonly text: string
}

interface Config {
  readonly name?: string
  readonly text: string
  readonly values?: ReadonlyArray<unknown>
  readonly rowMode?: "array"
}

const isCopy = (value: unknown): value is CopyStream =>
  typeof value === "object" && value !== null && "submit" in value && "text" in value

const lostError = () => Object.assign(new Error("Connection terminated unexpectedly"), { code: "ECONNRESET" })

/** A shortened statement, for the trace. */
export const brief = (text: string): string => text.replace(/\s+/g, " ").trim().slice(0, 60)

/**
 * Postgres reports an error before it releases the locks of the transaction. A statement that waits for them continues
 * after this.
 */
const rolledBack = (session: Session): Promise<unknown> => session.client.query("select 1").catch(() => null)

/** Real time until the first check whether a statement waits for a lock. Each further check waits twice as long. */
const firstLookMs = 4

/** Waits for the work, up to a limit. */
const soon = (work: Promise<void>, milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    void work.finally(() => {
      clearTimeout(timer)
      resolve()
    })
  })

/** One simulated connection. */
export class SimulatedClient {
  readonly owner: Owner
  private readonly world: Connections
  session: Session | null
  dead: Error | null = null
  inTransaction = false
  private busy = false
  private readonly waiting: Array<() => void> = []
  /** Ends a connection abruptly, as the production code does. */
  readonly connection = { stream: { destroy: () => this.world.drop(this, "destroyed") } }

  constructor(world: Connections, owner: Owner, session: Session) {
    this.world = world
    this.owner = owner
    this.session = session
  }

  on(): this {
    return this
  }

  end(done?: () => void): Promise<void> {
    this.world.drop(this, "ended")
    if (done !== undefined) this.world.after(200, this.owner, done)
    return Promise.resolve()
  }

  query(request: unknown, values?: ReadonlyArray<unknown>): unknown {
    if (isCopy(request)) return this.copy(request)
    const config = typeof request === "string" ? { text: request } : (request as Config)
    const sent: Config = { ...config, values: values ?? config.values ?? [] }
    return new Promise((resolve, reject) => {
      this.turn(() => this.world.run(this, sent, null, resolve, reject))
    })
  }

  private copy(stream: CopyStream): CopyStream {
    const emit = stream.emit.bind(stream)
    let hasEnded = false
    stream.emit = (name: string | symbol, ...more: Array<unknown>) => {
      if (name !== "finish" && name !== "error") return emit(name, ...more)
      if (!hasEnded) {
        hasEnded = true
        listener(name === "error" ? (more[0] as Error) : null)
      }
      return true
    }
    let listener: (error: Error | null) => void = () => {}
    const submit = (done: (error: Error | null) => void) => {
      listener = done
      this.session!.client.query(stream as never)
    }
    this.turn(() =>
      this.world.run(
        this,
        { text: stream.text },
        submit,
        () => emit("finish"),
        (error) => emit("error", error)
      )
    )
    return stream
  }

  /** Sends one statement after the other, as on a wire. */
  private turn(run: () => void): void {
    if (this.busy) this.waiting.push(run)
    else {
      this.busy = true
      run()
    }
  }

  next(): void {
    const run = this.waiting.shift()
    if (run === undefined) this.busy = false
    else run()
  }
}

interface Blocked {
  readonly client: SimulatedClient
  readonly session: Session
  readonly settled: Promise<void>
  /** See {@link lineOf}. */
  readonly line: string | null
  done: boolean
}

/**
 * The checkpoint that a statement queues for, as the first of its transaction; null when it queues for none. Of two
 * statements that wait for a row that changes meanwhile, Postgres picks either. Here the second is not sent before the
 * first has had the row.
 */
const lineOf = (text: string, values: ReadonlyArray<unknown> | undefined): string | null =>
  /^\s*(?:select lane, fence\b[^]*\bfor update\s*$|insert into tributary\.checkpoints as c\b|with moved as \(\s*update tributary\.checkpoints\b)/.test(
    text
  )
    ? (values ?? []).slice(0, 2).map(String).join(" ")
    : null

export class Connections extends Actor {
  // Seeds with pushes draw from streams of their own.
  readonly chance = chance(this.drawn.seed, `${this.drawn.pushing === null ? "" : "push "}database`)
  /** Random numbers of the classes that were added later. */
  private readonly later = chance(this.drawn.seed, "later database")
  readonly sessions: Sessions
  readonly faults = { on: true, ...this.drawn.database }
  readonly hooks: Hooks
  readonly clients = new Set<SimulatedClient>()
  /** How far the warehouse's clock is ahead, in microseconds. */
  aheadMicros: () => number = () => 0
  /** Number of statements sent to the real database. */
  statements = 0
  /** Whether rows were changed outside the simulated processes since the checkers last ran. */
  hasChanged = false
  /** When the server can be reached again. */
  private goneUntil = 0
  private readonly blocked = new Set<Blocked>()
  /** Statements that queue behind one that waits for the database. */
  private lined: Array<{ readonly behind: Blocked; readonly send: () => Promise<void> }> = []

  constructor(scene: Scene, sessions: Sessions, hooks: Hooks) {
    super(scene)
    this.sessions = sessions
    this.hooks = hooks
  }

  // -- statements -------------------------------------------------------------------------------------------------------

  private latency(): number {
    const { chance, faults } = this
    if (faults.on && faults.slowRate > 0 && chance.chance(faults.slowRate)) {
      this.fired("D12 slow")
      return chance.skewed(1_000_000, 20_000_000)
    }
    return chance.skewed(200, 4000)
  }

  run(
    client: SimulatedClient,
    sent: Config,
    copy: ((done: (error: Error | null) => void) => void) | null,
    resolve: (value: unknown) => void,
    reject: (error: Error) => void
  ): void {
    const { kernel } = this
    const { text, values } = sent
    const answer = (deliver: () => void) => {
      kernel.after(this.chance.skewed(100, 2000), client.owner, deliver)
      client.next()
    }
    const line = lineOf(text, values)
    kernel.after(this.latency(), null, () => {
      const send = async (): Promise<void> => {
        const session = client.session
        if (client.dead !== null || session === null) {
          return answer(() => reject(client.dead ?? lostError()))
        }
        const behind = line === null ? undefined : [...this.blocked].find((one) => one.line === line)
        if (behind !== undefined) {
          this.log(client.owner.name, "stands in line")
          this.lined.push({ behind, send })
          return
        }
        const fault = this.draw(client, text)
        if (fault === "lost before") {
          this.strikes(client.owner.name, isCommit(text) ? "D3 commit lost, not applied" : "D2 lost before")
          this.drop(client, "lost")
          return answer(() => reject(lostError()))
        }
        const ending = fault === null ? this.drawEnding(text) : null
        if (ending !== null) {
          this.strikes(client.owner.name, `D5 ${ending} ${client.inTransaction ? "in a transaction" : "between two"}`)
          this.drop(client, "server")
          return answer(() => reject(Object.assign(new Error("the server has ended the session"), { code: ending })))
        }
        this.statements++
        session.clean = false
        const shortage = fault === null ? this.drawShortage(text) : null
        const code = fault === "lost after" ? null : (fault ?? shortage)
        const statement = code === null ? text : failing(code)
        if (code !== null) this.strikes(client.owner.name, shortage === null ? `D4 ${code}` : `D6 ${code}`)
        // Functions, defaults and triggers read this time, also those of a statement that waited for a lock.
        this.sessions.tellTime(this.kernel.now + this.aheadMicros())
        const work =
          copy !== null && statement === text
            ? new Promise<unknown>((done, failed) => copy((error) => (error === null ? done(null) : failed(error))))
            : session.client.query<Record<string, unknown>>(
                statement === sent.text
                  ? { ...sent, values: [...(values ?? [])] }
                  : { text: statement, values: statement === text ? [...(values ?? [])] : [] }
              )
        const settle = async (outcome: () => void, error: Error | null) => {
          this.hooks.stepped(client.owner, brief(text))
          if (error === null) this.follow(client, text)
          const code = error === null ? "" : ` -> ${(error as { code?: string }).code ?? error.message}`
          this.log(client.owner.name, `sql ${brief(text)}${code}`)
          const isShownToCheckers =
            isCommit(text) || (!client.inTransaction && (this.hasChanged || isWrite(text)) && isOfSync(text))
          if (error === null && isShownToCheckers) {
            this.hasChanged = false
            await this.hooks.committed(client.owner)
          }
          if (fault === "lost after") {
            this.strikes(client.owner.name, isCommit(text) ? "D3 commit lost, applied" : "D2 lost after")
            this.drop(client, "lost")
            return answer(() => reject(lostError()))
          }
          answer(outcome)
        }
        await this.attend(
          client,
          session,
          line,
          work.then(
            (value) => () => settle(() => resolve(value), null),
            async (error: Error) => {
              await rolledBack(session)
              return () => settle(() => reject(error), error)
            }
          )
        )
      }
      kernel.work(send)
    })
  }

  private draw(client: SimulatedClient, text: string): string | null {
    const { faults, chance } = this
    if (!faults.on) return null
    if (isCommit(text)) {
      if (chance.chance(faults.commitUnknownRate)) return chance.chance(0.5) ? "lost before" : "lost after"
      return null
    }
    if (/^\s*rollback/i.test(text)) return null
    if (chance.chance(faults.lostRate)) return chance.chance(0.5) ? "lost before" : "lost after"
    if (client.owner.name !== "" && faults.sqlstates.length > 0 && chance.chance(faults.errorRate)) {
      return chance.pick(faults.sqlstates)
    }
    return null
  }

  private drawEnding(text: string): string | null {
    const { later, faults } = this
    const { endRate } = this.drawn.later
    if (!faults.on || isCommit(text) || endRate === 0) return null
    return later.chance(endRate) ? later.pick(endings) : null
  }

  private drawShortage(text: string): string | null {
    const { later, faults } = this
    const { fullRate } = this.drawn.later
    if (!faults.on || isCommit(text) || /^\s*rollback/i.test(text)) return null
    return fullRate > 0 && later.chance(fullRate) ? later.pick(shortages) : null
  }

  private follow(client: SimulatedClient, text: string): void {
    if (/^\s*begin\b/i.test(text)) client.inTransaction = true
    else if (/^\s*(commit|rollback)\s*$/i.test(text)) client.inTransaction = false
  }

  /** Waits for a statement, unless it waits for a lock of another simulated connection. */
  private async attend(
    client: SimulatedClient,
    session: Session,
    line: string | null,
    work: Promise<() => Promise<void>>
  ): Promise<void> {
    const finish: { outcome: (() => Promise<void>) | null } = { outcome: null }
    const settled = work.then((outcome) => {
      finish.outcome = outcome
      return undefined
    })
    for (let milliseconds = firstLookMs; ; milliseconds *= 2) {
      await soon(settled, milliseconds)
      const { outcome } = finish
      if (outcome !== null) {
        await outcome()
        return this.unblock()
      }
      if (await this.sessions.isBlocked(session)) break
    }
    this.log(client.owner.name, "waits for a lock")
    this.fired("waited for a lock")
    const blocked: Blocked = { client, session, settled, line, done: false }
    this.blocked.add(blocked)
    // Its outcome is handled when another statement has ended: see unblock.
    void settled.finally(() => {
      blocked.done = true
    })
    const attended = async (): Promise<void> => {
      for (let milliseconds = firstLookMs; ; milliseconds *= 2) {
        await soon(settled, milliseconds)
        if (finish.outcome !== null) break
        // Another statement got the lock first: this one continues to wait.
        if (await this.sessions.isBlocked(session)) return this.wait(blocked, attended)
      }
      this.blocked.delete(blocked)
      await finish.outcome()
      return this.unblock()
    }
    this.wait(blocked, attended)
  }

  private wait(blocked: Blocked, attended: () => Promise<void>): void {
    this.resumes.set(blocked, () => this.kernel.work(attended))
  }

  private readonly resumes = new Map<Blocked, () => void>()

  /** Finds statements that no longer wait, after something ended that may have had a lock. */
  private async unblock(): Promise<void> {
    for (const blocked of this.blocked) {
      if (!blocked.done && (await this.sessions.isBlocked(blocked.session))) continue
      const resume = this.resumes.get(blocked)
      this.resumes.delete(blocked)
      resume?.()
    }
    const lined = this.lined
    this.lined = lined.filter(({ behind }) => this.blocked.has(behind))
    for (const { behind, send } of lined) if (!this.blocked.has(behind)) this.kernel.work(send)
  }

  // -- connections ------------------------------------------------------------------------------------------------------

  /** Calls back a process later. */
  after(micros: number, owner: Owner, run: () => void): void {
    this.kernel.after(micros, owner, run)
  }

  connect(owner: Owner): Effect.Effect<SimulatedClient, DatabaseError> {
    const { kernel, chance, faults } = this
    return Effect.callback<SimulatedClient, DatabaseError>((resume) => {
      let isSettled = false
      let connected: SimulatedClient | null = null
      const refuse = (code: string, message: string) => {
        this.log(owner.name, `connect refused ${code}`)
        kernel.after(500, owner, () =>
          resume(Effect.fail(new DatabaseError({ operation: "connect", code, message, isRetryable: true })))
        )
      }
      kernel.after(chance.skewed(1000, 20_000), null, () => {
        if (kernel.now < this.goneUntil)
          return refuse(chance.pick(["ECONNREFUSED", "57P03"]), "the server is not available")
        if (faults.on && chance.chance(faults.connectRate)) {
          this.fired("D4 connect refused")
          return refuse(chance.pick(["53300", "ECONNRESET"]), "no connection")
        }
        kernel.work(async () => {
          if (owner.state === "dead" || isSettled) return
          const session = await this.sessions.lend()
          const client = new SimulatedClient(this, owner, session)
          connected = client
          this.clients.add(client)
          this.log(owner.name, "connected")
          kernel.after(300, owner, () => {
            isSettled = true
            resume(Effect.succeed(client))
          })
        })
      })
      return Effect.sync(() => {
        isSettled = true
        if (connected !== null) this.drop(connected, "given up")
      })
    })
  }

  /** The client's side is closed at once. The server notices after a while and rolls back. */
  drop(client: SimulatedClient, why: "ended" | "destroyed" | "lost" | "given up" | "killed" | "server"): void {
    client.dead ??= lostError()
    const { session } = client
    if (session === null) return
    client.session = null
    this.clients.delete(client)
    const prompt = why === "ended" || why === "server"
    const lag = prompt
      ? 300
      : why === "destroyed"
        ? this.chance.skewed(500, 20_000)
        : this.chance.skewed(1000, 3_000_000)
    this.kernel.after(lag, null, () => this.kernel.work(() => this.retire(client, session)))
  }

  private async retire(client: SimulatedClient, session: Session): Promise<void> {
    this.log(client.owner.name, "session ends")
    const waiting = [...this.blocked].find((blocked) => blocked.session === session && !blocked.done)
    if (waiting !== undefined) {
      await this.sessions.terminate(session)
      await waiting.settled
    } else await this.sessions.takeBack(session)
    await this.unblock()
  }

  /** Drops every connection of a process that was killed. */
  cut(owner: Owner): void {
    for (const client of this.clients) if (client.owner === owner) this.drop(client, "killed")
  }

  /** The server stops for a while and ends every connection. */
  restart(micros: number): void {
    this.goneUntil = this.kernel.now + micros
    for (const client of this.clients) this.drop(client, "server")
  }

  /** The server is there, and no connection fails any more. */
  heal(): void {
    this.faults.on = false
    this.goneUntil = this.kernel.now
  }

  /** A process loses its advisory locks without an error. */
  loseLocks(owner: Owner): void {
    this.kernel.work(async () => {
      for (const client of this.clients) {
        if (client.owner !== owner || client.session === null) continue
        // A session that waits in a statement cannot run another one now.
        if ([...this.blocked].some(({ session }) => session === client.session)) continue
        await client.session.client.query("select pg_advisory_unlock_all()").catch(() => {})
        this.strikes(client.owner.name, "D8 locks lost")
      }
    })
  }

  get inTransaction(): number {
    return [...this.clients].filter((client) => client.inTransaction).length
  }

  // -- services ---------------------------------------------------------------------------------------------------------

  /** The database services of the production code. */
  services(owner: Owner): Effect.Effect<Context.Context<Database | SqlClient.SqlClient>, never, Scope.Scope> {
    const connect = Effect.acquireRelease(
      this.connect(owner),
      (client, exit) =>
        exit._tag === "Success"
          ? Effect.callback<void>((resume) => void client.end(() => resume(Effect.void)))
          : Effect.sync(() => this.drop(client, "destroyed")),
      { interruptible: true }
    ) as unknown as DatabaseShape["connect"]
    const database = Effect.gen(function* () {
      return Database.of({
        endpoint: {
          host: "simulated",
          port: 5432,
          user: "tributary",
          password: Redacted.make(""),
          database: "simulated"
        },
        describe: "the simulated Postgres",
        embedded: false,
        connect,
        budget: Effect.succeed(ConnectionBudget.budgetOf(100, null)),
        landings: yield* ConnectionPool.make({ connect, capacity: () => landingsMax }),
        locks: yield* SessionLocks.make(connect)
      })
    })
    const idle: Array<SimulatedClient> = []
    const closed = Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const client of idle.splice(0)) this.drop(client, "ended")
      })
    )
    return Effect.gen({ self: this }, function* () {
      yield* closed
      const sql = yield* Effect.provide(this.sqlClient(owner, idle), Reactivity.layer)
      return Context.make(Database, yield* database).pipe(Context.add(SqlClient.SqlClient, sql))
    })
  }

  /** The pool for ordinary queries. */
  private sqlClient(owner: Owner, idle: Array<SimulatedClient>) {
    const take = Effect.suspend(() => {
      for (let client = idle.pop(); client !== undefined; client = idle.pop()) {
        if (client.dead === null) return Effect.succeed(client)
      }
      return Effect.mapError(this.connect(owner), sqlError("connect"))
    })
    const acquirer = Effect.map(
      Effect.acquireRelease(
        take,
        (client) =>
          Effect.sync(() => {
            if (client.dead !== null) return
            if (client.inTransaction) this.drop(client, "destroyed")
            else idle.push(client)
          }),
        { interruptible: true }
      ),
      connectionOf
    )
    return SqlClient.make({
      acquirer,
      transactionAcquirer: acquirer,
      compiler: PgClient.makeCompiler(),
      driver: "pg",
      spanAttributes: []
    })
  }
}

const connectionOf = (client: SimulatedClient): Connection => {
  const ask = (text: string, values: ReadonlyArray<unknown>, mode: Pick<Config, "rowMode"> = {}) =>
    Effect.tryPromise({
      try: () =>
        client.query({ text, ...mode }, values.length === 0 ? undefined : values) as Promise<{
          rows: ReadonlyArray<unknown>
        }>,
      catch: sqlError(brief(text))
    }).pipe(Effect.map(({ rows }) => rows))
  const rows = (text: string, values: ReadonlyArray<unknown>) =>
    ask(text, values) as Effect.Effect<ReadonlyArray<never>, SqlError>
  const arrays = (text: string, values: ReadonlyArray<unknown>) =>
    ask(text, values, { rowMode: "array" }) as Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, SqlError>
  return {
    execute: rows,
    executeRaw: rows,
    executeUnprepared: rows,
    executeValues: arrays,
    executeValuesUnprepared: arrays,
    executeStream: (text, values) => Stream.unwrap(Effect.map(rows(text, values), Stream.fromIterable))
  }
}

const sqlError =
  (operation: string) =>
  (cause: unknown): SqlError => {
    const error = DatabaseError.from(operation)(cause)
    const fields = { cause, message: error.message, operation }
    return new SqlError({ reason: error.isRetryable ? new ConnectionError(fields) : new UnknownError(fields) })
  }

/** So few that landings of a process wait for each other. */
const landingsMax = 3

const isCommit = (text: string) => /^\s*commit\b/i.test(text)

/** Whether a statement may write. */
const isWrite = (text: string) => /\b(?:insert|update|delete|merge|truncate|create|alter|drop)\b/i.test(text)

const isOfSync = (text: string) => /\btributary\.(?:checkpoints|runs|inbox)\b/.test(text)

/** A statement that fails with a SQLSTATE, so that the transaction is really aborted. */
const failing = (code: string) =>
  `do language plpgsql $$ begin raise exception 'a fault of the simulation' using errcode = '${code}'; end $$`

export const instantOf = (micros: number): string =>
  `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, 23)}${String(micros % 1000).padStart(3, "0")}Z`

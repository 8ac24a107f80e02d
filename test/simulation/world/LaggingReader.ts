/**
 * Sessions of a reader that may be behind, and decisions that are attempted on them.
 *
 * Promise: the snapshot of a session is a real one, made at a drawn moment: long before the mark of the decision (a replica
 * that is behind), between the mark and the decision (one that catches up), or at the decision (the server itself). A
 * decision uses the production code for its mark and its begin, and reads only where that accepts the session. A session
 * that waits for its decision holds a snapshot and no lock of a table. What a snapshot shows after a table was lost or
 * restored is not what a replica shows. So nothing is decided then.
 */
import { Duration, Effect, Result } from "effect"
import type { Client } from "pg"
import { Database, type DatabaseShape } from "../../../src/postgres/Database.ts"
import * as ReaderMark from "../../../src/warehouse/ReaderMark.ts"
import type { DecisionMoment, Versions } from "../checkers/Checker.ts"
import { chance } from "../kernel/Chance.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import { momentOf } from "../Plan.ts"
import { lockNotAvailable, undefinedTable } from "./Losses.ts"
import type { Session, Sessions } from "./Sessions.ts"

const kinds = ["behind", "behind", "catching up", "current"] as const
const decisions = 4

const snapshot = "begin transaction isolation level repeatable read read only"

/** A replica: a transaction that begins has the snapshot that the replica has reached. */
const replicaOf = (client: Client): Client => {
  const query = (request: { readonly text: string }) =>
    request.text.startsWith("begin") ? Promise.resolve({ rows: [], rowCount: 0 }) : client.query(request)
  return { query } as unknown as Client
}

export class LaggingReader extends Actor {
  private readonly chance = chance(this.drawn.seed, "lagging reader")
  private readonly sessions: Sessions
  private readonly text: string
  private readonly lock: string
  private readonly open = new Set<Session>()
  /** Number of losses and restores. */
  private losses = 0
  private stopped = false
  /** The warehouse's time, in microseconds. */
  warehouseNow: () => number = () => this.kernel.now
  /** Called after each attempt. */
  decided: (moment: DecisionMoment) => void = () => {}

  constructor(scene: Scene, sessions: Sessions) {
    super(scene)
    this.sessions = sessions
    const { drawn } = scene
    const tables = drawn.resources.map((path) => `erp."${path}"`)
    this.lock = `lock table ${tables.join(", ")} in access share mode nowait`
    this.text = drawn.resources
      .map((path) => `select "_company_id" || '/${path}/' || id as key, "_version"::int as version from erp."${path}"`)
      .join(" union all ")
  }

  begin(): void {
    const { chance, drawn, kernel } = this
    for (let left = decisions; left > 0; left--) {
      const kind = chance.pick(kinds)
      const opened = 0.05 + 0.6 * chance.next()
      const lag = 0.02 + 0.28 * chance.next()
      const delay = chance.skewed(1_000, 20_000_000)
      const share = chance.next()
      const marked = momentOf(drawn, opened + lag)
      let session: Session | null = null
      let since = 0
      const take = () =>
        kernel.work(async () => {
          if (this.stopped) return
          session = await this.take()
          since = this.losses
        })
      if (kind === "behind") kernel.after(momentOf(drawn, opened), null, take)
      kernel.after(marked, null, () =>
        kernel.work(async () => {
          const committed = await this.committed()
          if (this.stopped || committed === null) return
          const markedSince = this.losses
          this.sessions.tellTime(this.warehouseNow())
          const mark = await this.mark()
          if (kind === "catching up") kernel.after(share * delay, null, take)
          kernel.after(delay, null, () =>
            kernel.work(async () => {
              if (this.stopped) return
              const isBehind = session !== null && kind === "behind"
              if (kind === "current") {
                session = await this.lend()
                since = this.losses
              }
              if (session === null || since !== this.losses || markedSince !== this.losses) return
              await this.decide(kind, session, mark, committed, isBehind)
            })
          )
        })
      )
    }
  }

  /** A table was lost or restored. */
  lost(): void {
    this.losses += 1
  }

  /** Ends every session. */
  stop(): void {
    this.stopped = true
    this.kernel.work(async () => {
      for (const session of this.open) await this.end(session)
    })
  }

  private async lend(): Promise<Session> {
    const session = await this.sessions.lend()
    session.clean = false
    this.open.add(session)
    return session
  }

  private async end(session: Session): Promise<void> {
    this.open.delete(session)
    await this.sessions.takeBack(session)
  }

  /** A session whose snapshot is made now. */
  private async take(): Promise<Session> {
    const session = await this.lend()
    await session.client.query(snapshot)
    await session.client.query("select 1")
    return session
  }

  private mark(): Promise<ReaderMark.Mark> {
    const owner = { connect: Effect.succeed(this.sessions.monitor) } as Partial<DatabaseShape> as DatabaseShape
    return Effect.runPromise(Effect.provideService(ReaderMark.make, Database, owner))
  }

  private async decide(
    kind: (typeof kinds)[number],
    session: Session,
    mark: ReaderMark.Mark,
    committed: Versions,
    isBehind: boolean
  ): Promise<void> {
    const reader = kind === "current" ? session.client : replicaOf(session.client)
    const begun = await Effect.runPromise(
      ReaderMark.begin(reader, "decide", mark).pipe(
        Effect.provideService(ReaderMark.ReaderWait, Duration.zero),
        Effect.result
      )
    )
    const isAccepted = Result.isSuccess(begun)
    const shown = isAccepted ? await this.read(session.client) : null
    await this.end(session)
    const current = await this.committed()
    // A landing has locked the table, or it was dropped before.
    if (current === null || (isAccepted && shown === null)) return
    const what = `reader ${kind}: ${isAccepted ? "accepted" : "refused"}`
    this.log("reader", what)
    this.fired(what)
    this.decided({ isBehind, refusal: isAccepted ? null : begun.failure.message, committed, shown, current })
  }

  /** The owner's committed rows; null where a table is locked or does not exist. */
  private async committed(): Promise<Versions | null> {
    const { monitor } = this.sessions
    await monitor.query(snapshot)
    try {
      return await this.read(monitor)
    } finally {
      await monitor.query("rollback")
    }
  }

  /** What the transaction of a session shows; null where a table is locked or does not exist. */
  private async read(client: Client): Promise<Versions | null> {
    try {
      await client.query(this.lock)
      const { rows } = await client.query<{ key: string; version: number }>(this.text)
      return new Map(rows.map(({ key, version }) => [key, version]))
    } catch (error) {
      const { code } = error as { readonly code?: string }
      if (code === lockNotAvailable || code === undefinedTable) return null
      throw error
    }
  }
}

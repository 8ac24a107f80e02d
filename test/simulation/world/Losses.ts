/**
 * Lost tables of the warehouse (class T1), of the rows or of their history, and the record of these losses and of restores (T2, Restores.ts).
 *
 * Promise: each loss is one real statement of a person beside the pipeline, at a moment when no open landing uses the
 * table. The simulation knows what was lost and which runs were in the ledger then. A loss is repaired when a run that
 * began after it, or that landed a page after it, succeeds. The checkers state what must hold from then on.
 */
import type { Client } from "pg"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { keyOf, type Loss, type LossLedger, type Run } from "../checkers/Checker.ts"
import { chance } from "../kernel/Chance.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import { momentOf } from "../Plan.ts"

interface Subject {
  readonly company: number
  readonly resource: Resource
}

interface TableLoss extends Loss {
  /** The class under which the recovery is counted, if rows have to be restored. */
  readonly countedAs: "T1" | "T2" | null
  /** The latest run in the ledger, and the number of pages that each open run had landed. */
  readonly lastRun: bigint
  readonly pages: ReadonlyMap<string, number>
  /** The warehouse's time of the loss, in milliseconds; null after a restore, which ends all sessions. */
  readonly warehouseMs: number | null
  isRepaired: boolean
}

const kinds = ["dropped", "truncated", "recreated", "rows deleted"] as const

/** Virtual time between two tries to lock a table that a landing has locked. */
export const againMicros = 7_000
export const lockNotAvailable = "55P03"
export const undefinedTable = "42P01"

/** A run of the ledger, as it was after a loss. */
interface LedgerRun {
  readonly company: string
  readonly id: string
  readonly pages: number
}

export class Losses extends Actor implements LossLedger {
  private readonly chance = chance(this.drawn.seed, "losses")
  /** A stream of its own: it changes no draw of older seeds. */
  private readonly parts = chance(this.drawn.seed, "lost parts")
  private readonly client: Client
  private readonly subjects: ReadonlyArray<Subject>
  private readonly losses = new Map<string, TableLoss>()
  /** Losses that wait for the next read or landing of a process. */
  private readonly armed: Array<() => void> = []
  private readonly incomplete = new Set<string>()
  private stopped = false
  readonly deletedByHand = new Set<string>()
  ledgers = 0
  lastRunBefore = 0n
  /** Called when a table was lost. */
  struck: (company: number, path: string) => void = () => {}
  /** Called when a history is gone, which the next sync creates again. */
  historyDropped: () => void = () => {}
  /** Called when rows of a table or of the control plane were changed. */
  changed: () => void = () => {}

  constructor(scene: Scene, client: Client, subjects: ReadonlyArray<Subject>) {
    super(scene)
    this.client = client
    this.subjects = subjects
  }

  begin(): void {
    const { chance, drawn, kernel } = this
    const paths = [...new Set(this.subjects.map(({ resource }) => resource.path))]
    for (let left = drawn.later.tableLosses; left > 0; left--) {
      const path = chance.pick(paths)
      const kind = chance.pick(kinds)
      const isHistory = this.parts.chance(0.3)
      const strike = () => this.strike(path, kind, isHistory)
      const isDuringRun = chance.chance(0.6)
      const delay = chance.skewed(100, 200_000)
      kernel.after(momentOf(drawn, 0.1 + 0.85 * chance.next()), null, () => {
        if (isDuringRun) this.arm(() => kernel.after(delay, null, strike))
        else strike()
      })
    }
  }

  /** Strikes at the next read or write of a process. */
  arm(strike: () => void): void {
    this.armed.push(strike)
  }

  /** A process reads or writes: a loss that waits for this strikes now. */
  stepped(): void {
    this.armed.shift()?.()
  }

  stop(): void {
    this.stopped = true
  }

  latest(company: number, path: string): Loss | null {
    return this.losses.get(`${company} ${path}`) ?? null
  }

  /** Whether the rows of a table are not restored yet. */
  isOpen(company: number, path: string): boolean {
    return this.losses.get(`${company} ${path}`)?.isRepaired === false
  }

  /** Checks in the ledger whether a run has repaired the table. */
  observe(company: number, path: string, runs: ReadonlyArray<Run>): void {
    const loss = this.losses.get(`${company} ${path}`)
    if (loss === undefined || loss.isRepaired) return
    // A run that finds nothing has its row at its end only, and does not lock the table: it may have begun before.
    const beganBefore = ({ quietAt }: Run) =>
      quietAt !== null && loss.warehouseMs !== null && quietAt <= loss.warehouseMs
    const repairingRun = runs.find(
      (run) =>
        run.lane === "live" &&
        run.status === "done" &&
        (BigInt(run.id) > loss.lastRun || run.pages > (loss.pages.get(run.id) ?? run.pages)) &&
        !beganBefore(run)
    )
    if (repairingRun === undefined) return
    loss.isRepaired = true
    if (loss.countedAs !== null) this.fired(`${loss.countedAs} read again`)
    this.log("", `run ${repairingRun.id} of ${company}/${path} shows that the loss is repaired`)
  }

  private strike(path: string, kind: (typeof kinds)[number], isHistory: boolean): void {
    this.kernel.work(async () => {
      if (this.stopped) return
      const [schema, name] = isHistory ? ["erp_history", `${path}__superseded`] : ["erp", path]
      const table = `${schema}."${name}"`
      const { client } = this
      await client.query("begin")
      try {
        await client.query(`lock table ${table} in access exclusive mode nowait`)
        // A deletion by hand marks the checkpoints.
        await client.query("select from tributary.checkpoints where resource = $1 for update nowait", [path])
        const { rows } = await client.query<{ company: string; id: string; version: string }>(
          `select "_company_id"::text as company, id::text, "_version"::text as version from ${table} t order by "_company_id", t.id, "_version"`
        )
        const { rows: open } = await client.query<{ company: string; id: string; pages: number; status: string }>(
          "select company_id::text as company, id::text, pages::int, status from tributary.runs r where resource = $1 order by r.id",
          [path]
        )
        const deleted = kind === "rows deleted" ? rows.filter(() => this.chance.chance(0.4)) : rows
        if (kind === "dropped") await client.query(`drop table ${table} cascade`)
        else if (kind === "truncated") await client.query(`truncate ${table}`)
        else if (kind === "recreated") {
          await client.query(`create table public."${name}" (like ${table} including all)`)
          await client.query(`drop table ${table} cascade`)
          await client.query(`alter table public."${name}" set schema ${schema}`)
        } else {
          for (const { company, id, version } of deleted)
            await client.query(`delete from ${table} where "_company_id" = $1 and id = $2 and "_version" = $3`, [
              company,
              id,
              version
            ])
        }
        const { rows: clock } = await client.query<{ now: Date }>("select tributary.now() as now")
        await client.query("commit")
        // Nothing was deleted, so that nothing is lost.
        if (kind === "rows deleted" && deleted.length === 0) return
        if (isHistory) this.noteHistory(path, kind, deleted, open, clock[0]!.now.getTime())
        else this.note(path, kind, deleted, open, clock[0]!.now.getTime())
      } catch (error) {
        await client.query("rollback")
        const { code } = error as { readonly code?: string }
        // It was dropped before and is not created again yet.
        if (code === undefinedTable) return
        if (code !== lockNotAvailable) throw error
        this.kernel.after(againMicros, null, () => this.strike(path, kind, isHistory))
      }
    })
  }

  /** The versions of these tables have holes from now on; their rows are complete. */
  private noteHistory(
    path: string,
    kind: string,
    gone: ReadonlyArray<{ readonly company: string }>,
    runs: ReadonlyArray<LedgerRun>,
    warehouseMs: number
  ): void {
    this.changed()
    this.log("db", `! T1 history of ${path} ${kind}: ${gone.length} versions`)
    this.fired(gone.length > 0 ? "T1 history lost" : "T1 history lost, and it was empty")
    for (const { company, resource } of this.subjects) {
      if (resource.path !== path) continue
      this.lose(company, path, runs, { countedAs: null, hasRows: false, isTorn: true, warehouseMs })
      this.incomplete.add(`${company} ${path}`)
      if (kind === "dropped") this.historyDropped()
    }
  }

  /** Whether versions of a resource were lost without its rows, or rows without their versions. */
  hasHoles(company: number, path: string): boolean {
    return this.incomplete.has(`${company} ${path}`)
  }

  private note(
    path: string,
    kind: (typeof kinds)[number],
    gone: ReadonlyArray<{ readonly company: string; readonly id: string }>,
    runs: ReadonlyArray<LedgerRun & { readonly status: string }>,
    warehouseMs: number
  ): void {
    this.changed()
    this.log("db", `! T1 ${path} ${kind}: ${gone.length} rows`)
    this.fired(gone.length > 0 ? `T1 ${kind}` : `T1 ${kind}, and it was empty`)
    if (gone.length > 0 && runs.some(({ status, pages }) => status === "running" && pages > 0))
      this.fired("T1 in the middle of a run")
    for (const { company, resource } of this.subjects) {
      if (resource.path !== path) continue
      const own = gone.filter((row) => Number(row.company) === company)
      if (kind === "rows deleted") {
        for (const { id } of own) this.deletedByHand.add(keyOf(company, path, id))
        continue
      }
      const countedAs = own.length > 0 ? "T1" : null
      this.lose(company, path, runs, { countedAs, hasRows: true, isTorn: true, warehouseMs })
      this.struck(company, path)
    }
  }

  /** Records a restore (T2) of rows, of the control plane, or of both. `runs` are those of the restored ledger. */
  restored({
    hasRows,
    isPart,
    isOtherRows,
    isNoticedByRuns,
    lastRun,
    runs
  }: {
    readonly hasRows: boolean
    /** Whether rows were restored without their history, or the history without the rows. */
    readonly isPart: boolean
    readonly isOtherRows: boolean
    /** Whether a run in progress notices it: the tables are other ones. Of rows that were deleted and filled in, the next run is told. */
    readonly isNoticedByRuns: boolean
    /** The latest run before the restore; null when the ledger was not restored. */
    readonly lastRun: bigint | null
    readonly runs: ReadonlyArray<LedgerRun & { readonly path: string }>
  }): void {
    this.changed()
    if (lastRun !== null) {
      this.ledgers += 1
      if (lastRun > this.lastRunBefore) this.lastRunBefore = lastRun
    }
    for (const { company, resource } of this.subjects) {
      const own = runs.filter(({ path }) => path === resource.path)
      this.lose(company, resource.path, own, {
        countedAs: isOtherRows ? "T2" : null,
        hasRows,
        isTorn: isPart,
        isNoticedByRuns,
        warehouseMs: null
      })
      if (isPart) this.incomplete.add(`${company} ${resource.path}`)
      if (hasRows) this.struck(company, resource.path)
    }
  }

  private lose(
    company: number,
    path: string,
    runs: ReadonlyArray<LedgerRun>,
    {
      countedAs,
      hasRows,
      isTorn,
      isNoticedByRuns = true,
      warehouseMs
    }: Pick<TableLoss, "countedAs" | "isTorn" | "warehouseMs"> & {
      readonly hasRows: boolean
      readonly isNoticedByRuns?: boolean
    }
  ): void {
    const ofIt = runs.filter((run) => Number(run.company) === company)
    const before = this.losses.get(`${company} ${path}`)
    this.losses.set(`${company} ${path}`, {
      at: this.kernel.now,
      count: (before?.count ?? 0) + 1,
      ofRows: (before?.ofRows ?? 0) + (hasRows ? 1 : 0),
      isTorn: isTorn || before?.isTorn === true,
      countedAs,
      lastRun: BigInt(ofIt.at(-1)?.id ?? 0),
      pages: new Map(isNoticedByRuns ? ofIt.map(({ id, pages }) => [id, pages]) : []),
      warehouseMs,
      isRepaired: false
    })
  }
}

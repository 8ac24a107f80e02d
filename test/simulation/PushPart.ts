/**
 * The part of a seed with pushes: after healing more runs of the same pushes, then one sync.
 *
 * The checkers of pushes run at each write that leaves or is done, after each commit, and when everything was pushed,
 * before any sync. The checkers of syncs run after each commit and at the end.
 */
import type { SyncReport } from "../../src/sync/Sync.ts"
import { bounded } from "./checkers/bounded.ts"
import { type Final, noLosses, type Setting } from "./checkers/Checker.ts"
import { cursor } from "./checkers/cursor.ts"
import { differences, equal } from "./checkers/equal.ts"
import { fed } from "./checkers/fed.ts"
import { fence } from "./checkers/fence.ts"
import { forward } from "./checkers/forward.ts"
import { genuine } from "./checkers/genuine.ts"
import { history } from "./checkers/history.ts"
import { ledger } from "./checkers/ledger.ts"
import { lively } from "./checkers/lively.ts"
import { polite } from "./checkers/polite.ts"
import { progress } from "./checkers/progress.ts"
import type { CallRow, OutboxRow, PushEnd, WarehouseRow } from "./checkers/PushChecker.ts"
import { pushCheckers } from "./checkers/pushes.ts"
import { Stalled } from "./kernel/Kernel.ts"
import { safetyEnds } from "./Plan.ts"
import type { PushPlan } from "./PushPlan.ts"
import { againMicros, lockNotAvailable } from "./world/Losses.ts"
import { People, type PlannedRow } from "./world/People.ts"
import { Pushing } from "./world/Pushing.ts"
import { companyName } from "./world/Sender.ts"
import { WriteNetwork } from "./world/WriteNetwork.ts"
import { began, check, type Part, turnsMax, type World } from "./World.ts"

/** Virtual time allowed for one run after healing. */
const runMax = 2 * 3600 * 1_000_000
/** After healing, the maximum number of runs of each push until all rows are resolved. */
const runsMax = 4
/** The maximum where the source always fails for one record: its batch is halved again and again. */
const runsMaxFailing = 14
const cyclesMax = 2
/** Lock timeout of a row that is inserted by SQL, in real time. No simulated process continues meanwhile. */
const insertLockTimeoutMs = 20

/** The checkers of landed rows, also of those that a push landed. */
const watchers = [fence, genuine, forward, cursor, progress, equal, lively, history, fed, ledger, polite, bounded]

export const pushes = (world: World, drawn: PushPlan): Part => {
  const { bench, canonical, companies, connections, fire, kernel, pass, ports, source, subjects, trace, warehouse } =
    world
  const scene = { ...world.scene, drawn }
  const setting: Setting = {
    source,
    plan: drawn,
    canonical,
    kept: canonical,
    overBound: new Set(),
    excused: new Set(),
    losses: noLosses,
    isRestoreAccepted: () => false,
    earliestOf: (shown) => shown
  }
  const watching = watchers.map((checkerOf) => checkerOf(setting))
  const network = new WriteNetwork(scene, source)
  const people = new People(scene, source)
  const pushSetting = {
    source,
    plan: drawn,
    planned: people.planned,
    meddlings: people.meddlings,
    others: people.others,
    sendings: network.sendings,
    effects: network.effects,
    reads: network.reads
  }
  const pushWatching = pushCheckers.map((checkerOf) => checkerOf(pushSetting))

  const companyOf = (name: string) => companies.find((company) => companyName(company) === name) ?? 0
  const outbox = async (): Promise<ReadonlyArray<OutboxRow>> => {
    const rows = await warehouse.ask(
      `select id as number, company, resource, operation, externalid, record_id as "recordId", record::text as record, push_id as push,
              state, outcome, request_id as call, code, field, reason, differences::text as differences from tributary.outbox order by id`
    )
    return rows.map((row) => ({ ...row, company: companyOf(row["company"]!) }) as unknown as OutboxRow)
  }
  const callsWhere = async (condition: string, values: ReadonlyArray<unknown>): Promise<ReadonlyArray<CallRow>> => {
    const rows = await warehouse.ask(
      `select id as number, idempotency_key as key, state, body, (extract(epoch from closed_at) * 1000000)::bigint as settled
         from tributary.push_requests where ${condition} order by id`,
      values
    )
    return rows.map(({ settled, ...row }) => {
      return { ...row, settledAt: settled === null ? null : Number(settled) } as unknown as CallRow
    })
  }
  const unfinished = async () =>
    (await warehouse.ask("select id from tributary.pushes where finished_at is null")).map(({ id }) => id!)

  /** Runs the checkers of every snapshot, after each commit. */
  const look = async () => {
    const rows = await outbox()
    check(pushWatching, (one) => one.committed?.({ rows }))
    await world.checkTables(watching, await warehouse.checkpoints())
  }
  network.sending = (sending) =>
    kernel.work(async () => {
      const [call] = await callsWhere("idempotency_key = $1", [sending.key])
      check(pushWatching, (one) => one.sent?.({ sending, call: call ?? null }))
    })
  network.done = (done) => {
    check(pushWatching, (one) => one.done?.(done))
    people.afterDone(done)
  }
  network.read = (read) => people.afterRead(read)

  const processes = new Pushing({ ...scene, connections, network, source, ports })
  world.watch.committed = look
  world.watch.stepped = network.stepped = (owner, what) => processes.stepped(owner, what)
  processes.slept = (until) => {
    if (!drawn.on.has("U17")) return
    kernel.at(Math.round((kernel.now + until) / 2), null, () =>
      kernel.work(async () => {
        const waiting = (await outbox()).filter(({ state, operation }) => state === "pending" && operation === "create")
        people.overtake(waiting.map(({ company, resource, externalid }) => [company, resource, externalid ?? ""]))
      })
    )
  }

  /**
   * Inserts a row by SQL. If a process has the row in an open transaction, the insert is repeated after simulated time.
   */
  const insertRow = async (text: string, values: ReadonlyArray<string | null>): Promise<void> => {
    const { monitor, sessions } = bench
    sessions.tellTime(kernel.now)
    await monitor.query(`set lock_timeout = ${insertLockTimeoutMs}`)
    try {
      await monitor.query(text, [...values])
      connections.hasChanged = true
    } catch (error) {
      if ((error as { readonly code?: string }).code !== lockNotAvailable) throw error
      kernel.after(againMicros, null, () => kernel.work(() => insertRow(text, values)))
    } finally {
      await monitor.query("reset lock_timeout")
    }
  }

  /** Inserts rows by SQL, as people do. */
  const insert = async (rows: ReadonlyArray<PlannedRow>) => {
    for (const { company, resource, operation, externalid, recordId, json } of rows) {
      trace.event(kernel.now, "people", `insert ${operation} of ${resource} ${externalid ?? recordId}`)
      fire("U21 inserted by SQL")
      if (operation !== "create") fire(`U19 ${operation}`)
      await insertRow(
        operation === "create"
          ? "insert into tributary.outbox (company, resource, record) values ($1, $2, $3) on conflict do nothing"
          : "insert into tributary.outbox (company, resource, record, operation, externalid, record_id) values ($1, $2, $3, $4, $5, $6)",
        operation === "create"
          ? [companyName(company), resource, json]
          : [companyName(company), resource, json, operation, externalid, recordId]
      )
    }
  }

  let cycles = 0
  const run = async (): Promise<void> => {
    people.begin(companies)
    for (const { at, rows } of people.inserted) kernel.at(began + at, null, () => kernel.work(() => insert(rows)))
    processes.begin(people.files)
    kernel.at(began + safetyEnds(drawn), null, () => {
      people.stop()
      connections.heal()
      network.hasFaults = false
      trace.event(kernel.now, "", "healed: no more faults, no more changes by other people")
      processes.heal(() => kernel.end())
    })
    await kernel.run(turnsMax)

    /** Files whose last push died: they are pushed again. */
    const lost = new Set<string>()
    const once = async (job: Parameters<Pushing["once"]>[0]): Promise<SyncReport | null> => {
      let ended = false
      let said: SyncReport | null = null
      const bound = kernel.at(kernel.now + runMax, null, () => kernel.end())
      processes.once(job, (died, report) => {
        ended = true
        if (job.kind === "file") lost[died ? "add" : "delete"](job.file.name)
        said = report
        kernel.end()
      })
      if (!ended) await kernel.run(turnsMax)
      bound()
      if (!ended) throw new Stalled(`a run did not end within ${runMax / 1e6} s after healing`)
      return said
    }
    const isOpen = async () =>
      lost.size > 0 ||
      (await outbox()).some(({ state }) => state === "pending" || state === "in_flight") ||
      (await callsWhere("state = 'open'", [])).length > 0 ||
      (await unfinished()).length > 0
    const most = drawn.pushing.poison === "failing" ? runsMaxFailing : runsMax
    for (let runs = 0; runs === 0 || (runs < most && (await isOpen())); runs++) {
      cycles = runs + 1
      for (const file of people.files) await once({ kind: "file", file })
      for (const { company, resource } of subjects) await once({ kind: "outbox", company, resource: resource.path })
      await pass(20_000_000)
    }
    const runsSoFar = await warehouse.runs()
    const tables = new Map<string, ReadonlyMap<string, WarehouseRow>>()
    for (const { company, resource } of subjects) {
      const rows = await warehouse.ask(
        `select "id"::text as id, "_origin" as origin, "_deleted_at" as at from erp."${resource.path}" where "_company_id" = $1`,
        [company]
      )
      const byId = rows.map(({ id, origin, at }) => [id!, { id: id!, origin: origin!, deleted: at !== null }] as const)
      tables.set(`${company}/${resource.path}`, new Map(byId))
    }
    const pushed: PushEnd = {
      rows: await outbox(),
      calls: await callsWhere("true", []),
      tables,
      scanned: new Set(
        runsSoFar.filter(({ lane }) => lane !== "push").map(({ company, resource }) => `${company}/${resource}`)
      ),
      said: processes.said.map(({ push, counts }) => ({ push, counts: { ...counts } })),
      unfinished: await unfinished()
    }
    check(pushWatching, (one) => one.pushed?.(pushed))

    const final = async (report: SyncReport | null): Promise<Final> => {
      const shared = await world.finalOf(report, false)
      return {
        ...shared,
        said: shared.said ?? [],
        recollections: [],
        attempts: network.attempts,
        written: [],
        excused: new Set(),
        odd: new Set(),
        full: false,
        cycles
      }
    }
    let last: Final
    let syncs = 0
    do {
      syncs++
      last = await final(await once({ kind: "sync" }))
    } while (syncs < cyclesMax && differences(setting, last).size > 0)
    check(watching, (one) => one.healed?.(last))
  }
  return {
    run,
    end: () => ({ steps: network.attempts.length + people.planned.length, kills: processes.kills })
  }
}

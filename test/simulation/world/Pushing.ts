/**
 * The processes that push, and their faults.
 *
 * Promise: `src/outbox` is called as the command line and the service call it. A process may be killed right before a
 * commit, right after one, when a write has left, or when the source has processed it and the answer has not arrived.
 * It may sleep for minutes and wake as a zombie. All processes may be gone for days with requests left open.
 */
import { Duration, Effect } from "effect"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { datasetsDefault, tableOf } from "../../../src/warehouse/Table.ts"
import type { SyncReport } from "../../../src/sync/Sync.ts"
import * as SourceGuard from "../../../src/sync/SourceGuard.ts"
import { bucketOf } from "../../../src/processes/Ownership.ts"
import * as Supervisor from "../../../src/processes/Supervisor.ts"
import { openInput } from "../../../src/outbox/input/Input.ts"
import * as Enqueue from "../../../src/outbox/Enqueue.ts"
import type { Counts, Problem } from "../../../src/outbox/Push.ts"
import type { PushScope, PushSettings } from "../../../src/outbox/PushSession.ts"
import * as OutboxWorker from "../../../src/outbox/OutboxWorker.ts"
import { type Owner, owner as makeOwner } from "../kernel/Kernel.ts"
import type { PushPlan } from "../PushPlan.ts"
import { currentOf } from "./Programs.ts"
import { companiesOf, cycle, engineOf, type Machine, makeWorker, own, type Services } from "./Engine.ts"
import type { PushFile } from "./People.ts"
import { Processes, type ProcessLife } from "./Processes.ts"
import { companyName } from "./Sender.ts"

const tableFor = (path: string) => tableOf(serviceV2.resources.get(path)!, datasetsDefault)

const settingsOf = ({ batchRecordsMax, concurrency, pushing }: PushPlan): PushSettings => ({
  batchRecordsMax,
  useBatch: pushing.useBatch,
  keyAgeMax: Duration.millis(pushing.keyAgeMax / 1000),
  concurrency,
  // Batches are small here: some are looked up by lists.
  lookupsMax: Math.floor(batchRecordsMax / 2)
})

const optionsOf = Effect.fnUntraced(function* (
  machine: Machine<PushPlan>,
  owner: Owner,
  life: number,
  { company, resource }: { readonly company: number; readonly resource: string },
  scope: PushScope
) {
  const { drawn } = machine
  const companies = yield* companiesOf(machine, owner, life, currentOf(drawn))
  const { name, connector } = companies.find((one) => one.name === companyName(company))!
  // Other seeds send no request here.
  const companyId =
    drawn.later.sameNumber === null ? BigInt(company) : (yield* SourceGuard.identify({ name, connector })).companyId
  return {
    company: { name, connector, engine: engineOf(machine), batchRecordsMax: drawn.batchRecordsMax },
    companyId,
    table: tableFor(resource),
    children: [],
    settings: settingsOf(drawn),
    scope
  }
})

/** `tributary push <resource> --from file`. */
const pushFile = Effect.fnUntraced(function* (machine: Machine<PushPlan>, owner: Owner, life: number, file: PushFile) {
  const { name, company, resource, text } = file
  const bytes = async function* () {
    yield Buffer.from(text)
  }
  const { records } = yield* openInput("-", { stdin: bytes })
  const problems: Array<Problem> = []
  const enqueued = yield* Enqueue.enqueue({
    company: companyName(company),
    resource: serviceV2.resources.get(resource)!,
    operation: "create",
    records,
    source: name,
    onProblem: (problem) => Effect.sync(() => void problems.push(problem))
  }).pipe(
    Effect.catchTag("EnqueueRejected", () =>
      Effect.die(new Error(`${name} is rejected: ${problems.map(({ message }) => message).join("; ")}`))
    )
  )
  const scope = { push: enqueued.pushId }
  const pushed = yield* OutboxWorker.push(yield* optionsOf(machine, owner, life, file, scope))
  return { ...pushed, push: String(enqueued.pushId) }
})

const keepAll = Effect.fnUntraced(function* (machine: Machine<PushPlan>, owner: Owner, life: number) {
  const { drawn } = machine
  const tables = new Map(drawn.resources.map((path) => [path, tableFor(path)]))
  const companies = (yield* companiesOf(machine, owner, life, currentOf(drawn))).map(({ name, connector }) => ({
    name,
    connector,
    engine: engineOf(machine),
    batchRecordsMax: drawn.batchRecordsMax,
    tables: Effect.succeed(tables),
    events: []
  }))
  const names = companies.map(({ name }) => name)
  const tasks = yield* makeWorker(machine, { push: settingsOf(drawn) })
  yield* own(machine, names, (bucket) =>
    Effect.forEach(
      companies.filter(({ name }) => bucketOf(name) === bucket),
      (company) => Effect.scoped(Effect.andThen(tasks.own(company), Effect.never)),
      { concurrency: "unbounded", discard: true }
    )
  )
  return yield* Supervisor.runForever("the tasks and the outbox", tasks.run)
})

/** The work of a process. */
type Job =
  | { readonly kind: "file"; readonly file: PushFile }
  | { readonly kind: "outbox"; readonly company: number; readonly resource: string }
  | { readonly kind: "keep" }
  | { readonly kind: "sync" }

interface Life extends ProcessLife {
  readonly job: Job
  /** It is not started again. */
  readonly isExtra: boolean
}

/** Statements of a process that checks whether there is work. */
const isWaiting = /^(?:select pg_try_advisory_lock|with recursive |with clock as materialized|connected)/

const nameOf = (job: Job): string =>
  job.kind === "file"
    ? `to push ${job.file.name} (${job.file.company}/${job.file.resource})`
    : job.kind === "outbox"
      ? `to push the outbox of ${job.company}/${job.resource}`
      : job.kind === "keep"
        ? "to send the inserted rows"
        : "a sync"

export class Pushing extends Processes<Life, PushPlan> {
  private readonly jobs: Array<Job> = []
  /** When the machine wakes; null while it is awake. */
  private wakes: number | null = null
  /** Whether everything goes to sleep at the next write that leaves. */
  private isTired = false
  /** Everything went to sleep; `until` is the time when it wakes. */
  slept: (until: number) => void = () => {}
  /** Reported counts of the pushes of files that finished. */
  readonly said: Array<{ readonly push: string; readonly counts: Counts }> = []

  constructor(machine: Machine<PushPlan>) {
    super(machine, "push processes")
  }

  begin(files: ReadonlyArray<PushFile>): void {
    const { chance, kernel, drawn: plan } = this
    const { pushing, safety } = plan
    for (const file of files) {
      const at = chance.integer(0, Math.round(safety * 0.7))
      for (let number = 0; number < pushing.pushers; number++) {
        if (number > 0) this.fired("U22 two pushers of one file")
        this.begins(
          { kind: "file", file },
          at + (number === 0 || chance.chance(0.4) ? 0 : chance.skewed(100, 5_000_000))
        )
      }
    }
    for (let number = 0; number < pushing.keepers; number++) {
      if (number > 0) this.fired("U22 two services")
      this.begins({ kind: "keep" }, chance.integer(0, 2_000_000))
    }
    for (let number = 0; number < plan.processes; number++) {
      this.begins({ kind: "sync" }, chance.integer(0, plan.cycleEvery))
    }
    this.beginDisturbances()
    if (plan.webhooks.asleep > 0) {
      const at = Math.round(safety * (0.1 + 0.4 * chance.next()))
      kernel.after(at, null, () => {
        this.isTired = true
        kernel.after(20_000_000, null, () => this.sleep("U15 down at any time"))
      })
    }
  }

  private begins(job: Job, after: number): void {
    const place = this.jobs.push(job) - 1
    this.kernel.after(after, null, () => this.launch(place))
  }

  /** Ends every process, for hours or days. */
  private sleep(why: string): void {
    const { kernel } = this
    if (!this.isTired || !this.faults) return
    this.isTired = false
    const { asleep } = this.drawn.webhooks
    this.wakes = kernel.now + asleep
    this.log("", `! U15 everything is down for ${(asleep / 3.6e9).toFixed(1)} h`)
    this.fired(why)
    for (const life of this.alive) this.end(life)
    this.slept(this.wakes)
  }

  private launch(place: number): void {
    if (!this.accepting) return
    const { chance, kernel } = this
    if (this.wakes !== null && kernel.now < this.wakes) {
      kernel.at(this.wakes + chance.integer(0, 1_000_000), null, () => this.launch(place))
      return
    }
    const job = this.jobs[place]!
    this.live(place, job, (isDone) => {
      if (job.kind === "file" && isDone && !chance.chance(0.3)) return
      const wait =
        job.kind === "sync"
          ? chance.skewed(this.drawn.cycleEvery / 3, this.drawn.cycleEvery * 2)
          : chance.skewed(300_000, 15_000_000)
      kernel.after(wait, null, () => this.launch(place))
    })
  }

  protected clockOf(place: number): number {
    return place < 0 ? 0 : place % this.jumps.length
  }

  private live(place: number, job: Job, ended: (isDone: boolean) => void, isExtra = place < 0): void {
    const { machine } = this
    const letter = { file: "p", outbox: "o", keep: "s", sync: "y" }[job.kind]
    const number = ++this.lives
    const owner = makeOwner(`${letter}${Math.max(0, place)}.${number}`)
    const begin = <A>(
      program: Effect.Effect<A, unknown, Services>,
      describeEnd: (result: A) => readonly [isDone: boolean, text: string]
    ) =>
      this.start(
        { owner, place, job, isExtra, fiber: null },
        nameOf(job),
        () => program,
        ({ result, cause }) => {
          this.died = result === null
          const [isDone, text] = result === null ? [false, cause ?? "without a word"] : describeEnd(result)
          this.log(owner.name, `ends: ${text}`)
          ended(isDone)
        }
      )
    const pushed = ({ status, counts, failure }: OutboxWorker.PushReport) =>
      [
        status === "done",
        `${status} ${JSON.stringify(counts)}${failure === null ? "" : ` ${failure.kind}: ${failure.message}`}`
      ] as const
    switch (job.kind) {
      case "file":
        return begin(pushFile(machine, owner, number, job.file), (result) => {
          if (result.status === "done") this.said.push(result)
          return pushed(result)
        })
      case "outbox":
        return begin(Effect.flatMap(optionsOf(machine, owner, number, job, "outbox"), OutboxWorker.push), pushed)
      case "keep":
        return begin(keepAll(machine, owner, number), () => [true, "ended"])
      case "sync":
        return begin(cycle(machine, owner, number, { full: false }), (report) => {
          this.report = report
          return [true, "done"]
        })
    }
  }

  /** The report of the last sync. */
  private report: SyncReport | null = null
  /** Whether the process that ended last did so without a result. */
  private died = false

  // -- faults of processes ------------------------------------------------------------------------------------------------

  /** A step of a process: it may be killed, paused, or lose its locks here. */
  stepped(owner: Owner, what: string): void {
    const { chance, kernel, drawn: plan } = this
    const life = this.victim(owner)
    if (life === undefined) return
    // A process that waits for its turn has nothing to lose.
    if (isWaiting.test(what)) return
    const isSend = /^(?:POST|PATCH|DELETE) /.test(what)
    if (isSend && this.isTired) {
      kernel.after(chance.skewed(100, 3_000_000), null, () => this.sleep("U15 down when a write had left"))
      return
    }
    const { killAtSend, killAtCommit } = plan.pushing
    const strike = (rate: number, why: string): boolean => {
      if (rate === 0 || !chance.chance(rate)) return false
      this.soon(2000, () => this.kill(life, why))
      return true
    }
    if (isSend && strike(killAtSend, "C1 killed when a write had left")) return
    if (what.startsWith("answers ") && strike(killAtSend, "C1 killed when a write was done, before its answer")) return
    if (/^commit/i.test(what) && strike(killAtCommit, "C1 killed after a commit, before what follows")) return
    if (/\btributary\.(?:push_requests|outbox)\b/.test(what) && strike(killAtCommit / 2, "C1 killed before a commit"))
      return
    if (strike(plan.killRate, "C1 killed anywhere")) return
    if (plan.pauseRate > 0 && chance.chance(plan.pauseRate * (isSend ? 4 : 1))) {
      this.soon(2000, () => this.pause(life))
      return
    }
    if (plan.stopRate > 0 && chance.chance(plan.stopRate)) {
      this.soon(2000, () => {
        if (this.faults) this.interrupt(life)
      })
      return
    }
    if (plan.lockLossRate > 0 && chance.chance(plan.lockLossRate)) {
      this.machine.connections.loseLocks(owner)
      // A process that does not notice the loss continues beside the next one.
      if (chance.chance(0.5) && life.job.kind !== "sync") {
        kernel.after(chance.skewed(1_000, 5_000_000), null, () => this.beside(life))
      }
    }
  }

  /** Starts another process with the same work while the first one still runs. */
  private beside(life: Life): void {
    if (!this.faults || !this.accepting || !this.alive.has(life) || this.wakes !== null) return
    if (life.job.kind === "sync") return
    this.fired("U22 one beside the other")
    this.live(life.place, life.job, () => {}, true)
  }

  private kill(life: Life, why: string): void {
    if (this.isStruck(life, why)) this.end(life)
  }

  /** Kills a process; it is started again later. */
  private end(life: Life): void {
    this.cut(life)
    if (!life.isExtra) this.kernel.after(this.chance.skewed(50_000, 8_000_000), null, () => this.launch(life.place))
  }

  private pause(life: Life): void {
    const { chance, kernel } = this
    const draw = () =>
      chance.chance(0.2) ? chance.skewed(60_000_000, 600_000_000) : chance.skewed(1_000_000, 60_000_000)
    this.freeze(life, draw, (length) => {
      if (length <= 60_000_000 && !chance.chance(0.7)) return
      kernel.after(chance.skewed(500_000, 20_000_000), null, () => {
        if (life.owner.state !== "frozen") return
        this.loseSession(life)
        kernel.after(chance.skewed(500_000, 10_000_000), null, () => {
          if (life.owner.state === "frozen") this.beside(life)
        })
      })
    })
  }

  // -- healing ------------------------------------------------------------------------------------------------------------

  /** Stops new processes and faults. `done` is called when every process has ended its work. */
  heal(done: () => void): void {
    this.healAll(({ job }) => job.kind === "keep", done)
  }

  /** Runs a fresh process to its end. `died` is true when it ended without a result, for example without a database. */
  once(job: Job, ended: (died: boolean, report: SyncReport | null) => void): void {
    this.report = null
    this.live(-1, job, () => ended(this.died, this.report))
  }
}

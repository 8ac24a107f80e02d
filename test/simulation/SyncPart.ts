/**
 * The part of a seed with syncs, and webhooks beside them or alone: at most two cycles after healing.
 */
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { SyncReport } from "../../src/sync/Sync.ts"
import type { ResourceReport } from "../../src/verify/Report.ts"
import {
  type Checker,
  type DrainMoment,
  type Entry,
  type Final,
  type Recollection,
  keyOf,
  microsOf,
  type Row,
  type Setting,
  type Subject
} from "./checkers/Checker.ts"
import { differences } from "./checkers/equal.ts"
import { checkers } from "./checkers/index.ts"
import { chance } from "./kernel/Chance.ts"
import { Stalled } from "./kernel/Kernel.ts"
import { safetyEnds } from "./Plan.ts"
import type { CycleOptions } from "./world/Engine.ts"
import { LaggingReader } from "./world/LaggingReader.ts"
import { Losses } from "./world/Losses.ts"
import { Network } from "./world/Network.ts"
import { Restores } from "./world/Restores.ts"
import type { Command } from "./world/Service.ts"
import { Supervisor } from "./world/Supervisor.ts"
import { WarehouseClock } from "./world/WarehouseClock.ts"
import { Writers } from "./world/Writers.ts"
import { began, check, Objection, type Part, turnsMax, type World } from "./World.ts"

/** Virtual time allowed from healing to the end of the last cycle. */
const healMax = 4 * 3600 * 1_000_000
const cyclesMax = 2
/** How often a person tries a command, and the pause between two tries. */
const handTriesMax = 4
const handPause = 10 * 1_000_000
/** Virtual time allowed until webhooks have delivered everything. Retries wait up to an hour. */
const drainMax = 6 * 3600 * 1_000_000
/** The part of it in which a process really serves. */
const servedMax = 2400 * 1_000_000
/** A serving process does not wait for retries that are due later than this beyond the overlap. */
const waitedMax = 60 * 1_000_000

/** The mass-delete guard stops a full scan that misses more rows, and more of them than this share. */
const missingRowsMax = 20
const missingShareMax = 0.5

/** Moments that a seed keeps, and how often. */
const samplesMax = 24
const sampleRate = 0.1

/** A resource that events prove fresh at a time, in microseconds. */
interface Proof {
  readonly company: number
  readonly resource: string
  readonly provenAt: number
}

const isWaiting = (state: string): boolean => state === "pending" || state === "dead_letter"

export const syncs = (world: World): Part => {
  const { bench, canonical, companies, connections, drawn, feed, fire, kept, kernel, pass } = world
  const { ports, scene, seed, sender, source, subjects, trace, warehouse } = world
  const hooks = drawn.hooks !== "off"
  const writers = new Writers(scene, source)
  sender.writeSilently = (company, path) => writers.writeSilently(company, serviceV2.resources.get(path)!)
  const losses = new Losses(scene, bench.monitor, subjects)
  const restores = new Restores(scene, bench.monitor, losses)
  const clock = new WarehouseClock(scene)
  const reader = new LaggingReader(scene, bench.sessions)
  reader.warehouseNow = () => kernel.now + clock.aheadMicros
  const { overBound, excused } = writers
  let isRestoreAccepted = false
  const setting: Setting = {
    source,
    plan: drawn,
    canonical,
    kept,
    overBound,
    excused,
    losses,
    isRestoreAccepted: () => isRestoreAccepted,
    earliestOf: (shown) => clock.earliestOf(shown)
  }
  const watching = checkers.map((checkerOf) => checkerOf(setting))

  const states = new Map<string, string>()
  const numbers = new Map<string, string>()
  const lookAtInbox = async (entries: ReadonlyArray<Entry>) => {
    if (await warehouse.isRewritten()) return
    for (const { company, eventId, number } of entries) {
      const key = `${company} ${eventId}`
      if (numbers.has(key) && numbers.get(key) !== number) fire("R8 delivered again after its removal")
      numbers.set(key, number)
    }
    const touched = new Set<string>()
    for (const { number, state, company, resource } of entries) {
      if (states.get(number) === state) continue
      states.set(number, state)
      if (state === "done" && resource !== null && drawn.resources.includes(resource))
        touched.add(`${company} ${resource}`)
    }
    const settled = await Promise.all(
      [...touched].map((key) => {
        const [company, path] = key.split(" ")
        return warehouse.subject(Number(company), serviceV2.resources.get(path!)!)
      })
    )
    check(watching, (one) => one.stored?.({ now: kernel.now, entries, subjects: settled }))
  }

  const proven = new Map<string, number>()
  /** Compares each proof that is newer than the one before with the source. */
  const lookAtProofs = async (proofs: ReadonlyArray<Proof>, entries: ReadonlyArray<Entry>) => {
    for (const { company, resource: path, provenAt } of proofs) {
      const key = `${company} ${path}`
      const before = proven.get(key) ?? began
      if (provenAt <= before) continue
      proven.set(key, provenAt)
      fire("W13 a new proof")
      if (source.history(company, path).some(({ at }) => at > before && at <= provenAt))
        fire("W13 a change before the proven time")
      const own = entries.filter((one) => one.company === company && one.resource === path)
      const waiting = new Set(own.flatMap(({ state, recordId }) => (isWaiting(state) ? [recordId] : [])))
      const subject = await warehouse.subject(company, serviceV2.resources.get(path)!)
      const { hiddenSpans } = sender
      check(watching, (one) => one.proved?.({ provenAt, subject, waiting, unheard: writers.unheard, hiddenSpans }))
    }
  }

  const samples: Array<Pick<Recollection, "company" | "resource" | "position" | "rows" | "time">> = []
  const sampling = chance(seed, "recollections")
  /** Keeps what the warehouse shows at this moment, for a query as of it at the end. */
  const sample = async ({ company, resource, rows }: Subject) => {
    const position = feed.place
    if (position === null || samples.length >= samplesMax || !sampling.chance(sampleRate)) return
    // Until a run has repaired them, damaged rows are not those of the position.
    if (losses.isOpen(company, resource.path)) return
    samples.push({ company, resource, position, rows, time: await warehouse.time() })
  }

  /** Runs the checkers of every snapshot, after each commit. */
  const look = async () => {
    // The commit of the rewrite is looked at, with everything that was committed meanwhile.
    if (await warehouse.isRewritten()) {
      connections.hasChanged = true
      return
    }
    const { entries, checkpoints, proofs } = hooks
      ? await warehouse.inboxAndCheckpoints()
      : { entries: [], checkpoints: await warehouse.checkpoints(), proofs: [] }
    if (hooks) {
      await lookAtInbox(entries)
      await lookAtProofs(proofs, entries)
    }
    await world.checkTables(watching, checkpoints, {
      isOpen: (company, path) => losses.isOpen(company, path),
      landed: ({ company, resource: { path }, rows, marks }, runs) => {
        const key = `${company} ${path}`
        network.live.set(key, [...rows.values()].filter(({ deleted }) => !deleted).length)
        const shape = marks.find(({ lane }) => lane === "live")?.shape ?? ""
        if (/ignore_fields=(?!none)/.test(shape)) writers.ignoring.add(key)
        else writers.ignoring.delete(key)
        losses.observe(company, path, runs)
      },
      checked: sample
    })
  }

  const network = new Network(scene, source)
  connections.aheadMicros = () => clock.aheadMicros
  sender.answered = (answer) =>
    kernel.work(async () => {
      const entries = answer.arrival.eventId === null ? [] : await warehouse.inbox(answer.arrival.eventId)
      check(watching, (one) => one.answered?.({ answer, entries }))
    })
  network.reenabled = (owner, company, disabledAt) => {
    // A person may enable a subscription without a proof.
    if (owner.name.startsWith("c.")) return
    kernel.work(async () => {
      await lookAtInbox(await warehouse.inbox())
      check(watching, (one) => one.reenabled?.({ company, disabledAt }))
    })
  }
  const processes = new Supervisor({ ...scene, connections, network, source, ports })
  world.watch.committed = look
  world.watch.stepped = network.stepped = (owner, what) => {
    losses.stepped()
    processes.stepped(owner, what)
  }
  losses.changed = () => {
    connections.hasChanged = true
    reader.lost()
  }
  losses.struck = (company, path) => {
    // The network returns a false empty list only where the warehouse can detect it.
    network.live.set(`${company} ${path}`, 0)
    processes.loadAgain()
  }
  losses.historyDropped = () => processes.loadAgain()
  /** Checks within a process. A violation ends the seed, not the process. */
  const checkLater = (ask: (checker: Checker) => string | null | undefined) => {
    for (const checker of watching) {
      const what = ask(checker) ?? null
      if (what !== null) kernel.work(() => Promise.reject(new Objection(checker, what)))
    }
  }
  network.isSubscribed = () => processes.knowsAll
  network.subscribing = (by, company) => {
    if (by.state === "dead" || !processes.knowsOne(company)) return
    checkLater((one) => one.doubled?.({ company, by: by.name }))
  }

  reader.decided = (moment) => check(watching, (one) => one.decided?.(moment))
  processes.reported = (moment) => checkLater((one) => one.reported?.(moment))

  let cycles = 0
  const run = async (): Promise<void> => {
    if (hooks) await warehouse.nameCompanies(companies, source, drawn.later.sameNumber)
    writers.begin(subjects)
    if (hooks) sender.begin(source, ports)
    processes.begin()
    losses.begin()
    restores.begin()
    clock.begin()
    reader.begin()
    kernel.at(began + safetyEnds(drawn), null, () => {
      writers.stop()
      losses.stop()
      restores.stop()
      clock.heal()
      reader.stop()
      sender.heal()
      connections.heal()
      network.hasFaults = false
      trace.event(kernel.now, "", "healed: no more faults, no more writes")
      processes.heal(() => kernel.end())
    })
    await kernel.run(turnsMax)

    // The longest pause that an intermediary can request is over by then.
    if (drawn.on.has("S2h")) await pass(61 * 60_000_000)
    const bound = () => void kernel.at(kernel.now + healMax, null, () => kernel.end())
    if (!hooks) bound()
    const cycle = async (cycleOptions: CycleOptions): Promise<SyncReport | null> => {
      let ended = false
      let said: SyncReport | null = null
      processes.once(cycleOptions, (report, cause) => {
        ended = true
        said = report
        if (cause !== null) trace.event(kernel.now, "h", `died: ${cause}`)
        kernel.end()
      })
      if (!ended) await kernel.run(turnsMax)
      if (!ended) throw new Stalled(`a cycle did not end within ${healMax / 1e6} s after healing`)
      return said
    }
    const verify = async (): Promise<ReadonlyArray<ResourceReport>> => {
      // The database may still be starting. A person tries again.
      for (let tries = 1; tries <= handTriesMax; tries++) {
        let reports: ReadonlyArray<ResourceReport> | null = null
        const cancel = kernel.at(kernel.now + healMax, null, () => kernel.end())
        processes.verify((ended) => {
          reports = ended
          kernel.end()
        })
        await kernel.run(turnsMax)
        cancel()
        if (reports !== null) return reports
        await pass(handPause)
      }
      throw new Stalled("verify fails after healing")
    }
    /** A fresh process serves until all deliveries are processed, and for one more check after that. */
    const drain = async (): Promise<void> => {
      const byHand = async (what: Command) => {
        // The database may still be starting. A person tries again.
        for (let tries = 1; ; tries += 1) {
          let isGood = false
          processes.command(what, (isDone) => {
            isGood = isDone
            kernel.end()
          })
          await kernel.run(turnsMax)
          if (isGood) return
          if (tries === handTriesMax) throw new Stalled(`webhooks ${what} fails after healing`)
          await pass(handPause)
        }
      }
      // A disabled subscription is enabled again without a person.
      const isForPeople = ({ paused, cancelled }: { readonly paused: boolean; readonly cancelled: boolean }) =>
        paused || cancelled
      if (!processes.isSubscribed || source.subscriptions().some(isForPeople)) await byHand("ensure")
      // Events of records that the source refused to show are dead letters until a person replays them.
      if (drawn.on.has("S3")) await byHand("replay")
      const { checkEvery, cycleEvery } = drawn.webhooks
      const until = kernel.now + drainMax
      let stop = processes.service()
      const end = async () => {
        stop()
        const ended = kernel.now + 120_000_000
        while (!processes.isIdle && kernel.now < ended) await pass(500_000)
        if (!processes.isIdle) throw new Stalled("a service that was asked to stop has not stopped within two minutes")
      }
      const look = Math.max(checkEvery, 2 * cycleEvery) * 1.2
      let quiet = 0
      for (let served = 0; quiet < 2 && kernel.now < until && served < servedMax; served += look) {
        await pass(look)
        const isQuiet =
          !sender.isBusy &&
          (await warehouse.gaps()).length === 0 &&
          (await warehouse.inbox()).every(({ state }) => state !== "pending")
        quiet = isQuiet ? quiet + 1 : 0
        const due = isQuiet ? null : await warehouse.due()
        // A process that starts after a while without one reads everything again when the overlap has passed.
        if (due === null || due - kernel.now < drawn.overlap + waitedMax) continue
        // Nothing happens until then, so that time is not simulated in small steps.
        await end()
        await pass(due - kernel.now)
        stop = processes.service()
      }
      await end()
      // A create request of a killed process may have arrived after the last ensure.
      const urls = source.subscriptions().flatMap(({ cancelled, url }) => (cancelled ? [] : [url]))
      if (new Set(urls).size < urls.length) await byHand("ensure")
    }
    const final = async (report: SyncReport | null, full: boolean): Promise<Final> => {
      // The guard stops a scan of a restored source until a person accepts the deletions.
      const isDisputed = writers.wentBack && !full
      const shared = await world.finalOf(report, isDisputed)
      const recollections: Array<Recollection> = []
      for (const one of samples) {
        const asOf = await warehouse.asOf(one.company, one.resource, one.position)
        const atTime = await warehouse.asOf(one.company, one.resource, one.time)
        fire(typeof asOf === "string" ? "past refused" : "past answered")
        recollections.push({
          ...one,
          asOf,
          idsAtTime: typeof atTime === "string" ? atTime : atTime.map(({ id }) => id)
        })
      }
      const died = [{ resource: "all", company: 0, status: "died", reason: "the process ended with a defect" }]
      return {
        ...shared,
        said: shared.said ?? died,
        recollections,
        attempts: network.attempts,
        excused: new Set([...excused, ...losses.deletedByHand]),
        odd: writers.odd,
        full,
        cycles,
        written: await writers.written(warehouse)
      }
    }
    const checkHealed = (state: Final) => check(watching, (one) => one.healed?.(state))
    /** The records that left the selection, where they are so many that the mass-delete guard rightly stops their deletion. */
    const leftSelection = async ({
      company,
      resource
    }: Pick<Subject, "company" | "resource">): Promise<ReadonlyArray<string>> => {
      if (!drawn.later.rules.some(({ where }) => where?.resource === resource.path)) return []
      const { rows } = await warehouse.subject(company, resource)
      const present = new Set(
        source.state(company, resource.path).map((text) => String((JSON.parse(text) as { readonly id: number }).id))
      )
      const live = [...rows.values()].filter(({ deleted }) => !deleted)
      const gone = live.filter(({ id }) => !present.has(id))
      return gone.length > missingRowsMax && gone.length > live.length * missingShareMax
        ? gone.map(({ id }) => keyOf(company, resource.path, id))
        : []
    }
    /**
     * Syncs as {@link cycle}. Where the guard stops deletions that the source explains, a person accepts them: at once, or
     * at the end together with the restore of the source.
     */
    const attendedCycle = async (): Promise<SyncReport | null> => {
      const report = await cycle({ full: false })
      const blocked = (report?.companies ?? [])
        .flatMap(({ outcomes }) => outcomes)
        .filter(({ massDeleteBlocked }) => massDeleteBlocked !== null)
      const explained = await Promise.all(
        subjects
          .filter(({ company, resource }) =>
            blocked.some((one) => Number(one.companyId) === company && one.resource === resource.path)
          )
          .map(leftSelection)
      )
      const gone = explained.flat()
      if (writers.wasRestored) for (const key of gone) excused.add(key)
      if (writers.wasRestored || gone.length === 0) return report
      fire("G3 a person accepted deletions")
      return cycle({ full: false, acceptDeletions: true })
    }
    const isEqual = (state: Final) => [...differences(setting, state).keys()].every((key) => state.excused.has(key))

    if (hooks) {
      // A resource that was never loaded cannot be kept equal by webhooks.
      const alone = drawn.hooks === "only" && processes.loaded
      if (!alone) await attendedCycle()
      await drain()
      const drained: DrainMoment = {
        subjects: await Promise.all(subjects.map(({ company, resource }) => warehouse.subject(company, resource))),
        entries: await warehouse.inbox(),
        gaps: await warehouse.gaps(),
        excused: new Set([...excused, ...writers.unheard, ...losses.deletedByHand]),
        odd: writers.odd,
        poison: writers.poison,
        subscriptions: source.subscriptions(),
        alone
      }
      check(watching, (one) => one.drained?.(drained))
      bound()
    }
    // A backfill that began is completed; otherwise its scan would stay open.
    if (drawn.on.has("BF")) await cycle({ full: false, backfill: true })
    let last: Final
    do {
      cycles++
      last = await final(await attendedCycle(), false)
    } while (
      cycles < cyclesMax &&
      (!isEqual(last) ||
        last.said.some(({ status }) => status === "failed") ||
        // The first sync may begin before the server has noticed the end of a killed process.
        last.runs.some(({ status }) => status === "running"))
    )
    checkHealed(last)
    if (await warehouse.noticedClock()) fire("K3 a run noticed it")
    // Without synced_through, a full scan proves nothing about changes within the overlap.
    if (drawn.on.has("S8")) await pass(drawn.overlap)
    // Some operators run a full scan first; others accept the restore at once.
    if (writers.wasRestored && chance(seed, "operator").chance(0.5)) {
      const looked = await final(await cycle({ full: true }), false)
      if (looked.said.some(({ status }) => status === "quarantined")) fire("S14 a full scan reported it")
      check(watching, (one) => one.disputed?.(looked))
    }
    isRestoreAccepted = writers.wentBack
    // After a restore, more records may be missing than a full scan deletes without permission.
    const accepting: CycleOptions = writers.wasRestored
      ? { full: false, acceptRestored: true, acceptDeletions: true }
      : { full: true, acceptRestored: writers.wentBack }
    if (excused.size + losses.deletedByHand.size > 0) {
      const beganAt = kernel.now
      last = await final(await cycle(accepting), true)
      // A row that was observed in the future loses to any read. While its time passes, it looks newer than the scan.
      const isPassing = ({ observedAt }: Row) => microsOf(observedAt) >= beganAt && microsOf(observedAt) <= kernel.now
      const passing = last.subjects.flatMap(({ company, resource, rows }) =>
        [...rows.values()].filter(isPassing).map(({ id }) => keyOf(company, resource.path, id))
      )
      const different = differences(setting, last)
      if (drawn.on.has("K3") && passing.some((key) => different.has(key)))
        last = await final(await cycle(accepting), true)
      checkHealed(last)
    }
    if (drawn.later.sameNumber !== null) {
      const reports = await verify()
      check(watching, (one) => one.verified?.({ reports, differences: differences(setting, last) }))
    }
  }
  return {
    run,
    end: () => ({ steps: network.attempts.length + drawn.writes, kills: processes.kills })
  }
}

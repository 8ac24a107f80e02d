/** The processes that sync and serve webhooks. Faults strike at steps: right before or after any statement or request. */
import type { Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import type { SyncReport } from "../../../src/sync/Sync.ts"
import type { ResourceReport } from "../../../src/verify/Report.ts"
import { type Owner, owner as makeOwner } from "../kernel/Kernel.ts"
import type { SyncMoment } from "../checkers/Checker.ts"
import { momentOf, type Period, sleepOf } from "../Plan.ts"
import type { RulesPeriod } from "../RulesPlan.ts"
import { type Machine, type CycleOptions, cycle, verify } from "./Engine.ts"
import { Processes, type ProcessLife } from "./Processes.ts"
import { currentOf, type Program, programOf } from "./Programs.ts"
import { type Command, command, serve } from "./Service.ts"

/** The place of the process that first runs as the next release, with the next configuration. */
const firstPlace = 6
/**
 * The place of the process that backfills. It continues until the backfill is complete, and often begins another one.
 */
const backfillPlace = 7
/** The places of the processes that serve webhooks begin here. */
const servicePlace = 20

interface Life extends ProcessLife {
  /** Called when it was killed. */
  readonly killed?: () => void
}

export class Supervisor extends Processes<Life> {
  /** Remaining lives of a crash loop. Each ends after its next commit. */
  private crashes = 0
  /** Whether a sync has read every resource to its end. */
  private isLoaded = false
  /** Number of losses of tables so far. */
  private loadsLost = 0
  /** Whether `webhooks ensure` has succeeded once. */
  isSubscribed = false
  /** Subscriptions that existed when it last succeeded: the warehouse knows these. */
  private known: ReadonlySet<Subscription> = new Set()
  /** A process has ended a sync. */
  reported: (moment: SyncMoment) => void = () => {}
  private readonly begun = this.kernel.now
  /** Whether the current release has synced. */
  private hasNewer = false

  constructor(machine: Machine) {
    super(machine, "processes")
  }

  /** Starts the processes of the safety phase. Each repeats: a cycle, then a wait. */
  begin(): void {
    const { drawn, kernel } = this
    for (let place = 0; place < drawn.processes; place++) {
      kernel.after(this.chance.integer(0, drawn.cycleEvery), null, () => this.launch(place))
    }
    if (drawn.hooks !== "off") this.beginServices()
    for (const { from } of drawn.later.periods.slice(1)) {
      kernel.after(Math.round(from * drawn.safety), null, () => this.launch(firstPlace))
    }
    for (const period of drawn.later.rules.slice(1)) {
      const from = Math.round(momentOf(drawn, period.from))
      kernel.after(from, null, () => this.changeRules(period, true))
      kernel.after(from + this.lagOf(period), null, () => this.changeRules(period, false))
    }
    if (drawn.on.has("BF") && drawn.hooks !== "only") {
      kernel.after(this.chance.integer(0, drawn.safety), null, () => {
        this.fired("BF backfill")
        this.launch(backfillPlace)
      })
    }
    if (drawn.on.has("C8")) {
      kernel.after(this.chance.integer(0, drawn.safety / 2), null, () => {
        this.crashes = this.chance.integer(3, 10)
        this.fired("C8 crash loop")
      })
    }
    this.beginDisturbances()
  }

  private beginServices(): void {
    const { chance, drawn, kernel } = this
    for (let place = 0; place < drawn.processes; place++) {
      kernel.after(chance.integer(0, 2_000_000), null, () => this.launch(servicePlace + place))
    }
    if (drawn.on.has("W6")) {
      for (let times = chance.integer(1, 3); times > 0; times--) {
        kernel.after(chance.integer(0, drawn.safety), null, () => {
          if (this.accepting && this.wakes() === null) this.command("rotate")
        })
      }
    }
    this.subscribe()
    const sleep = sleepOf(drawn)
    if (sleep === null) return
    kernel.after(sleep.from, null, () => {
      this.log("", `! R1 everything is down for ${((sleep.to - sleep.from) / 1e6).toFixed(0)} s`)
      this.fired("R1 down")
      for (const life of this.alive) if (life.place >= servicePlace) this.end(life)
    })
  }

  /** A person creates the subscriptions, and repeats the command until it succeeds. */
  private subscribe(): void {
    const { drawn, kernel } = this
    const again = () => {
      if (!this.accepting) return
      const wakes = this.wakes()
      if (wakes !== null) return void kernel.at(wakes, null, again)
      this.command("ensure", (isDone) => {
        if (!isDone) return void kernel.after(this.chance.skewed(1_000_000, 10_000_000), null, again)
        this.isSubscribed = true
        this.known = new Set(this.activeSubscriptions())
        // The person repeats the command later.
        kernel.after(this.chance.skewed(drawn.safety / 6, 2 * drawn.safety), null, again)
      })
    }
    again()
  }

  private activeSubscriptions(): ReadonlyArray<Subscription> {
    return this.machine.source.subscriptions().filter(({ cancelled }) => !cancelled)
  }

  /** Whether the warehouse knows every existing subscription. */
  get knowsAll(): boolean {
    return this.isSubscribed && this.activeSubscriptions().every((one) => this.known.has(one))
  }

  /** Whether the warehouse knows a subscription of the company. */
  knowsOne(company: number): boolean {
    const { source } = this.machine
    return this.activeSubscriptions().some((one) => source.companyOf(one) === company && this.known.has(one))
  }

  /** When the machine wakes; null while it is awake. */
  private wakes(): number | null {
    const sleep = sleepOf(this.drawn)
    const at = this.kernel.now - this.begun
    return sleep === null || at < sleep.from || at >= sleep.to ? null : this.begun + sleep.to
  }

  private launch(place: number): void {
    if (!this.accepting) return
    const { drawn, kernel } = this
    const wakes = this.wakes()
    if (wakes !== null) {
      kernel.at(wakes + this.chance.integer(0, 1_000_000), null, () => this.launch(place))
      return
    }
    if (place >= servicePlace) {
      this.serve(place)
      return
    }
    // The other processes are in this period already: one more process is not needed.
    if (place === firstPlace && this.periodOf(place) === this.periodOf(0) && this.rulesOf(place) === this.rulesOf(0))
      return
    const life: Life = { owner: makeOwner(`p${place}.${++this.lives}`), place, fiber: null }
    const isBackfill = place === backfillPlace
    const period = this.periodOf(place)
    const rules = this.rulesOf(place)
    const program = period === null ? currentOf(drawn, rules) : programOf(drawn, period)
    const { loadsLost } = this
    const goesBack = rules === this.rulesOf(firstPlace)
    this.run(life, { full: false, backfill: isBackfill, program, goesBack }, (report) => {
      this.recordReleases(program, report)
      if (rules !== this.rulesOf(place)) this.fired("G3 the rules changed during a run")
      if (report?.companies.some(({ outcomes }) => outcomes.some(({ failure }) => failure?.kind === "RulesChanged")))
        this.fired("G3 a run was refused")
      if (drawn.on.has("G1") && period !== this.periodOf(place)) this.fired("G1 a configuration changed during a run")
      const isDone =
        report?.companies.every(
          ({ failure: ofAll, outcomes }) =>
            ofAll === null &&
            outcomes.every(({ failure, massDeleteBlocked }) => failure === null && massDeleteBlocked === null)
        ) === true
      // A sync that began before a table was lost proves nothing about it.
      if (isDone && loadsLost === this.loadsLost) this.isLoaded = true
      if (drawn.hooks === "only" && this.isLoaded) return
      // Some backfill once more.
      if (isBackfill && isDone && this.chance.chance(0.3)) return
      const wait = this.chance.skewed(drawn.cycleEvery / 3, drawn.cycleEvery * 2)
      kernel.after(wait, null, () => this.launch(place))
    })
  }

  /** A table was lost. If webhooks are alone, a person syncs once more, since no event reports the loss. */
  loadAgain(): void {
    this.loadsLost += 1
    if (!this.isLoaded) return
    this.isLoaded = false
    const { drawn, kernel } = this
    if (drawn.hooks !== "only") return
    for (let place = 0; place < drawn.processes; place++)
      kernel.after(drawn.cycleEvery / 3, null, () => this.launch(place))
  }

  /** Records what an older release did after a newer one has finished a sync. */
  private recordReleases({ release }: Program, report: SyncReport | null): void {
    const outcomes = report?.companies.flatMap((company) => company.outcomes) ?? []
    if (release === "current") {
      if (outcomes.some(({ status }) => status === "done")) this.hasNewer = true
      return
    }
    if (outcomes.some(({ failure }) => failure?.kind === "NewerCatalogue"))
      this.fired("G2 an older release was refused")
    if (this.hasNewer && outcomes.some(({ totals }) => totals.inserted + totals.updated > 0)) {
      this.fired("G2 an older release wrote after a newer one")
    }
  }

  /** The period of the process at a place; null when the plan has no periods. */
  private periodOf(place: number): Period | null {
    const { drawn, kernel } = this
    const share = (kernel.now - this.begun) / drawn.safety
    const { periods } = drawn.later
    return periods.findLast(({ from, lag }) => share >= from + (place === firstPlace ? 0 : lag)) ?? periods[0] ?? null
  }

  private lagOf({ lag }: RulesPeriod): number {
    return Math.round(lag * this.drawn.safety)
  }

  /** The privacy rules that a process at a place has when it begins; undefined when there are none. */
  private rulesOf(place: number): RulesPeriod | undefined {
    const { drawn, kernel } = this
    const { rules } = drawn.later
    if (place < 0) return rules.at(-1)
    const at = kernel.now - this.begun
    const lagOf = (period: RulesPeriod) => (isFirstWithRules(place) ? 0 : this.lagOf(period))
    return rules.findLast((period) => at >= Math.round(momentOf(drawn, period.from)) + lagOf(period)) ?? rules[0]
  }

  /** A person changes the privacy rules, and restarts the processes: first some of them, then the others. */
  private changeRules({ rules, stopsSyncs }: RulesPeriod, isFirst: boolean): void {
    if (!this.accepting) return
    this.log("", `the privacy rules of ${isFirst ? "the first process" : "the others"} are ${JSON.stringify(rules)}`)
    this.fired("G3 the rules changed")
    for (const life of this.alive) {
      if (life.place >= servicePlace) {
        // No service with earlier rules receives after a service with the new ones has begun.
        if (isFirst) this.restart(life)
      } else if (
        life.place >= 0 &&
        stopsSyncs &&
        isFirstWithRules(life.place) === isFirst &&
        life.owner.state === "running"
      )
        life.fiber?.interruptUnsafe()
    }
    if (this.drawn.hooks !== "only" && isFirst) this.launch(firstPlace)
    // Where webhooks are alone, a person syncs: values that a rule no longer changes are read again.
    if (!isFirst) this.loadAgain()
  }

  private restart(life: Life): void {
    this.cut(life)
    this.kernel.after(this.chance.skewed(50_000, 8_000_000), null, () => this.launch(life.place))
  }

  /** Whether a sync has read every resource to its end. */
  get loaded(): boolean {
    return this.isLoaded
  }

  protected clockOf(place: number): number {
    return place % servicePlace
  }

  private serve(place: number): Life {
    const life: Life = { owner: makeOwner(`${place < 0 ? "h" : `s${place}`}.${++this.lives}`), place, fiber: null }
    const used = currentOf(this.drawn, this.rulesOf(place))
    const program = (skew: () => number) => serve(this.machine, life.owner, numberOf(life), skew, used)
    this.start(life, "to serve", program, ({ cause }) => {
      this.machine.ports.close(life.owner)
      this.log(life.owner.name, `serves no longer: ${cause ?? "it has ended"}`)
      if (place >= 0) this.kernel.after(this.chance.skewed(50_000, 8_000_000), null, () => this.launch(place))
    })
    return life
  }

  /** A person runs a command. */
  command(what: Command, ended: (isDone: boolean) => void = () => {}): void {
    const life: Life = { owner: makeOwner(`c.${++this.lives}`), place: -2, fiber: null, killed: () => ended(false) }
    const program = () => command(this.machine, life.owner, numberOf(life), what, currentOf(this.drawn))
    this.start(life, `to ${what}`, program, ({ cause }) => {
      if (what === "rotate") this.fired(cause === null ? "W6 rotated" : "W6 rotation failed")
      this.log(life.owner.name, `ends: ${cause ?? "done"}`)
      ended(cause === null)
    })
  }

  /** A person verifies every company. `ended` gets null where the process died. */
  verify(ended: (reports: ReadonlyArray<ResourceReport> | null) => void): void {
    const life: Life = { owner: makeOwner(`v.${++this.lives}`), place: -2, fiber: null }
    this.start(
      life,
      "to verify",
      () => verify(this.machine, life.owner, numberOf(life)),
      ({ result, cause }) => {
        this.log(
          life.owner.name,
          `ends: ${result?.map(({ resource, status }) => `${resource} ${status}`).join("; ") ?? cause}`
        )
        ended(result)
      }
    )
  }

  private run(
    life: Life,
    options: CycleOptions,
    ended: (report: SyncReport | null, cause: string | null) => void
  ): void {
    const number = numberOf(life)
    const what = options.backfill === true ? "a backfill" : options.full ? "a full sync" : "a sync"
    const program = () => cycle(this.machine, life.owner, number, options)
    this.start(life, what, program, ({ result: report, cause }) => {
      const results = report?.companies.flatMap((company) =>
        company.failure !== null && company.outcomes.length === 0
          ? [`${company.name} ${company.failure.kind}`]
          : company.outcomes.map(
              ({ resource, status, failure }) => `${resource} ${status}${failure === null ? "" : ` ${failure.kind}`}`
            )
      )
      this.log(life.owner.name, `ends: ${results?.join("; ") ?? cause}`)
      const outcomes = report?.companies.flatMap((company) => company.outcomes) ?? []
      this.reported({
        results: outcomes.map(({ resource, companyId, status, failure }) => {
          return { resource, company: Number(companyId), status, failure }
        }),
        attempts: this.machine.network.attempts.filter((one) => one.owner === life.owner && one.life === number)
      })
      ended(report, cause)
    })
  }

  /** A step of a process: it may be killed, paused, or lose its locks here. */
  stepped(owner: Owner, what: string): void {
    const { chance, drawn } = this
    const life = this.victim(owner)
    if (life === undefined) return
    if (drawn.on.has("R2") && what.startsWith("insert into tributary.inbox") && chance.chance(0.05)) {
      this.soon(200, () => this.kill(life, "R2 killed after storing"))
      return
    }
    if (this.crashes > 0 && /^commit/i.test(what)) {
      this.crashes--
      this.soon(3000, () => this.kill(life, "C8 crash after a commit"))
      return
    }
    if (drawn.killRate > 0 && chance.chance(drawn.killRate)) {
      this.soon(2000, () => this.kill(life, "C1 kill"))
      return
    }
    // A backfill has few answers, and the pages that it has read may become old before they are landed.
    const isRead = life.place === backfillPlace && what.startsWith("/")
    const pauseRate = drawn.pauseRate * (isRead ? 20 : 1)
    if (pauseRate > 0 && chance.chance(pauseRate)) {
      this.soon(2000, () => this.pause(life))
      return
    }
    if (drawn.stopRate > 0 && chance.chance(drawn.stopRate)) {
      this.soon(2000, () => this.interrupt(life))
      return
    }
    if (drawn.lockLossRate > 0 && chance.chance(drawn.lockLossRate)) this.machine.connections.loseLocks(owner)
  }

  private kill(life: Life, why: string): void {
    if (!this.isStruck(life, why)) return
    this.end(life)
    life.killed?.()
    if (life.place < 0) return
    this.kernel.after(this.chance.skewed(50_000, 8_000_000), null, () => this.launch(life.place))
  }

  /** Kills a process: it runs no further instruction. */
  private end(life: Life): void {
    this.cut(life)
    if (life.place >= servicePlace && this.wakes() !== null) this.launch(life.place)
  }

  private pause(life: Life): void {
    const { chance, drawn, kernel } = this
    const length = () => chance.skewed(1_000_000, 600_000_000)
    this.freeze(life, length, () => {
      // A service manager starts another process in the meantime. The server may give the locks to that one.
      if (!chance.chance(0.7)) return
      kernel.after(chance.skewed(500_000, 20_000_000), null, () => {
        if (life.owner.state === "frozen") this.loseSession(life)
      })
      if (drawn.processes !== 1) return
      kernel.after(chance.skewed(500_000, 30_000_000), null, () => {
        if (life.owner.state === "frozen" && this.faults) this.launch(life.place)
      })
    })
  }

  // -- healing ----------------------------------------------------------------------------------------------------------

  /** Stops new cycles and faults. `done` is called when every process has ended its work. */
  heal(done: () => void): void {
    this.healAll(({ place }) => place >= servicePlace, done)
  }

  /** A fresh process that serves. Returns a function that requests its end. */
  service(): () => void {
    const life = this.serve(-1)
    return () => life.fiber?.interruptUnsafe()
  }

  get isIdle(): boolean {
    return this.alive.size === 0
  }

  /** One cycle of a fresh process, to its end. */
  once(options: CycleOptions, ended: (report: SyncReport | null, cause: string | null) => void): void {
    this.run({ owner: makeOwner(`h.${++this.lives}`), place: -1, fiber: null }, options, ended)
  }
}

/** Services change together, beside the process that first runs with the next rules. */
const isFirstWithRules = (place: number): boolean => place === firstPlace || place >= servicePlace

const numberOf = ({ owner }: Life): number => Number(owner.name.split(".")[1])

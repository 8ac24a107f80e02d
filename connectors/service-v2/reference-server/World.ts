/**
 * The whole state of the server.
 *
 * Promise: {@link World.reset} removes all earlier state; later answers depend only on the seed, the clock and the
 * requests.
 */
import { serviceV2 } from "../catalogue/index.ts"
import { Events } from "./events/Events.ts"
import type { EventsState } from "./events/state.ts"
import type { Network } from "./events/Network.ts"
import type { Dialect } from "./http/dialect.ts"
import { plainDialect } from "./http/dialect.ts"
import { Faults } from "./http/faults.ts"
import type { FaultsState } from "./http/faults.ts"
import { Idempotency } from "./http/idempotency.ts"
import type { KeptAnswer } from "./http/idempotency.ts"
import { Journal } from "./http/journal.ts"
import { Rate } from "./http/rate.ts"
import type { RateState } from "./http/rate.ts"
import { Tokens } from "./http/tokens.ts"
import type { StoredToken } from "./http/tokens.ts"
import type { Limits } from "./Limits.ts"
import { plainLimits } from "./Limits.ts"
import type { Random } from "./random.ts"
import { random } from "./random.ts"
import type { CompanySettings, Context } from "./rules/Rules.ts"
import { openSettings } from "./rules/Rules.ts"
import { rules } from "./rules/index.ts"
import type { ClockState, ServerClock } from "./ServerClock.ts"
import type { SeedOptions } from "./seed/seed.ts"
import { seed } from "./seed/seed.ts"
import { Renderer } from "./store/render.ts"
import { Store } from "./store/Store.ts"
import type { StoreState } from "./store/Store.ts"

/** The whole state at one moment, without the journal of requests. It never changes. */
export interface WorldState {
  readonly clock: ClockState
  readonly store: StoreState
  readonly tokens: ReadonlyArray<StoredToken>
  readonly rate: ReadonlyArray<RateState>
  readonly answers: ReadonlyArray<KeptAnswer>
  readonly faults: FaultsState
  readonly limits: Limits
  readonly dialect: Dialect
  /** The settings of the companies that have some. */
  readonly settings: ReadonlyMap<number, CompanySettings>
  readonly events: EventsState
  /** The seed of the rest of the random numbers. */
  readonly random: number
  /** Number of answered requests, from which request ids are made. */
  readonly requests: number
}

export class World {
  readonly clock: ServerClock
  store: Store
  tokens = new Tokens()
  rate = new Rate()
  idempotency = new Idempotency()
  faults = new Faults()
  journal = new Journal()
  limits: Limits = plainLimits
  random: Random = random(1)
  events: Events
  readonly renderer = new Renderer()
  private present: Dialect = plainDialect
  private readonly settings = new Map<number, CompanySettings>()
  private readonly network: Network
  private requests = 0

  /** Called with a defect of the server; its request answers 500. */
  readonly onDefect: (error: unknown) => void

  constructor(
    clock: ServerClock,
    start: SeedOptions | WorldState,
    onDefect: (error: unknown) => void,
    network: Network
  ) {
    this.clock = clock
    this.network = network
    this.onDefect = onDefect
    this.store = new Store(serviceV2, clock)
    this.events = new Events(this, network)
    if ("data" in start) this.reset(start)
    else this.restore(start)
  }

  get dialect(): Dialect {
    return this.present
  }

  set dialect(dialect: Dialect) {
    this.present = dialect
    this.renderer.setLook(dialect)
  }

  reset(data: SeedOptions): void {
    this.clock.reset()
    this.store = new Store(serviceV2, this.clock)
    this.tokens = new Tokens()
    this.rate = new Rate()
    this.idempotency = new Idempotency()
    this.faults = new Faults()
    this.journal = new Journal()
    this.limits = plainLimits
    this.random = random(data.seed)
    this.dialect = plainDialect
    this.renderer.clear()
    this.settings.clear()
    this.requests = 0
    seed(this, data)
    this.replaceEvents(new Events(this, this.network))
  }

  /** The present state; its cost does not depend on the number of records. */
  state(): WorldState {
    const { clock, store, tokens, rate, idempotency, faults, limits, dialect, settings, events, random, requests } =
      this
    return {
      clock: clock.state(),
      store: store.state(),
      tokens: tokens.state(),
      rate: rate.state(),
      answers: idempotency.state(),
      faults: faults.state(),
      limits,
      dialect,
      settings: new Map(settings),
      events: events.state(),
      random: random.state(),
      requests
    }
  }

  /** Replaces all state. Deliveries under way are cancelled; the journal begins anew. */
  restore(state: WorldState): void {
    this.clock.restore(state.clock)
    this.store = new Store(serviceV2, this.clock, state.store)
    this.tokens = new Tokens(state.tokens)
    this.rate = new Rate(state.rate)
    this.idempotency = new Idempotency(state.answers)
    this.faults = new Faults(state.faults)
    this.journal = new Journal()
    this.limits = state.limits
    this.random = random(state.random)
    this.dialect = state.dialect
    this.renderer.clear()
    this.settings.clear()
    for (const [company, settings] of state.settings) this.settings.set(company, settings)
    this.requests = state.requests
    this.replaceEvents(new Events(this, this.network, state.events, this.tokens.byId()))
  }

  /** Replaces the records and their history only. */
  replaceStore(state: StoreState): void {
    const { listeners } = this.store
    this.store = new Store(serviceV2, this.clock, state)
    this.store.listeners.push(...listeners)
    this.renderer.clear()
  }

  private replaceEvents(events: Events): void {
    this.events.close()
    this.events = events
    this.store.listeners.push((changes) => events.fire(changes))
  }

  nextRequestId(): string {
    return `req_${(++this.requests).toString(16).padStart(12, "0")}`
  }

  settingsOf(company: number): CompanySettings {
    return this.settings.get(company) ?? openSettings
  }

  changeSettings(company: number, settings: CompanySettings): void {
    this.settings.set(company, settings)
  }

  /** A context for writes by a user with these scopes. */
  context(company: number, userId: number, scopes: ReadonlySet<string>): Context {
    const { store, present: readings } = this
    return { store, company, settings: this.settingsOf(company), readings, rules, userId, scopes }
  }
}

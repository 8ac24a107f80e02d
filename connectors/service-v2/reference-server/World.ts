/**
 * The whole state of the server.
 *
 * Promise: {@link World.reset} removes all earlier state; later answers depend only on the seed, the clock and the
 * requests.
 */
import { serviceV2 } from "../catalogue/index.ts"
import { Events } from "./events/Events.ts"
import type { Network } from "./events/Network.ts"
import type { Dialect } from "./http/dialect.ts"
import { plainDialect } from "./http/dialect.ts"
import { Faults } from "./http/faults.ts"
import { Idempotency } from "./http/idempotency.ts"
import { Journal } from "./http/journal.ts"
import { Rate } from "./http/rate.ts"
import { Tokens } from "./http/tokens.ts"
import type { Limits } from "./Limits.ts"
import { plainLimits } from "./Limits.ts"
import type { Random } from "./random.ts"
import { random } from "./random.ts"
import type { CompanySettings, Context } from "./rules/Rules.ts"
import { openSettings } from "./rules/Rules.ts"
import { rules } from "./rules/index.ts"
import type { ServerClock } from "./ServerClock.ts"
import type { SeedOptions } from "./seed/seed.ts"
import { seed } from "./seed/seed.ts"
import { Renderer } from "./store/render.ts"
import { Store } from "./store/Store.ts"

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

  constructor(clock: ServerClock, data: SeedOptions, onDefect: (error: unknown) => void, network: Network) {
    this.clock = clock
    this.network = network
    this.onDefect = onDefect
    this.store = new Store(serviceV2, clock)
    this.events = new Events(this, network)
    this.reset(data)
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
    this.events.close()
    const events = new Events(this, this.network)
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

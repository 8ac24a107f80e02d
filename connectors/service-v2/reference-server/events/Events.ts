/**
 * Subscriptions, their queues, and the delivery cycle.
 *
 * Promise: an event is queued in the commit that fires it and sent strictly in order per subscription (DLV-05). Events
 * behind one that waits for its retry are not sent (DLV-09). After a failed attempt that subscription gets nothing more
 * until the next cycle: three attempts take three cycles, and 24 of them two hours (DLV-08, DLV-10). A cycle sends what
 * was queued before it began. Cycles never overlap; subscriptions do not wait for each other.
 *
 * | condition | effect on the queue |
 * |---|---|
 * | an attempt is acknowledged | the event is delivered; failcount becomes zero |
 * | an attempt fails | the event waits; after the last attempt it is abandoned and the queue moves on |
 * | the receiver answers 410 | the event is abandoned, the subscription disabled, the rest dropped (H-21) |
 * | failures in a row reach the threshold | the subscription is disabled, the rest dropped (DLV-11) |
 * | the cycle finds a paused subscription, or one whose token is revoked or expired | dropped (H-19, H-05) |
 * | the token cannot read the record of the event | this event is dropped (H-03) |
 */
import { eventName, testEvent } from "../../catalogue/events.ts"
import type { EventVerb } from "../../catalogue/events.ts"
import type { Token } from "../http/tokens.ts"
import type { Limits } from "../Limits.ts"
import type { Random } from "../random.ts"
import type { ServerClock } from "../ServerClock.ts"
import type { Renderer } from "../store/render.ts"
import { sharedCompany } from "../store/Store.ts"
import type { Change } from "../store/Store.ts"
import { microsPerSecond } from "../time.ts"
import { isAcknowledged } from "./Log.ts"
import type { Attempt, Log } from "./Log.ts"
import { unreachable } from "./Network.ts"
import type { Network } from "./Network.ts"
import { eventId, occurrence, waiting } from "./Occurrence.ts"
import type { Occurrence, Waiting } from "./Occurrence.ts"
import { signature } from "./signature.ts"
import { isListening, secretsAt } from "./Subscription.ts"
import type { Subscription } from "./Subscription.ts"
import { verbsOf } from "./firing.ts"
import { fromState, toState } from "./state.ts"
import type { EventsState } from "./state.ts"

const gone = 410

const isValid = ({ revoked, expires }: Token, now: number): boolean => !revoked && (expires === null || now < expires)

/** The parts of the server that deliveries need; the control plane may change the limits at any time. */
export interface DeliveryEnvironment {
  readonly clock: ServerClock
  readonly limits: Limits
  readonly random: Random
  readonly renderer: Renderer
}

export class Events {
  readonly log: Log
  /** Certificates, as PEM, that deliveries trust in addition to the usual ones. */
  trusted: ReadonlyArray<string>
  /** No delivery reaches its receiver before this time, in microseconds; null means that all do. */
  outageUntil: number | null
  private readonly environment: DeliveryEnvironment
  private readonly network: Network
  private readonly subscriptions = new Map<number, Subscription>()
  private readonly closing = new AbortController()
  /** When the next cycle is due, in microseconds. */
  private due: number
  /** Cycles that run or wait to run. */
  private running = 0
  private turn: Promise<unknown> = Promise.resolve()
  private fired: number
  private isSilent = false

  /** `owners` are the tokens of the state's subscriptions, by id. */
  constructor(
    environment: DeliveryEnvironment,
    network: Network,
    state: EventsState | null = null,
    owners: ReadonlyMap<number, Token> = new Map()
  ) {
    this.environment = environment
    this.network = network
    this.due = state?.due ?? environment.clock.now() + this.period
    this.trusted = state?.trusted ?? []
    this.fired = state?.fired ?? 0
    this.outageUntil = state?.outageUntil ?? null
    const { subscriptions, log } = fromState(state, owners)
    for (const subscription of subscriptions) this.add(subscription)
    this.log = log
  }

  /**
   * A copy of the present state. An event whose attempt is under way is still queued, with the attempt counted: a
   * server made from the state attempts it again.
   */
  state(): EventsState {
    const { trusted, due, fired, outageUntil } = this
    return { ...toState([...this.subscriptions.values()], this.log), trusted, due, fired, outageUntil }
  }

  private get period(): number {
    return this.environment.limits.cycleSeconds * microsPerSecond
  }

  add(subscription: Subscription): void {
    this.subscriptions.set(subscription.id, subscription)
  }

  /** A subscription of the token; subscriptions of other tokens are not found (H-04). */
  find(token: Token, id: number | null): Subscription | undefined {
    const subscription = id === null ? undefined : this.subscriptions.get(id)
    return subscription?.owner === token ? subscription : undefined
  }

  /** The subscriptions of a token, in the order of ids. */
  of(token: Token): ReadonlyArray<Subscription> {
    return [...this.subscriptions.values()].filter(({ owner }) => owner === token)
  }

  /** All subscriptions, in the order of ids. */
  all(): ReadonlyArray<Subscription> {
    return [...this.subscriptions.values()]
  }

  /** When the next cycle is due, in microseconds. */
  get nextCycle(): number {
    return this.due
  }

  /** Runs `work`; its commits fire no events. */
  silently<A>(work: () => A): A {
    return this.withSilence(true, work)
  }

  /** Runs `work` inside of {@link silently}; its commits fire events all the same. */
  audibly<A>(work: () => A): A {
    return this.withSilence(false, work)
  }

  private withSilence<A>(isSilent: boolean, work: () => A): A {
    const before = this.isSilent
    this.isSilent = isSilent
    try {
      return work()
    } finally {
      this.isSilent = before
    }
  }

  /** Queues the events of a commit. */
  fire(changes: ReadonlyArray<Change>): void {
    if (this.isSilent) return
    const listening = [...this.subscriptions.values()].filter(isListening)
    if (listening.length === 0) return
    for (const change of changes) {
      for (const verb of verbsOf(change, this.environment.renderer)) this.fireOne(change, verb, listening)
    }
  }

  private fireOne({ version, at }: Change, verb: EventVerb, listening: ReadonlyArray<Subscription>): void {
    const { company, resource } = version.table
    const type = eventName(resource, verb)
    const made = new Map<number, Occurrence>()
    for (const subscription of listening) {
      const { owner, events, queue } = subscription
      if (!events.includes(type) || (company !== sharedCompany && company !== owner.company)) continue
      let one = made.get(owner.company)
      if (one === undefined) {
        const data = this.environment.renderer.render(version)
        one = occurrence(this.nextId(), type, `${resource.area}:read`, owner.company, data, at)
        made.set(owner.company, one)
      }
      queue.push(waiting(one))
    }
  }

  private nextId(): string {
    return eventId(this.environment.clock.now(), ++this.fired, this.environment.random)
  }

  disable(subscription: Subscription): void {
    subscription.disabled ??= this.environment.clock.now()
    this.drop(subscription)
  }

  cancel(subscription: Subscription): void {
    subscription.cancelled = true
    this.drop(subscription)
  }

  private drop(subscription: Subscription): void {
    for (const event of subscription.queue) this.settle(event, "dropped")
    subscription.queue = []
  }

  private settle(event: Waiting, state: Waiting["state"]): void {
    event.state = state
    event.settled = this.environment.clock.now()
  }

  /** Sends a test event, without queue and failcount (H-15). */
  test(subscription: Subscription): Promise<Attempt> {
    const data = JSON.stringify({ webhookid: subscription.id, message: "test" })
    const { company } = subscription.owner
    const at = this.environment.clock.now()
    const event = waiting(occurrence(this.nextId(), testEvent, null, company, data, at))
    return this.attempt(subscription, event, ({ delivered }) => {
      this.settle(event, delivered ? "delivered" : "dropped")
      return false
    })
  }

  /**
   * Sends the event of an attempt once more: the same bytes and id, the next attempt number, a signature of its own. It
   * bypasses the queue and does not change failcount. Null where the event still waits for a cycle, or the subscription
   * is cancelled or gone.
   */
  replay({ event, subscriptionId }: Attempt): Promise<Attempt> | null {
    const subscription = this.subscriptions.get(subscriptionId)
    if (subscription === undefined || subscription.cancelled || event.state === "waiting") return null
    return this.attempt(subscription, event, ({ delivered }) => {
      if (delivered) this.settle(event, "delivered")
      return false
    })
  }

  /** Makes one attempt, with its own time and signature (H-10). `applyResult` returns whether it abandons the event. */
  private async attempt(
    subscription: Subscription,
    event: Waiting,
    applyResult: (result: { readonly delivered: boolean; readonly status: number | null }) => boolean
  ): Promise<Attempt> {
    const { clock, limits } = this.environment
    const { occurrence } = event
    const { url } = subscription
    const at = clock.now()
    event.attempts++
    const headers = {
      "Content-Type": "application/json",
      "User-Agent": "Service-API-Webhooks/2",
      "Svc-Signature": signature(Math.floor(at / microsPerSecond), occurrence.body, secretsAt(subscription, at)),
      "Svc-Event-Id": occurrence.id,
      "Svc-Event-Type": occurrence.type,
      "Svc-Delivery-Attempt": String(event.attempts)
    }
    const { allowPrivateReceivers: allowPrivate } = limits
    const attempt = event.attempts
    const isOut = this.outageUntil !== null && at < this.outageUntil
    const outcome = await (isOut ? unreachable : this.network).send(
      { url, headers, body: occurrence.body, trusted: this.trusted, allowPrivate },
      this.closing.signal
    )
    const delivered = isAcknowledged(outcome)
    const abandoned = applyResult({ delivered, status: outcome.status })
    const subscriptionId = subscription.id
    return this.log.add({ subscriptionId, event, attempt, at, url, headers, outcome, delivered, abandoned })
  }

  /** Runs one cycle after all earlier ones; returns the attempts in the order in which they ended. */
  cycle(): Promise<ReadonlyArray<Attempt>> {
    return this.inTurn(() => this.deliver())
  }

  private inTurn<A>(work: () => Promise<A>): Promise<A> {
    this.running++
    const done = this.turn.then(work).finally(() => {
      this.running--
    })
    this.turn = done.catch(() => {})
    return done
  }

  private async deliver(): Promise<ReadonlyArray<Attempt>> {
    const attempts: Array<Attempt> = []
    this.log.purge(this.environment.clock.now())
    const loaded = [...this.subscriptions.values()].filter(({ queue }) => queue.length > 0)
    await Promise.all(loaded.map((subscription) => this.drain(subscription, attempts)))
    return attempts
  }

  private async drain(subscription: Subscription, attempts: Array<Attempt>): Promise<void> {
    // Events fired during the cycle wait for the next one: a receiver that writes back must not prolong it.
    for (let left = subscription.queue.length; left > 0 && !this.closing.signal.aborted; left--) {
      const { owner } = subscription
      if (!isListening(subscription) || !isValid(owner, this.environment.clock.now())) this.drop(subscription)
      const event = subscription.queue[0]
      if (event === undefined) return
      const { scope } = event.occurrence
      if (scope !== null && !owner.scopes.has(scope)) {
        this.settle(event, "dropped")
        subscription.queue.shift()
      } else {
        const attempt = await this.attempt(subscription, event, (result) =>
          this.applyResult(subscription, event, result)
        )
        attempts.push(attempt)
        if (!attempt.delivered) return
      }
    }
  }

  /** Applies the result of an attempt to its event and subscription; returns whether the event is abandoned. */
  private applyResult(
    subscription: Subscription,
    event: Waiting,
    { delivered, status }: { readonly delivered: boolean; readonly status: number | null }
  ): boolean {
    const { clock, limits } = this.environment
    const isLast = !delivered && (status === gone || event.attempts >= limits.attemptsPerEvent)
    if (delivered || isLast) {
      this.settle(event, delivered ? "delivered" : "abandoned")
      if (subscription.queue[0] === event) subscription.queue.shift()
    }
    if (delivered) {
      subscription.failcount = 0
      subscription.lastDelivery = clock.now()
    } else {
      subscription.failcount++
      if (status === gone || subscription.failcount >= limits.failureThreshold) this.disable(subscription)
    }
    return isLast
  }

  private isWaiting(): boolean {
    for (const { queue } of this.subscriptions.values()) if (queue.length > 0) return true
    return false
  }

  /** Schedules the next cycle from the present, after a change of the clock or the period. */
  rebase(): void {
    this.due = this.environment.clock.now() + this.period
  }

  /** Skips to the next cycle in the future; the missed ones had nothing to do. */
  private catchUp(): void {
    const now = this.environment.clock.now()
    if (this.due <= now) this.due += Math.floor((now - this.due) / this.period + 1) * this.period
    this.due = Math.min(this.due, now + this.period)
  }

  private leap(micros: number): void {
    this.environment.clock.advance(micros)
    this.catchUp()
    this.log.purge(this.environment.clock.now())
  }

  /** Moves the clock and runs each cycle at its time; null when nothing waits, so that it is done at once. */
  advance(micros: number): Promise<void> | null {
    const { clock } = this.environment
    if (this.running === 0 && !this.isWaiting()) {
      this.leap(micros)
      return null
    }
    return this.inTurn(async () => {
      let left = micros
      while (this.isWaiting() && !this.closing.signal.aborted) {
        const step = Math.max(0, this.due - clock.now())
        if (step > left) break
        clock.advance(step)
        left -= step
        this.catchUp()
        await this.deliver()
      }
      if (!this.closing.signal.aborted) this.leap(left)
    })
  }

  /** Runs the cycle that is due by the running clock. */
  async tick(): Promise<void> {
    const { clock } = this.environment
    if (clock.isManual() || clock.now() < this.due || this.running > 0) return
    this.catchUp()
    if (this.isWaiting()) await this.cycle()
  }

  /** Cancels deliveries in flight; nothing is sent any more. */
  close(): void {
    this.closing.abort()
  }
}

/**
 * The path of a delivery from the source to its receiver, with its faults and attackers.
 *
 * Promise: the reference server decides what is sent and when, and signs it. This module only changes a delivery that
 * has left: it is lost, doubled, kept by a proxy and passed on in any order, captured and sent again, or forged. The
 * answer of a receiver is compared with what was sent (see {@link Arrival}), never with the receiver's own state.
 */
import { createHmac } from "node:crypto"
import type { Network, Outcome, Outgoing } from "../../../connectors/service-v2/reference-server/events/Network.ts"
import { secretsAt, type Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import { chance } from "../kernel/Chance.ts"
import { Actor } from "../kernel/Scene.ts"
import { momentOf, sleepOf } from "../Plan.ts"
import type { Source } from "./Source.ts"

/**
 * The maximum age of a delivery, and how far it may be ahead of the receiver's clock, by the documents and decisions.
 */
export const toleranceSeconds = 300
export const aheadSeconds = 60

/** A delivery that arrives, and the truth about it. */
export interface Arrival {
  readonly company: string
  readonly eventId: string | null
  readonly signature: string | undefined
  readonly body: Uint8Array
  /** The time for which it is signed, in seconds; null when it has none. */
  readonly t: number | null
  /** Secrets of the subscription with which it is signed; empty when it is forged. */
  readonly secrets: ReadonlyArray<string>
  /** Whether the subscription's secret has been rotated. */
  readonly isRotated: boolean
  /** Why it is not from the source; null when it is genuine, even if old. */
  readonly forged: string | null
}

/** The answer of a receiver. */
export interface Answer {
  readonly status: number
  readonly arrival: Arrival
  /** The receiver's clock, in microseconds, when the delivery arrived and when it was answered. */
  readonly clocks: readonly [number, number]
  /** The name of the process that answered. */
  readonly by: string
}

/** The receivers. False when no process listens. */
export interface Port {
  readonly receive: (arrival: Arrival, answered: (answer: Answer) => void) => boolean
}

const senderTimeout = 15_000_000
/** So many failures take long enough for a process to look meanwhile, as the documented number does. */
const failuresShown = 24
const second = 1_000_000
/** Events that fired so long before were still waiting when a subscription was disabled. */
const hiddenBefore = 60 * second
const encoder = new TextEncoder()

export const companyName = (company: number): string => `company-${company}`
export const companyOf = (name: string): number => Number(name.slice("company-".length))
export const publicUrl = "https://hooks.simulated"

const sign = (secret: string, t: string, body: Uint8Array): string =>
  createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex")

/** The kinds of deliveries that the source did not send, or not at that time. */
export const forgeries = [
  "without a signature",
  "signed with nothing",
  "signed with a guess",
  "for a company that is not there",
  "signed with another company's secret",
  "with a bit turned",
  "with a shortened signature",
  "in capital letters",
  "with another time",
  "with another body",
  "with a time in milliseconds",
  "with two times",
  "of the future",
  "of the past"
] as const

type Forgery = (typeof forgeries)[number]

interface KeptDelivery {
  readonly pass: () => void
}

export class Sender extends Actor implements Network {
  private readonly chance = chance(this.drawn.seed, "sender")
  private source: Source | null = null
  private port: Port | null = null
  /** Writes a record without an event. Returns a function to call when an event reported the record. */
  writeSilently: (company: number, resource: string) => (() => void) | null = () => null
  /** Called with every answer. */
  answered: (answer: Answer) => void = () => {}
  private faults = true
  private readonly outages: Array<readonly [number, number]> = []
  /** Deliveries that a proxy has received and not passed on. */
  private readonly keptByProxies = new Set<KeptDelivery>()
  /** Deliveries that were acknowledged. */
  private readonly acknowledged: Array<{
    readonly company: string
    readonly body: Uint8Array
    readonly eventId: string
    readonly at: number
  }> = []
  /** Addresses that answered 410. */
  private readonly saidGone = new Set<string>()
  /** Times in which a subscription was disabled by one answer and enabled by hand, which the list does not show. */
  readonly hiddenSpans: Array<readonly [from: number, to: number]> = []
  /** The disabling times of subscriptions that were considered for enabling by hand. */
  private readonly considered = new Set<number>()
  private sending = false
  private wasOut = false
  private forgeries = 0
  deliveries = 0

  /** Starts the cycles of the source, and the changes of its subscriptions. */
  begin(source: Source, port: Port): void {
    const { chance, drawn, kernel } = this
    this.source = source
    this.port = port
    for (const { core } of source.installations)
      core.world.limits = { ...core.world.limits, failureThreshold: drawn.webhooks.failureThreshold }
    const start = kernel.now
    const sleep = sleepOf(drawn)
    const tick = () => {
      this.cycle()
      const at = kernel.now - start
      const isAsleep = sleep !== null && at >= sleep.from && at < sleep.to
      const { cycleEvery, asleep } = drawn.webhooks
      const wait = isAsleep ? Math.min(Math.max(cycleEvery, asleep / 40), sleep.to - at + second) : cycleEvery
      kernel.after(wait, null, tick)
    }
    kernel.after(drawn.webhooks.cycleEvery, null, tick)
    const sometime = (run: () => void) =>
      kernel.at(start + Math.round(momentOf(drawn, chance.next())), null, () => {
        if (this.faults) run()
      })
    if (drawn.on.has("W9") || drawn.webhooks.dropRate === 1) {
      // The outage may include the long sleep: then no delivery arrives for days.
      const from = chance.next()
      const length =
        drawn.webhooks.dropRate === 1
          ? chance.skewed(20 * second, drawn.safety)
          : chance.skewed(2 * second, 40 * second)
      const at = (share: number) => start + Math.round(momentOf(drawn, Math.min(1, share)))
      this.outages.push([at(from), at(from + length / drawn.safety)])
    }
    if (drawn.on.has("W12")) {
      for (let times = chance.integer(0, 2); times > 0; times--) sometime(() => this.disturb())
    }
    if (drawn.on.has("R8")) {
      // By the time of the wake-up, the event is removed from the inbox.
      for (let times = chance.integer(3, 8); times > 0; times--) {
        kernel.at(start + Math.round(momentOf(drawn, 0.75 + 0.25 * chance.next())), null, () => {
          if (this.faults) this.sendAgain()
        })
      }
    }
    if (drawn.on.has("W11"))
      for (let times = chance.integer(2, 6); times > 0; times--) sometime(() => this.unknownType())
    if (drawn.on.has("W8")) for (let times = chance.integer(2, 6); times > 0; times--) sometime(() => this.forge(null))
  }

  /** Ends the faults. A delivery that a proxy keeps is passed on now, or never. */
  heal(): void {
    this.faults = false
    const kept = [...this.keptByProxies]
    this.keptByProxies.clear()
    for (const { pass } of kept) {
      if (this.chance.chance(0.5)) pass()
      else this.fired("W1 kept and never passed on")
    }
  }

  /** One cycle of the source, unless one is under way. */
  cycle(): void {
    if (this.sending) return
    this.sending = true
    void this.source!.cycle().finally(() => {
      this.sending = false
      this.enableAgain()
    })
  }

  /** A person at the source enables a disabled subscription, perhaps before a process has looked. */
  private enableAgain(): void {
    const { chance, drawn, kernel } = this
    if (!this.faults || !drawn.on.has("W12")) return
    for (const one of this.source!.subscriptions()) {
      const { disabled, failcount, cancelled } = one
      if (disabled === null || cancelled || this.considered.has(disabled)) continue
      this.considered.add(disabled)
      // Few failures leave no trace that a check in their time would not have found.
      const shows = this.saidGone.has(one.url) || failcount >= failuresShown
      this.saidGone.delete(one.url)
      if (!shows || !chance.chance(0.5)) continue
      kernel.after(chance.skewed(second / 10, 20 * second), null, () => {
        if (!this.faults || one.disabled !== disabled) return
        this.log("source", `! W12 subscription ${one.id} is enabled again by hand`)
        this.fired("W12 enabled again by hand")
        this.hiddenSpans.push([disabled - hiddenBefore, kernel.now])
        one.disabled = null
        one.failcount = 0
      })
    }
  }

  /** Whether the source has deliveries that it will try to send. */
  get isBusy(): boolean {
    return (
      this.sending ||
      this.source!.subscriptions().some(({ queue }) => queue.length > 0) ||
      [...this.underWay.values()].some((since) => this.kernel.now - since < 60 * second)
    )
  }

  /** Deliveries that a receiver has and has not answered, with their times. The receiver may be dead. */
  private readonly underWay = new Map<object, number>()

  // -- from the source ----------------------------------------------------------------------------------------------------

  send(outgoing: Outgoing): Promise<Outcome> {
    const { kernel, chance, drawn } = this
    const began = kernel.now
    const { webhooks, on } = drawn
    return new Promise((resolve) => {
      const cancel = kernel.after(senderTimeout, null, () => finish(null, "no answer within 15 seconds"))
      let open = true
      const finish = (status: number | null, failure: string | null = null) => {
        if (!open) return
        open = false
        cancel()
        resolve({ status, body: new Uint8Array(), durationms: Math.round((kernel.now - began) / 1000), failure })
      }
      const later = (status: number | null) =>
        kernel.after(this.delay(), null, () => finish(status, status === null ? "no answer" : null))
      const arrival = this.genuine(outgoing)
      const attempt = Number(outgoing.headers["Svc-Delivery-Attempt"])
      this.deliveries++
      this.log("source", `sends ${arrival.eventId} ${outgoing.headers["Svc-Event-Type"]} attempt ${attempt}`)
      const isOut = this.outages.some(([from, to]) => began >= from && began < to)
      if (isOut && this.faults) {
        this.fired(webhooks.dropRate === 1 ? "W1 all dropped" : "W9 no way")
        this.wasOut = true
        return void later(null)
      }
      if (this.wasOut) {
        this.wasOut = false
        if (on.has("W9")) this.fired("W9 filled")
      }
      if (this.faults) {
        if (webhooks.forgeRate > 0 && chance.chance(webhooks.forgeRate)) this.forge(arrival)
        if (webhooks.replayRate > 0 && chance.chance(webhooks.replayRate)) this.replay(arrival)
        if (webhooks.dropRate < 1 && chance.chance(webhooks.dropRate)) {
          if (chance.chance(0.3)) {
            // An intermediary acknowledges the delivery.
            this.fired("W1 swallowed and acknowledged")
            return void later(200)
          }
          this.fired("W1 dropped")
          return void later(null)
        }
        if (on.has("W12") && chance.chance(0.05)) {
          this.fired("W12 answered 410")
          this.saidGone.add(outgoing.url)
          return void later(410)
        }
        if (webhooks.copyRate > 0 && chance.chance(webhooks.copyRate)) {
          this.fired("W2 doubled")
          for (let copies = chance.skewed(1, 20); copies > 0; copies--)
            this.hold(arrival, chance.skewed(second / 10, 400 * second))
        }
        if (webhooks.proxyRate > 0 && chance.chance(webhooks.proxyRate)) {
          this.fired("W3 passed on later")
          this.hold(arrival, chance.skewed(second, 120 * second))
          return void later(200)
        }
      }
      const isSlow = this.faults && webhooks.slowRate > 0 && chance.chance(webhooks.slowRate)
      const isLost = this.faults && webhooks.lostRate > 0 && chance.chance(webhooks.lostRate)
      kernel.after(this.delay(), null, () => {
        const listens = this.arrive(arrival, ({ status }) => {
          if (status >= 200 && status <= 299)
            this.acknowledged.push({
              company: arrival.company,
              body: arrival.body,
              eventId: arrival.eventId!,
              at: began
            })
          if (isLost) {
            this.fired("R2 answer lost")
            return void later(null)
          }
          if (isSlow) {
            this.fired("R5 answered too late")
            return
          }
          if (kernel.now - began > senderTimeout) this.fired("R5 answered too late")
          if (status === 503) this.fired("R4 not stored now")
          later(status)
        })
        if (!listens) {
          this.fired("R1 no listener")
          later(null)
        }
      })
    })
  }

  private delay(): number {
    return this.chance.skewed(2_000, 200_000)
  }

  /** A delivery as the source sent it, signed in any way that a rotation allows. */
  private genuine({ url, headers, body }: Outgoing): Arrival {
    const { chance, drawn } = this
    const company = decodeURIComponent(new URL(url).pathname.split("/").at(-1)!)
    const [first, ...macs] = headers["Svc-Signature"]!.split(",")
    const t = Number(first!.slice(2))
    const subscription = this.subscriptionOf(company, (one) => macs.includes(`v1=${sign(one.secret, String(t), body)}`))
    const secrets = subscription === null ? [] : secretsAt(subscription, this.kernel.now)
    let chosen = macs.map((mac, index) => ({ mac, secret: secrets[index]! }))
    const isRotated = subscription !== null && subscription.previous !== null
    const basis = { company, eventId: headers["Svc-Event-Id"]!, body, t, forged: null, isRotated }
    if (drawn.on.has("W6") && this.faults) {
      if (chosen.length > 1) {
        const [newer, older] = chosen as [(typeof chosen)[0], (typeof chosen)[0]]
        const form = chance.pick(["both", "swapped", "new only", "old only"])
        this.fired(`W6 signed with ${form}`)
        chosen =
          form === "both" ? chosen : form === "swapped" ? [older, newer] : form === "new only" ? [newer] : [older]
      }
      if (chance.chance(0.3)) {
        this.fired("W6 signed with a foreign key first")
        const foreign = { mac: `v1=${sign("whsec_of_another_sender", String(t), body)}`, secret: "" }
        chosen = [foreign, ...chosen]
      }
    }
    return {
      ...basis,
      secrets: chosen.flatMap(({ secret }) => (secret === "" ? [] : [secret])),
      signature: [`t=${t}`, ...chosen.map(({ mac }) => mac)].join(",")
    }
  }

  private subscriptionOf(company: string, isIt: (one: Subscription) => boolean): Subscription | null {
    return (
      this.source!.subscriptions().find(
        (one) => one.url.endsWith(`/hooks/${encodeURIComponent(company)}`) && isIt(one)
      ) ?? null
    )
  }

  /** Keeps a delivery for a while. */
  private hold(arrival: Arrival, micros: number, answered: (answer: Answer) => void = () => {}): void {
    const pass = () => {
      if (this.keptByProxies.delete(kept)) kept.pass()
    }
    const kept: KeptDelivery = { pass: () => void this.arrive(arrival, answered) }
    this.keptByProxies.add(kept)
    this.kernel.after(micros, null, pass)
  }

  private arrive(arrival: Arrival, answered: (answer: Answer) => void): boolean {
    const tell = (answer: Answer) => {
      this.underWay.delete(tell)
      this.log(
        answer.by,
        `answers ${answer.status} to ${arrival.eventId ?? "nothing"}${arrival.forged === null ? "" : ` (forged: ${arrival.forged})`}`
      )
      this.answered(answer)
      answered(answer)
    }
    if (this.isGone(arrival)) this.fired("W4 after its record was removed")
    const listens = this.port!.receive(arrival, tell)
    if (listens) this.underWay.set(tell, this.kernel.now)
    return listens
  }

  /** Whether the record of a genuine event was removed. */
  private isGone({ company, body, forged }: Arrival): boolean {
    const match = /"type":"([a-z0-9]+)\.[a-z]+".*"data":\{"id":(\d+)[,}]/s.exec(new TextDecoder().decode(body))
    if (forged !== null || match === null || !serviceV2.resources.has(match[1]!)) return false
    return this.source!.table(companyOf(company), match[1]!).get(Number(match[2])) === undefined
  }

  // -- attackers and people -----------------------------------------------------------------------------------------------

  /** The same delivery again, later, from an attacker who recorded it. */
  private replay(arrival: Arrival): void {
    const { chance, kernel } = this
    // As if captured long ago: the same body signed for an old time.
    const [secret] = arrival.secrets
    if (secret === undefined) return
    if (chance.chance(0.5)) {
      this.fired("W7 replayed in the window")
      return this.hold(arrival, chance.skewed(second, 250 * second))
    }
    this.fired("W7 replayed out of the window")
    const t = Math.floor(kernel.now / second) - toleranceSeconds - chance.skewed(20, 40 * 86_400)
    this.hold(this.signedAt(arrival, String(t), t, arrival.eventId), chance.skewed(second / 10, 10 * second))
  }

  /** The bytes of an event that never existed. */
  private invented(like: Uint8Array, word: string): { readonly id: string; readonly body: Uint8Array } {
    const id = `evt_${word}${++this.forgeries}`
    const text = new TextDecoder().decode(like).replace(/"id":"[^"]*"/, `"id":"${id}"`)
    return { id, body: encoder.encode(text) }
  }

  private signedAt(arrival: Arrival, text: string, t: number | null, eventId: string | null): Arrival {
    return { ...arrival, eventId, t, signature: `t=${text},v1=${sign(arrival.secrets[0]!, text, arrival.body)}` }
  }

  /** A forgery, based on a delivery or on nothing. */
  private forge(original: Arrival | null): void {
    const { chance, kernel } = this
    const company = original?.company ?? companyName(chance.integer(1, this.drawn.companies))
    const some =
      original?.body ??
      encoder.encode(
        `{"id":"evt_0","type":"jobs.updated","createdate":"2026-11-21T03:00:00Z","companyid":${this.source!.numberOf(companyOf(company))},"data":{"id":1}}`
      )
    const subscription = this.subscriptionOf(company, () => true)
    const kind = subscription === null ? chance.integer(0, 3) : chance.integer(0, 13)
    // On a wrong clock, an untimely delivery may be in time.
    const { id, body } = this.invented(some, kind >= 12 ? "untimely" : "forged")
    const now = Math.floor(kernel.now / second)
    const t = String(now)
    const secret = subscription?.secret ?? "whsec_guessed"
    const mac = sign(secret, t, body)
    const forgery = (why: Forgery, signature: string | undefined, changed: Partial<Arrival> = {}) => {
      this.fired(`W8 ${why}`)
      this.hold(
        { company, eventId: id, body, t: now, secrets: [], isRotated: false, forged: why, signature, ...changed },
        chance.skewed(second / 100, 2 * second)
      )
    }
    const other = this.source!.subscriptions().find((one) => !one.url.endsWith(`/hooks/${company}`))
    const untimely = (why: Forgery, text: string, at: number) =>
      forgery(why, `t=${text},v1=${sign(secret, text, body)}`, { forged: null, t: at, secrets: [secret] })
    switch (kind) {
      case 0:
        return forgery("without a signature", chance.pick([undefined, "", `t=${t}`, "v1=", `t=${t},v1=`]))
      case 1:
        return forgery("signed with nothing", `t=${t},v1=${sign("", t, body)}`)
      case 2:
        return forgery("signed with a guess", `t=${t},v1=${sign("whsec_guessed", t, body)}`)
      case 3:
        return forgery("for a company that is not there", `t=${t},v1=${mac}`, { company: "absent" })
      case 4:
        return forgery(
          "signed with another company's secret",
          `t=${t},v1=${sign(other?.secret ?? "whsec_other", t, body)}`
        )
      case 5:
        return forgery("with a bit turned", `t=${t},v1=${mac.slice(0, 63)}${mac.endsWith("0") ? "1" : "0"}`)
      case 6:
        return forgery("with a shortened signature", `t=${t},v1=${mac.slice(0, chance.integer(1, 63))}`)
      case 7:
        return forgery("in capital letters", `t=${t},v1=${mac.replace(/^./, "a").toUpperCase()}`)
      case 8:
        return forgery("with another time", `t=${now + chance.pick([-1, 1, 30])},v1=${mac}`)
      case 9:
        return forgery("with another body", `t=${t},v1=${sign(secret, t, some)}`)
      case 10:
        return forgery("with a time in milliseconds", `t=${t}000,v1=${sign(secret, `${t}000`, body)}`)
      case 11:
        return forgery("with two times", `t=${now - 5000},t=${t},v1=${sign(secret, `${now - 5000}`, body)}`)
      case 12: {
        const ahead = now + aheadSeconds + chance.skewed(20, 40_000_000)
        return untimely("of the future", String(ahead), ahead)
      }
      default: {
        const before = now - toleranceSeconds - chance.skewed(20, 40_000_000)
        return untimely("of the past", String(before), before)
      }
    }
  }

  /** People at the source send an old event again that was processed and forgotten. */
  private sendAgain(): void {
    const { chance, drawn, kernel } = this
    const old = this.acknowledged.filter(({ at }) => kernel.now - at > drawn.webhooks.keep)
    if (old.length === 0) return
    const { company, eventId, body } = chance.pick(old)
    const subscription = this.subscriptionOf(company, ({ cancelled }) => !cancelled)
    if (subscription === null) return
    this.fired("R8 sent again by hand")
    this.hold(this.signedNow(subscription, { company, eventId, body }), this.delay())
  }

  private signedNow({ secret, previous }: Subscription, event: Pick<Arrival, "company" | "eventId" | "body">): Arrival {
    const t = Math.floor(this.kernel.now / second)
    const signature = `t=${t},v1=${sign(secret, String(t), event.body)}`
    return { ...event, t, secrets: [secret], isRotated: previous !== null, forged: null, signature }
  }

  /** A genuine event of an unknown type, or of a record that is not synced. */
  private unknownType(): void {
    const { chance, kernel } = this
    const company = companyName(chance.integer(1, this.drawn.companies))
    const subscription = this.subscriptionOf(company, ({ cancelled }) => !cancelled)
    if (subscription === null) return
    const archived = chance.pick(this.drawn.resources)
    const type = chance.pick([
      "widgets.exploded",
      `${archived}.archived`,
      `${archived}.archived`,
      `${archived}.archived`,
      "orders.created",
      "webhooks.test",
      "nothing",
      "jobs.updated.twice"
    ])
    const eventId = `evt_unknown${++this.forgeries}`
    const data = chance.pick(['{"id":1}', "{}", "null", '{"id":"one"}', '{"id":99999999999999999999}'])
    const body = encoder.encode(
      `{"id":"${eventId}","type":"${type}","createdate":"${new Date(kernel.now / 1000).toISOString()}","companyid":${this.source!.numberOf(companyOf(company))},"data":${data},"version":7}`
    )
    this.fired("W11 unknown type")
    // The only event of the record, unless it is lost too.
    const reportEvent = type.endsWith(".archived") ? this.writeSilently(companyOf(company), archived) : null
    this.hold(this.signedNow(subscription, { company, eventId, body }), this.delay(), ({ status }) => {
      if (reportEvent === null || status < 200 || status > 299) return
      reportEvent()
      this.fired("W11 only event of a record")
    })
  }

  /** A person changes a subscription. */
  private disturb(): void {
    const { chance } = this
    const there = this.source!.subscriptions().filter(({ cancelled }) => !cancelled)
    if (there.length === 0) return
    const one = chance.pick(there)
    const { events } = this.source!.installationOf(one).core.world
    const what = chance.pick(["paused", "paused", "disabled", "disabled", "cancelled"])
    this.log("source", `! W12 subscription ${one.id} is ${what}`)
    this.fired(`W12 ${what}`)
    if (what === "paused") one.paused = true
    else if (what === "disabled") {
      events.disable(one)
      this.considered.add(one.disabled!)
    } else events.cancel(one)
  }
}

/**
 * The simulated network of processes that write, and a source that handles writes carelessly.
 *
 * Promise: a write leaves, arrives, is processed and is answered, each at its own time. While it is on its way or
 * processed, no other fault concerns its key. So a key that was given up is not processed later by a lost request,
 * which no program could guard against. The journal has what was sent, answered and done, by the source's own history
 * and never by the engine's state.
 */
import * as HttpClient from "effect/http/HttpClient"
import { isObject, parseExactly, print } from "../../../connectors/service-v2/reference-server/json.ts"
import type { Request } from "../../../connectors/service-v2/reference-server/http/Message.ts"
import type { Change } from "../../../connectors/service-v2/reference-server/store/Store.ts"
import { chance } from "../kernel/Chance.ts"
import type { Owner } from "../kernel/Kernel.ts"
import type { Scene } from "../kernel/Scene.ts"
import type { PushPlan, WriteFault } from "../PushPlan.ts"
import { bodyOf, envelope, Network, pathOf, type Sent, sentOf, targetOf, type WireAnswer } from "./Network.ts"
import type { Source } from "./Source.ts"

/** A write that left a process, and its answer. */
export interface Sending {
  readonly number: number
  readonly owner: string
  readonly company: number
  /** The address of the installation. */
  readonly origin: string
  readonly method: string
  readonly path: string
  readonly resource: string
  readonly key: string
  readonly ifMatch: string | null
  readonly body: string | null
  readonly at: number
  endedAt: number | null
  /** The status that the process received; null when it received no whole answer. */
  status: number | null
  answer: string | null
}

/** The changes of a write at the source. */
export interface WriteEffect {
  readonly at: number
  readonly sending: Sending
  readonly changes: ReadonlyArray<Change>
}

/** A read that was answered with 200. */
export interface Read {
  readonly company: number
  readonly path: string
  readonly sentAt: number
  readonly at: number
}

interface StoredAnswer {
  readonly at: number
  readonly sent: WireAnswer
}

interface SpoiltBatch {
  readonly at: number
  /** The items that fail temporarily, by their index. The source processes the body without those that are not done. */
  readonly failing: ReadonlyMap<number, { readonly status: number; readonly isDone: boolean }>
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const hour = 3_600_000_000
const memory = 24 * hour
/** The maximum time between the first sending and a proxy's copy: the source still remembers the key. */
const copiesUntil = 20 * hour

/** The key of a record that spoils its batch begins with `poison`. */
export const isPoison = (externalid: unknown): boolean =>
  typeof externalid === "string" && externalid.startsWith("poison")

const afterWork: ReadonlySet<WriteFault> = new Set([
  "U2 answer lost",
  "U2 cut off",
  "U2 too late",
  "U3 late on its way",
  "U3 long work",
  "U7 500 after",
  "U9 HTML after",
  "U10 another 207"
])

export class WriteNetwork extends Network<PushPlan> {
  private readonly luck = chance(this.drawn.seed, "push writes")
  readonly sendings: Array<Sending> = []
  readonly effects: Array<WriteEffect> = []
  readonly reads: Array<Read> = []
  /** A write leaves: the moment to read the ledger. */
  sending: (sending: Sending) => void = () => {}
  /** A write was processed. */
  done: (effect: WriteEffect) => void = () => {}
  /** A read was answered. */
  read: (read: Read) => void = () => {}
  /** Number of writes that are on their way or processed, by key. */
  private readonly busy = new Map<string, number>()
  /** Keys of writes that are being processed. */
  private readonly working = new Set<string>()
  /** Writes whose processing has begun. */
  private readonly begun = new Set<number>()
  private readonly firstSent = new Map<string, number>()
  private readonly stored = new Map<string, StoredAnswer>()
  private readonly drawnKeys = new Set<string>()
  private readonly spoilt = new Map<string, SpoiltBatch>()

  constructor(scene: Scene<PushPlan>, source: Source) {
    super(scene, source)
    this.answered = ({ company, path, sentAt }, sent) => {
      if (company === null || sent.status !== 200 || sent.cutAt !== null || !isOfSource(sent)) return
      const read = { company, path, sentAt, at: this.kernel.now }
      this.reads.push(read)
      this.read(read)
    }
  }

  override client(owner: Owner, life: number): HttpClient.HttpClient {
    const reads = super.client(owner, life)
    return HttpClient.make((request, url) =>
      request.method === "GET" ? reads.execute(request) : this.write({ owner, life, request }, url)
    )
  }

  private drawWrite(key: string): WriteFault | null {
    if (!this.hasFaults || (this.busy.get(key) ?? 0) > 0) return null
    if (this.isOutage()) return "U1 500 before"
    return this.drawn.pushing.writes.find(([, rate]) => this.luck.chance(rate))?.[0] ?? null
  }

  private write(sentRequest: Sent, url: URL) {
    const { kernel, luck } = this
    const { owner, request } = sentRequest
    const { method } = request
    const path = pathOf(url)
    const bytes = bodyOf(request)
    const key = request.headers["idempotency-key"] ?? ""
    const shortKey = key.slice(0, 8)
    const sending: Sending = {
      number: this.sendings.length,
      owner: owner.name,
      company: this.companyOf(request) ?? 0,
      origin: url.origin,
      method,
      path,
      resource: path.split("/")[1]!,
      key,
      ifMatch: request.headers["if-match"] ?? null,
      body: bytes === null ? null : decoder.decode(bytes),
      at: kernel.now,
      endedAt: null,
      status: null,
      answer: null
    }
    return this.exchanging(
      sentRequest,
      `${method} ${path} ${key}`,
      () => this.way(),
      ({ attempt, back, broken }) => {
        this.sendings.push(sending)
        if (!this.firstSent.has(key)) this.firstSent.set(key, kernel.now)
        const fault = this.drawWrite(key)
        this.log(owner.name, `sends ${method} ${path} ${shortKey}`)
        if (fault !== null) this.strikes(owner.name, this.isOutage() ? "U23 every write fails" : fault)
        this.sending(sending)
        this.stepped(owner, `${method} ${path}`)
        const answer = (sent: WireAnswer, late = 0) =>
          back(
            sent,
            () => {
              if (sent.cutAt === null)
                Object.assign(sending, { status: sent.status, answer: decoder.decode(sent.body) })
              const wait = sent.headers["retry-after"]
              if (wait !== undefined && /^\d+$/.test(wait)) attempt.waitUntil = kernel.now + Number(wait) * 1_000_000
              this.log(owner.name, `http ${sent.status} ${method} ${path} ${shortKey}`)
            },
            late
          )
        const answerWork = (sent: WireAnswer) => {
          switch (fault) {
            case "U2 answer lost":
              return luck.chance(0.3) ? undefined : broken("UND_ERR_SOCKET")
            case "U2 cut off":
              return answer({ ...sent, cutAt: luck.integer(0, Math.max(0, sent.body.length - 1)) })
            case "U2 too late":
              return answer(sent, luck.skewed(50_000_000, 200_000_000))
            case "U7 500 after":
              return answer(this.made(luck.pick([500, 502, 503, 504]), envelope("server_error")))
            case "U9 HTML after":
              return answer(this.html(luck))
            case "U10 another 207":
              return answer(this.mangled(sent))
            default:
              return answer(sent)
          }
        }
        if (fault === "U1 refused") return broken(luck.pick(["ECONNREFUSED", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]))
        if (fault === "U1 reset before") return broken("ECONNRESET")
        if (fault === "U1 black hole") return
        if (fault !== null && !afterWork.has(fault))
          return kernel.after(this.way(), null, () => answer(this.madeInstead(fault)))
        const late = fault === "U3 late on its way" ? luck.skewed(30_000_000, 200_000_000) : 0
        const work = fault === "U3 long work" ? luck.skewed(20_000_000, 200_000_000) : this.workTime()
        const received = { method, url: targetOf(url), headers: request.headers, body: bytes }
        this.depart(sending, received, this.way() + late, work, (sent) => {
          this.stepped(owner, `answers ${path}`)
          answerWork(sent)
        })
      },
      () => {
        sending.endedAt ??= kernel.now
      }
    )
  }

  private isOutage(): boolean {
    const { outage } = this.drawn.pushing
    const at = this.kernel.now - this.began
    return outage !== null && at >= outage.from && at < outage.to
  }

  private way(): number {
    return this.luck.skewed(2_000, Math.max(4_000, this.drawn.delayMax))
  }

  private workTime(): number {
    return this.luck.chance(0.3)
      ? this.luck.skewed(10_000, Math.max(20_000, this.drawn.pushing.longWork))
      : this.luck.skewed(500, 20_000)
  }

  // -- from the process to the source -------------------------------------------------------------------------------------

  private depart(
    sending: Sending,
    received: Request,
    way: number,
    work: number,
    answered: (sent: WireAnswer) => void
  ): void {
    const { key } = sending
    this.busy.set(key, (this.busy.get(key) ?? 0) + 1)
    const isCopied = this.hasFaults && this.luck.chance(this.drawn.pushing.copyRate)
    this.kernel.after(way, null, () => {
      if (isCopied) this.copy(sending, received)
      this.arrive(sending, received, work, (sent) => {
        this.busy.set(key, this.busy.get(key)! - 1)
        answered(sent)
      })
    })
  }

  /** A proxy that got no answer, or assumes so, sends the write again. */
  private copy(sending: Sending, received: Request): void {
    const { kernel, luck } = this
    for (let times = luck.integer(1, 2); times > 0; times--) {
      const late = luck.chance(0.6) ? luck.skewed(100, 2_000_000) : luck.skewed(1_000_000, 12 * hour)
      const at = Math.min(kernel.now + late, this.firstSent.get(sending.key)! + copiesUntil)
      kernel.at(at, null, () => {
        // If the first write was not processed, its copy is not processed either.
        if (!this.begun.has(sending.number)) return
        this.strikes("proxy", (this.busy.get(sending.key) ?? 0) > 0 ? "U4 same key at once" : "U4 sent again late")
        this.arrive(sending, received, this.workTime(), () => {})
      })
    }
  }

  /** At the source: rejected at once, or processed for a while with the key marked as running. */
  private arrive(sending: Sending, received: Request, work: number, answered: (sent: WireAnswer) => void): void {
    const refused = this.refused(sending)
    if (refused !== null) return answered(refused)
    const storedAnswer = this.stored.get(sending.key)
    if (storedAnswer !== undefined && this.kernel.now - storedAnswer.at < memory) {
      this.fired("U8 stored 500 answered again")
      return answered({
        ...storedAnswer.sent,
        headers: { ...storedAnswer.sent.headers, "idempotent-replayed": "true" }
      })
    }
    this.begun.add(sending.number)
    const request = this.withoutFailing(sending, received)
    if (this.working.has(sending.key)) {
      this.fired("U4 same key while it is worked on")
      return answered(this.withFailing(sending, sentOf(this.source.serve(sending.origin, request))))
    }
    const release = this.source.installationAt(sending.origin).core.hold(request)
    this.working.add(sending.key)
    this.kernel.after(work, null, () => {
      release()
      this.working.delete(sending.key)
      answered(this.work(sending, request))
    })
  }

  private work(sending: Sending, request: Request): WireAnswer {
    const { kernel, luck } = this
    const { key } = sending
    const isFirst = !this.drawnKeys.has(key)
    this.drawnKeys.add(key)
    const isStored = isFirst && this.hasFaults && luck.chance(this.drawn.pushing.storedRate)
    if (isStored) {
      const sent = this.made(500, envelope("server_error"))
      this.stored.set(key, { at: kernel.now, sent })
      const isDone = luck.chance(0.5)
      this.strikes("source", isDone ? "U8 done, and its 500 stored" : "U8 not done, and its 500 stored")
      if (isDone) this.execute(sending, request)
      return sent
    }
    return this.withFailing(sending, this.execute(sending, request))
  }

  private execute(sending: Sending, request: Request): WireAnswer {
    const { history } = this.source.installationAt(sending.origin).core.world.store
    const from = history.length
    const answer = this.source.serve(sending.origin, request)
    const changes = history.slice(from).filter(({ version }) => version.table.resource.path === sending.resource)
    if (changes.length > 0) {
      const ids = changes.map(({ op, version: { id } }) => `${op} ${id}`).join(", ")
      this.log("source", `did ${sending.key.slice(0, 8)} of ${sending.owner}: ${ids}`)
      const effect = { at: this.kernel.now, sending, changes }
      this.effects.push(effect)
      this.done(effect)
    }
    return sentOf(answer)
  }

  // -- rejections and variations of the source ----------------------------------------------------------------------------

  /** The answer that rejects a write before any work, the same each time; null lets it through. */
  private refused({ path, body }: Sending): WireAnswer | null {
    const { noBatch, batchMax, poison } = this.drawn.pushing
    const isBatch = path.endsWith("/batch")
    const items = body === null ? [] : itemsOf(body)
    if (isBatch && noBatch !== null) {
      this.fired("U20 no batch")
      const code = { 404: "not_found", 405: "method_not_allowed", 415: "not_batchable", 501: "not_implemented" }[
        noBatch
      ]
      return this.made(noBatch, envelope(code))
    }
    if (isBatch && batchMax !== null && items.length > batchMax) {
      this.fired("U20 batch too large")
      return this.made(400, envelope("batch_too_large"))
    }
    if (poison === "item" || !items.some((item) => isPoison(item["externalid"]))) return null
    this.fired(`U13 ${poison} for one bad record`)
    return poison === "refused" || !isBatch
      ? this.made(400, envelope("invalid_request", "externalid"))
      : this.made(500, envelope("server_error"))
  }

  /** The records of a batch that fail temporarily: the same ones for the same key. */
  private failingOf(sending: Sending): SpoiltBatch["failing"] {
    const { key, path, body } = sending
    const drawnBefore = this.spoilt.get(key)
    if (drawnBefore !== undefined && this.kernel.now - drawnBefore.at < memory) return drawnBefore.failing
    const failing = new Map<number, { readonly status: number; readonly isDone: boolean }>()
    const { itemRate } = this.drawn.pushing
    if (this.hasFaults && itemRate > 0 && path.endsWith("/batch")) {
      for (const index of itemsOf(body!).keys()) {
        if (!this.luck.chance(itemRate)) continue
        failing.set(index, { status: this.luck.pick([429, 500, 500, 503]), isDone: this.luck.chance(0.4) })
      }
    }
    this.spoilt.set(key, { at: this.kernel.now, failing })
    return failing
  }

  private withoutFailing(sending: Sending, received: Request): Request {
    const failing = this.failingOf(sending)
    const undone = [...failing].filter(([, { isDone }]) => !isDone)
    if (undone.length === 0) return received
    const items = parseExactly(sending.body!) as ReadonlyArray<unknown>
    const left = items.filter((_, index) => failing.get(index)?.isDone !== false)
    return { ...received, body: encoder.encode(print(left)) }
  }

  /** The answer with the places of the sent items, and the failures in it. */
  private withFailing(sending: Sending, sent: WireAnswer): WireAnswer {
    const failing = this.failingOf(sending)
    if (failing.size === 0 || sent.status !== 207) return sent
    const count = itemsOf(sending.body!).length
    const worked = resultsOf(sent)
    let next = 0
    const results = Array.from({ length: count }, (_, index): Readonly<Record<string, unknown>> => {
      const failed = failing.get(index)
      const result = failed?.isDone === false ? {} : { ...worked[next++]!, index }
      if (failed === undefined) return result
      this.fired(failed.isDone ? "U14 done, and its item says it failed" : "U14 item failed")
      const code = failed.status === 429 ? "rate_limited" : "server_error"
      const isText = this.drawn.dialect["batchStatus"] === "text"
      return { index, status: isText ? "error" : failed.status, error: { code, message: "a fault of the simulation" } }
    })
    return this.made(207, print({ results }))
  }

  /** A malformed 207: everything in it is true, but items are missing or doubled. */
  private mangled(sent: WireAnswer): WireAnswer {
    if (sent.status !== 207) return sent
    const { luck } = this
    const results = [...resultsOf(sent)]
    if (results.length === 0) return sent
    const place = luck.integer(0, results.length - 1)
    switch (luck.integer(0, 5)) {
      case 0:
        results.splice(place, luck.integer(1, results.length))
        break
      case 1:
        results.splice(luck.integer(0, results.length), 0, results[place]!)
        break
      case 2:
        results.push({
          index: results[place]!["index"],
          status: 500,
          error: { code: "server_error", message: "a fault of the simulation" }
        })
        break
      case 3:
        results.splice(place, 1)
        results.reverse()
        break
      case 4:
        results.splice(place, 1, { index: results[place]!["index"] })
        break
      default:
        for (let left = results.length - 1; left > 0; left--) {
          const other = luck.integer(0, left)
          ;[results[left], results[other]] = [results[other]!, results[left]!]
        }
    }
    return this.made(207, print({ results }))
  }

  private madeInstead(fault: WriteFault): WireAnswer {
    const { luck } = this
    switch (fault) {
      case "U6 rate limited":
        return this.made(
          429,
          envelope("rate_limited"),
          luck.chance(0.7) ? { "retry-after": String(luck.skewed(1, 60)) } : {}
        )
      case "U9 HTML before":
        return this.html(luck)
      case "U24 unauthorized":
        return this.made(401, envelope(luck.pick(["unauthorized", "token_expired"])))
      case "U24 forbidden":
        return this.made(403, envelope("insufficient_scope"))
      case "U24 redirect":
        return this.made(302, "", { location: "https://elsewhere.simulated/login" })
      default:
        return this.made(luck.pick([500, 500, 502, 503, 504]), envelope("server_error"))
    }
  }
}

/** The records of a body, also of a single one. */
export const itemsOf = (body: string): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const parsed = parseExactly(body)
  return (Array.isArray(parsed) ? parsed : [parsed]).filter(isObject)
}

/** Whether the answer to a read is from the source, not from a proxy. */
const isOfSource = ({ body }: WireAnswer): boolean => {
  try {
    const parsed = parseExactly(decoder.decode(body))
    return Array.isArray(parsed) || (isObject(parsed) && parsed["error"] === undefined && !isObject(parsed["data"]))
  } catch {
    return false
  }
}

const resultsOf = ({ body }: WireAnswer): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const parsed = parseExactly(decoder.decode(body))
  const results = isObject(parsed) ? parsed["results"] : []
  return Array.isArray(results) ? results.filter(isObject) : []
}

/**
 * The simulated network between a process and the source, with the proxies in between.
 *
 * Promise: a request leaves, arrives, is processed and is answered, each at its own virtual time. The seed draws the
 * faults on the way. They are of the kinds that the documents or the Internet know. Every attempt is recorded for the
 * checker of politeness.
 */
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import { type Chance, chance as chanceOf } from "../kernel/Chance.ts"
import type { Owner } from "../kernel/Kernel.ts"
import { Actor, type Scene } from "../kernel/Scene.ts"
import { serviceV2 } from "../../../connectors/service-v2/catalogue/index.ts"
import type { Subscription } from "../../../connectors/service-v2/reference-server/events/Subscription.ts"
import { printHttpDate } from "../../../connectors/service-v2/reference-server/time.ts"
import type { Answer } from "../../../connectors/service-v2/reference-server/http/Message.ts"
import { keyOf } from "../checkers/Checker.ts"
import type { Plan } from "../Plan.ts"
import { type Source, basePath } from "./Source.ts"

export type NetworkFault =
  | "S1 server error"
  | "S2 rate limited"
  | "S2h huge wait"
  | "S3 unauthorized"
  | "S3 forbidden"
  | "S4 html"
  | "S4 garbage"
  | "S4 empty"
  | "S4 error envelope"
  | "S4e empty list"
  | "S10 token expired"
  | "N1 refused"
  | "N2 reset before"
  | "N2 reset in body"
  | "N3 black hole"
  | "N4 answer lost"
  | "N5 slow"
  | "N7 truncated"
  | "N16 redirect"
  | "S3r forbidden"
  | "S3r unauthorized"
  | "S3r redirect"

/** One attempt of the client, and its end. */
export interface Attempt {
  readonly owner: Owner
  readonly life: number
  readonly company: number | null
  readonly path: string
  readonly sentAt: number
  endedAt: number | null
  status: number | null
  /** The end of the pause that the answer requested; null when it requested none. */
  waitUntil: number | null
}

/** A request that leaves a process. */
export interface Sent {
  readonly owner: Owner
  readonly life: number
  readonly request: HttpClientRequest.HttpClientRequest
}

export interface Exchange {
  readonly attempt: Attempt
  /** Sends an answer back; `received` is called when the process receives it. */
  readonly back: (sent: WireAnswer, received: () => void, late?: number) => void
  /** Ends it with a failed connection. */
  readonly broken: (code: string) => void
}

export interface WireAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The length at which the body is cut off. */
  readonly cutAt: number | null
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The resource whose first page is requested; null for other requests. */
const firstPageOf = (path: string): string | null =>
  /[?&](cursor|page|offset)=/.test(path) ? null : (/^\/([a-z0-9]+)\?/.exec(path)?.[1] ?? null)

/** The record that is requested by its id; null for other requests. */
const singleOf = (path: string): { readonly resource: string; readonly id: string } | null => {
  const match = /^\/([a-z0-9]+)\/(\d+)(?:\?|$)/.exec(path)
  return match === null ? null : { resource: match[1]!, id: match[2]! }
}

/** The body of an error. */
export const envelope = (code: string, field?: string) =>
  JSON.stringify({ error: { code, message: "a fault of the simulation", ...(field === undefined ? {} : { field }) } })

/** The path of a request. */
export const targetOf = (url: URL): string => url.href.slice(url.origin.length)

/** The path of a request, without the base of the API. */
export const pathOf = (url: URL): string => {
  const target = targetOf(url)
  return target.startsWith(basePath) ? target.slice(basePath.length) : target
}

/** The error of a request whose connection failed. */
const transportError = (request: HttpClientRequest.HttpClientRequest, code: string) => {
  const cause = Object.assign(new Error(`${code} in the simulation`), { code })
  return Effect.fail(
    new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })
  )
}

export class Network<P extends Plan = Plan> extends Actor<P> {
  private readonly chance = chanceOf(this.drawn.seed, `${this.drawn.pushing === null ? "" : "push "}network`)
  /** Random numbers of the classes that were added later: faults of an answer that the source has given. */
  private readonly later = chanceOf(this.drawn.seed, "later network")
  protected readonly source: Source
  hasFaults = true
  /** The beginning of the safety phase. */
  protected readonly began = this.kernel.now
  /** A process sent a request, or one was processed: the moment for a kill. */
  stepped: (owner: Owner, what: string) => void = () => {}
  /** A process has received an answer. */
  answered: (attempt: Attempt, sent: WireAnswer) => void = () => {}
  /** A process has enabled a subscription. `disabledAt` is when it was disabled, or was before the latest test delivery. */
  reenabled: (owner: Owner, company: number, disabledAt: number) => void = () => {}
  /** A process is about to create a subscription. */
  subscribing: (owner: Owner, company: number) => void = () => {}
  /** Whether the warehouse knows every existing subscription. */
  isSubscribed: () => boolean = () => false
  readonly attempts: Array<Attempt> = []
  /** False empty answers. The same process does not get a second one. */
  private readonly emptied = new Set<string>()
  /** When the source had disabled the subscription of a test delivery, by the idempotency key of its request. */
  private readonly testsByKey = new Map<string, number>()
  /** The same for the latest test delivery of each process, by process, company and subscription. */
  private readonly tests = new Map<string, number>()
  /** Earlier answers to lists, by company and path. */
  private readonly earlierAnswers = new Map<string, { readonly sent: WireAnswer; readonly at: number }>()
  /** The page size of the latest answer to each list. */
  private readonly limits = new Map<string, string>()
  /** Number of live rows in the warehouse, by company and resource, as last seen. */
  readonly live = new Map<string, number>()

  constructor(scene: Scene<P>, source: Source) {
    super(scene)
    this.source = source
  }

  /** The refusal of a resource whose requests are refused now; null for other requests. */
  private refusalOf(path: string): NetworkFault | null {
    const { refusal } = this.drawn.later
    if (refusal === null || !this.hasFaults || !path.startsWith(`/${refusal.resource}`)) return null
    if (/^[a-z0-9]/.test(path.slice(refusal.resource.length + 1))) return null
    const now = this.kernel.now - this.began
    return now >= refusal.from && now < refusal.until ? refusal.fault : null
  }

  private draw(company: number | null, path: string): NetworkFault | null {
    if (!this.hasFaults) return null
    for (const [fault, rate] of this.drawn.network) {
      if (!this.chance.chance(rate)) continue
      if (fault !== "S4e empty list" || this.hasProof(company, path)) return fault
    }
    return null
  }

  /** Whether this is a first page of a list without a cursor, whose records the warehouse has. */
  private hasProof(company: number | null, path: string): boolean {
    const list = firstPageOf(path)
    if (company === null || list === null) return false
    // A process that has stored a subscription requests it by its id.
    if (list === "webhooks") return this.isSubscribed()
    const resource = serviceV2.resources.get(list)
    return resource?.modifiedSince === false && (this.live.get(`${company} ${list}`) ?? 0) > 0
  }

  /** The HTTP client of a process. `life` counts the starts of the process. */
  client(owner: Owner, life: number): HttpClient.HttpClient {
    return HttpClient.make((request, url) => this.exchange({ owner, life, request }, url))
  }

  /** The company of a request's token, at its own address. */
  protected companyOf(request: HttpClientRequest.HttpClientRequest): number | null {
    const authorization = request.headers["authorization"]
    const company = [...this.source.tokens].find(([, token]) => authorization === `Bearer ${token}`)?.[0]
    return company !== undefined && request.url.startsWith(`${this.source.at(company).origin}/`) ? company : null
  }

  /** An answer that the source did not give. */
  protected made(status: number, body: string, headers: Readonly<Record<string, string>> = {}): WireAnswer {
    const bytes = encoder.encode(body)
    const date = printHttpDate(this.kernel.now)
    return {
      status,
      body: bytes,
      cutAt: null,
      headers: { "content-type": "application/json", date, "content-length": String(bytes.length), ...headers }
    }
  }

  /** The page of a proxy. */
  protected html(chance: Chance): WireAnswer {
    return this.made(chance.pick([502, 200, 503]), "<!doctype html><html><body>down</body></html>", {
      "content-type": "text/html"
    })
  }

  /**
   * An exchange of a request: its attempt, and the ways in which it ends for the process. `run` sends it. A process that
   * gives up gets no answer.
   */
  protected exchanging(
    { owner, life, request }: Sent,
    path: string,
    delay: () => number,
    run: (exchange: Exchange) => void,
    ended: () => void = () => {}
  ): Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError> {
    const { kernel } = this
    return Effect.callback((resume) => {
      const attempt: Attempt = {
        owner,
        life,
        company: this.companyOf(request),
        path,
        sentAt: kernel.now,
        endedAt: null,
        status: null,
        waitUntil: null
      }
      this.attempts.push(attempt)
      let open = true
      const close = () => {
        open = false
        attempt.endedAt ??= kernel.now
        ended()
      }
      const finish = (late: number, end: () => void) =>
        kernel.after(delay() + late, owner, () => {
          if (!open) return
          close()
          end()
        })
      run({
        attempt,
        back: (sent, received, late = 0) =>
          finish(late, () => {
            attempt.status = sent.status
            received()
            resume(Effect.succeed(HttpClientResponse.fromWeb(request, responseOf(sent))))
          }),
        broken: (code) => finish(0, () => resume(transportError(request, code)))
      })
      return Effect.sync(close)
    })
  }

  private exchange(sentRequest: Sent, url: URL) {
    const { kernel, chance } = this
    const { owner, request } = sentRequest
    const path = pathOf(url)
    let fault: NetworkFault | null = null
    return this.exchanging(
      sentRequest,
      path,
      () => this.delay(fault),
      ({ attempt, back, broken }) => {
        const { company } = attempt
        fault = this.refusalOf(path) ?? this.draw(company, path)
        if (fault !== null) this.strikes(owner.name, fault, ` for ${path}`)
        this.stepped(owner, path)
        const answer = (sent: WireAnswer) =>
          back(sent, () => {
            const wait = sent.headers["retry-after"]
            // Longer than the client accepts from an intermediary: how long it waits then is not checked.
            if (wait !== undefined && fault !== "S2h huge wait")
              attempt.waitUntil = this.waitOf(wait, sent.headers["date"])
            this.log(owner.name, `http ${sent.status} ${path}`)
            this.answered(attempt, sent)
          })
        if (fault === "N1 refused") return broken(chance.pick(["ECONNREFUSED", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"]))
        if (fault === "N2 reset before") return broken("ECONNRESET")
        if (fault === "N3 black hole") return
        kernel.after(this.delay(fault), null, () => {
          const made = this.instead(fault, path)
          const disabled = made === null ? this.disabledOf(company, path) : null
          if (made === null && request.method === "POST") this.noticeTest(owner, company, path, request)
          if (made === null && request.method === "POST" && company !== null && path === "/webhooks")
            this.subscribing(owner, company)
          const cut = fault === "N7 truncated" || fault === "N2 reset in body"
          const arrives = !cut && fault !== "N4 answer lost"
          const answered =
            made ?? this.serve(owner, request.method, url, request.headers, company, path, bodyOf(request), arrives)
          // A request that the source knows already is answered again, and enables nothing.
          if (
            disabled !== null &&
            request.method === "PATCH" &&
            this.disabledOf(company, path) === null &&
            company !== null
          )
            this.noticeReenabling(owner, company, path, disabled)
          if (answered instanceof Promise) {
            // A test delivery: the source answers after the receiver has answered it.
            const sendBack = async () => {
              const sent = await answered
              this.stepped(owner, path)
              answer(sent)
            }
            void sendBack()
            return
          }
          this.stepped(owner, path)
          if (fault === "N4 answer lost") broken("UND_ERR_SOCKET")
          else if (cut) answer({ ...answered, cutAt: chance.integer(0, Math.max(0, answered.body.length - 1)) })
          else answer(answered)
        })
      }
    )
  }

  /** When the source disabled the subscription with this path; null when it is enabled. */
  private disabledOf(company: number | null, path: string): number | null {
    const id = /^\/webhooks\/(\d+)$/.exec(path)?.[1]
    const isIt = (one: Subscription) => String(one.id) === id && this.source.companyOf(one) === company
    return this.source.subscriptions().find(isIt)?.disabled ?? null
  }

  /**
   * Notes since when the subscription of a test delivery is disabled. Other processes may enable it, and the source may
   * disable it again, before this process enables it.
   */
  private noticeTest(
    owner: Owner,
    company: number | null,
    path: string,
    request: HttpClientRequest.HttpClientRequest
  ): void {
    const tested = /^(\/webhooks\/\d+)\/test$/.exec(path)?.[1]
    if (tested === undefined) return
    const key = request.headers["idempotency-key"] ?? ""
    const disabled = this.testsByKey.get(key) ?? this.disabledOf(company, tested) ?? this.kernel.now
    this.testsByKey.set(key, disabled)
    this.tests.set(`${owner.name} ${company} ${tested}`, disabled)
  }

  private noticeReenabling(owner: Owner, company: number, path: string, disabledAt: number): void {
    const key = `${owner.name} ${company} ${path}`
    this.reenabled(owner, company, Math.min(disabledAt, this.tests.get(key) ?? disabledAt))
    this.tests.delete(key)
  }

  private delay(fault: NetworkFault | null): number {
    return fault === "N5 slow"
      ? this.chance.skewed(1_000_000, 50_000_000)
      : this.chance.skewed(2_000, Math.max(4_000, this.drawn.delayMax))
  }

  private serve(
    owner: Owner,
    method: string,
    url: URL,
    headers: Readonly<Record<string, string | undefined>>,
    company: number | null,
    path: string,
    sentBody: Uint8Array | null,
    arrives: boolean
  ): WireAnswer | Promise<WireAnswer> {
    const hidden = method === "GET" && company !== null ? this.hidden(company, path) : null
    if (hidden !== null) return hidden
    const requestedList = firstPageOf(path)
    if (requestedList !== null && company !== null) this.source.beforePage(company, requestedList)
    const answer = this.source.serve(url.origin, { method, url: targetOf(url), headers, body: sentBody })
    if (answer.pending !== undefined) return answer.pending.then(sentOf)
    const list = firstPageOf(path)
    if (list !== null && company !== null && answer.status === 200) this.source.firstPage(company, list)
    const sent = sentOf(answer)
    return method === "GET" && company !== null
      ? this.struck(owner, company, path, this.earlier(company, path, sent), arrives)
      : sent
  }

  /** Applies the faults of the answer to a list. */
  private struck(owner: Owner, company: number, path: string, sent: WireAnswer, arrives: boolean): WireAnswer {
    const { later: chance, kernel } = this
    const rates = this.drawn.later
    const list = /^\/([a-z0-9]+)\?/.exec(path)?.[1]
    const resource = list === undefined ? undefined : serviceV2.resources.get(list)
    if (!this.hasFaults || resource === undefined || sent.status !== 200) return sent
    const isFirst = firstPageOf(path) !== null
    const tell = (what: string) => this.strikes(owner.name, what, ` for ${path}`)
    const key = `${company} ${path}`
    const limit = /[?&]limit=(\d+)/.exec(path)?.[1] ?? ""
    if (limit !== this.limits.get(`${company} ${list}`)) {
      // An answer of another page size may be older than a removal that was landed since. It would return the record
      // until the next full scan after an earlier answer.
      this.limits.set(`${company} ${list}`, limit)
      for (const one of this.earlierAnswers.keys())
        if (one.startsWith(`${company} /${list}?`)) this.earlierAnswers.delete(one)
    }
    const before = this.earlierAnswers.get(key)
    this.earlierAnswers.set(key, { sent, at: kernel.now })
    const isStale = rates.replicaRate + rates.cacheRate > 0 && before !== undefined
    // Only lists with a synced_through. Without one, a removal or a smaller page moves a record to another address. An
    // earlier answer of the first address would then show it older than it was landed.
    const hasSyncedThrough = resource.modifiedSince
    // A record that was created at the very instant of an answer is as old as the answer's synced_through, and missing
    // in the answer. Nothing shows later that the answer was an earlier one.
    const isTied = isStale && this.source.commits(company, resource.path).some((version) => version.at === before.at)
    if (isStale && chance.chance(isFirst ? rates.cacheRate : rates.replicaRate) && hasSyncedThrough && !isTied) {
      const isOther = decoder.decode(before.sent.body) !== decoder.decode(sent.body)
      tell(`${isFirst ? "N9 an earlier answer" : "S16 an earlier page"}${isOther ? ", with other content" : ""}`)
      this.source.staleLists.push({ company, resource: resource.path, at: kernel.now, of: before.at })
      return before.sent
    }
    const mine = `${owner.name} ${key}`
    if (this.emptied.has(mine)) {
      // The second answer that arrives is true.
      if (arrives) this.emptied.delete(mine)
    } else if (rates.emptyRate > 0 && chance.chance(rates.emptyRate)) {
      const isShort = isFirst && !resource.modifiedSince && (this.live.get(`${company} ${list}`) ?? 0) > 0
      const { paging } = this.source.dialect
      const isAnnounced = !isFirst && (paging === "cursor" || paging === "link")
      if (isShort || isAnnounced) {
        this.emptied.add(mine)
        tell(isShort ? "S4m a list" : "S4m an announced page")
        return this.instead("S4e empty list", path)!
      }
    }
    if (rates.unmarkedRate > 0 && chance.chance(rates.unmarkedRate)) {
      const text = decoder.decode(sent.body)
      const without = text.replace(/"synced_through":"[^"]*"/, '"synced_through":null')
      if (without !== text) {
        tell(`S8p a ${isFirst ? "first" : "later"} page`)
        const body = encoder.encode(without)
        return { ...sent, body, headers: { ...sent.headers, "content-length": String(body.length) } }
      }
    }
    return sent
  }

  /** The answer to a read of a record that is not readable yet, or never; null otherwise. */
  private hidden(company: number, path: string): WireAnswer | null {
    const { hidden } = this.source
    const single = hidden.size === 0 ? null : singleOf(path)
    const delayed = single === null ? undefined : hidden.get(keyOf(company, single.resource, single.id))
    if (delayed === undefined || this.kernel.now >= delayed.until) return null
    this.fired(delayed.status === 404 ? "W5 read too early" : "R7 read in vain")
    return sentOf({
      status: delayed.status,
      headers: { "content-type": "application/json", date: printHttpDate(this.kernel.now) },
      body:
        delayed.status === 404
          ? envelope("not_found")
          : envelope(delayed.status === 422 ? "rule_violation" : "server_error")
    })
  }

  /** The answer to a read of a single record from a replica that is behind. */
  private earlier(company: number, path: string, sent: WireAnswer): WireAnswer {
    const { earlier } = this.source
    const single = earlier.size === 0 || sent.status !== 200 ? null : singleOf(path)
    const delayed = single === null ? undefined : earlier.get(keyOf(company, single.resource, single.id))
    if (single === null || delayed === undefined || this.kernel.now >= delayed.until) return sent
    const newest = this.source.commits(company, single.resource).findLast(({ id }) => id === single.id)!
    const text = decoder.decode(sent.body)
    if (!text.includes(newest.text)) return sent
    this.fired("W5 shown as it was before")
    const body = encoder.encode(text.replace(newest.text, () => delayed.text))
    return { ...sent, body, headers: { ...sent.headers, "content-length": String(body.length) } }
  }

  /** The answer of a proxy or a failing server that does not do the work; null lets the request through. */
  private instead(fault: NetworkFault | null, path: string): WireAnswer | null {
    const { chance } = this
    switch (fault) {
      case "S1 server error": {
        const status = chance.pick([500, 500, 502, 503, 503, 504, 408, 423])
        const waits = status === 503 && chance.chance(0.5)
        return this.made(
          status,
          envelope("server_error"),
          waits ? { "retry-after": String(chance.integer(1, 20)) } : {}
        )
      }
      case "S2 rate limited":
        return this.made(429, envelope("rate_limited"), this.retryAfter())
      case "S2h huge wait":
        return this.made(
          chance.pick([503, 503, 429]),
          "<!doctype html><html><body>checking your browser</body></html>",
          {
            "content-type": "text/html",
            "retry-after": chance.pick(["31536000", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
          }
        )
      case "S3 unauthorized":
        return this.made(401, envelope(chance.pick(["unauthorized", "token_expired"])))
      case "S3r unauthorized":
        return this.made(401, envelope("unauthorized"))
      case "S3r forbidden":
        return this.made(403, envelope("forbidden"))
      case "S3r redirect":
        return this.made(302, "", { location: "https://elsewhere.simulated/login" })
      case "S3 forbidden":
        return this.made(403, envelope("insufficient_scope"))
      case "S4 html":
        return this.html(chance)
      case "S4 garbage":
        return this.made(200, chance.pick(['{"data":[{"id":1,"na', '{"data":[]}}}', "null", "[1,2", '{"data":{}}']))
      case "S4e empty list": {
        const { itemsKey } = this.source.dialect
        const key = itemsKey === "resource" ? /^\/([a-z0-9]+)/.exec(path)![1]! : itemsKey
        return this.made(
          200,
          itemsKey === "bare" ? "[]" : `{"${key}":[],"_meta":{"has_more":false,"next_cursor":null}}`
        )
      }
      case "S4 empty":
        return this.made(200, "")
      case "S4 error envelope":
        return this.made(200, envelope("server_error"))
      case "S10 token expired":
        return /[?&](cursor|page|offset)=/.test(path) ? this.made(410, envelope("invalid_request")) : null
      case "N16 redirect":
        return this.made(302, "", { location: "https://elsewhere.simulated/login" })
      default:
        return null
    }
  }

  private retryAfter(): Readonly<Record<string, string>> {
    const { chance, kernel } = this
    const seconds = chance.skewed(1, 90)
    const date = (ahead: number) => printHttpDate(kernel.now + ahead * 1_000_000)
    switch (chance.integer(0, 6)) {
      case 0:
        return {}
      case 1:
        return { "retry-after": date(seconds + 1) }
      case 2:
        return { "retry-after": date(-seconds) }
      case 3:
        return { "retry-after": "0" }
      case 4:
        return { "retry-after": chance.pick(["soon", "-5", "1.5x"]) }
      default:
        return { "retry-after": String(seconds) }
    }
  }

  /** The end of the wait that a Retry-After requests, parsed here and not by the client's code. */
  private waitOf(value: string, date: string | undefined): number | null {
    if (/^\d+$/.test(value)) return this.kernel.now + Number(value) * 1_000_000
    const until = Date.parse(value)
    if (Number.isNaN(until) || !value.endsWith("GMT")) return null
    const answeredAt = date === undefined ? Math.floor(this.kernel.now / 1000) : Date.parse(date)
    return this.kernel.now + Math.max(0, until - answeredAt) * 1000
  }
}

export const sentOf = (answer: Pick<Answer, "status" | "headers" | "body">): WireAnswer => {
  const body = encoder.encode(answer.body)
  const lower = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), value]))
  return {
    status: answer.status,
    headers: { ...lower, "content-length": String(body.length) },
    body,
    cutAt: null
  }
}

export const bodyOf = ({ body }: HttpClientRequest.HttpClientRequest): Uint8Array | null =>
  body._tag === "Uint8Array" ? body.body : null

const responseOf = ({ status, headers, body, cutAt }: WireAnswer): Response => {
  if (cutAt === null) {
    const isEmpty = status === 204 || status === 304
    return new Response(isEmpty ? null : (body as never), { status, headers })
  }
  let begun = false
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (!begun && cutAt > 0) {
        begun = true
        return controller.enqueue(body.slice(0, cutAt))
      }
      return controller.error(Object.assign(new Error("other side closed"), { code: "UND_ERR_SOCKET" }))
    }
  })
  return new Response(stream, { status, headers })
}

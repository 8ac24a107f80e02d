/**
 * A TLS proxy between the service's sender and the receiver, with the faults of networks, proxies and attackers.
 * Deliveries are passed on up to 20 times, late, out of order or never, or their answer is lost. Old deliveries are
 * replayed, and forged ones are added. The drop rate changes: for a while few attempts of a company are dropped, then
 * most or all.
 *
 * Promise: every fault is drawn from one random stream and counted. The sender gets a 2xx only for a delivery that the
 * receiver has acknowledged or will acknowledge: a delayed delivery is passed on until it is acknowledged. However
 * little is sent, some events of every company are dropped for good, and about every ninth attempt meets a forgery.
 */
import { Agent, request as httpRequest } from "node:http"
import { createServer, type Server } from "node:https"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Chance } from "../fuzz/Chance.ts"
import { certificate } from "../support/certificate.ts"
import { forgeries, signatureOf } from "../support/deliveries.ts"

/** A delivery as the sender sent it. */
interface Delivery {
  readonly company: string
  readonly eventId: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** When it was signed, in seconds since 1970. */
  readonly signedAt: number
}

/** The deliveries of a company. */
export interface Lane {
  readonly company: string
  /** Events that the sender sent, with their bodies. */
  readonly sent: Map<string, Buffer>
  /** Events that reached the receiver, or may have. */
  readonly passed: Set<string>
  /** Events that the receiver acknowledged. */
  readonly acknowledged: Set<string>
  /** Events whose attempts are all dropped. */
  readonly doomed: Set<string>
}

export interface Chaos {
  readonly url: string
  /** The certificate that the sender must trust. */
  readonly caPem: string
  readonly lanes: ReadonlyMap<string, Lane>
  /** Number of faults by kind. */
  readonly counts: ReadonlyMap<string, number>
  /** Forged deliveries by kind, with the number of each answer. */
  readonly forged: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Signing secrets, by company. */
  readonly secrets: Map<string, string>
  /** Number of attempts of the sender. */
  readonly attempts: () => number
  /** From now on no delivery of the company arrives. */
  readonly shut: (company: string) => void
  /** From now on every delivery is passed on unchanged. */
  readonly calm: () => void
  /** Replays old deliveries, one after the other, until the work is done. */
  readonly replayDuring: (work: Promise<unknown>) => Promise<void>
  /** Waits until every delayed request has been passed on. */
  readonly flush: () => Promise<void>
  readonly close: () => Promise<void>
}

/** An acknowledgement can be relied upon from the moment when its answer begins. */
export type Moment = "written" | "answered"

export interface ChaosOptions {
  readonly companies: ReadonlyArray<string>
  readonly receiverPort: number
  readonly seed: number
  /** Called when a delivery has been written to the receiver, and when its answer begins. */
  readonly onMoment: (count: number, moment: Moment) => void
}

const toleranceSeconds = 300
/** Maximum age of a replayed delivery, well within the receiver's window. */
const replaySeconds = 200
const remembered = 300
const replayEveryMs = 20
const requestMaxMs = 10_000
const copiesMax = 20
/** Maximum number of attempts from one forgery to the next; half of it on average. */
const forgedWithin = 17
/** Maximum number of events before the first doomed one of a lane, and between two of them. */
const doomedFirstWithin = 40
const doomedWithin = 400
/** The name under which attempts of doomed events are counted. */
export const doomedFate = "refused until it is given up"

/** The faults of a lane for a while. */
interface Weather {
  readonly isFoul: boolean
  /** The share of attempts that do not arrive. */
  readonly drop: number
  /** Maximum number of times that a delivery is passed on. */
  readonly copies: number
  /** Number of attempts until the weather changes. */
  left: number
}

/**
 * Fair and foul weather alternate, so that no subscription is disabled by chance: that takes 24 failed attempts in a
 * row.
 */
const nextWeather = (chance: Chance, before: Weather | null): Weather => {
  const isFoul = before === null ? chance.is(0.3) : !before.isFoul
  const copies = chance.between(1, copiesMax)
  return isFoul
    ? { isFoul, copies, drop: chance.is(0.3) ? 1 : 0.5 + 0.5 * chance.next(), left: chance.between(3, 15) }
    : { isFoul, copies, drop: 0.1 * chance.next() ** 2, left: chance.between(20, 150) }
}

const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status < 300
const flat = (headers: IncomingHttpHeaders): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith("svc-") || name === "content-type" || name === "user-agent" ? [[name, String(value)]] : []
    )
  )

export const openChaos = async (options: ChaosOptions): Promise<Chaos> => {
  const counts = new Map<string, number>()
  const count = (what: string, times = 1) => counts.set(what, (counts.get(what) ?? 0) + times)
  const forged = new Map<string, Map<string, number>>()
  const secrets = new Map<string, string>()
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const underway = new Set<Promise<unknown>>()
  let attempts = 0
  let written = 0
  let isCalm = false
  const over = new AbortController()

  const post = (
    company: string,
    headers: Readonly<Record<string, string | ReadonlyArray<string>>>,
    body: string | Buffer,
    onMoment: (moment: Moment) => void = () => {}
  ): Promise<number | null> =>
    new Promise((resolve) => {
      const request = httpRequest({
        host: "127.0.0.1",
        port: options.receiverPort,
        method: "POST",
        path: `/hooks/${company}`,
        agent,
        timeout: requestMaxMs,
        headers: { ...headers, "content-length": Buffer.byteLength(body) }
      })
      request.on("response", (response) => {
        onMoment("answered")
        response.resume()
        response.on("end", () => resolve(response.statusCode ?? null))
        response.on("error", () => resolve(null))
        response.on("close", () => resolve(null))
      })
      request.on("timeout", () => request.destroy())
      request.on("error", () => resolve(null))
      request.on("finish", () => onMoment("written"))
      request.end(body)
    })

  /** A company with the faults of its deliveries. Its sender sends one at a time. */
  const makeLane = (company: string, chance: Chance) => {
    const lane: Lane = {
      company,
      sent: new Map(),
      passed: new Set(),
      acknowledged: new Set(),
      doomed: new Set()
    }
    const past: Array<Delivery> = []
    let reordered: Array<{ left: number; readonly delivery: Delivery }> = []
    let forgedSoFar = 0
    let isShut = false
    let weather = nextWeather(chance, null)
    /** A stream of its own, since the number of its draws depends on real time. */
    const replayed = new Chance(chance.below(2 ** 31))
    let untilForged = chance.between(1, forgedWithin)
    let untilDoomed = chance.between(1, doomedFirstWithin)

    const along = <A>(work: Promise<A>): Promise<A> => {
      underway.add(work)
      void work.finally(() => underway.delete(work))
      return work
    }

    const pass = async ({ eventId, headers, body }: Delivery): Promise<number | null> => {
      lane.passed.add(eventId)
      const number = (written += 1)
      const status = await post(company, headers, body, (moment) => options.onMoment(number, moment))
      if (isSuccess(status)) lane.acknowledged.add(eventId)
      count(`answered ${status ?? "not at all"}`)
      return status
    }

    const passUntilAcknowledged = async (delivery: Delivery) => {
      for (let status: number | null = null; !isSuccess(status) && !over.signal.aborted;) {
        status = await pass(delivery)
        if (!isSuccess(status)) await sleep(100)
      }
    }

    const letGo = () => {
      for (const one of reordered) one.left -= 1
      const due = reordered.filter(({ left }) => left <= 0)
      reordered = reordered.filter(({ left }) => left > 0)
      for (const { delivery } of due) void along(passUntilAcknowledged(delivery))
    }

    /** An old delivery; undefined when none is well within the window. */
    const old = () => {
      const one = past.length === 0 ? undefined : replayed.pick(past)
      return one !== undefined && Math.floor(Date.now() / 1000) - one.signedAt < replaySeconds ? one : undefined
    }
    const replay = async () => {
      const one = old()
      if (one === undefined) return
      count("replayed")
      await pass(one)
    }

    const forge = async (delivery: Delivery, onMoment: (moment: Moment) => void) => {
      forgedSoFar += 1
      const secret = secrets.get(company)!
      const [otherSecret = "whsec_of_no_company"] = [...secrets]
        .filter(([name]) => name !== company)
        .map(([, one]) => one)
      const t = Math.floor(Date.now() / 1000)
      const { headers, eventId, body } = delivery
      const bodyText = body.toString("utf8")
      const invented = JSON.stringify({
        ...(JSON.parse(bodyText) as object),
        id: `evt_forged_17_${company}_${forgedSoFar}`
      })
      const poisoned = bodyText.replace(/"data":\{"id":\d+/, `"data":{"id":${chance.between(1, 1000)}`)
      const signature = headers["svc-signature"]!
      const stale = t - toleranceSeconds - 1 - chance.below(1_000_000)
      const own = [
        { name: "a real signature, another body", signatures: [signature], body: invented },
        { name: "a real event, another record", signatures: [signature], body: `${poisoned} ` },
        { name: "a real event, out of the window", signatures: [signatureOf(secret, stale, body)], body: bodyText },
        { name: "a real event of another company", signatures: [signatureOf(otherSecret, t, body)], body: bodyText }
      ]
      const {
        name,
        signatures,
        body: sent
      } = chance.is(0.5) ? chance.pick(own) : chance.pick(forgeries(secret, otherSecret, t, invented))
      const status = await post(
        company,
        {
          "content-type": "application/json",
          "svc-event-id": eventId,
          "svc-event-type": headers["svc-event-type"]!,
          "svc-delivery-attempt": "1",
          ...(signatures.length === 0 ? {} : { "svc-signature": signatures })
        },
        sent,
        onMoment
      )
      const answers = forged.get(name) ?? new Map<string, number>()
      forged.set(name, answers)
      const answer = status === null ? "not at all" : String(status)
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
      count("forged")
    }

    /** Applies a fate to an attempt. Returns the status that the sender sees, or null for a broken connection. */
    const applyFate = async (delivery: Delivery, attempt: number): Promise<number | null> => {
      const { eventId } = delivery
      letGo()
      if (isCalm) return pass(delivery)
      if ((untilForged -= 1) === 0) {
        untilForged = chance.between(1, forgedWithin)
        const isThere = new Promise<void>((resolve) => {
          void along(forge(delivery, (moment) => moment === "written" && resolve())).finally(resolve)
        })
        // Half of the forgeries are sent before the genuine delivery, which they could displace.
        if (chance.is(0.5)) await isThere
      }
      if (chance.is(0.05)) void along(replay())
      if (attempt === 1 && (untilDoomed -= 1) === 0) {
        untilDoomed = chance.between(1, doomedWithin)
        lane.doomed.add(eventId)
      }
      if (lane.doomed.has(eventId)) {
        count(doomedFate)
        return 500
      }
      if (weather.left === 0) weather = nextWeather(chance, weather)
      weather.left -= 1
      if (isShut || chance.is(weather.drop)) {
        const fate = chance.weighted([
          [2, "refused"],
          [1, "swallowed"]
        ] as const)
        count(fate)
        return fate === "refused" ? 500 : null
      }
      const fate = chance.weighted([
        [73, "passed on"],
        [weather.copies > 1 ? 8 : 0, "passed on again and again"],
        [7, "delayed"],
        [8, "reordered"],
        [1, "answer lost"],
        [1, "answer changed to 500"]
      ] as const)
      count(fate)
      past.push(delivery)
      if (past.length > remembered) past.shift()
      switch (fate) {
        case "passed on":
          return pass(delivery)
        case "passed on again and again": {
          const copies = Array.from({ length: chance.between(2, weather.copies) }, () => along(pass(delivery)))
          count("copies", copies.length)
          return copies[0]!
        }
        case "delayed":
          await sleep(chance.between(1, 60))
          return pass(delivery)
        case "reordered":
          reordered.push({ left: chance.between(1, 4), delivery })
          return 204
        case "answer lost":
          await pass(delivery)
          return null
        case "answer changed to 500":
          await pass(delivery)
          return 500
      }
    }

    return {
      lane,
      applyFate,
      replay: () => along(replay()),
      shut: () => {
        isShut = true
      },
      flush: async () => {
        const left = reordered
        reordered = []
        await Promise.all(left.map(({ delivery }) => passUntilAcknowledged(delivery)))
      }
    }
  }

  const chance = new Chance(options.seed)
  const all = new Map(
    options.companies.map((company) => [company, makeLane(company, new Chance(chance.below(2 ** 31)))] as const)
  )

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Array<Buffer> = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const company = request.url!.slice("/hooks/".length)
    const headers = flat(request.headers)
    const eventId = headers["svc-event-id"]!
    const { lane, applyFate } = all.get(company)!
    attempts += 1
    lane.sent.set(eventId, body)
    const signedAt = Number(/^t=(\d+)/.exec(headers["svc-signature"] ?? "")?.[1])
    const status = await applyFate(
      { company, eventId, headers, body, signedAt },
      Number(headers["svc-delivery-attempt"])
    )
    if (status === null) request.socket.destroy()
    else response.writeHead(status, { connection: "close" }).end()
  }

  const { cert, key } = certificate([], ["127.0.0.1"])
  const server: Server = createServer({ cert, key }, (request, response) => {
    answer(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caPem: cert,
    lanes: new Map([...all].map(([company, { lane }]) => [company, lane])),
    counts,
    forged,
    secrets,
    attempts: () => attempts,
    shut: (company) => all.get(company)!.shut(),
    calm: () => {
      isCalm = true
    },
    replayDuring: async (work) => {
      const lanes = [...all.values()]
      const ended = work.then(
        () => "ended",
        () => "ended"
      )
      for (let turn = 0; (await Promise.race([ended, sleep(replayEveryMs)])) !== "ended"; turn += 1) {
        void lanes[turn % lanes.length]!.replay()
      }
    },
    flush: async () => {
      await Promise.all([...all.values()].map((one) => one.flush()))
      while (underway.size > 0) await Promise.allSettled(underway)
    },
    close: async () => {
      over.abort()
      agent.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

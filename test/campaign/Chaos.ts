/**
 * A proxy with TLS between the service's sender and the receiver that does what networks, proxies and strangers do:
 * deliveries are passed on twice, late, out of order, not at all, or their answer is lost; old ones come again; forged
 * ones come between.
 *
 * Promise: whatever is done is drawn from one chance and counted. An answer of 2xx reaches the sender only for what the
 * receiver has acknowledged, or will have: what is held back to come out of order is passed on until it is acknowledged.
 */
import { Agent, request as httpRequest } from "node:http"
import { createServer, type Server } from "node:https"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { Chance } from "../fuzz/Chance.ts"
import { certificate } from "../support/certificate.ts"
import { forgeries, signatureOf } from "../support/deliveries.ts"

/** A delivery as it came from the sender. */
interface Delivery {
  readonly company: string
  readonly eventId: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** When it was signed, in seconds since 1970. */
  readonly signedAt: number
}

/** What is known of a company. */
export interface Lane {
  readonly company: string
  /** Events that the sender sent, with their bodies. */
  readonly sent: Map<string, Buffer>
  /** Events that reached the receiver, or may have. */
  readonly passed: Set<string>
  /** Events that the receiver acknowledged. */
  readonly acknowledged: Set<string>
  /** Events of which no attempt is let through. */
  readonly doomed: Set<string>
}

export interface Chaos {
  readonly url: string
  /** The certificate that the sender has to trust. */
  readonly caPem: string
  readonly lanes: ReadonlyMap<string, Lane>
  /** What was done, and how often. */
  readonly counts: ReadonlyMap<string, number>
  /** Forged deliveries by kind, and what they were answered. */
  readonly forged: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** Signing secrets, by company. */
  readonly secrets: Map<string, string>
  /** Attempts that came from the sender. */
  readonly attempts: () => number
  /** Waits until nothing is held back any more. */
  readonly flush: () => Promise<void>
  readonly close: () => Promise<void>
}

/** The first instant at which an acknowledgement can be relied upon is that at which its answer begins. */
export type Moment = "written" | "answered"

export interface ChaosOptions {
  readonly companies: ReadonlyArray<string>
  readonly receiverPort: number
  readonly seed: number
  /** Called when a delivery has been written to the receiver, and when its answer begins. */
  readonly onMoment: (count: number, moment: Moment) => void
}

const toleranceSeconds = 300
/** Old ones are passed on again while they are surely within the window. */
const replaySeconds = 200
const remembered = 300
const requestMaxMs = 10_000

const isSuccess = (status: number | null): boolean => status !== null && status >= 200 && status < 300
const flat = (headers: IncomingHttpHeaders): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      name.startsWith("svc-") || name === "content-type" || name === "user-agent" ? [[name, String(value)]] : []
    )
  )

export const openChaos = async (options: ChaosOptions): Promise<Chaos> => {
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  const forged = new Map<string, Map<string, number>>()
  const secrets = new Map<string, string>()
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const underway = new Set<Promise<unknown>>()
  let attempts = 0
  let written = 0
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

  /** A company with what happens on the way to it; its sender sends one at a time. */
  const makeLane = (company: string, chance: Chance) => {
    const lane: Lane = {
      company,
      sent: new Map(),
      passed: new Set(),
      acknowledged: new Set(),
      doomed: new Set()
    }
    const past: Array<Delivery> = []
    let held: Array<{ left: number; readonly delivery: Delivery }> = []
    let forgedSoFar = 0

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
      for (const one of held) one.left -= 1
      const due = held.filter(({ left }) => left <= 0)
      held = held.filter(({ left }) => left > 0)
      for (const { delivery } of due) void along(passUntilAcknowledged(delivery))
    }

    const forge = async (delivery: Delivery) => {
      forgedSoFar += 1
      const secret = secrets.get(company)!
      const [otherSecret = "whsec_of_nobody"] = [...secrets].filter(([name]) => name !== company).map(([, one]) => one)
      const t = Math.floor(Date.now() / 1000)
      const { headers, eventId, body } = delivery
      const told = body.toString("utf8")
      const invented = JSON.stringify({
        ...(JSON.parse(told) as object),
        id: `evt_forged_17_${company}_${forgedSoFar}`
      })
      const poisoned = told.replace(/"data":\{"id":\d+/, `"data":{"id":${chance.between(1, 1000)}`)
      const signature = headers["svc-signature"]!
      const stale = t - toleranceSeconds - 1 - chance.below(1_000_000)
      const own = [
        { name: "a real signature, another body", signatures: [signature], body: invented },
        { name: "a real event, another record", signatures: [signature], body: `${poisoned} ` },
        { name: "a real event, out of the window", signatures: [signatureOf(secret, stale, body)], body: told },
        { name: "a real event of another company", signatures: [signatureOf(otherSecret, t, body)], body: told }
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
        sent
      )
      const answers = forged.get(name) ?? new Map<string, number>()
      forged.set(name, answers)
      const answer = status === null ? "not at all" : String(status)
      answers.set(answer, (answers.get(answer) ?? 0) + 1)
      count("forged")
    }

    /** What becomes of an attempt: the status that the sender sees, or null for a connection that breaks. */
    const meet = async (delivery: Delivery, attempt: number): Promise<number | null> => {
      const { eventId } = delivery
      letGo()
      if (chance.is(0.1)) {
        const work = along(forge(delivery))
        // Before the real one, so that it could take its place.
        if (chance.is(0.5)) await work
      }
      if (chance.is(0.05)) {
        const now = Math.floor(Date.now() / 1000)
        const [old] = past.length === 0 ? [] : [chance.pick(past)]
        if (old !== undefined && now - old.signedAt < replaySeconds) {
          count("replayed")
          void along(pass(old))
        }
      }
      if (attempt === 1 && chance.is(0.003)) lane.doomed.add(eventId)
      if (lane.doomed.has(eventId)) {
        count("refused until it is given up")
        return 500
      }
      const fate = chance.weighted([
        [70, "passed on"],
        [8, "passed on twice"],
        [7, "delayed"],
        [8, "held back"],
        [2, "refused"],
        [1, "swallowed"],
        [1, "answer lost"],
        [1, "answer changed to 500"]
      ] as const)
      count(fate)
      if (fate !== "refused" && fate !== "swallowed") {
        past.push(delivery)
        if (past.length > remembered) past.shift()
      }
      switch (fate) {
        case "passed on":
          return pass(delivery)
        case "passed on twice": {
          const both = [pass(delivery), pass(delivery)] as const
          void along(both[1])
          return both[0]
        }
        case "delayed":
          await sleep(chance.between(1, 60))
          return pass(delivery)
        case "held back":
          held.push({ left: chance.between(1, 4), delivery })
          return 204
        case "refused":
          return 500
        case "swallowed":
          return null
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
      meet,
      flush: async () => {
        const left = held
        held = []
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
    const { lane, meet } = all.get(company)!
    attempts += 1
    lane.sent.set(eventId, body)
    const signedAt = Number(/^t=(\d+)/.exec(headers["svc-signature"] ?? "")?.[1])
    const status = await meet({ company, eventId, headers, body, signedAt }, Number(headers["svc-delivery-attempt"]))
    if (status === null) request.socket.destroy()
    else response.writeHead(status, { connection: "close" }).end()
  }

  const { cert, key } = certificate(["localhost"])
  const server: Server = createServer({ cert, key }, (request, response) => {
    answer(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    caPem: cert,
    lanes: new Map([...all].map(([company, { lane }]) => [company, lane])),
    counts,
    forged,
    secrets,
    attempts: () => attempts,
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

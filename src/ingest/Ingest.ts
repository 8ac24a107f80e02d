/**
 * What is answered to a delivery.
 *
 * Promise: 2xx is answered only for an event that is committed to the inbox; whatever is not signed with a secret that is
 * held, and recently, changes nothing (SIG-01 to SIG-06). Every company costs the same work, and one that nobody knows is
 * answered with the same words as a bad signature. A secret that another process has stored meanwhile is looked for before
 * a delivery is called forged (H-08); while nobody can look, it is put off and not called so.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type DeliveryReader, isEvent, type Verdict } from "../connector/Delivery.ts"
import type { SecretKeyring } from "../subscriptions/SecretKeyring.ts"
import type { InboxWriter, Outcome as Stored } from "../inbox/InboxWriter.ts"
import * as ThrottledWarnings from "../log/ThrottledWarnings.ts"

/** A delivery as the listener hands it over. */
export interface IncomingDelivery {
  /** The last part of the address; of the form that names of companies have. */
  readonly company: string
  /** Every signature header that it came with. */
  readonly signatures: ReadonlyArray<string>
  /** The body's bytes, as they came. */
  readonly body: Uint8Array
}

/** What became of a delivery. */
export type Outcome =
  /** Stored. */
  | "accepted"
  /** Stored before. */
  | "known"
  /** Genuine, but its body is no event, or none that can be stored. */
  | "noEvent"
  /** Its signature header does not have its form. */
  | "malformed"
  | "stale"
  | "forged"
  | "tooLarge"
  /** Not read, since too much is being received at once; also each connection that there was no place for. */
  | "busy"
  | "unavailable"

export interface Answer {
  readonly status: 204 | 400 | 401 | 413 | 503
  /** A sentence for whoever reads the sender's log; empty with 204. */
  readonly text: string
  readonly retryAfterSeconds: number | null
}

export interface IngestStats {
  /** Deliveries by what became of them, since this process began. */
  readonly outcomes: Readonly<Record<Outcome, number>>
  /** When each company's last event was stored (or seen again), in milliseconds since 1970. */
  readonly acceptedAt: ReadonlyMap<string, number>
  /** The age of the last stale delivery, in seconds, negative for the future; null when there was none. */
  readonly staleAgeSeconds: number | null
}

export interface Ingest {
  /** Judges a delivery; `done` is called once, and must not throw. */
  readonly receive: (arrival: IncomingDelivery, done: (answer: Answer) => void) => void
  /** {@link receive} as an effect. */
  readonly answer: (arrival: IncomingDelivery) => Effect.Effect<Answer>
  /** Counts a delivery whose body was not read, since it is too large. */
  readonly refuseTooLarge: (company: string) => Answer
  /** Counts a delivery that was not read since too much is being received; null: a connection that was not taken. */
  readonly refuseBusy: (company: string | null) => Answer
  readonly signatureHeader: string
  readonly stats: () => IngestStats
}

export interface IngestOptions {
  readonly reader: DeliveryReader
  readonly held: SecretKeyring
  readonly inbox: Pick<InboxWriter, "put">
  readonly settings: {
    /** How old a delivery may be. */
    readonly toleranceMs: number
    /** How far the sender's clock may be ahead. */
    readonly aheadMs: number
  }
}

const answers = {
  stored: { status: 204, text: "", retryAfterSeconds: null },
  noEvent: { status: 400, text: "The signature is good, but the body is no event.\n", retryAfterSeconds: null },
  refused: { status: 401, text: "The signature is missing, bad or too old.\n", retryAfterSeconds: null },
  tooLarge: { status: 413, text: "The body is larger than an event may be.\n", retryAfterSeconds: null },
  busy: { status: 503, text: "Too much is being received. Send it again.\n", retryAfterSeconds: 10 },
  unavailable: { status: 503, text: "Events cannot be stored now. Send it again.\n", retryAfterSeconds: 10 }
} as const satisfies Record<string, Answer>

/** No secret that anybody holds: with as many as there are to the most, every company costs the same work. */
const dummy = Redacted.make("no company has this secret, and nobody signs with it")

/** Deliveries that wait until it is known whether there are new secrets. Beyond these a forgery is called one at once. */
const suspectsMax = 256
const suspectBytesMax = 16 * 1024 * 1024
const refreshMaxMs = 3_000

interface Suspect {
  readonly arrival: IncomingDelivery
  readonly receivedAt: number
  /** The secrets that it was checked with. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly done: (answer: Answer) => void
}

/** Everything of it ends with the scope. */
export const make = Effect.fnUntraced(function* (options: IngestOptions): Effect.fn.Return<Ingest, never, Scope.Scope> {
  const { reader, held, inbox } = options
  const toleranceSeconds = Math.floor(options.settings.toleranceMs / 1000)
  const aheadSeconds = Math.floor(options.settings.aheadMs / 1000)
  const clock = yield* Clock.Clock
  const notices = yield* ThrottledWarnings.make

  const outcomes: Record<Outcome, number> = {
    accepted: 0,
    known: 0,
    noEvent: 0,
    malformed: 0,
    stale: 0,
    forged: 0,
    tooLarge: 0,
    busy: 0,
    unavailable: 0
  }
  const acceptedAt = new Map<string, number>()
  let staleAgeSeconds: number | null = null
  let suspects: Array<Suspect> = []
  let suspectBytes = 0
  let isEnded = false
  /** Whether new secrets could be looked for when it was last tried. */
  let isAsked = true
  const suspected = Latch.makeUnsafe(false)

  const secretsOf = (company: string) => {
    const secrets = held.of(company)
    const missing = Math.max(1, held.most()) - secrets.length
    return missing <= 0 ? secrets : [...secrets, ...Array.from({ length: missing }, () => dummy)]
  }
  const verify = (
    arrival: IncomingDelivery,
    secrets: ReadonlyArray<Redacted.Redacted>,
    receivedAt: number
  ): Verdict => {
    const [signature, ...others] = arrival.signatures
    if (others.length > 0) return { _tag: "Malformed", detail: "there is more than one signature header" }
    return reader.verify({ signature, body: arrival.body, receivedAt }, { secrets, toleranceSeconds, aheadSeconds })
  }

  const refuse = (outcome: "malformed" | "stale" | "forged", company: string, why: string): Answer => {
    outcomes[outcome] += 1
    notices.note(outcome, `A delivery to "${company}" was refused: ${why}`)
    return answers.refused
  }
  const putOff = (message: string): Answer => {
    outcomes.unavailable += 1
    notices.note("unavailable", message)
    return answers.unavailable
  }
  const forged = ({ company }: IncomingDelivery) => {
    if (isEnded || !isAsked) {
      return putOff(
        `A delivery to "${company}" was put off: its signature fits none of the secrets that are known, and whether there are newer ones cannot be asked now`
      )
    }
    return refuse(
      "forged",
      company,
      held.of(company).length === 0
        ? "no signing secret is known for a company of this name"
        : "its signature fits none of the secrets that are known"
    )
  }
  const stale = ({ company }: IncomingDelivery, ageSeconds: number) => {
    staleAgeSeconds = ageSeconds
    const apart = ageSeconds < 0 ? `${-ageSeconds} s in the future` : `${ageSeconds} s old`
    return refuse(
      "stale",
      company,
      `its signature is good but ${apart}. It was sent again by somebody, or the clocks of sender and receiver differ: compare this machine's clock`
    )
  }

  const stored = (company: string, outcome: Stored): Answer => {
    if (typeof outcome === "string") {
      outcomes[outcome === "stored" ? "accepted" : "known"] += 1
      acceptedAt.set(company, clock.currentTimeMillisUnsafe())
      return answers.stored
    }
    if (outcome.reason === "refused") return noEvent(company, `it cannot be stored (${outcome.detail})`)
    return putOff(`A genuine delivery to "${company}" was put off: ${outcome.message}`)
  }
  const noEvent = (company: string, why: string): Answer => {
    outcomes.noEvent += 1
    notices.note("noEvent", `A genuine delivery to "${company}" was refused: ${why}`)
    return answers.noEvent
  }
  const accept = ({ company, body }: IncomingDelivery, sentAt: number, done: (answer: Answer) => void) => {
    const event = reader.read(body)
    if (!isEvent(event)) return done(noEvent(company, `its body is no event (${event.detail})`))
    inbox.put(
      {
        company,
        eventId: event.id,
        eventType: event.type,
        resource: event.resource,
        recordId: event.recordId,
        stamp: event.stamp,
        occurredAt: event.occurredAt,
        sentAt,
        body
      },
      (outcome) => done(stored(company, outcome))
    )
  }

  const conclude = (arrival: IncomingDelivery, verdict: Verdict, done: (answer: Answer) => void) => {
    switch (verdict._tag) {
      case "Genuine":
        return accept(arrival, verdict.sentAt, done)
      case "Malformed":
        return done(refuse("malformed", arrival.company, verdict.detail))
      case "Stale":
        return done(stale(arrival, verdict.ageSeconds))
      case "Forged":
        return done(forged(arrival))
    }
  }

  const receive = (arrival: IncomingDelivery, done: (answer: Answer) => void) => {
    const receivedAt = clock.currentTimeMillisUnsafe()
    const secrets = secretsOf(arrival.company)
    const verdict = verify(arrival, secrets, receivedAt)
    const size = arrival.body.length
    if (
      verdict._tag !== "Forged" ||
      isEnded ||
      suspects.length >= suspectsMax ||
      suspectBytes + size > suspectBytesMax
    ) {
      return conclude(arrival, verdict, done)
    }
    suspects.push({ arrival, receivedAt, secrets, done })
    suspectBytes += size
    suspected.openUnsafe()
  }

  /** One question serves all who are suspected meanwhile. */
  const inquire = Effect.gen(function* () {
    for (;;) {
      yield* suspected.await
      suspected.closeUnsafe()
      const inquired = suspects
      suspects = []
      suspectBytes = 0
      yield* Effect.timeoutOption(held.refresh, refreshMaxMs).pipe(
        Effect.onExit((exit) =>
          Effect.sync(() => {
            isAsked = Exit.isSuccess(exit) && Option.getOrElse(exit.value, () => false)
            inquired.forEach(judgeAgain)
          })
        )
      )
    }
  })
  const judgeAgain = ({ arrival, receivedAt, secrets, done }: Suspect) => {
    const now = secretsOf(arrival.company)
    const isSame = now.length === secrets.length && now.every((secret, index) => secret === secrets[index])
    conclude(arrival, isSame ? { _tag: "Forged" } : verify(arrival, now, receivedAt), done)
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isEnded = true
      suspects.splice(0).forEach(judgeAgain)
    })
  )
  yield* Effect.forkScoped(inquire)
  return {
    receive,
    answer: (arrival) => Effect.callback((resume) => receive(arrival, (answer) => resume(Effect.succeed(answer)))),
    refuseTooLarge: (company) => {
      outcomes.tooLarge += 1
      notices.note(
        "tooLarge",
        `A delivery to "${company}" was refused: its body is larger than the configuration allows`
      )
      return answers.tooLarge
    },
    refuseBusy: (company) => {
      outcomes.busy += 1
      notices.note(
        "busy",
        company === null
          ? "A connection was cut before its request was whole: another one needed its place, and it was the slowest"
          : `A delivery to "${company}" was put off: too much is being received at once`
      )
      return answers.busy
    },
    signatureHeader: reader.signatureHeader,
    stats: () => ({ outcomes: { ...outcomes }, acceptedAt: new Map(acceptedAt), staleAgeSeconds })
  }
})

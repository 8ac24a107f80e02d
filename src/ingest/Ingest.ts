/**
 * The answer to each delivery.
 *
 * Promise: 2xx is answered only for an event that is committed to the inbox. A delivery without a recent signature by a
 * known secret changes nothing. Every company costs the same work, and an unknown company is answered like a bad
 * signature. Before a delivery is rejected as forged, secrets that another process may have stored are read. While they
 * cannot be read, the answer is 503, so that the sender retries.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type DeliveryReader, isEvent, type Verification, type VerifySettings } from "../connector/Delivery.ts"
import type { SecretKeyring } from "../subscriptions/SecretCache.ts"
import type { InboxWriter, Outcome as InsertOutcome } from "../inbox/InboxWriter.ts"
import * as ThrottledWarnings from "../log/ThrottledWarnings.ts"

/** A delivery as the HTTP server receives it. */
export interface IncomingDelivery {
  /** The last part of the address; it has the form of a company's name. */
  readonly company: string
  /** All its signature headers. */
  readonly signatures: ReadonlyArray<string>
  /** The bytes of the body, as received. */
  readonly body: Uint8Array
}

/** The outcome of a delivery. */
export type Outcome =
  /** Stored. */
  | "accepted"
  /** Stored before. */
  | "known"
  /** Its signature is valid, but its body is no event that can be stored. */
  | "noEvent"
  /** Its signature header has another form than the source's. */
  | "malformed"
  | "stale"
  | "forged"
  | "tooLarge"
  /** Not read, since too many bytes are being received; also each connection beyond the limit. */
  | "busy"
  | "unavailable"

export interface Answer {
  readonly status: 204 | 400 | 401 | 413 | 503
  /** A sentence for the sender's log; empty with 204. */
  readonly text: string
  readonly retryAfterSeconds: number | null
}

export interface IngestStats {
  /** Deliveries of this process by outcome. */
  readonly outcomes: Readonly<Record<Outcome, number>>
  /** When each company's last event was stored or recognized as known, in milliseconds since 1970. */
  readonly acceptedAt: ReadonlyMap<string, number>
  /** The age of the last stale delivery, in seconds, negative for the future; null when there was none. */
  readonly staleAgeSeconds: number | null
}

export interface Ingest {
  /** Verifies a delivery and stores its event. `done` is called once, and must not throw. */
  readonly receive: (arrival: IncomingDelivery, done: (answer: Answer) => void) => void
  /** Counts a delivery whose body was not read, since it is too large. */
  readonly refuseTooLarge: (company: string) => Answer
  /** Counts a delivery that was not read since too many bytes are being received; null: a connection that was refused. */
  readonly refuseBusy: (company: string | null) => Answer
  readonly signatureHeader: string
  readonly stats: () => IngestStats
}

export interface IngestOptions {
  readonly reader: DeliveryReader
  readonly keyring: SecretKeyring
  readonly inbox: Pick<InboxWriter, "put">
  readonly settings: Pick<VerifySettings, "tolerance" | "aheadMax">
  /** Whether the company does not read the resource: no body about it is kept. Default: it reads all. */
  readonly isExcluded?: (company: string, resource: string) => boolean
}

const answers = {
  stored: { status: 204, text: "", retryAfterSeconds: null },
  noEvent: { status: 400, text: "The signature is good, but the body is no event.\n", retryAfterSeconds: null },
  refused: { status: 401, text: "The signature is missing, bad or too old.\n", retryAfterSeconds: null },
  tooLarge: { status: 413, text: "The body is larger than an event may be.\n", retryAfterSeconds: null },
  busy: { status: 503, text: "Too much is being received. Send it again.\n", retryAfterSeconds: 10 },
  unavailable: { status: 503, text: "Events cannot be stored now. Send it again.\n", retryAfterSeconds: 10 }
} as const satisfies Record<string, Answer>

/** A secret of no sender. It fills up the secrets of each company, so that every company costs the same work. */
const dummy = Redacted.make("no company has this secret, and no sender signs with it")

/** Deliveries that wait for new secrets. Beyond these bounds, a bad signature is rejected at once. */
const recheckMax = 256
const recheckBytesMax = 16 * 1024 * 1024
const refreshMaxMs = 3_000

type Done = (answer: Answer) => void

/** A delivery with a bad signature, which is verified again with the newest secrets. */
interface PendingRecheck {
  readonly arrival: IncomingDelivery
  readonly receivedAt: number
  /** The secrets of the first verification. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly done: Done
}

interface IngestState {
  readonly options: IngestOptions
  readonly clock: Clock.Clock
  readonly warnings: ThrottledWarnings.ThrottledWarnings
  readonly outcomes: Record<Outcome, number>
  readonly acceptedAt: Map<string, number>
  staleAgeSeconds: number | null
  pendingRechecks: Array<PendingRecheck>
  pendingRecheckBytes: number
  /** Opened when a recheck is pending. */
  readonly hasRechecks: Latch.Latch
  /** Whether the last attempt to read new secrets succeeded. */
  canRefresh: boolean
  isEnded: boolean
}

/** The secrets of a company, filled up to the largest number that any company has. */
const secretsOf = ({ options }: IngestState, company: string) => {
  const { keyring } = options
  const secrets = keyring.of(company)
  const missing = Math.max(1, keyring.most()) - secrets.length
  return missing <= 0 ? secrets : [...secrets, ...Array.from({ length: missing }, () => dummy)]
}

const verify = (
  { options }: IngestState,
  arrival: IncomingDelivery,
  secrets: ReadonlyArray<Redacted.Redacted>,
  receivedAt: number
): Verification => {
  const [signature, ...others] = arrival.signatures
  if (others.length > 0) return { _tag: "Malformed", detail: "there is more than one signature header" }
  const { reader, settings } = options
  const { tolerance, aheadMax } = settings
  return reader.verify({ signature, body: arrival.body, receivedAt }, { secrets, tolerance, aheadMax })
}

/** Counts a delivery, and logs a warning. */
const countAndWarn = ({ outcomes, warnings }: IngestState, outcome: Outcome, message: string) => {
  outcomes[outcome] += 1
  warnings.warn(outcome, message)
}

const rejectSignature = (
  state: IngestState,
  outcome: "malformed" | "stale" | "forged",
  company: string,
  reason: string
): Answer => {
  countAndWarn(state, outcome, `A delivery to "${company}" was rejected: ${reason}`)
  return answers.refused
}

const rejectPayload = (state: IngestState, company: string, reason: string): Answer => {
  countAndWarn(state, "noEvent", `A delivery to "${company}" with a valid signature was rejected: ${reason}`)
  return answers.noEvent
}

const answerUnavailable = (state: IngestState, message: string): Answer => {
  countAndWarn(state, "unavailable", message)
  return answers.unavailable
}

const rejectForged = (state: IngestState, company: string): Answer => {
  if (state.isEnded || !state.canRefresh) {
    return answerUnavailable(
      state,
      `A delivery to "${company}" was answered 503: its signature fits no known secret, and newer secrets cannot be read now`
    )
  }
  const isUnknown = state.options.keyring.of(company).length === 0
  const reason = isUnknown
    ? "no signing secret is known for a company of this name"
    : "its signature fits none of the secrets that are known"
  return rejectSignature(state, "forged", company, reason)
}

const rejectStale = (state: IngestState, company: string, ageSeconds: number): Answer => {
  state.staleAgeSeconds = ageSeconds
  const age = ageSeconds < 0 ? `${-ageSeconds} s in the future` : `${ageSeconds} s old`
  const reason = `its signature is good but ${age}. It was replayed, or the clocks of sender and receiver differ: compare this machine's clock`
  return rejectSignature(state, "stale", company, reason)
}

const answerStored = (state: IngestState, company: string, outcome: InsertOutcome): Answer => {
  if (typeof outcome === "string") {
    state.outcomes[outcome === "stored" ? "accepted" : "known"] += 1
    state.acceptedAt.set(company, state.clock.currentTimeMillisUnsafe())
    return answers.stored
  }
  if (outcome.reason === "refused") return rejectPayload(state, company, `it cannot be stored (${outcome.detail})`)
  return answerUnavailable(state, `A genuine delivery to "${company}" was answered 503: ${outcome.message}`)
}

/** Stores the event of a delivery with a valid signature. */
const store = (state: IngestState, { company, body }: IncomingDelivery, sentAt: number, done: Done) => {
  const { reader, inbox, isExcluded } = state.options
  const event = reader.read(body)
  if (!isEvent(event)) return done(rejectPayload(state, company, `its body is no event (${event.detail})`))
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
      body:
        event.resource !== null && isExcluded?.(company, event.resource) === true
          ? Buffer.from("{}")
          : (reader.kept?.(event, body) ?? body)
    },
    (outcome) => done(answerStored(state, company, outcome))
  )
}

const answerVerified = (state: IngestState, arrival: IncomingDelivery, verified: Verification, done: Done) => {
  switch (verified._tag) {
    case "Genuine":
      return store(state, arrival, verified.sentAt, done)
    case "Malformed":
      return done(rejectSignature(state, "malformed", arrival.company, verified.detail))
    case "Stale":
      return done(rejectStale(state, arrival.company, verified.ageSeconds))
    case "Forged":
      return done(rejectForged(state, arrival.company))
  }
}

const receive = (state: IngestState, arrival: IncomingDelivery, done: Done) => {
  const receivedAt = state.clock.currentTimeMillisUnsafe()
  const secrets = secretsOf(state, arrival.company)
  const verified = verify(state, arrival, secrets, receivedAt)
  const bytes = state.pendingRecheckBytes + arrival.body.length
  const isFull = state.pendingRechecks.length >= recheckMax || bytes > recheckBytesMax
  if (verified._tag !== "Forged" || state.isEnded || isFull) return answerVerified(state, arrival, verified, done)
  state.pendingRechecks.push({ arrival, receivedAt, secrets, done })
  state.pendingRecheckBytes = bytes
  state.hasRechecks.openUnsafe()
}

/** Verifies a delivery again, where the secrets of its company have changed. */
const recheck = (state: IngestState, { arrival, receivedAt, secrets, done }: PendingRecheck) => {
  const current = secretsOf(state, arrival.company)
  const isSame = current.length === secrets.length && current.every((secret, index) => secret === secrets[index])
  answerVerified(state, arrival, isSame ? { _tag: "Forged" } : verify(state, arrival, current, receivedAt), done)
}

/** Reads new secrets for pending rechecks. One read serves all that are pending. */
const recheckForever = Effect.fnUntraced(function* (state: IngestState) {
  for (;;) {
    yield* state.hasRechecks.await
    state.hasRechecks.closeUnsafe()
    const pending = state.pendingRechecks
    state.pendingRechecks = []
    state.pendingRecheckBytes = 0
    yield* Effect.timeoutOption(state.options.keyring.refresh, refreshMaxMs).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          state.canRefresh = Exit.isSuccess(exit) && Option.getOrElse(exit.value, () => false)
          for (const one of pending) recheck(state, one)
        })
      )
    )
  }
})

/** When the scope ends, deliveries that wait for new secrets are answered 503. */
export const make = Effect.fnUntraced(function* (options: IngestOptions): Effect.fn.Return<Ingest, never, Scope.Scope> {
  const state: IngestState = {
    options,
    clock: yield* Clock.Clock,
    warnings: yield* ThrottledWarnings.make,
    outcomes: {
      accepted: 0,
      known: 0,
      noEvent: 0,
      malformed: 0,
      stale: 0,
      forged: 0,
      tooLarge: 0,
      busy: 0,
      unavailable: 0
    },
    acceptedAt: new Map(),
    staleAgeSeconds: null,
    pendingRechecks: [],
    pendingRecheckBytes: 0,
    hasRechecks: Latch.makeUnsafe(false),
    canRefresh: true,
    isEnded: false
  }
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      state.isEnded = true
      for (const one of state.pendingRechecks.splice(0)) recheck(state, one)
    })
  )
  yield* Effect.forkScoped(recheckForever(state))
  return {
    receive: (arrival, done) => receive(state, arrival, done),
    refuseTooLarge: (company) => {
      const reason = "its body is larger than the configuration allows"
      countAndWarn(state, "tooLarge", `A delivery to "${company}" was rejected: ${reason}`)
      return answers.tooLarge
    },
    refuseBusy: (company) => {
      const message =
        company === null
          ? "A connection was cut before its request was complete: the server needed its slot for another connection, and it was the slowest"
          : `A delivery to "${company}" was answered 503: too much is being received at once`
      countAndWarn(state, "busy", message)
      return answers.busy
    },
    signatureHeader: options.reader.signatureHeader,
    stats: () => ({
      outcomes: { ...state.outcomes },
      acceptedAt: new Map(state.acceptedAt),
      staleAgeSeconds: state.staleAgeSeconds
    })
  }
})

/**
 * The subscriptions at the source: making them what the configuration says, and what people do with them by hand.
 *
 * Promise: everything may be repeated and killed anywhere. A secret is stored before anything is signed with it alone,
 * and is forgotten only when nothing can be signed with it any more, so that no rotation makes a delivery be refused.
 * Processes take turns company by company. Whatever is changed is looked at before and after, and written down by
 * {@link Seen.recordSeen}: a time in which events were dropped is not hidden by mending it.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { SourceError } from "../connector/SourceError.ts"
import type {
  Attempt,
  LogPage,
  Subscription,
  SubscriptionChange,
  Subscriptions,
  TestResult
} from "../connector/Subscriptions.ts"
import { query } from "../postgres/Connection.ts"
import { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import type { Company } from "./Company.ts"
import { Secrets } from "./Secrets.ts"
import * as Seen from "./Seen.ts"

/** Whose subscriptions. */
export type Subscriber = Pick<Company, "name" | "connector">

/** What the configuration wants of a company: where deliveries are received, and which events. */
export interface Wanted {
  /** Null when nobody said under which address deliveries reach us. */
  readonly url: string | null
  readonly events: ReadonlyArray<string>
}

export type ProblemKind =
  /** The source has no webhooks. */
  | "unsupported"
  /** There is no such subscription, or none of ours. */
  | "unknown"
  /** More than one could be meant. */
  | "ambiguous"
  /** It delivers to somebody else, who must be told its secret. */
  | "foreign"
  /** There is one at this address already. */
  | "exists"
  /** The source knows none of the events. */
  | "events"
  /** Nobody said where deliveries are received. */
  | "address"
  /** Another process is at work on the company's subscriptions. */
  | "busy"

/** Nothing was done, and what a person can do. */
export class SubscribeProblem extends Data.TaggedError("SubscribeProblem")<{
  readonly kind: ProblemKind
  readonly company: string
  readonly detail: string
  readonly remedy: string
}> {
  override get message(): string {
    return `company ${this.company}: ${this.detail}`
  }
}

export type SubscribeError = SubscribeProblem | SourceError | SqlError | DatabaseError

/** What changing a subscription takes, apart from its secret. */
export type ChangeNeeds = Database | SqlClient.SqlClient
/** What changing a subscription takes. */
export type SubscribeNeeds = ChangeNeeds | Secrets

/** How long a turn is waited for. */
const turnRetries = 120
const turnRetryEveryMs = 250
/** Of a description at the source. */
const descriptionMax = 100
const logPagesMax = 200

export const descriptionOf = (company: string): string => `Tributary, company ${company}`.slice(0, descriptionMax)

// --------------------------------------------------------------------------------------------------------------- turns

const subscriptionsOf = ({ name, connector }: Subscriber): Effect.Effect<Subscriptions, SubscribeProblem> =>
  connector.subscriptions === undefined
    ? Effect.fail(
        new SubscribeProblem({
          kind: "unsupported",
          company: name,
          detail: "this source has no webhooks",
          remedy: "leave webhooks out of the configuration; tributary sync brings everything over"
        })
      )
    : Effect.succeed(connector.subscriptions)

/** One process at a time changes the subscriptions of a company; ends with the scope. */
const turn = Effect.fnUntraced(function* (
  company: string
): Effect.fn.Return<void, SubscribeProblem | DatabaseError, Database | Scope.Scope> {
  const client = yield* (yield* Database).connect
  const busy = new SubscribeProblem({
    kind: "busy",
    company,
    detail: "another process is changing its subscriptions right now",
    remedy: "wait for it, or stop it, and run again"
  })
  yield* query<{ locked: boolean }>(
    client,
    "lock the subscriptions",
    "select pg_try_advisory_lock(hashtextextended($1, 0)) as locked",
    [`tributary:webhooks:${company}`]
  ).pipe(
    Effect.filterOrFail(
      (rows) => rows[0]?.locked === true,
      () => busy
    ),
    Effect.retry({
      while: (error) => error._tag === "SubscribeProblem",
      times: turnRetries,
      schedule: Schedule.spaced(turnRetryEveryMs)
    })
  )
})

/** Whether it delivers to us. A secret that another receiver knows too is never accepted here. */
export const isOurs = ({ url }: Wanted, one: Subscription): boolean => url === null || one.url === url

/** What one look at the source showed. */
interface Look {
  readonly listed: ReadonlyArray<Subscription>
  readonly seen: ReadonlyArray<Seen.Seen>
}

const look = Effect.fnUntraced(function* (
  { name }: Subscriber,
  source: Subscriptions,
  wanted: Wanted,
  refused: ReadonlyArray<string> | null = null
): Effect.fn.Return<Look, SourceError | SqlError, SqlClient.SqlClient> {
  const at = yield* Seen.now
  const listed = yield* Seen.listed(name, source)
  const seen = yield* Seen.recordSeen(name, listed, wanted.url, wanted.events, at, refused)
  return { listed, seen }
})

const notThere = (company: string, id: string | null, url: string | null = null) =>
  new SubscribeProblem({
    kind: "unknown",
    company,
    detail:
      id === null
        ? `there is no subscription${url === null ? "" : ` for ${url}`}`
        : `there is no subscription ${id} of this token`,
    remedy: "see what there is with npx tributary webhooks list; npx tributary webhooks ensure makes ours"
  })

/** The subscription that is meant: the one of the number, else the only one at our address. */
const pick = (
  { name }: Subscriber,
  { url }: Wanted,
  id: string | null,
  listed: ReadonlyArray<Subscription>
): Effect.Effect<Subscription, SubscribeProblem> => {
  const meant = listed.filter((one) => (id === null ? url === null || one.url === url : one.id === id))
  const [first] = meant
  if (first !== undefined && meant.length === 1) return Effect.succeed(first)
  return Effect.fail(
    first === undefined
      ? notThere(name, id, url)
      : new SubscribeProblem({
          kind: "ambiguous",
          company: name,
          detail: `more than one subscription could be meant: ${meant.map((one) => one.id).join(", ")}`,
          remedy: "name one by its number"
        })
  )
}

/** Changes one subscription in a turn, with a look before and after. */
const changing = Effect.fnUntraced(function* <A, R>(
  company: Subscriber,
  wanted: Wanted,
  id: string | null,
  change: (source: Subscriptions, meant: Subscription) => Effect.Effect<A, SubscribeError, R>
): Effect.fn.Return<A, SubscribeError, R | ChangeNeeds> {
  const source = yield* subscriptionsOf(company)
  return yield* Effect.gen(function* () {
    yield* turn(company.name)
    const { listed } = yield* look(company, source, wanted)
    const done = yield* change(source, yield* pick(company, wanted, id, listed))
    yield* look(company, source, wanted)
    return done
  }).pipe(Effect.scoped)
})

// -------------------------------------------------------------------------------------------------------------- events

/** Names that the source refused as unknown, of those that it was sent (H-01). */
const unknownOf = ({ reason }: SourceError, sent: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (reason._tag !== "Refused") return []
  const problems = [
    ...reason.problems,
    ...(reason.field === null ? [] : [{ field: reason.field, code: reason.code, message: reason.detail }])
  ]
  const places = problems.flatMap(({ field, code }) => {
    const place = code === "unknown_value" ? /^events\[(\d+)\]$/.exec(field)?.[1] : undefined
    return place === undefined ? [] : [Number(place)]
  })
  return sent.filter((_, index) => places.includes(index))
}

/** Sends the events, leaving out one after the other what the source does not know; answers what was left out. */
const withKnown = Effect.fnUntraced(function* <R>(
  company: string,
  events: ReadonlyArray<string>,
  send: (events: ReadonlyArray<string>) => Effect.Effect<Subscription, SourceError | SqlError, R>
): Effect.fn.Return<
  { readonly answer: Subscription; readonly refused: ReadonlyArray<string> },
  SourceError | SqlError | SubscribeProblem,
  R
> {
  const refused: Array<string> = []
  while (true) {
    const known = events.filter((event) => !refused.includes(event))
    if (known.length === 0) {
      return yield* new SubscribeProblem({
        kind: "events",
        company,
        detail:
          events.length === 0 ? "no event is wanted" : `the source knows none of the events ${refused.join(", ")}`,
        remedy: "name events of the source in webhooks.events of the configuration"
      })
    }
    const result = yield* Effect.result(send(known))
    if (result._tag === "Success") return { answer: result.success, refused }
    const error = result.failure
    const unknown = error._tag === "SourceError" ? unknownOf(error, known) : []
    if (unknown.length === 0) return yield* error
    refused.push(...unknown)
  }
})

/** What a person should know before wondering why nothing comes (H-03). */
const unreadable = ({ connector }: Subscriber, events: ReadonlyArray<string>) =>
  connector.identify.pipe(
    Effect.map(({ scopes }) =>
      events.flatMap((event) => {
        const area = connector.catalogue.resources.get(event.slice(0, event.lastIndexOf(".")))?.area
        if (scopes === null || area === undefined || area === "" || scopes.includes("*")) return []
        return scopes.includes(`${area}:read`) || scopes.includes(`${area}:*`)
          ? []
          : [`${event} is subscribed to, but the token lacks the scope ${area}:read, so that the source never sends it`]
      })
    ),
    // The list has been read: whatever this is, it is no reason to stop.
    Effect.orElseSucceed((): ReadonlyArray<string> => [])
  )

const sorted = (events: ReadonlyArray<string>) => [...new Set(events)].sort()
const isSameSet = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  sorted(left).join("\n") === sorted(right).join("\n")

// ------------------------------------------------------------------------------------------------------------- secrets

/** Whether the source read the request and will never do it. */
const isFinal = ({ reason: { _tag } }: SourceError): boolean =>
  _tag === "Refused" || _tag === "NotFound" || _tag === "NotBuilt"

/**
 * Makes a stored secret the current one. It is stored, so that nothing signed with it is refused; then the source is
 * told; then the ones before it are given their last hours, since the source signs with both for a while (H-08). Where
 * the answer is lost both stay.
 */
const tell = Effect.fnUntraced(function* (
  company: string,
  source: Subscriptions,
  subscriptionId: string,
  next: { readonly id: string; readonly secret: Redacted.Redacted }
): Effect.fn.Return<void, SourceError | SqlError, Secrets> {
  const secrets = yield* Secrets
  yield* source
    .update(subscriptionId, { secret: next.secret })
    .pipe(Effect.tapError((error) => (isFinal(error) ? Effect.ignore(secrets.discard(company, next.id)) : Effect.void)))
  yield* secrets.promote(company, subscriptionId, next.id)
})

const rotateTo = Effect.fnUntraced(function* (
  company: string,
  source: Subscriptions,
  subscriptionId: string,
  given: Redacted.Redacted | null
): Effect.fn.Return<void, SourceError | SqlError, Secrets> {
  const secrets = yield* Secrets
  const secret = given ?? (yield* secrets.draw)
  const id = yield* secrets.store(company, subscriptionId, secret, "next")
  yield* tell(company, source, subscriptionId, { id, secret })
})

/** Makes a subscription and stores its secret in the same breath; one whose secret cannot be stored is taken back. */
const createWith = (
  { name }: Subscriber,
  wanted: Wanted,
  source: Subscriptions,
  given: { readonly url: string; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.Effect<Subscription, SourceError | SqlError, Secrets> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const { subscription, secret } = yield* restore(source.create(given))
      if (!isOurs(wanted, subscription)) return subscription
      yield* secrets
        .store(name, subscription.id, secret, "current")
        .pipe(Effect.tapError(() => Effect.ignore(source.cancel(subscription.id))))
      return subscription
    })
  )

// -------------------------------------------------------------------------------------------------------------- ensure

export interface Deed {
  readonly did: "created" | "changed" | "rotated" | "cancelled"
  readonly id: string
  readonly detail: string
}

export interface Ensured {
  readonly company: string
  /** The subscription that delivers to us, as it stands now. */
  readonly subscription: Subscription
  /** What was done; nothing when all was well. */
  readonly deeds: ReadonlyArray<Deed>
  readonly warnings: ReadonlyArray<string>
  /** Wanted events that the source does not know. */
  readonly refused: ReadonlyArray<string>
  /** What is known of our subscriptions now. */
  readonly seen: ReadonlyArray<Seen.Seen>
}

const noAddress = (company: string) =>
  new SubscribeProblem({
    kind: "address",
    company,
    detail: "nobody said under which address deliveries reach us",
    remedy: "set webhooks.public_url in the configuration, for example https://hooks.example.com"
  })

/** Numbers in their own order, whatever their length. */
const isOlder = (left: Subscription, right: Subscription): boolean =>
  left.id.length === right.id.length ? left.id < right.id : left.id.length < right.id.length

/** What must change of a subscription, apart from its secret, so that it delivers these events. */
const changeOf = (one: Subscription, events: ReadonlyArray<string>): SubscriptionChange => ({
  ...(isSameSet(one.events, events) ? {} : { events }),
  ...(one.paused ? { paused: false } : {}),
  ...(one.disabledAt === null ? {} : { enabled: true as const })
})

const changeTold = (one: Subscription, change: SubscriptionChange): string =>
  [
    ...(change.events === undefined
      ? []
      : [
          ...change.events.filter((event) => !one.events.includes(event)).map((event) => `${event} added`),
          ...one.events.filter((event) => !change.events?.includes(event)).map((event) => `${event} removed`)
        ]),
    ...(change.paused === undefined ? [] : ["was paused and goes on"]),
    ...(change.enabled === undefined ? [] : [`was disabled since ${one.disabledAt ?? ""} and goes on`])
  ].join(", ")

/**
 * Makes the subscriptions at our address what the configuration says: one, active, with the wanted events and a secret
 * that we hold. One that was paused or given up goes on. Does nothing where all is so.
 */
export const ensure = Effect.fn("Subscribe.ensure")(function* (
  company: Subscriber,
  wanted: Wanted
): Effect.fn.Return<Ensured, SubscribeError, SubscribeNeeds> {
  const source = yield* subscriptionsOf(company)
  const { url, events } = wanted
  const { name } = company
  if (url === null) return yield* noAddress(name)
  return yield* Effect.gen(function* () {
    yield* turn(name)
    const secrets = yield* Secrets
    const before = yield* look(company, source, wanted)
    const ours = before.listed.filter((one) => one.url === url)
    yield* secrets.retire(
      name,
      before.listed.map(({ id }) => id)
    )
    const stored = yield* secrets.stored(name)
    const deeds: Array<Deed> = []
    const warnings: Array<string> = []

    const oldestFirst = [...ours].sort((left, right) => (isOlder(left, right) ? -1 : 1))
    const kept = oldestFirst.find(({ id }) => stored.get(id)?.holding === "held") ?? oldestFirst[0]
    let refused: ReadonlyArray<string>
    let id: string
    if (kept === undefined) {
      const description = descriptionOf(name)
      const made = yield* withKnown(name, events, (known) =>
        createWith(company, wanted, source, { url, events: known, description })
      )
      refused = made.refused
      id = made.answer.id
      deeds.push({ did: "created", id, detail: `${url}: ${made.answer.events.join(", ")}` })
    } else {
      id = kept.id
      let change: SubscriptionChange = {}
      const changed = yield* withKnown(name, events, (known) => {
        change = changeOf(kept, known)
        return Object.keys(change).length === 0 ? Effect.succeed(kept) : source.update(id, change)
      })
      refused = changed.refused
      if (Object.keys(change).length > 0) deeds.push({ did: "changed", id, detail: changeTold(kept, change) })
      const next = stored.get(id)?.next ?? null
      let holds = stored.get(id)?.holding === "held" || secrets.configured(name) > 0
      if (next !== null) {
        const told = yield* Effect.result(tell(name, source, id, next))
        if (told._tag === "Failure" && !(told.failure._tag === "SourceError" && isFinal(told.failure))) {
          return yield* told.failure
        }
        if (told._tag === "Success") {
          holds = true
          deeds.push({ did: "rotated", id, detail: "a rotation that was interrupted has been finished" })
        }
      }
      if (!holds) {
        yield* rotateTo(name, source, id, null)
        deeds.push({ did: "rotated", id, detail: "its secret was not held" })
      }
      for (const other of ours.filter((one) => one.id !== id)) {
        const cancelled = yield* Effect.result(source.cancel(other.id))
        if (cancelled._tag === "Success") {
          deeds.push({ did: "cancelled", id: other.id, detail: `subscription ${id} delivers to the same address` })
        } else if (isFinal(cancelled.failure) || cancelled.failure.reason._tag === "Forbidden") {
          warnings.push(`subscription ${other.id} delivers the same events once more: ${cancelled.failure.message}`)
        } else return yield* cancelled.failure
      }
    }
    if (refused.length > 0) warnings.push(`the source does not know ${refused.join(", ")}: left out`)
    const known = events.filter((event) => !refused.includes(event))
    warnings.push(...(yield* unreadable(company, known)))
    const after = deeds.length === 0 && refused.length === 0 ? before : yield* look(company, source, wanted, refused)
    const subscription = after.listed.find((one) => one.id === id)
    if (subscription === undefined) return yield* notThere(name, id)
    return { company: name, subscription, deeds, warnings, refused, seen: after.seen }
  }).pipe(Effect.scoped)
})

// --------------------------------------------------------------------------------------------------------------- by hand

/** Makes one of a person's own choice. There is at most one at an address. */
export const create = Effect.fn("Subscribe.create")(function* (
  company: Subscriber,
  wanted: Wanted,
  given: { readonly url: string | null; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.fn.Return<
  { readonly subscription: Subscription; readonly refused: ReadonlyArray<string> },
  SubscribeError,
  SubscribeNeeds
> {
  const source = yield* subscriptionsOf(company)
  const { url, description } = given
  if (url === null) return yield* noAddress(company.name)
  return yield* Effect.gen(function* () {
    yield* turn(company.name)
    const { listed } = yield* look(company, source, wanted)
    const there = listed.find((one) => one.url === url)
    if (there !== undefined) {
      return yield* new SubscribeProblem({
        kind: "exists",
        company: company.name,
        detail: `subscription ${there.id} delivers to ${url} already`,
        remedy: "npx tributary webhooks ensure changes ours; any other can be deleted and made anew"
      })
    }
    const { answer, refused } = yield* withKnown(company.name, given.events, (events) =>
      createWith(company, wanted, source, { url, events, description })
    )
    yield* look(company, source, wanted, url === wanted.url ? refused : null)
    return { subscription: answer, refused }
  }).pipe(Effect.scoped)
})

/**
 * A new secret, or the given one; deliveries signed with either are accepted all the while. One that delivers to
 * somebody else takes a given one only, and it is not kept here.
 */
export const rotate = (
  company: Subscriber,
  wanted: Wanted,
  id: string | null,
  given: Redacted.Redacted | null = null
): Effect.Effect<Subscription, SubscribeError, SubscribeNeeds> =>
  changing(company, wanted, id, (source, meant): Effect.Effect<Subscription, SubscribeError, SubscribeNeeds> => {
    if (isOurs(wanted, meant)) return Effect.as(rotateTo(company.name, source, meant.id, given), meant)
    if (given !== null) return source.update(meant.id, { secret: given })
    return Effect.fail(
      new SubscribeProblem({
        kind: "foreign",
        company: company.name,
        detail: `subscription ${meant.id} delivers to ${meant.url}, which would not know a new secret`,
        remedy: "give both the same one, with --secret-env NAME"
      })
    )
  }).pipe(Effect.withSpan("Subscribe.rotate"))

/** Events that fire from now on are dropped by the source. */
export const pause = (
  company: Subscriber,
  wanted: Wanted,
  id: string | null
): Effect.Effect<Subscription, SubscribeError, ChangeNeeds> =>
  changing(company, wanted, id, (source, meant) =>
    meant.paused ? Effect.succeed(meant) : source.update(meant.id, { paused: true })
  ).pipe(Effect.withSpan("Subscribe.pause"))

/** Delivers again, whether it was paused or disabled. */
export const resume = (
  company: Subscriber,
  wanted: Wanted,
  id: string | null
): Effect.Effect<Subscription, SubscribeError, ChangeNeeds> =>
  changing(company, wanted, id, (source, meant) => {
    const change = changeOf(meant, meant.events)
    return Object.keys(change).length === 0 ? Effect.succeed(meant) : source.update(meant.id, change)
  }).pipe(Effect.withSpan("Subscribe.resume"))

/** Final: the subscription and its secrets are gone. */
export const remove = (
  company: Subscriber,
  wanted: Wanted,
  id: string
): Effect.Effect<Subscription, SubscribeError, SubscribeNeeds> =>
  changing(company, wanted, id, (source, meant) =>
    Effect.gen(function* () {
      const gone = yield* source.cancel(meant.id)
      // A source without cancelling has paused it: it can be resumed there, and is signed with the same secret then.
      if (gone.cancelled) yield* (yield* Secrets).forget(company.name, meant.id)
      return gone
    })
  ).pipe(Effect.withSpan("Subscribe.remove"))

/** Has the source send a test event now. */
export const test = Effect.fn("Subscribe.test")(function* (
  company: Subscriber,
  wanted: Wanted,
  id: string | null
): Effect.fn.Return<
  { readonly subscription: Subscription; readonly result: TestResult },
  SubscribeError,
  SqlClient.SqlClient
> {
  const source = yield* subscriptionsOf(company)
  const { listed } = yield* look(company, source, wanted)
  const subscription = yield* pick(company, wanted, id, listed)
  return { subscription, result: yield* source.test(subscription.id) }
})

export interface Listing {
  readonly subscription: Subscription
  readonly state: Seen.SeenState
  /** Whether it delivers to us. */
  readonly ours: boolean
  /** Whether its deliveries can be checked: with a stored secret, with one of the configuration, or not. */
  readonly secret: "held" | "configured" | "unreadable" | "none"
  /** Wanted events that ours does not deliver. */
  readonly lacks: ReadonlyArray<string>
  /** Nothing that fired before this was dropped by it; null when it was never seen sound, or is not ours. */
  readonly soundAt: string | null
}

/** The source's view joined with ours. */
export const list = Effect.fn("Subscribe.list")(function* (
  company: Subscriber,
  wanted: Wanted
): Effect.fn.Return<ReadonlyArray<Listing>, SubscribeError, Secrets | SqlClient.SqlClient> {
  const source = yield* subscriptionsOf(company)
  const secrets = yield* Secrets
  const { listed, seen } = yield* look(company, source, wanted)
  const stored = yield* secrets.stored(company.name)
  const configured = secrets.configured(company.name) > 0
  return listed.map((subscription): Listing => {
    const held = stored.get(subscription.id)
    const row = seen.find(({ id }) => id === subscription.id)
    const isHeld = held !== undefined && (held.holding === "held" || held.next !== null)
    const ours = isOurs(wanted, subscription)
    return {
      subscription,
      state: Seen.stateOf(subscription),
      ours,
      secret: isHeld ? "held" : configured && ours ? "configured" : held === undefined ? "none" : "unreadable",
      lacks: ours ? (row?.lacks ?? []) : [],
      soundAt: ours ? (row?.soundAt ?? null) : null
    }
  })
})

export interface LogWish {
  readonly delivered?: boolean
  readonly abandoned?: boolean
  readonly eventType?: string
  /** Events, not attempts. */
  readonly limit: number
}

/** The delivery log event by event, newest first: the last attempt of each says how it stands (H-17). */
export const deliveries = Effect.fn("Subscribe.deliveries")(function* (
  company: Subscriber,
  wanted: Wanted,
  id: string | null,
  wish: LogWish
): Effect.fn.Return<
  { readonly subscription: Subscription; readonly attempts: ReadonlyArray<Attempt> },
  SubscribeError,
  SqlClient.SqlClient
> {
  const source = yield* subscriptionsOf(company)
  const { listed } = yield* look(company, source, wanted)
  const subscription = yield* pick(company, wanted, id, listed)
  const isAsked = ({ delivered, abandoned }: Attempt) =>
    (wish.delivered === undefined || delivered === wish.delivered) &&
    (wish.abandoned === undefined || abandoned === wish.abandoned)
  const last = new Map<string, Attempt>()
  const asked = () => [...last.values()].filter(isAsked)
  let token: string | null = null
  for (let pages = 0; pages < logPagesMax; pages += 1) {
    const page: LogPage = yield* source.deliveries({
      id: subscription.id,
      // Only where the flag stands on the last attempt: an event that was delivered at last has failed attempts too.
      ...(wish.delivered === true ? { delivered: true } : {}),
      ...(wish.abandoned === true ? { abandoned: true } : {}),
      ...(wish.eventType === undefined ? {} : { eventType: wish.eventType }),
      token
    })
    for (const attempt of page.attempts) {
      const known = last.get(attempt.eventId)
      if (known === undefined || attempt.attempts > known.attempts) last.set(attempt.eventId, attempt)
    }
    token = page.next
    if (token === null || asked().length >= wish.limit) break
  }
  return { subscription, attempts: asked().slice(0, wish.limit) }
})

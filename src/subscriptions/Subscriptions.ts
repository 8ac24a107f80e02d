/**
 * The subscriptions at the source: making them what the configuration says, and what people do with them by hand.
 *
 * Promise: everything may be repeated and killed anywhere. A secret is stored before anything is signed with it alone,
 * and is forgotten only when nothing can be signed with it any more, so that no rotation makes a delivery be refused.
 * Processes take turns company by company. Whatever is changed is looked at before and after, and written down by
 * {@link SubscriptionStore.saveSnapshot}: a time in which events were dropped is not hidden by mending it.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { SourceError } from "../connector/SourceError.ts"
import type {
  Attempt,
  LogPage,
  LogRequest,
  Subscription,
  SubscriptionChange,
  Subscriptions,
  TestResult
} from "../connector/Subscriptions.ts"
import { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as HookUrl from "./HookUrl.ts"
import type { Company } from "../sync/Company.ts"
import { type StoredSecrets, SigningSecrets } from "./SigningSecrets.ts"
import * as EventScopes from "./EventScopes.ts"
import * as SubscriptionStore from "./SubscriptionStore.ts"

/** Whose subscriptions. */
export type Subscriber = Pick<Company, "name" | "connector">

/** What the configuration wants of a company: where deliveries are received, and which events. */
export interface DesiredSubscription {
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
  /** The source takes a new secret in another field. */
  | "field"
  /** Another process is at work on the company's subscriptions. */
  | "busy"

/** Nothing was done, and what a person can do. */
export class SubscriptionError extends Data.TaggedError("SubscriptionError")<{
  readonly kind: ProblemKind
  readonly company: string
  readonly detail: string
  readonly remedy: string
}> {
  override get message(): string {
    return `company ${this.company}: ${this.detail}`
  }
}

export type SubscribeError = SubscriptionError | SourceError | SqlError | DatabaseError

/** What changing a subscription takes, apart from its secret. */
export type ChangeNeeds = Database | SqlClient.SqlClient
/** What changing a subscription takes. */
export type SubscribeNeeds = ChangeNeeds | SigningSecrets

/** How long a turn is waited for. */
const turnRetries = 120
const turnRetryEveryMs = 250
/** Of a description at the source. */
const descriptionMax = 100
const logPagesMax = 200
/** Three attempts, five minutes apart (DLV-08): after this an event is settled. */
const unsettledMs = 20 * 60_000

export const descriptionOf = (company: string): string => `Tributary, company ${company}`.slice(0, descriptionMax)

/** What to type. */
const typed = (company: string, command: string): string => `npx tributary webhooks ${command} --company ${company}`

// --------------------------------------------------------------------------------------------------------------- turns

const subscriptionsOf = ({ name, connector }: Subscriber): Effect.Effect<Subscriptions, SubscriptionError> =>
  connector.subscriptions === undefined
    ? Effect.fail(
        new SubscriptionError({
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
): Effect.fn.Return<void, SubscriptionError | DatabaseError, Database | Scope.Scope> {
  const { locks } = yield* Database
  const busy = new SubscriptionError({
    kind: "busy",
    company,
    detail: "another process is changing its subscriptions right now",
    remedy: "wait for it, or stop it, and run again"
  })
  yield* locks.tryLock(`tributary:webhooks:${company}`).pipe(
    Effect.filterOrFail(
      (isLocked) => isLocked,
      () => busy
    ),
    Effect.retry({
      while: (error) => error._tag === "SubscriptionError",
      times: turnRetries,
      schedule: Schedule.spaced(turnRetryEveryMs)
    })
  )
})

/** Whether it delivers to us. A secret that another receiver knows too is never accepted here. */
const isOurs = (company: string, { url }: DesiredSubscription, one: Pick<Subscription, "url">): boolean =>
  HookUrl.isOurs(company, url, one.url)

/** What one look at the source showed. */
interface Look {
  readonly listed: ReadonlyArray<Subscription>
  readonly seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>
}

const look = Effect.fnUntraced(function* (
  { name }: Subscriber,
  source: Subscriptions,
  wanted: DesiredSubscription,
  refused: ReadonlyArray<string> | null = null
): Effect.fn.Return<Look, SourceError | SqlError, SqlClient.SqlClient> {
  const at = yield* SubscriptionStore.now
  const listed = yield* SubscriptionStore.listed(name, source)
  const seen = yield* SubscriptionStore.saveSnapshot(name, listed, wanted.url, wanted.events, at, refused)
  return { listed, seen }
})

/** As {@link look}, after something was done: that the source cannot be asked any more is no failure of that. */
const lookAgain = (...given: Parameters<typeof look>) =>
  Effect.catchTag(look(...given), "SourceError", () => Effect.succeed(null))

const notThere = (company: string, id: string | null, url: string | null = null) =>
  new SubscriptionError({
    kind: "unknown",
    company,
    detail:
      id === null
        ? `there is no subscription for ${url ?? `an address that ends in /hooks/${company}`}`
        : `there is no subscription ${id} of this token`,
    remedy: `see what there is with ${typed(company, "list")}; ${typed(company, "ensure")} makes ours`
  })

/**
 * The subscription that is meant: the one of the number; else the only one at our address, or among several there the only
 * one whose secret is held.
 */
const pick = Effect.fnUntraced(function* (
  { name }: Subscriber,
  wanted: DesiredSubscription,
  id: string | null,
  listed: ReadonlyArray<Subscription>
): Effect.fn.Return<Subscription, SubscriptionError | SqlError, SqlClient.SqlClient> {
  const meant = listed.filter((one) => (id === null ? isOurs(name, wanted, one) : one.id === id))
  const [first, ...more] = meant
  if (first === undefined) return yield* notThere(name, id, wanted.url)
  if (more.length === 0) return first
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select subscription_id as id from tributary.webhook_secrets
     where company = ${name} and state in ('current', 'next')`
  const [held, ...others] = meant.filter((one) => rows.some((row) => row.id === one.id))
  if (held !== undefined && others.length === 0) return held
  return yield* new SubscriptionError({
    kind: "ambiguous",
    company: name,
    detail: `more than one subscription could be meant: ${meant.map((one) => one.id).join(", ")}`,
    remedy: "name one by its number"
  })
})

/** Changes one subscription in a turn, with a look before and after. */
const changing = Effect.fnUntraced(function* <A, R>(
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null,
  change: (source: Subscriptions, meant: Subscription) => Effect.Effect<A, SubscribeError, R>
): Effect.fn.Return<A, SubscribeError, R | ChangeNeeds> {
  const source = yield* subscriptionsOf(company)
  return yield* Effect.gen(function* () {
    yield* turn(company.name)
    const { listed } = yield* look(company, source, wanted)
    const done = yield* change(source, yield* pick(company, wanted, id, listed))
    yield* lookAgain(company, source, wanted)
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
  SourceError | SqlError | SubscriptionError,
  R
> {
  const refused: Array<string> = []
  while (true) {
    const known = events.filter((event) => !refused.includes(event))
    if (known.length === 0) {
      return yield* new SubscriptionError({
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
      [...EventScopes.undeliverableEvents(connector.catalogue, scopes, events)].map(
        ([event, scope]) =>
          `${event} is subscribed to, but the token lacks the scope ${scope}, so that the source never sends it`
      )
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
  _tag === "Refused" || _tag === "NotFound" || _tag === "NotImplemented"

/** Whether the source cannot have done it: it was asked once, and said no. */
const isUndone = (error: SourceError): boolean =>
  isFinal(error) || (error.reason._tag === "Forbidden" && (error.request.attempts ?? 1) <= 1)

/** A secret that is stored. */
type Stored = NonNullable<StoredSecrets["next"]>

/**
 * Makes a stored secret the current one. It is stored, so that nothing signed with it is refused; then the source is
 * told; then the ones before it are given their last hours, since the source signs with both for a while (H-08). Where
 * the answer is lost both stay.
 */
const tell = Effect.fnUntraced(function* (
  company: string,
  source: Subscriptions,
  subscriptionId: string,
  { id, secret }: Stored
): Effect.fn.Return<void, SourceError | SqlError, SigningSecrets> {
  yield* source.update(subscriptionId, { secret })
  yield* (yield* SigningSecrets).promote(company, subscriptionId, id)
})

/** What can be done where the source knows no such field is said by the configuration (H-07). */
const rotationProblem =
  (company: string) =>
  <E>(error: E): E | SubscriptionError =>
    error instanceof SourceError && error.reason._tag === "Refused" && error.reason.code === "unknown_parameter"
      ? new SubscriptionError({
          kind: "field",
          company,
          detail: `its secret is as before: ${error.message}`,
          remedy: "set webhooks.rotate_field in the configuration to the field in which the source takes a new secret"
        })
      : error

/**
 * A new secret, or the given one. What an interrupted rotation left is taken first: the source may sign with it already,
 * and rotations that fail again and again leave one secret, not many.
 */
const rotateTo = Effect.fnUntraced(
  function* (
    company: string,
    source: Subscriptions,
    subscriptionId: string,
    given: Redacted.Redacted | null
  ): Effect.fn.Return<void, SourceError | SqlError | SubscriptionError, SigningSecrets> {
    const secrets = yield* SigningSecrets
    const left = (yield* secrets.stored(company)).get(subscriptionId)?.next ?? null
    if (left !== null && (given === null || Redacted.value(given) === Redacted.value(left.secret))) {
      const told = yield* Effect.result(tell(company, source, subscriptionId, left))
      if (told._tag === "Success") return
      // It stays accepted: an earlier try may have been taken.
      if (given !== null || told.failure._tag !== "SourceError" || !isFinal(told.failure)) return yield* told.failure
    }
    const secret = given ?? (yield* secrets.draw)
    const id = yield* secrets.store(company, subscriptionId, secret, "next")
    yield* tell(company, source, subscriptionId, { id, secret }).pipe(
      Effect.tapErrorTag("SourceError", (error) =>
        isUndone(error) ? Effect.ignore(secrets.discard(company, id)) : Effect.void
      )
    )
  },
  (effect, company) => Effect.mapError(effect, rotationProblem(company))
)

/** Makes a subscription and stores its secret in the same breath; one whose secret cannot be stored is taken back. */
const createWith = (
  { name }: Subscriber,
  wanted: DesiredSubscription,
  source: Subscriptions,
  given: { readonly url: string; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.Effect<Subscription, SourceError | SqlError, SigningSecrets> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const secrets = yield* SigningSecrets
      const { subscription, secret } = yield* restore(source.create(given))
      if (!isOurs(name, wanted, given)) return subscription
      yield* secrets
        .store(name, subscription.id, secret, "current")
        .pipe(Effect.tapError(() => Effect.ignore(source.cancel(subscription.id))))
      return subscription
    })
  )

// -------------------------------------------------------------------------------------------------------------- ensure

export interface Change {
  readonly did: "created" | "changed" | "rotated" | "cancelled" | "paused"
  readonly id: string
  readonly detail: string
}

export interface EnsureReport {
  readonly company: string
  /** The subscription that delivers to us, as it stands now. */
  readonly subscription: Subscription
  /** What was done; nothing when all was well. */
  readonly deeds: ReadonlyArray<Change>
  readonly warnings: ReadonlyArray<string>
  /** Wanted events that the source does not know. */
  readonly refused: ReadonlyArray<string>
  /** What is known of our subscriptions. */
  readonly seen: ReadonlyArray<SubscriptionStore.SubscriptionRow>
}

const noAddress = (company: string) =>
  new SubscriptionError({
    kind: "address",
    company,
    detail: "nobody said under which address deliveries reach us",
    remedy: "set webhooks.public_url in the configuration, for example https://hooks.example.com"
  })

/** Numbers in their own order, whatever their length. */
const isOlder = (left: Subscription, right: Subscription): boolean =>
  left.id.length === right.id.length ? left.id < right.id : left.id.length < right.id.length

/** What must change of a subscription, apart from its secret, so that it delivers these events to this address. */
const changeOf = (one: Subscription, { url, events }: Pick<Subscription, "url" | "events">): SubscriptionChange => ({
  ...(HookUrl.isSame(one.url, url) ? {} : { url }),
  ...(isSameSet(one.events, events) ? {} : { events }),
  ...(one.paused ? { paused: false } : {}),
  ...(one.disabledAt === null ? {} : { enabled: true as const })
})

const changeTold = (one: Subscription, change: SubscriptionChange): string =>
  [
    ...(change.url === undefined ? [] : [`delivers to ${change.url} and no longer to ${one.url}`]),
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
 * Whether its last delivery was answered as one is whose signature fits no secret. Only what its log says tells which
 * secret the source signs with: a warehouse that was restored holds one of before.
 */
const isLastRefused = (source: Subscriptions, { id, failCount }: Subscription): Effect.Effect<boolean> =>
  failCount === 0
    ? Effect.succeed(false)
    : source.deliveries({ id, token: null }).pipe(
        Effect.map(({ attempts: [last] }) => last !== undefined && !last.delivered && last.responseCode === 401),
        Effect.orElseSucceed(() => false)
      )

/**
 * Sees to it that the source signs with a secret that is held; `isRefused` says that it was seen not to. What a rotation
 * left that was interrupted and is refused now is kept: the source may have taken it the first time.
 */
const mendSecret = Effect.fnUntraced(function* (
  company: string,
  source: Subscriptions,
  { id, description }: Subscription,
  stored: StoredSecrets | undefined,
  isRefused: boolean
): Effect.fn.Return<
  Pick<EnsureReport, "deeds" | "warnings">,
  SourceError | SqlError | SubscriptionError,
  SigningSecrets
> {
  const warnings: Array<string> = []
  const rotated = (detail: string) => ({ deeds: [{ did: "rotated" as const, id, detail }], warnings })
  const next = stored?.next ?? null
  if (next !== null) {
    const told = yield* Effect.result(tell(company, source, id, next))
    if (told._tag === "Success") return rotated("a rotation that was interrupted has been finished")
    if (told.failure._tag !== "SourceError" || !isFinal(told.failure)) return yield* told.failure
    const { message } = rotationProblem(company)(told.failure)
    warnings.push(
      `a rotation of subscription ${id} was interrupted, and is refused now: ${message}; both secrets stay accepted, ` +
        `and ${typed(company, `rotate ${id}`)} makes another`
    )
  }
  if (stored?.holding !== "held") {
    // One that we made and whose secret is not here is none of those that somebody configured.
    const isConfigured = (yield* SigningSecrets).configured(company) > 0 && description !== descriptionOf(company)
    if (!isConfigured) {
      yield* rotateTo(company, source, id, null)
      return rotated("its secret was not held")
    }
    if (isRefused) {
      warnings.push(
        `the last delivery of subscription ${id} was answered 401: its secret is none of webhook_secrets_env, or a clock ` +
          `is wrong; ${typed(company, `rotate ${id}`)} makes a secret that is kept here`
      )
    }
    return { deeds: [], warnings }
  }
  if (!isRefused) return { deeds: [], warnings }
  yield* rotateTo(company, source, id, null)
  // In the log it stands for whoever asks next.
  const tested = yield* Effect.result(source.test(id))
  if (tested._tag === "Success" && tested.success.responseCode === 401) {
    warnings.push(
      `a test delivery of subscription ${id} is answered 401 still: npx tributary doctor says whether a clock is wrong; ` +
        "else the source takes a new secret in another field, which webhooks.rotate_field names"
    )
  }
  return rotated("its last delivery was answered 401: its secret was not the one that is held")
})

/** Those of the subscriptions that this warehouse knows by the name of another company, with that. */
const ofOthers = Effect.fnUntraced(function* (company: string, listed: ReadonlyArray<Subscription>) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; url: string; company: string }>`
    select subscription_id as id, url, company from tributary.subscriptions where company <> ${company}`
  return listed.flatMap((one) =>
    rows
      .filter(({ id, url }) => id === one.id && HookUrl.isSame(url, one.url))
      .map((row) => ({ one, madeFor: row.company }))
  )
})

const leftTold = (company: string, { id, url }: Subscription, madeFor: string | null = null): string =>
  `subscription ${id}${madeFor === null ? "" : `, made for company ${madeFor},`} sends events to ${url} still: ` +
  `${typed(company, `delete ${id}`)} ends that`

/**
 * Makes the subscriptions at our address what the configuration says: one, active, with the wanted events and a secret
 * that we hold. One that was paused or given up goes on; where there is none, the only one that was ours at another
 * address comes along. Does nothing where all is so.
 */
export const ensure = Effect.fn("Subscribe.ensure")(function* (
  company: Subscriber,
  wanted: DesiredSubscription
): Effect.fn.Return<EnsureReport, SubscribeError, SubscribeNeeds> {
  const source = yield* subscriptionsOf(company)
  const { url, events } = wanted
  const { name } = company
  if (url === null) return yield* noAddress(name)
  return yield* Effect.gen(function* () {
    yield* turn(name)
    const secrets = yield* SigningSecrets
    const before = yield* look(company, source, wanted)
    yield* secrets.retire(
      name,
      before.listed.map(({ id }) => id)
    )
    const stored = yield* secrets.stored(name)
    const deeds: Array<Change> = []
    const warnings: Array<string> = []

    const oldestFirst = [...before.listed].sort((left, right) => (isOlder(left, right) ? -1 : 1))
    const ours = oldestFirst.filter((one) => isOurs(name, wanted, one))
    const isHeld = ({ id }: Subscription) => stored.get(id)?.holding === "held"
    // Secrets are stored of ours alone: it was ours under the address of before.
    const astray = oldestFirst.filter(
      (one) => !ours.includes(one) && (isHeld(one) || (stored.get(one.id)?.next ?? null) !== null)
    )
    const kept = ours.find(isHeld) ?? ours[0] ?? (astray.length === 1 ? astray[0] : undefined)
    let refused: ReadonlyArray<string>
    let done: Subscription
    if (kept === undefined) {
      const description = descriptionOf(name)
      const made = yield* withKnown(name, events, (known) =>
        createWith(company, wanted, source, { url, events: known, description })
      )
      refused = made.refused
      done = made.answer
      deeds.push({ did: "created", id: done.id, detail: `${url}: ${done.events.join(", ")}` })
    } else {
      const { id } = kept
      const isRefused = yield* isLastRefused(source, kept)
      let change: SubscriptionChange = {}
      const changed = yield* withKnown(name, events, (known) => {
        change = changeOf(kept, { url, events: known })
        return Object.keys(change).length === 0 ? Effect.succeed(kept) : source.update(id, change)
      })
      refused = changed.refused
      done = changed.answer
      if (Object.keys(change).length > 0) deeds.push({ did: "changed", id, detail: changeTold(kept, change) })
      const rotated = yield* mendSecret(name, source, kept, stored.get(id), isRefused)
      deeds.push(...rotated.deeds)
      warnings.push(...rotated.warnings)
      for (const other of ours.filter((one) => one !== kept)) {
        const cancelled = yield* Effect.result(source.cancel(other.id))
        if (cancelled._tag === "Success") {
          const detail = `subscription ${id} delivers to the same address`
          if (cancelled.success.cancelled) deeds.push({ did: "cancelled", id: other.id, detail })
          else if (!other.paused) deeds.push({ did: "paused", id: other.id, detail })
        } else if (isFinal(cancelled.failure) || cancelled.failure.reason._tag === "Forbidden") {
          warnings.push(`subscription ${other.id} delivers the same events once more: ${cancelled.failure.message}`)
        } else return yield* cancelled.failure
      }
    }
    for (const other of astray.filter((one) => one !== kept && !one.paused)) warnings.push(leftTold(name, other))
    if (deeds.some(({ did }) => did === "created")) {
      for (const { one, madeFor } of yield* ofOthers(name, before.listed)) {
        if (!one.paused) warnings.push(leftTold(name, one, madeFor))
      }
    }
    if (refused.length > 0) warnings.push(`the source does not know ${refused.join(", ")}: left out`)
    const known = events.filter((event) => !refused.includes(event))
    warnings.push(...(yield* unreadable(company, known)))
    const isAsBefore = deeds.length === 0 && refused.length === 0
    const after = isAsBefore ? before : yield* lookAgain(company, source, wanted, refused)
    if (after === null) return { company: name, subscription: done, deeds, warnings, refused, seen: before.seen }
    const subscription = after.listed.find((one) => one.id === done.id)
    if (subscription === undefined) return yield* notThere(name, done.id)
    return { company: name, subscription, deeds, warnings, refused, seen: after.seen }
  }).pipe(Effect.scoped)
})

// --------------------------------------------------------------------------------------------------------------- by hand

/** Makes one of a person's own choice. There is at most one at an address. */
export const create = Effect.fn("Subscribe.create")(function* (
  company: Subscriber,
  wanted: DesiredSubscription,
  given: { readonly url: string | null; readonly events: ReadonlyArray<string>; readonly description: string }
): Effect.fn.Return<
  {
    readonly subscription: Subscription
    readonly refused: ReadonlyArray<string>
    /** Whether it delivers to us, so that its secret is kept here. */
    readonly ours: boolean
  },
  SubscribeError,
  SubscribeNeeds
> {
  const source = yield* subscriptionsOf(company)
  const { url, description } = given
  if (url === null) return yield* noAddress(company.name)
  return yield* Effect.gen(function* () {
    yield* turn(company.name)
    const { listed } = yield* look(company, source, wanted)
    const there = listed.find((one) => HookUrl.isSame(one.url, url))
    if (there !== undefined) {
      return yield* new SubscriptionError({
        kind: "exists",
        company: company.name,
        detail: `subscription ${there.id} is for ${url} already${there.paused ? ", and paused" : ""}`,
        remedy: isOurs(company.name, wanted, there)
          ? `${typed(company.name, "ensure")} changes ours`
          : there.paused
            ? `${typed(company.name, `resume ${there.id}`)} has it deliver again`
            : `${typed(company.name, `delete ${there.id}`)} makes room, where the source offers that`
      })
    }
    const { answer, refused } = yield* withKnown(company.name, given.events, (events) =>
      createWith(company, wanted, source, { url, events, description })
    )
    const ours = isOurs(company.name, wanted, { url })
    yield* lookAgain(company, source, wanted, ours ? refused : null)
    return { subscription: answer, refused, ours }
  }).pipe(Effect.scoped)
})

/**
 * A new secret, or the given one; deliveries signed with either are accepted all the while. One that delivers to
 * somebody else takes a given one only, and it is not kept here.
 */
export const rotate = (
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null,
  given: Redacted.Redacted | null = null
): Effect.Effect<
  {
    readonly subscription: Subscription
    /** Whether it delivers to us, so that the secret before is accepted for a while. */
    readonly ours: boolean
  },
  SubscribeError,
  SubscribeNeeds
> =>
  changing(
    company,
    wanted,
    id,
    Effect.fnUntraced(function* (source, subscription): Effect.fn.Return<
      { readonly subscription: Subscription; readonly ours: boolean },
      SubscribeError,
      SigningSecrets
    > {
      const { name } = company
      const ours = isOurs(name, wanted, subscription)
      if (ours) yield* rotateTo(name, source, subscription.id, given)
      else if (given !== null) {
        yield* Effect.mapError(source.update(subscription.id, { secret: given }), rotationProblem(name))
      } else {
        return yield* new SubscriptionError({
          kind: "foreign",
          company: name,
          detail: `subscription ${subscription.id} delivers to ${subscription.url}, which would not know a new secret`,
          remedy: `give both the same one: ${typed(name, `rotate ${subscription.id}`)} --secret-env NAME`
        })
      }
      return { subscription, ours }
    })
  ).pipe(Effect.withSpan("Subscribe.rotate"))

/** Events that fire from now on are dropped by the source. */
export const pause = (
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null
): Effect.Effect<Subscription, SubscribeError, ChangeNeeds> =>
  changing(company, wanted, id, (source, meant) =>
    meant.paused ? Effect.succeed(meant) : source.update(meant.id, { paused: true })
  ).pipe(Effect.withSpan("Subscribe.pause"))

/** Delivers again, whether it was paused or disabled. */
export const resume = (
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null
): Effect.Effect<Subscription, SubscribeError, ChangeNeeds> =>
  changing(company, wanted, id, (source, meant) => {
    const change = changeOf(meant, meant)
    return Object.keys(change).length === 0 ? Effect.succeed(meant) : source.update(meant.id, change)
  }).pipe(Effect.withSpan("Subscribe.resume"))

/** Final: the subscription and its secrets are gone. */
export const remove = (
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string
): Effect.Effect<Subscription, SubscribeError, SubscribeNeeds> =>
  changing(company, wanted, id, (source, meant) =>
    Effect.gen(function* () {
      const gone = yield* source.cancel(meant.id)
      // A source without cancelling has paused it: it can be resumed there, and is signed with the same secret then.
      if (gone.cancelled) yield* (yield* SigningSecrets).forget(company.name, meant.id)
      return gone
    })
  ).pipe(Effect.withSpan("Subscribe.remove"))

/** Has the source send a test event now. */
export const test = Effect.fn("Subscribe.test")(function* (
  company: Subscriber,
  wanted: DesiredSubscription,
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
  readonly state: SubscriptionStore.SubscriptionState
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
  wanted: DesiredSubscription
): Effect.fn.Return<ReadonlyArray<Listing>, SubscribeError, SigningSecrets | SqlClient.SqlClient> {
  const source = yield* subscriptionsOf(company)
  const secrets = yield* SigningSecrets
  const { listed, seen } = yield* look(company, source, wanted)
  const stored = yield* secrets.stored(company.name)
  const configured = secrets.configured(company.name) > 0
  return listed.map((subscription): Listing => {
    const held = stored.get(subscription.id)
    const row = seen.find(({ id }) => id === subscription.id)
    const isHeld = held !== undefined && (held.holding === "held" || held.next !== null)
    const ours = isOurs(company.name, wanted, subscription)
    return {
      subscription,
      state: SubscriptionStore.stateOf(subscription),
      ours,
      secret: isHeld ? "held" : configured && ours ? "configured" : held === undefined ? "none" : "unreadable",
      lacks: ours ? (row?.lacks ?? []) : [],
      soundAt: ours ? (row?.soundAt ?? null) : null
    }
  })
})

export interface LogFilter {
  readonly delivered?: boolean
  readonly abandoned?: boolean
  readonly eventType?: string
  /** Events, not attempts. */
  readonly limit: number
}

/**
 * The delivery log event by event, newest first: the last attempt of each says how it stands (H-17). What was not
 * delivered is either abandoned, which the source finds by itself, or was tried a moment ago.
 */
export const deliveries = Effect.fn("Subscribe.deliveries")(function* (
  company: Subscriber,
  wanted: DesiredSubscription,
  id: string | null,
  wish: LogFilter
): Effect.fn.Return<
  {
    readonly subscription: Subscription
    readonly attempts: ReadonlyArray<Attempt>
    /** Whether nothing that is asked for was passed over; false where there was too much to read. */
    readonly isWhole: boolean
  },
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
  const isFull = () => asked().length >= wish.limit

  /** Answers whether it came to the end, or to enough. */
  const read = Effect.fnUntraced(function* (
    filter: Pick<LogRequest, "delivered" | "abandoned">,
    isEnough: (page: LogPage) => boolean
  ) {
    const { eventType } = wish
    let token: string | null = null
    for (let pages = 0; pages < logPagesMax; pages += 1) {
      const page: LogPage = yield* source.deliveries({
        id: subscription.id,
        ...filter,
        ...(eventType === undefined ? {} : { eventType }),
        token
      })
      for (const attempt of page.attempts) {
        const known = last.get(attempt.eventId)
        if (known === undefined || attempt.attempts > known.attempts) last.set(attempt.eventId, attempt)
      }
      token = page.next
      if (token === null || isEnough(page)) return true
    }
    return false
  })

  let isWhole: boolean
  if (wish.delivered === false && wish.abandoned !== true) {
    let newestMs: number | null = null
    isWhole = yield* read({}, ({ attempts }) => {
      const times = attempts.map(({ at }) => Date.parse(at))
      newestMs ??= times[0] ?? null
      return isFull() || times.some((atMs) => newestMs !== null && atMs < newestMs - unsettledMs)
    })
    if (!isFull() && !(yield* read({ abandoned: true }, isFull))) isWhole = false
  } else {
    // Only where the flag stands on the last attempt: an event that was delivered at last has failed attempts too.
    const { delivered, abandoned } = wish
    const filter = { ...(delivered === true ? { delivered } : {}), ...(abandoned === true ? { abandoned } : {}) }
    isWhole = yield* read(filter, isFull)
  }
  return { subscription, attempts: asked().slice(0, wish.limit), isWhole }
})

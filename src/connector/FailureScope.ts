/**
 * The scope of a failed request: this request and its resource, or the whole company.
 *
 * Promise: what one request met is a fact about that request. A refusal whose cause may be the token or the address
 * (401, 403, a redirect) stops the company only when the source refuses the identity, too. Requests that fail together
 * share one question, and an answer is kept for a while. When the question gets no final answer, only the resource fails.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import { Priority } from "../budget/Budget.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import type { ConnectorShape } from "./Connector.ts"
import { SourceError } from "./SourceError.ts"

/** Time after which the question is unanswered. */
const questionTimeout = Duration.minutes(1)
/** How long the source's refusal of the identity stands for the refusals of other requests. */
const refusedMs = 30_000
/** The shortest time between two requests of an identity that was refused. */
const repeatedMs = 5_000
/** How long the source's acceptance of the identity stands for refusals of the same kind. */
const acceptedMs = 10_000

/** The answer to the question: the refusal of the identity, its acceptance, or none. */
type Answer = SourceError | "accepted" | "unknown"

/** The kind of a refusal. */
const kindOf = ({ reason }: SourceError): string => `${reason._tag} ${"code" in reason ? reason.code : ""}`

/** The connector whose failures have a scope. */
export const make = Effect.fnUntraced(function* (connector: ConnectorShape) {
  const now = yield* MonotonicClock.make
  const oneAtATime = yield* Semaphore.make(1)
  let last: { readonly at: number; readonly answer: Answer } = { at: Number.NEGATIVE_INFINITY, answer: "unknown" }
  /** When the identity was last accepted, or left unanswered, after a refusal of a kind. */
  const kinds = new Map<string, number>()

  const remember = (answer: Answer) => {
    last = { at: now(), answer }
    return answer
  }
  const ofCompany = ({ reason, request }: SourceError) => new SourceError({ reason, request, scope: "company" })
  const requested = connector.identify.pipe(
    Effect.mapError(ofCompany),
    Effect.tap(() => Effect.sync(() => remember("accepted"))),
    Effect.tapError((error) => Effect.sync(() => remember(error.isRetryable ? "unknown" : error)))
  )
  const identify = Effect.suspend(() =>
    last.answer instanceof SourceError && now() - last.at < repeatedMs ? Effect.fail(last.answer) : requested
  )

  const ask = identify.pipe(
    Effect.provideService(Priority, { class: "urgent", dueAt: 0 }),
    Effect.timeoutOption(questionTimeout),
    Effect.match({
      onSuccess: (identity): Answer => (Option.isSome(identity) ? "accepted" : remember("unknown")),
      onFailure: (error): Answer => (error.isRetryable ? "unknown" : error)
    })
  )

  const answerTo = (error: SourceError, failedAt: number) =>
    oneAtATime.withPermit(
      Effect.suspend(() => {
        // The question was in flight when the request failed.
        if (last.at >= failedAt) return Effect.succeed(last.answer)
        if (last.answer instanceof SourceError && now() - last.at < refusedMs) return Effect.succeed(last.answer)
        const kind = kindOf(error)
        if (now() - (kinds.get(kind) ?? Number.NEGATIVE_INFINITY) < acceptedMs) return Effect.succeed(last.answer)
        return Effect.tap(ask, (answer) =>
          Effect.sync(() => (answer instanceof SourceError ? kinds.clear() : kinds.set(kind, now())))
        )
      })
    )

  const withScope = (error: SourceError): Effect.Effect<never, SourceError> =>
    !error.reason.handling.isSuspicion
      ? Effect.fail(error)
      : Effect.flatMap(answerTo(error, now()), (answer) => {
          if (answer === "unknown") return Effect.fail(error)
          return Effect.fail(
            answer === "accepted"
              ? new SourceError({ reason: error.reason, request: error.request, scope: "resource" })
              : answer
          )
        })
  const scoped = <A>(request: Effect.Effect<A, SourceError>) => request.pipe(Effect.catch(withScope))

  return {
    ...connector,
    identify,
    page: (request) => scoped(connector.page(request)),
    rawPage: (request) => scoped(connector.rawPage(request)),
    get: (resource, id) => scoped(connector.get(resource, id)),
    write: (request) => scoped(connector.write(request))
  } satisfies ConnectorShape
})

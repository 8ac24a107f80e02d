/**
 * The execution of one page: its transaction, its timeout, and its error page.
 *
 * Promise: a page that sends no request to the source is one read-only transaction of the reader
 * (src/warehouse/Reader.ts) with a timeout for each statement, so that viewing never changes or blocks anything. An
 * error page shows no internals.
 */
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as Reader from "../warehouse/Reader.ts"
import { readOnly } from "../warehouse/ReaderTransaction.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import { readNowMs } from "../postgres/Now.ts"
import * as Problems from "../status/Problems.ts"
import { away, broken, failed, notCertain, notDone, refusal, slow } from "./ErrorPages.ts"
import type { Answer, Page, PageRequest, Route, ShownCompany } from "./Page.ts"

/** The warehouse and the companies of the pages. */
export interface Backend {
  readonly companies: () => ReadonlyArray<ShownCompany>
  readonly context: Context.Context<Database | SqlClient.SqlClient>
  /** The connections and the role that read for the pages. */
  readonly reader: Effect.Effect<Reader.Pages>
  readonly background: PageRequest["background"]
}

export interface PageRunner {
  /** Null while there is no warehouse. */
  readonly backend: () => Backend | null
  /** Limits the concurrent pages, so that connections are left for the work of the process. */
  readonly slots: Semaphore.Semaphore
  /** The last warning of each page, so that a page that is requested every two seconds does not fill the log. */
  readonly warnings: Map<string, string>
}

export type RouteRequest = Omit<PageRequest, "now" | "companies" | "background">

export const pageTimeout = Duration.seconds(15)
/** An action may send requests to the source, which have a timeout of their own. */
export const actionTimeout = Duration.seconds(90)
const pagesAtOnce = 2

export const make = (backend: PageRunner["backend"]): PageRunner => ({
  backend,
  slots: Semaphore.makeUnsafe(pagesAtOnce),
  warnings: new Map()
})

/** SQLSTATE: the statement was cancelled by its timeout. */
const statementTimedOut = "57014"

/** An answer, or the error page of a refused request. */
type Handled = Effect.Effect<Answer, DatabaseError, Database | SqlClient.SqlClient>

const asReader = ({ reader }: Backend, handled: Handled): Handled =>
  Effect.flatMap(reader, (pages) => readOnly(pages, handled))

const handle = (route: Route, { companies, background }: Backend, request: RouteRequest): Handled =>
  Effect.flatMap(readNowMs, (nowMs) => {
    const now = new Date(nowMs)
    return route.handle({ ...request, now, companies: companies(), background }).pipe(
      Effect.catchTag("PageError", ({ status, message, above }) => Effect.succeed(refusal(status, message, above))),
      Effect.flatMap((answer) =>
        answer._tag === "Page"
          ? Effect.map(Problems.readMenu, (numbers): Answer => ({ ...answer, now, numbers }))
          : Effect.succeed<Answer>(answer)
      )
    )
  })

const warnOnce = ({ warnings }: PageRunner, { path }: Route, problem: string) =>
  Effect.suspend(() => {
    if (warnings.get(path) === problem) return Effect.void
    warnings.set(path, problem)
    return Effect.logWarning(`The page ${path} ${problem}`)
  })

const pageOfError = (runner: PageRunner, route: Route, error: DatabaseError): Effect.Effect<Page> => {
  const { message, code, isRetryable } = error
  const shown = route.method === "POST" ? notCertain : isRetryable ? away : code === statementTimedOut ? slow : failed
  return Effect.as(warnOnce(runner, route, `failed: ${message}`), shown)
}

/** Runs a page, or an action; it never fails. */
export const runPage = (runner: PageRunner, route: Route, request: RouteRequest): Effect.Effect<Answer> => {
  const isAction = route.method === "POST"
  const backend = runner.backend()
  if (backend === null) return Effect.succeed(isAction ? notDone : away)
  const handled = handle(route, backend, request)
  const isByOwner = isAction || route.asksSource === true
  return (isByOwner ? handled : runner.slots.withPermit(asReader(backend, handled))).pipe(
    Effect.timeoutOrElse({
      duration: isAction ? actionTimeout : pageTimeout,
      orElse: () => Effect.succeed(isAction ? notCertain : slow)
    }),
    Effect.tap(() =>
      Effect.sync(() => {
        runner.warnings.delete(route.path)
      })
    ),
    Effect.catch((error) => pageOfError(runner, route, error)),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError(`The page ${route.path} failed`, Cause.die(defect)), broken)
    ),
    Effect.provideContext(backend.context)
  )
}

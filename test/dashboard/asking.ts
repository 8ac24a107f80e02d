/** Page requests without a listener: the response of a route to a path, as text. */
import { Clock, Duration, Effect, FiberSet, Scope } from "effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { serviceV2 } from "../../connectors/service-v2/catalogue/index.ts"
import type { PageRequest, Route, ShownCompany } from "../../src/dashboard/Page.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import type { Database } from "../../src/postgres/Database.ts"
import { writeTimes } from "../../src/web/Times.ts"
import { clientOf, networkOf } from "../client/ServerHttp.ts"
import { server } from "../reference-server/support.ts"
import { shownCompany } from "../support/pages.ts"
import { layerPages, sql } from "../support/postgres.ts"
import { plain } from "./markup.ts"

/** An empty warehouse. */
export const warehouse = layerPages

/** Markup that must be escaped on every page. */
export const hostile = `<script>alert("x")</script>&'\u202e`

/** Whether the text contains the hostile markup unescaped. */
export const holdsHostile = (text: string): boolean => text.includes("<script>") || text.includes("\u202e")

/** Under a test clock: a wait before a retry takes no time, and no timeout ends. */
export const atOnce = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) =>
    "adjust" in clock
      ? Effect.provideService(
          effect,
          Clock.Clock,
          Object.assign(Object.create(clock) as Clock.Clock, {
            sleep: (time: Duration.Duration) => (Duration.toMillis(time) < 1_000 ? Effect.void : Effect.never)
          })
        )
      : effect
  )

/** A reference server in process, with one company for each of its tokens. */
export const makeSource = (options: Parameters<typeof server>[0] = {}) => {
  const running = server(options)
  running.control("PUT", "/limits", { requestsPerMinute: 1_000_000, testCallsPerMinute: 1_000 })
  /** An effect that runs before each response. */
  const state = { before: Effect.void }
  const network = networkOf(running.served, () => Effect.as(state.before, null))
  const company = (name: string, token: string, more: Partial<ShownCompany> = {}): Effect.Effect<ShownCompany> =>
    clientOf(network.http, token, {
      retry: { attemptsMax: 2, backoffBase: Duration.millis(5), backoffMax: Duration.millis(10) }
    }).pipe(
      Effect.map((connector) => unconnected(name, { connector, ...more })),
      Scope.provide(Scope.makeUnsafe()),
      Effect.orDie
    )
  return { ...running, requests: network.requests, state, company }
}

const unexpected = () => Effect.die("unexpected request")

/** A company whose source gets no requests. */
export const unconnected = (name: string, more: Partial<ShownCompany> = {}): ShownCompany => ({
  ...shownCompany(name, 0n),
  connector: {
    catalogue: serviceV2,
    identify: unexpected(),
    page: unexpected,
    rawPage: unexpected,
    get: unexpected,
    write: unexpected,
    usage: Effect.succeed({ requests: 0, retries: 0, rateLimited: 0, bytes: 0 })
  },
  batchRecordsMax: 2_500,
  ...more
})

export interface Shown {
  /** The body of a page; empty for a redirect. */
  readonly text: string
  /** The visible text, without tags. */
  readonly read: string
  readonly title: string
  readonly isLive: boolean
  /** The target of a redirect, and its message. */
  readonly to: string | null
  readonly said: string | null
}

const parametersOf = (pattern: string, path: string): Record<string, string> | undefined => {
  const names: Array<string> = []
  const source = pattern.replace(/:(\w+)/g, (_, name: string) => {
    names.push(name)
    return "([^/]+)"
  })
  const match = new RegExp(`^${source}$`).exec(path)
  return match === null
    ? undefined
    : Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(match[index + 1]!)]))
}

const request = Effect.fnUntraced(function* (
  routes: ReadonlyArray<Route>,
  companies: ReadonlyArray<ShownCompany>,
  url: string,
  form?: Readonly<Record<string, string>>,
  zone = "UTC"
) {
  const { pathname, searchParams } = new URL(url, "http://page")
  const method = form === undefined ? "GET" : "POST"
  for (const route of routes) {
    const path = route.method === method ? parametersOf(route.path, pathname) : undefined
    if (path === undefined) continue
    const [row] = yield* sql<{ now: Date }>`select tributary.now() as now`
    const scope = yield* Scope.make()
    const context = yield* Effect.context<Database | SqlClient.SqlClient>()
    const fibers = yield* Effect.provideService(FiberSet.make(), Scope.Scope, scope)
    const pageRequest: PageRequest = {
      path,
      query: searchParams,
      form: new URLSearchParams(form),
      now: row!.now,
      companies,
      datasets: datasetsDefault,
      zone,
      formAccess: { _tag: "Acting", formToken: "token-of-the-form" },
      background: (effect) => Effect.asVoid(FiberSet.run(fibers, Effect.provideContext(effect, context)))
    }
    const answer = yield* route.handle(pageRequest)
    if (answer._tag === "Redirect") {
      return { text: "", read: "", title: "", isLive: false, to: answer.to, said: answer.notice } satisfies Shown
    }
    const { body } = answer
    const text = writeTimes((yield* Effect.promise(async () => body)).toString(), zone)
    return {
      text,
      read: plain(text),
      title: answer.title,
      isLive: answer.isLive !== false,
      to: null,
      said: null
    } satisfies Shown
  }
  return yield* Effect.die(new Error(`no route for ${method} ${pathname}`))
})

/** Requests a page. With a form, the request is a POST. */
export const ask = (...of: Parameters<typeof request>): ReturnType<typeof request> => atOnce(request(...of))

/**
 * The dashboard of `tributary serve`: web pages for operators.
 *
 * Promise: it listens from the start of the process to its end. While the warehouse does not answer, every page reports
 * that, and is shown again as soon as the warehouse answers. `Access.ts` decides first whether a request may see a page
 * or send a form.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { getRequestListener } from "@hono/node-server"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Deferred from "effect/Deferred"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import type { ListenError, Tls } from "../http/Server.ts"
import * as Server from "../http/Server.ts"
import * as Reader from "../warehouse/Reader.ts"
import type { Datasets } from "../warehouse/Table.ts"
import type { Database } from "../postgres/Database.ts"
import * as MonotonicClock from "../time/MonotonicClock.ts"
import * as Access from "./Access.ts"
import * as Application from "./Application.ts"
import * as Assets from "../web/Assets.ts"
import type { ShownCompany } from "./Page.ts"
import * as PageRunner from "./PageRunner.ts"
import { bodyBytesMax } from "./PageServer.ts"
import * as Sessions from "./Sessions.ts"

export interface DashboardOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** PEM files; null for plain HTTP. */
  readonly tls: Tls | null
  /** Null only where no other machine can reach it. */
  readonly password: Redacted.Redacted | null
  /** The address for browsers, where a proxy is in front. */
  readonly publicUrl: string | null
  readonly datasets: Datasets
  readonly version: string
  /** Makes the endpoint of assistants (the Model Context Protocol) when the first one sends a request; null: none. */
  readonly assistant: ((backend: () => PageRunner.Backend | null) => Promise<AssistantHandler>) | null
}

export interface AssistantHandler {
  readonly handler: (request: Request) => Promise<Response>
  readonly dispose: () => Promise<void>
}

export interface Dashboard {
  readonly url: string
  /** An address that opens a session that may act; null where there is a password, or no warehouse answers. */
  readonly link: Effect.Effect<string | null>
  /**
   * Connects the pages to the warehouse and the companies for as long as it runs. Otherwise pages report that the
   * warehouse does not answer. Each request sees the companies of its time.
   */
  readonly connect: (
    companies: () => ReadonlyArray<ShownCompany>
  ) => Effect.Effect<never, never, Database | SqlClient.SqlClient>
}

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void

/** The state that changes while the dashboard listens. */
interface DashboardState {
  /** Null while there is no warehouse. */
  backend: PageRunner.Backend | null
  /** Both are set as soon as it listens. */
  handler: RequestHandler
  isStopping: () => boolean
}

/** The sessions in the warehouse; every operation fails while there is no warehouse. */
const sessionsOf = (state: DashboardState): Sessions.Sessions =>
  Sessions.make((effect) =>
    Effect.suspend((): Effect.Effect<Effect.Success<typeof effect>, unknown> =>
      state.backend === null
        ? Effect.fail("away")
        : effect.pipe(Effect.provide(SecureRandom.layerWebCrypto), Effect.provideContext(state.backend.context))
    )
  )

const listen = ({ host, port, tls }: DashboardOptions, state: DashboardState) =>
  Server.listen({
    purpose: "serve the dashboard",
    host,
    port,
    tls,
    bodyBytesMax,
    silenceTimeout: Duration.sum(PageRunner.actionTimeout, PageRunner.pageTimeout),
    handle: (request, response) => {
      request.on("error", () => {})
      response.on("error", () => {})
      // An idle connection would delay the shutdown.
      response.once("finish", () => {
        if (state.isStopping()) request.socket.destroySoon()
      })
      state.handler(request, response)
    }
  })

const readerRetryMs = 1_000

/** The role that reads for the pages; retried while the server does not answer. */
const readerPages = Reader.pages.pipe(
  Effect.retry(Schedule.spaced(readerRetryMs)),
  Effect.tap(({ asOwner }) =>
    asOwner === null
      ? Effect.void
      : Effect.logInfo(
          `the dashboard reads as the owner, in read-only transactions: ${asOwner.reason}; ${asOwner.remedy}`
        )
  ),
  Effect.orDie
)

/** Connects the pages to a warehouse until it is interrupted. */
const connect = (state: DashboardState, access: Access.Access, companies: () => ReadonlyArray<ShownCompany>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const context = yield* Effect.context<Database | SqlClient.SqlClient>()
      const fibers = yield* FiberSet.make()
      const reader = yield* Deferred.make<Reader.Pages>()
      yield* readerPages.pipe(
        Effect.flatMap((pages) => Deferred.succeed(reader, pages)),
        Effect.forkScoped
      )
      const backend: PageRunner.Backend = {
        companies,
        context,
        reader: Deferred.await(reader),
        background: (effect) => Effect.asVoid(FiberSet.run(fibers, Effect.provideContext(effect, context)))
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          access.forgetKeys()
          state.backend = backend
        }),
        () =>
          Effect.sync(() => {
            if (state.backend === backend) state.backend = null
          })
      )
      return yield* Effect.never
    })
  )

/** Answers requests of assistants, until the scope ends. */
const assistantOf = Effect.fnUntraced(function* ({ assistant }: DashboardOptions, state: DashboardState) {
  if (assistant === null) return null
  let made: Promise<AssistantHandler> | null = null
  yield* Effect.addFinalizer(() => Effect.promise(async () => (await made)?.dispose()))
  return async (request: Request) => {
    made ??= assistant(() => state.backend)
    return (await made).handler(request)
  }
})

/** Listens until its scope ends. */
export const start = Effect.fnUntraced(function* (
  options: DashboardOptions
): Effect.fn.Return<Dashboard, ListenError, Scope.Scope> {
  const run = yield* FiberSet.makeRuntimePromise()
  const state: DashboardState = {
    backend: null,
    handler: (_, response) => void response.writeHead(503).end(),
    isStopping: () => false
  }
  const { url, port, isStopping } = yield* listen(options, state)
  state.isStopping = isStopping
  const access = yield* Access.make({ ...options, port, sessions: sessionsOf(state) }).pipe(
    Effect.provide(SecureRandom.layerWebCrypto)
  )
  const app = Application.make(
    {
      hasTls: options.tls !== null,
      publicUrl: options.publicUrl,
      version: options.version,
      access,
      assets: Assets.load("/assets"),
      runner: PageRunner.make(() => state.backend),
      assistant: yield* assistantOf(options, state),
      monotonicMs: yield* MonotonicClock.make,
      run: (effect, signal) => run(effect, { signal })
    },
    options.datasets
  )
  const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false })
  state.handler = (request, response) => void listener(request, response)
  return {
    url,
    link: Effect.map(access.linkToken, (token) => (token === null ? null : `${url}/open?token=${token}`)),
    connect: (companies) => connect(state, access, companies)
  }
})

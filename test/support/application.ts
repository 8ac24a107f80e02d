/** The dashboard's application in process, without a listener: a request in, a response out, with the real headers. */
import { Effect, FiberSet } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Access from "../../src/dashboard/Access.ts"
import * as Application from "../../src/dashboard/Application.ts"
import type { ShownCompany } from "../../src/dashboard/Page.ts"
import * as PageRunner from "../../src/dashboard/PageRunner.ts"
import * as Sessions from "../../src/dashboard/Sessions.ts"
import type { Database } from "../../src/postgres/Database.ts"
import * as Reader from "../../src/warehouse/Reader.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import * as Assets from "../../src/web/Assets.ts"

const port = 4321
/** Requests to this origin have the Host that the application accepts. Nothing listens there. */
export const origin = `http://127.0.0.1:${port}`

export type Answer = (request: Request) => Promise<Response>

/**
 * Answers requests for the pages of these companies, until the scope ends. The cookie is that of a session that may act.
 * `workMs` is what each page seems to cost; an expensive page is refreshed less often.
 */
export const application = Effect.fnUntraced(function* (companies: ReadonlyArray<ShownCompany>, workMs = 0) {
  const context = yield* Effect.context<Database | SqlClient.SqlClient>()
  const run = yield* FiberSet.makeRuntimePromise()
  const fibers = yield* FiberSet.make()
  const reader = yield* Reader.pages
  const backend: PageRunner.Backend = {
    companies: () => companies,
    context,
    reader: Effect.succeed(reader),
    background: (effect) => Effect.asVoid(FiberSet.run(fibers, Effect.provideContext(effect, context)))
  }
  const access = yield* Access.make({
    host: "127.0.0.1",
    port,
    password: null,
    publicUrl: null,
    sessions: Sessions.make((effect) =>
      effect.pipe(Effect.provide(SecureRandom.layerWebCrypto), Effect.provideContext(context))
    )
  }).pipe(Effect.provide(SecureRandom.layerWebCrypto))
  let elapsedMs = 0
  const app = Application.make(
    {
      hasTls: false,
      publicUrl: null,
      version: "1.2.3",
      access,
      assets: Assets.load("/assets"),
      runner: PageRunner.make(() => backend),
      assistant: null,
      monotonicMs: () => (elapsedMs += workMs),
      run: (effect, signal) => run(effect, { signal })
    },
    datasetsDefault
  )
  const incoming = { socket: { remoteAddress: "127.0.0.1" }, httpVersion: "1.1" }
  const answer: Answer = async (request) => {
    const headers = new Headers(request.headers)
    headers.set("host", new URL(origin).host)
    return app.fetch(new Request(request, { headers }), { incoming, outgoing: {} })
  }
  const token = yield* access.linkToken
  const opened = yield* Effect.promise(() => answer(new Request(`${origin}/open?token=${token}`)))
  const [cookie = ""] = opened.headers.getSetCookie().map((one) => one.split(";")[0]!)
  return { answer, cookie }
})

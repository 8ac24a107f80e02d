/**
 * Receivers of alerts that record what they get, routes to them, and processes that evaluate and send.
 */
import type * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Duration, Effect, Layer, Record, Redacted } from "effect"
import { SMTPServer } from "smtp-server"
import * as Evaluate from "../../src/alerts/Evaluate.ts"
import type { AlertConfiguration, Receiver, Route } from "../../src/alerts/Route.ts"
import * as AlertFeed from "../../src/alerts/AlertFeed.ts"
import * as EndpointStore from "../../src/delivery/EndpointStore.ts"
import * as Round from "../../src/delivery/Round.ts"
import * as Sender from "../../src/delivery/Sender.ts"
import * as SenderStore from "../../src/delivery/SenderStore.ts"
import * as Transport from "../../src/delivery/Transport.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"
import { kindTraits, startAfterOf } from "../../src/status/ProblemKinds.ts"
import { recording } from "./recording.ts"

export interface ReceivedRequest {
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

interface Reply {
  readonly status: number
  readonly headers?: http.OutgoingHttpHeaders
}

/** An HTTP receiver, until the end of the scope. `answer` decides about a request; null leaves it without an answer. */
export const httpReceiver = Effect.fnUntraced(function* (
  answer: (request: ReceivedRequest, earlier: number) => Reply | null | Promise<Reply | null> = () => ({ status: 200 })
) {
  const requests: Array<ReceivedRequest> = []
  const { url, close } = yield* recording(({ headers }, body, response) => {
    const received = { headers, body: body.toString("utf8") }
    requests.push(received)
    void Promise.resolve(answer(received, requests.length - 1)).then((reply) =>
      reply === null ? undefined : response.writeHead(reply.status, reply.headers).end("ok")
    )
  })
  return { url: `${url}/`, requests, close }
})

/** An SMTP server, until the end of the scope, with the sources of its messages. */
export const smtpReceiver = Effect.acquireRelease(
  Effect.callback<{ url: string; mails: Array<string>; close: () => void }>((resume) => {
    const mails: Array<string> = []
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS"],
      onData: (stream, _session, done) => {
        const chunks: Array<Buffer> = []
        stream.on("data", (chunk: Buffer) => chunks.push(chunk))
        stream.on("end", () => {
          mails.push(Buffer.concat(chunks).toString("utf8"))
          done()
        })
      }
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.server.address() as AddressInfo
      resume(Effect.succeed({ url: `smtp://127.0.0.1:${port}`, mails, close: () => server.close(() => {}) }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const routeTo = (name: string, receiver: Receiver, change: Partial<Route> = {}): Route => ({
  name,
  companies: null,
  kinds: null,
  severityMin: "warning",
  digest: null,
  isCriticalAtOnce: true,
  ...change,
  receiver
})

export const slackRoute = (url: string, change?: Partial<Route>) =>
  routeTo("slack", { type: "slack", url: Redacted.make(url) }, change)
export const httpRoute = (url: string, secret: string | null = null, change?: Partial<Route>) =>
  routeTo(
    "http",
    { type: "http", url: Redacted.make(url), secret: secret === null ? null : Redacted.make(secret) },
    change
  )
export const emailRoute = (url: string, change?: Partial<Route>) =>
  routeTo(
    "email",
    {
      type: "email",
      url: Redacted.make(url),
      from: "tributary@example.com",
      to: ["ops@example.com"],
      allowPlain: true
    },
    change
  )

/** The default times with these routes. */
export const alertsTo = (routes: ReadonlyArray<Route>): AlertConfiguration => ({
  routes,
  startAfter: Record.map(kindTraits, (_, kind) => startAfterOf(kind)),
  endAfter: Duration.minutes(2)
})

export type Alerting = Effect.Success<ReturnType<typeof alertingProcess>>

/** A process with its own connections, until the end of the scope. */
export const alertingProcess = Effect.fnUntraced(function* (
  owner: string,
  url: Redacted.Redacted,
  settings: AlertConfiguration,
  companies: ReadonlyArray<string>
) {
  const warehouse = yield* Layer.build(Layer.fresh(Layer.provideMerge(sqlLayer, Database.layerUrl(url))))
  const transport = yield* Transport.make(null, Transport.limitsOfRoutes)
  const routes = AlertFeed.definitionsOf(settings.routes)
  const feeds = AlertFeed.feedsOf(settings.routes)
  const evaluate = Evaluate.evaluateOnce(settings, () => companies)
  const lease = SenderStore.lease(owner, [...feeds.keys()], false)
  const send = Effect.gen(function* () {
    yield* lease
    const sent = yield* Effect.forEach(
      yield* SenderStore.readLeased(owner),
      (leased) =>
        Round.run(feeds.get(leased.name)!, { ...leased, transport }, Round.initial).pipe(
          Effect.map(({ isBusy }) => isBusy),
          Effect.catchTag("LeaseLost", () => Effect.succeed(false))
        ),
      { concurrency: "unbounded" }
    )
    return sent.includes(true)
  })
  yield* Effect.orDie(Effect.provideContext(EndpointStore.apply([], routes), warehouse))
  return {
    owner,
    evaluate: Effect.orDie(Effect.provideContext(evaluate, warehouse)),
    /** Leases the routes that no other process has. */
    lease: Effect.orDie(Effect.provideContext(lease, warehouse)),
    /** Sends the next request of each route that this process has; answers whether there was one. */
    send: Effect.orDie(Effect.provideContext(send, warehouse)),
    /** Sends as `serve` does, until the fiber is interrupted. */
    run: Effect.forkChild(
      Effect.provideContext(
        Sender.run({ processId: owner, keys: { key: null, file: new Map() }, proxies: null, routes: feeds }),
        warehouse
      )
    )
  }
})

/**
 * Receivers of alerts that record what they get, routes to them, and processes that evaluate and send.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as SqlClient from "effect/sql/SqlClient"
import { SMTPServer } from "smtp-server"
import * as Evaluate from "../../src/alerts/Evaluate.ts"
import { kindTraits } from "../../src/alerts/Kinds.ts"
import type { DiskProblem, ObservedCompany } from "../../src/alerts/Observations.ts"
import type { AlertConfiguration, Receiver, Route } from "../../src/alerts/Route.ts"
import * as Send from "../../src/alerts/Send.ts"
import { Database, sqlLayer } from "../../src/postgres/Database.ts"

export interface ReceivedRequest {
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** An HTTP receiver, until the end of the scope. `answer` decides about a request; null leaves it without an answer. */
export const httpReceiver = (
  answer: (
    request: ReceivedRequest,
    earlier: number
  ) => { readonly status: number; readonly headers?: http.OutgoingHttpHeaders } | null = () => ({ status: 200 })
) =>
  Effect.acquireRelease(
    Effect.callback<{ url: string; requests: Array<ReceivedRequest>; close: () => void }>((resume) => {
      const requests: Array<ReceivedRequest> = []
      const server = http.createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8")
        request.on("data", (chunk: string) => (body += chunk))
        request.on("end", () => {
          const received = { headers: request.headers, body }
          requests.push(received)
          const reply = answer(received, requests.length - 1)
          if (reply !== null) response.writeHead(reply.status, reply.headers).end("ok")
        })
      })
      const close = () => {
        server.closeAllConnections()
        server.close()
      }
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, requests, close }))
      )
    }),
    ({ close }) => Effect.sync(close)
  )

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
  startAfter: {
    late: kindTraits.late.startAfter,
    failing: kindTraits.failing.startAfter,
    token: kindTraits.token.startAfter,
    quarantine: kindTraits.quarantine.startAfter,
    gap: kindTraits.gap.startAfter,
    endpoint: kindTraits.endpoint.startAfter,
    budget: kindTraits.budget.startAfter,
    disk: kindTraits.disk.startAfter,
    restore: kindTraits.restore.startAfter,
    invariant: kindTraits.invariant.startAfter
  },
  endAfter: Duration.minutes(2)
})

export interface Alerting {
  readonly owner: string
  readonly evaluate: Effect.Effect<number>
  /** Sends the next batch of each route; answers whether there was one. */
  readonly send: Effect.Effect<boolean>
}

/** A process with its own connections, until the end of the scope. */
export const alertingProcess = Effect.fnUntraced(function* (
  owner: string,
  url: Redacted.Redacted,
  settings: AlertConfiguration,
  companies: ReadonlyArray<ObservedCompany>,
  disk: Effect.Effect<DiskProblem | null> = Effect.succeed(null)
) {
  const warehouse = yield* Layer.build(Layer.fresh(Layer.provideMerge(sqlLayer, Database.layerUrl(url))))
  const client = yield* Send.httpClient
  const context = Context.merge(
    Context.make(SqlClient.SqlClient, Context.get(warehouse, SqlClient.SqlClient)),
    Context.make(HttpClient.HttpClient, client)
  )
  const evaluate = Evaluate.evaluateOnce(settings, { companies: () => companies, disk })
  const send = Effect.map(
    Effect.forEach(settings.routes, (route) => Send.sendNext(route, owner), { concurrency: "unbounded" }),
    (sent) => sent.includes(true)
  )
  return {
    owner,
    evaluate: Effect.orDie(Effect.provideContext(evaluate, context)),
    send: Effect.orDie(Effect.provideContext(send, context))
  } satisfies Alerting
})

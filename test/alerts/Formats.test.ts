/** What an answer, or its absence, says about a message; and the text of messages. */
import { createServer, type AddressInfo, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SMTPServer } from "smtp-server"
import type { AlertMessage } from "../../src/alerts/MessageStore.ts"
import { textOf } from "../../src/alerts/MessageText.ts"
import * as Formats from "../../src/alerts/Formats.ts"
import type { Route } from "../../src/alerts/Route.ts"
import * as Transport from "../../src/delivery/Transport.ts"
import type { Proxies } from "../../src/http/Proxies.ts"
import { emailRoute, httpReceiver, httpRoute, slackRoute, smtpReceiver } from "../support/alerting.ts"
import { makeProxy, through } from "../support/proxy.ts"
import { test } from "../support/suite.ts"

const message: AlertMessage = {
  id: 7n,
  event: "start",
  kind: "quarantine",
  company: "nørth",
  subject: "things",
  severity: "warning",
  since: new Date("2026-11-20T12:00:00Z"),
  at: new Date("2026-11-20T12:00:05Z"),
  what: "3 records of things <b> & more could not be landed",
  remedy: "tributary status"
}

const send = (route: Route, messages = [message], proxies: Proxies | null = null) =>
  Effect.scoped(
    Effect.flatMap(Transport.make(proxies, Transport.limitsOfRoutes), (transport) =>
      Formats.send(route, transport, messages)
    )
  )

const accepted = { status: 200, retryAfterMs: null, error: null, mayHaveArrived: false }

/** A TCP server, until the end of the scope. */
const tcp = (onSocket: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ port: number; close: () => void }>((resume) => {
      const server = createServer((socket) => onSocket(socket.on("error", () => {})))
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({ port: (server.address() as AddressInfo).port, close: () => server.close() }))
      )
    }),
    ({ close }) => Effect.sync(close)
  )

/** A port on which nothing listens. */
const closedPort = Effect.map(Effect.scoped(tcp(() => {})), ({ port }) => port)

describe("a request to a receiver", () => {
  test("is accepted, refused with Retry-After, or unknown where the answer is lost", function* () {
    const sound = yield* httpReceiver()
    assert.deepStrictEqual(yield* send(slackRoute(sound.url)), accepted)
    const { text } = JSON.parse(sound.requests[0]!.body) as { readonly text: string }
    assert.include(text, "things &lt;b&gt; &amp; more")
    const busy = yield* httpReceiver(() => ({ status: 429, headers: { "retry-after": "30" } }))
    assert.deepStrictEqual(yield* send(httpRoute(busy.url)), {
      status: 429,
      error: "HTTP 429",
      retryAfterMs: 30_000,
      mayHaveArrived: false
    })
    const moved = yield* httpReceiver(() => ({ status: 302, headers: { location: sound.url } }))
    assert.strictEqual((yield* send(httpRoute(moved.url))).error, "HTTP 302")
    assert.lengthOf(sound.requests, 1, "a redirect is not followed")
    const cutting = yield* tcp((socket) => socket.once("data", () => socket.destroy()))
    const lost = yield* send(httpRoute(`http://127.0.0.1:${cutting.port}/secret`))
    assert.isTrue(lost.mayHaveArrived)
    assert.notInclude(JSON.stringify(lost), "secret")
    const nowhere = yield* send(httpRoute(`http://127.0.0.1:${yield* closedPort}/secret`))
    assert.isFalse(nowhere.mayHaveArrived)
    assert.match(nowhere.error!, /ECONNREFUSED/)
    assert.notInclude(JSON.stringify(nowhere), "secret")
  })

  test("goes through a proxy, whose refusal is none of the receiver", function* () {
    const receiver = yield* httpReceiver()
    const proxy = yield* makeProxy
    proxy.hosts.set("alerts.test:80", Number(new URL(receiver.url).port))
    const proxies = through(proxy)
    const answer = (url: string) => send(httpRoute(url), [message], proxies)
    assert.deepStrictEqual(yield* answer("http://alerts.test/secret"), accepted)
    proxy.login = "user:secret"
    const refused = yield* answer("http://others.test/secret")
    assert.deepInclude(refused, { status: null, mayHaveArrived: false })
    assert.match(refused.error!, /proxy 127\.0\.0\.1:\d+ refused the connection to others\.test:80 with status 407/)
    assert.notInclude(JSON.stringify(refused), "secret")
    proxy.login = null
    proxy.hosts.set("cut.test:80", Number(new URL(receiver.url).port))
    proxy.cuts.push(10)
    assert.isTrue((yield* answer("http://cut.test/secret")).mayHaveArrived)
  })
})

describe("an e-mail", () => {
  test("is accepted with its subject, id and text", function* () {
    const { url, mails } = yield* smtpReceiver
    assert.deepStrictEqual(yield* send(emailRoute(url)), { ...accepted, status: null })
    const [mail] = mails
    assert.match(mail!, /^Message-ID: <tributary-7-1795176005000@example\.com>\r$/im)
    assert.match(mail!, /^Subject: =\?UTF-8\?/m)
    assert.include(mail!, "could not be landed")
    assert.include(mail!, "n=C3=B8rth")
  })

  test("is refused by an answer or before the text was read, and unknown after that", function* () {
    const server = yield* Effect.acquireRelease(
      Effect.callback<{ port: number; close: () => void }>((resume) => {
        const smtp = new SMTPServer({
          authOptional: true,
          disabledCommands: ["STARTTLS"],
          onRcptTo: (_address, _session, done) =>
            done(Object.assign(new Error("no such mailbox"), { responseCode: 550 }))
        })
        smtp.listen(0, "127.0.0.1", () =>
          resume(
            Effect.succeed({
              port: (smtp.server.address() as AddressInfo).port,
              close: () => smtp.close(() => {})
            })
          )
        )
      }),
      ({ close }) => Effect.sync(close)
    )
    const refused = yield* send(emailRoute(`smtp://user:secret@127.0.0.1:${server.port}`))
    assert.deepInclude(refused, { status: 535, error: "the mail server answered 535", mayHaveArrived: false })
    assert.notInclude(JSON.stringify(refused), "secret")
    assert.isFalse((yield* send(emailRoute(`smtp://127.0.0.1:${yield* closedPort}`))).mayHaveArrived)
    // It accepts the recipients, and closes the connection when the text arrives.
    const cutting = yield* tcp((socket) => {
      socket.write("220 ready\r\n")
      let isText = false
      socket.on("data", (chunk) => {
        if (isText) return socket.destroy()
        isText = /^DATA/m.test(chunk.toString())
        return socket.write(isText ? "354 go on\r\n" : "250 ok\r\n")
      })
    })
    assert.isTrue((yield* send(emailRoute(`smtp://127.0.0.1:${cutting.port}`))).mayHaveArrived)
  })
})

it("a text of many messages counts them, and shows the first", () => {
  const text = textOf([...Array.from({ length: 24 }, () => message), { ...message, event: "end" as const }])
  assert.match(text, /^25 alerts: 24 started, 1 ended\n/)
  assert.match(text, /and 5 more: tributary alerts history$/)
})

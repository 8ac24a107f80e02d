/** What an answer, or its absence, says about a message; and the text of messages. */
import { createServer, type AddressInfo, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import { SMTPServer } from "smtp-server"
import type { AlertMessage } from "../../src/alerts/MessageStore.ts"
import { textOf } from "../../src/alerts/MessageText.ts"
import * as Receivers from "../../src/alerts/Receivers.ts"
import type { Route } from "../../src/alerts/Route.ts"
import * as Send from "../../src/alerts/Send.ts"
import { emailRoute, httpReceiver, httpRoute, slackRoute, smtpReceiver } from "../support/alerting.ts"
import { makeProxy, through } from "../support/proxy.ts"
import { settled } from "../support/until.ts"
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

const send = (route: Route, messages = [message]) =>
  Effect.scoped(
    Effect.flatMap(Send.makeHttpClient(null), (client) =>
      Effect.provideService(Receivers.send(route, messages), HttpClient.HttpClient, client)
    )
  )

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
    assert.deepStrictEqual(yield* send(slackRoute(sound.url)), { type: "accepted" })
    const { text } = JSON.parse(sound.requests[0]!.body) as { readonly text: string }
    assert.include(text, "things &lt;b&gt; &amp; more")
    const busy = yield* httpReceiver(() => ({ status: 429, headers: { "retry-after": "30" } }))
    assert.deepStrictEqual(yield* send(httpRoute(busy.url)), {
      type: "refused",
      error: "the receiver answered 429",
      retryAfter: Duration.seconds(30)
    })
    const moved = yield* httpReceiver(() => ({ status: 302, headers: { location: sound.url } }))
    assert.strictEqual((yield* send(httpRoute(moved.url))).type, "refused")
    assert.lengthOf(sound.requests, 1, "a redirect is not followed")
    const cutting = yield* tcp((socket) => socket.once("data", () => socket.destroy()))
    const lost = yield* send(httpRoute(`http://127.0.0.1:${cutting.port}/secret`))
    assert.strictEqual(lost.type, "unknown")
    assert.notInclude(JSON.stringify(lost), "secret")
    const nowhere = yield* send(httpRoute(`http://127.0.0.1:${yield* closedPort}/secret`))
    assert.deepInclude(nowhere, { type: "refused", error: "the request failed (ECONNREFUSED)" })
  })

  test("costs no other request anything while its answer does not end", function* () {
    const client = yield* Send.makeHttpClient(null)
    const sendBy = (route: Route) =>
      Effect.provideService(Receivers.send(route, [message]), HttpClient.HttpClient, client)
    let isSilent = false
    let requests = 0
    const receiver = yield* tcp((socket) =>
      socket.on("data", () => {
        requests += 1
        if (!isSilent) socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
      })
    )
    const url = `http://127.0.0.1:${receiver.port}/`
    for (let count = 1; count <= 3; count += 1) {
      assert.deepStrictEqual(yield* sendBy(slackRoute(url)), { type: "accepted" })
    }
    // Another route of the same origin waits for an answer.
    isSilent = true
    yield* Effect.forkScoped(sendBy(slackRoute(url)))
    yield* settled(
      "the silent request",
      Effect.sync(() => requests),
      (count) => count === 4
    )
    isSilent = false
    assert.deepStrictEqual(yield* sendBy(slackRoute(url)), { type: "accepted" })
  })

  test("goes through a proxy, whose refusal is none of the receiver", function* () {
    const receiver = yield* httpReceiver()
    const proxy = yield* makeProxy
    proxy.hosts.set("alerts.test:80", Number(new URL(receiver.url).port))
    const client = yield* Send.makeHttpClient(through(proxy))
    const answer = (url: string) =>
      Effect.provideService(Receivers.send(httpRoute(url), [message]), HttpClient.HttpClient, client)
    assert.deepStrictEqual(yield* answer("http://alerts.test/secret"), { type: "accepted" })
    proxy.login = "user:secret"
    // The open tunnel has no further login.
    const refused = yield* answer("http://others.test/secret")
    const error = `the request through the proxy 127.0.0.1:${proxy.port} failed (ERR_PROXY_407)`
    assert.deepStrictEqual(refused, { type: "refused", error, retryAfter: null })
    proxy.login = null
    proxy.hosts.set("cut.test:80", Number(new URL(receiver.url).port))
    proxy.cuts.push(10)
    assert.strictEqual((yield* answer("http://cut.test/secret")).type, "unknown")
  })

  it("reads Retry-After in seconds and as a date", () => {
    const nowMs = Date.parse("2026-11-20T12:00:00Z")
    assert.deepStrictEqual(Receivers.retryAfterOf("120", nowMs), Duration.minutes(2))
    assert.deepStrictEqual(Receivers.retryAfterOf("Fri, 20 Nov 2026 12:01:00 GMT", nowMs), Duration.minutes(1))
    assert.deepStrictEqual(Receivers.retryAfterOf("Fri, 20 Nov 2026 11:00:00 GMT", nowMs), Duration.zero)
    assert.isNull(Receivers.retryAfterOf("soon", nowMs))
    assert.isNull(Receivers.retryAfterOf(undefined, nowMs))
  })
})

describe("an e-mail", () => {
  test("is accepted with its subject, id and text", function* () {
    const { url, mails } = yield* smtpReceiver
    assert.deepStrictEqual(yield* send(emailRoute(url)), { type: "accepted" })
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
    assert.strictEqual(refused.type, "refused")
    assert.notInclude(JSON.stringify(refused), "secret")
    assert.strictEqual((yield* send(emailRoute(`smtp://127.0.0.1:${yield* closedPort}`))).type, "refused")
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
    assert.strictEqual((yield* send(emailRoute(`smtp://127.0.0.1:${cutting.port}`))).type, "unknown")
  })
})

it("a text of many messages counts them, and shows the first", () => {
  const text = textOf([...Array.from({ length: 24 }, () => message), { ...message, event: "end" as const }])
  assert.match(text, /^25 alerts: 24 started, 1 ended\n/)
  assert.match(text, /and 5 more: tributary alerts history$/)
})

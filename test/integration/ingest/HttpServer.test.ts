import { writeFileSync } from "node:fs"
import { request as httpsRequest } from "node:https"
import { connect } from "node:net"
import { join } from "node:path"
import { connect as tlsConnect } from "node:tls"
import { gzipSync } from "node:zlib"
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Logger, Redacted, Scope } from "effect"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import * as HttpServer from "../../../src/ingest/HttpServer.ts"
import * as Metrics from "../../../src/status/Metrics.ts"
import * as ReceivingMetrics from "../../../src/status/ReceivingMetrics.ts"
import * as Ingest from "../../../src/ingest/Ingest.ts"
import { certificate } from "../../support/certificate.ts"
import { bodyOf, signatureOf } from "../../support/deliveries.ts"
import { execute, layerWarehouse as warehouse } from "../../support/postgres.ts"
import { flowing, settled, until } from "../../support/until.ts"
import { suite } from "../../support/suite.ts"
import { temporaryFolder } from "../../support/servers.ts"

const secret = "whsec_of_acme"
const other = "whsec_of_bolt"
const bodyBytesMax = 16 * 1024
/** The signature of a body at the time of the test clock. */
const sign = (body: string | Buffer, key = secret) => signatureOf(key, 0, body)
const isTrue = (is: boolean) => is

/** The whole receiver on a real socket, with an empty inbox. */
const receiving = Effect.fnUntraced(function* (options: Partial<HttpServer.HttpServerOptions> = {}) {
  yield* execute("truncate tributary.inbox")
  const count = Effect.map(
    execute<{ readonly count: number }>("select count(*)::int as count from tributary.inbox"),
    ([row]) => row!.count
  )
  const inbox = yield* InboxWriter.make()
  const receiver = yield* Ingest.make({
    reader: deliveryReader,
    keyring: {
      of: (company) =>
        company === "acme" ? [Redacted.make(secret)] : company === "bolt" ? [Redacted.make(other)] : [],
      most: () => 1,
      refresh: Effect.succeed(true)
    },
    inbox,
    settings: { tolerance: Duration.seconds(300), aheadMax: Duration.seconds(60) }
  })
  const listen = (more: Partial<HttpServer.HttpServerOptions> = {}) =>
    HttpServer.listen({
      host: "127.0.0.1",
      port: 0,
      tls: null,
      bodyBytesMax,
      receiver,
      ready: inbox.probe,
      metrics: Effect.sync(() => Metrics.render(ReceivingMetrics.make(receiver.stats(), inbox.stats()))),
      ...more
    })
  const listener = yield* listen(options)
  yield* inbox.probe
  /** The statuses of the responses to these bytes. */
  const statuses = (pieces: Iterable<string | Buffer>, options: { readonly end?: boolean } = {}) =>
    Effect.map(exchange(listener.port, pieces, options), statusesOf)
  return { count, inbox, receiver, listener, listen, statuses }
})

/** Writes bytes to a socket in the given pieces. Returns everything that was received until the other side closed. */
const exchange = (port: number, pieces: Iterable<string | Buffer>, options: { readonly end?: boolean } = {}) =>
  Effect.callback<string>((resume) => {
    const socket = connect(port, "127.0.0.1")
    const iterator = pieces[Symbol.iterator]()
    let text = ""
    const next = () => {
      if (socket.destroyed) return
      const piece = iterator.next()
      if (piece.done === true) {
        if (options.end === true) socket.end()
        return
      }
      if (socket.write(piece.value)) setImmediate(next)
      else socket.once("drain", next)
    }
    socket.on("connect", next)
    socket.on("error", () => {})
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
    socket.on("close", () => resume(Effect.succeed(text)))
    return Effect.sync(() => socket.destroy())
  }).pipe(flowing)

const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]))

const rawDelivery = (body: string, headers: ReadonlyArray<string> = []) =>
  [
    "POST /hooks/acme HTTP/1.1",
    "Host: x",
    `Svc-Signature: ${sign(body)}`,
    ...headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body
  ].join("\r\n")
const good = (id: string, more: ReadonlyArray<string> = []) => rawDelivery(bodyOf(id), more)

const ask = (url: string, options: RequestInit = {}) =>
  flowing(
    Effect.promise(async () => {
      const response = await fetch(url, options)
      return { status: response.status, text: await response.text(), headers: response.headers }
    })
  )
const get = (url: string, path: string, method = "GET") => ask(`${url}${path}`, { method })
const send = (url: string, body: string | Buffer, headers: Record<string, string> = {}, company = "acme") =>
  ask(`${url}/hooks/${company}`, {
    method: "POST",
    body,
    headers: { "svc-signature": sign(body), ...headers }
  })
const sendGood = (url: string, id: string) => send(url, bodyOf(id))

/** PEM files that are deleted with the scope, their contents, and a function that replaces them. */
const tlsFiles = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  const write = ({ cert, key }: { readonly cert: string; readonly key: string }) => {
    writeFileSync(files.certificate, cert)
    writeFileSync(files.key, key)
  }
  const first = certificate(["localhost"])
  write(first)
  return { folder, files, first, write }
})

suite("the webhook HTTP server", warehouse, (test) => {
  test("responses have the documented status for every kind of request", function* () {
    const { listener, count, receiver } = yield* receiving({
      more: (request, response) => {
        if (request.url !== "/page") return false
        response.end("a page")
        return true
      }
    })
    const { url } = listener
    for (let times = 0; times < 2; times += 1) assert.strictEqual((yield* sendGood(url, "evt_1")).status, 204)
    const encoded = bodyOf("evt_2")
    for (const [company, headers, status] of [
      ["%61cme", {}, 204],
      ["%2561cme", {}, 404],
      ["a%2Fb", {}, 404],
      ["%ff", {}, 404],
      ["a".repeat(65), {}, 404],
      ["acme", { "content-type": "text/html" }, 204],
      ["acme", { "content-encoding": "identity" }, 204]
    ] as const)
      assert.strictEqual((yield* send(url, encoded, headers, company)).status, status, company)
    assert.strictEqual((yield* send(url, "{}")).status, 400, "no event")
    const bad = yield* send(url, encoded, { "svc-signature": sign(encoded, other) })
    const unknown = yield* send(url, encoded, {}, "unknown")
    assert.deepStrictEqual([bad.status, unknown.status, bad.text], [401, 401, unknown.text])
    const wrongMethod = yield* get(url, "/hooks/acme")
    assert.deepStrictEqual([wrongMethod.status, wrongMethod.headers.get("allow")], [405, "POST"])
    for (const path of ["/", "/hooks", "/hooks/", "/hooks/acme/", "/hooks/acme/x", "/metrics/x", "/other"])
      assert.strictEqual((yield* get(url, path)).status, 404, path)
    assert.strictEqual((yield* get(url, "/page")).text, "a page", "of the additional handler")
    assert.deepInclude(yield* get(url, "/healthz"), { status: 200, text: "ok\n" })
    assert.deepInclude(yield* get(url, "/healthz", "HEAD"), { status: 200, text: "" })
    assert.strictEqual((yield* get(url, "/readyz?verbose")).status, 200)
    assert.strictEqual((yield* get(url, "/readyz", "DELETE")).status, 405)
    const { text } = yield* get(url, "/metrics")
    assert.match(text, /tributary_webhook_deliveries_total\{outcome="accepted"\} 2\n/)
    assert.match(text, /tributary_webhook_deliveries_total\{outcome="forged"\} 2\n/)
    assert.match(text, /tributary_webhook_last_accepted_timestamp_seconds\{company="acme"\} \d+/)
    assert.match(text, /tributary_webhook_inbox_up 1\n/)
    assert.strictEqual(yield* count, 2)
    assert.deepInclude(receiver.stats().outcomes, { accepted: 2, known: 3, noEvent: 1 })
  })

  describe("request bodies", () => {
    test("that are too large are rejected before they are read completely", function* () {
      const { statuses, count, receiver } = yield* receiving()
      const large = bodyOf("evt_large", { memo: "x".repeat(bodyBytesMax) })
      const head = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nSvc-Signature: ${sign(large)}\r\n`
      const sized = `Content-Length: ${large.length}\r\n\r\n`
      const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`
      function* endless() {
        yield chunked
        for (;;) yield `400\r\n${"x".repeat(1024)}\r\n`
      }
      for (const answer of [
        // No byte of the body is sent.
        statuses([head + sized], { end: true }),
        statuses([head + sized + large]),
        statuses([`${head}Expect: 100-continue\r\n${sized}`], { end: true }),
        statuses([`${chunked}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`]),
        statuses(endless())
      ])
        assert.deepStrictEqual(yield* answer, [413])
      assert.strictEqual(receiver.stats().outcomes.tooLarge, 5)
      assert.strictEqual(yield* count, 0)
      // A body of exactly this size.
      const empty = bodyOf("evt_exact", { memo: "" })
      for (const [size, status] of [
        [bodyBytesMax, 204],
        [bodyBytesMax + 1, 413]
      ] as const) {
        const body = empty.replace(`"memo":""`, `"memo":"${"x".repeat(size - empty.length)}"`)
        assert.deepStrictEqual(yield* statuses([rawDelivery(body, ["Connection: close"])]), [status])
      }
    })

    test("that are compressed are rejected without decompression", function* () {
      const { listener, count, statuses } = yield* receiving()
      const zipped = gzipSync(bodyOf("evt_zip"))
      // Ten megabytes that arrive as ten kilobytes stay ten kilobytes, whatever the headers declare.
      const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024))
      assert.isBelow(bomb.length, bodyBytesMax)
      for (const body of [zipped, bomb]) {
        // Without the header the compressed body is an ordinary body, and it is not an event.
        assert.strictEqual((yield* send(listener.url, body)).status, 400)
        for (const encoding of ["gzip", "GZIP", "deflate", "br", "gzip, gzip", "identity, gzip"]) {
          assert.strictEqual((yield* send(listener.url, body, { "content-encoding": encoding })).status, 415, encoding)
        }
      }
      const transferred = yield* statuses([
        `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSvc-Signature: ${sign(bomb)}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${bomb.length.toString(16)}\r\n`,
        bomb,
        "\r\n0\r\n\r\n"
      ])
      assert.deepStrictEqual(transferred, [400])
      assert.strictEqual(yield* count, 0)
    })

    test("are accepted in pieces of any size", function* () {
      const { statuses, count } = yield* receiving()
      const body = bodyOf("evt_pieces")
      const head = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSvc-Signature: ${sign(body)}\r\n`
      const sized = `Content-Length: ${body.length}\r\n\r\n`
      const chunks = body.split("").map((byte) => `1\r\n${byte}\r\n`)
      assert.deepStrictEqual(yield* statuses((head + sized + body).split("")), [204])
      assert.deepStrictEqual(
        yield* statuses([`${head}Transfer-Encoding: chunked\r\n\r\n`, ...chunks, "0\r\n\r\n"]),
        [204]
      )
      assert.deepStrictEqual(yield* statuses([`${head}Expect: 100-continue\r\n${sized}`, body]), [100, 204])
      assert.strictEqual(yield* count, 1)
    })
  })

  describe("connections", () => {
    test("with unfinished large bodies never block events of usual size, and are counted", function* () {
      const { listener, count } = yield* receiving({ bodyBytesMax: 512 * 1024, readingBytesMax: 512 * 1024 })
      const large = bodyOf("evt_large", { memo: "x".repeat(300_000) })
      const unended = Effect.forkChild(exchange(listener.port, [rawDelivery(large).slice(0, -1)]))
      const left = [yield* unended, yield* unended]
      const sendLarge = send(listener.url, large)
      yield* settled(
        "rejecting another large body",
        sendLarge,
        ({ status, headers }) => status === 503 && headers.get("retry-after") === "10"
      )
      assert.strictEqual((yield* sendGood(listener.url, "evt_small")).status, 204)
      for (const one of left) yield* Fiber.interrupt(one)
      yield* settled("accepting a large body", sendLarge, ({ status }) => status === 204)
      assert.strictEqual(yield* count, 2)
      assert.match((yield* get(listener.url, "/metrics")).text, /_deliveries_total\{outcome="busy"\} [1-9]/)
    })

    test("for health and metrics use a separate listener when one is configured", function* () {
      const { listener } = yield* receiving({
        monitoring: { host: "127.0.0.1", port: 0 },
        metricsToken: Redacted.make("a token")
      })
      const own = listener.monitoringUrl
      assert.notStrictEqual(own, listener.url)
      for (const url of [own, listener.url])
        for (const path of ["/healthz", "/readyz"]) assert.strictEqual((yield* get(url, path)).status, 200)
      assert.strictEqual((yield* get(listener.url, "/metrics")).status, 404)
      assert.strictEqual((yield* sendGood(listener.url, "evt_1")).status, 204)
      assert.strictEqual((yield* sendGood(own, "evt_2")).status, 404)
      assert.strictEqual((yield* get(own, "/metrics")).status, 401)
      const withToken = (token: string) => ask(`${own}/metrics`, { headers: { authorization: `Bearer ${token}` } })
      assert.strictEqual((yield* withToken("another")).status, 401)
      assert.include((yield* withToken("a token")).text, "_deliveries_total")
    })

    test("that send no valid HTTP get 400 or 431", function* () {
      const { statuses } = yield* receiving()
      const post = "POST /hooks/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
      for (const [text, status] of [
        ["\u0016\u0003\u0001garbage\r\n\r\n", 400],
        [`GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`, 431],
        [`${post}Content-Length: 2\r\n\r\nab`, 400],
        [`${post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400]
      ] as const)
        assert.deepStrictEqual(yield* statuses([text]), [status], text.slice(0, 100))
    })

    test("may pipeline requests or close in the middle of one", function* () {
      const { listener, count, inbox, statuses } = yield* receiving()
      const pipelined = ["evt_1", "evt_2", "evt_1"].map((id) => good(id)).join("")
      assert.deepStrictEqual(yield* statuses([pipelined + good("evt_3", ["Connection: close"])]), [204, 204, 204, 204])
      assert.strictEqual(yield* count, 3)
      yield* statuses([good("evt_4").slice(0, -5)], { end: true })
      // A complete request whose sender has ended its side and waits for the response.
      assert.deepStrictEqual(yield* statuses([good("evt_3")], { end: true }), [204])
      // A complete delivery whose sender has closed the connection is stored all the same.
      yield* Effect.callback<void>((resume) => {
        const socket = connect(listener.port, "127.0.0.1", () =>
          socket.write(good("evt_5"), () => {
            socket.resetAndDestroy()
            resume(Effect.void)
          })
        )
        socket.on("error", () => {})
      })
      assert.strictEqual((yield* sendGood(listener.url, "evt_6")).status, 204)
      assert.isAtLeast(yield* count, 4)
      assert.isAtMost(yield* count, 5)
      assert.strictEqual(inbox.stats().waiting, 0)
    })
  })

  describe("the webhook HTTP server in trouble", () => {
    test("reports an address that is in use", function* () {
      const { listener, listen } = yield* receiving()
      const error = yield* Effect.flip(listen({ port: listener.port }))
      assert.strictEqual(
        error.message,
        `cannot receive deliveries: 127.0.0.1:${listener.port} is in use; stop the other program, or name another port`
      )
    })

    test("finishes requests in flight at shutdown, closes idle connections and accepts no new ones", function* () {
      const scope = yield* Scope.make()
      let release: (() => void) | null = null
      const { receiver, listen } = yield* receiving()
      const holding: typeof receiver = {
        ...receiver,
        receive: (arrival, done) =>
          receiver.receive(arrival, (answer) => {
            release = () => done(answer)
          })
      }
      const { port } = yield* Scope.provide(listen({ receiver: holding }), scope)
      const idle = yield* Effect.forkChild(exchange(port, ["GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"]))
      const inHand = yield* Effect.forkChild(exchange(port, [good("evt_1")]))
      yield* settled("the delivery", () => release !== null, isTrue)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      const isRefused = Effect.callback<boolean>((resume) => {
        const socket = connect(port, "127.0.0.1", () => {
          socket.destroy()
          resume(Effect.succeed(false))
        })
        socket.on("error", () => resume(Effect.succeed(true)))
      })
      yield* settled("closing the port", isRefused, isTrue)
      assert.deepStrictEqual(statusesOf(yield* Fiber.join(idle)), [200])
      release!()
      const text = yield* Fiber.join(inHand)
      assert.deepStrictEqual(statusesOf(text), [204])
      assert.match(text, /connection: close/i)
      yield* Fiber.join(closing)
    })
  })

  test("TLS loads a renewed certificate, keeps the old one if it is invalid, and rejects old versions", function* () {
    const { folder, files: paths, first, write } = yield* tlsFiles
    const second = certificate(["localhost"])
    const lines: Array<string> = []
    const { listener, count } = yield* receiving({ tls: paths, certificateInterval: Duration.millis(20) }).pipe(
      Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]))
    )
    const post = (ca: string, id: string) =>
      Effect.callback<number | string>((resume) => {
        const body = bodyOf(id)
        const headers = { "svc-signature": sign(body), "content-length": body.length }
        const to = { port: listener.port, path: "/hooks/acme", method: "POST", servername: "localhost" }
        const request = httpsRequest({ ...to, ca, headers, agent: false }, (response) => {
          response.resume()
          resume(Effect.succeed(response.statusCode!))
        })
        request.on("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code ?? error.message)))
        request.end(body)
      }).pipe(flowing)
    assert.strictEqual(yield* post(first.cert, "evt_1"), 204)
    assert.isString(yield* post(second.cert, "evt_2"))
    // A key that does not fit the certificate: the old certificate stays in use.
    writeFileSync(paths.certificate, second.cert)
    yield* until(
      "the warning",
      () => lines.some((line) => line.startsWith("The renewed certificate is not used")),
      isTrue
    )
    assert.strictEqual(yield* post(first.cert, "evt_3"), 204)
    assert.isFalse(lines.some((line) => line.includes("PRIVATE KEY")))
    write(second)
    yield* until("the new certificate", post(second.cert, "evt_4"), (status) => status === 204)
    assert.isString(yield* post(first.cert, "evt_5"))
    const old = yield* Effect.callback<string>((resume) => {
      const versions = { minVersion: "TLSv1", maxVersion: "TLSv1.1" } as const
      const socket = tlsConnect({ port: listener.port, ca: second.cert, servername: "localhost", ...versions }, () =>
        resume(Effect.succeed("connected"))
      )
      socket.on("error", () => resume(Effect.succeed("refused")))
    })
    assert.strictEqual(old, "refused")
    assert.strictEqual(yield* count, 3)
    const broken = yield* Effect.flip(receiving({ tls: { ...paths, key: join(folder, "none.pem") } }))
    assert.match(String(broken), /none\.pem.*cannot be used/)
  })
})

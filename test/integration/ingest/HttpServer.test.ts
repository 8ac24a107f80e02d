import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request as httpsRequest } from "node:https"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as tlsConnect } from "node:tls"
import { gzipSync } from "node:zlib"
import { assert, describe, layer } from "@effect/vitest"
import * as Duration from "effect/Duration"
import { Effect, Exit, Fiber, Logger, Redacted, Schedule, Scope } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { deliveryReader } from "../../../connectors/service-v2/client/Deliveries.ts"
import { Database } from "../../../src/postgres/Database.ts"
import * as InboxWriter from "../../../src/inbox/InboxWriter.ts"
import * as HttpServer from "../../../src/ingest/HttpServer.ts"
import * as Metrics from "../../../src/status/Metrics.ts"
import * as ReceivingMetrics from "../../../src/status/ReceivingMetrics.ts"
import * as Ingest from "../../../src/ingest/Ingest.ts"
import { certificate } from "../../support/certificate.ts"
import { bodyOf, signatureOf } from "../../support/deliveries.ts"
import { makeGate } from "../../support/gate.ts"
import { layerWarehouse as warehouse } from "../../support/postgres.ts"

const secret = "whsec_of_acme"
const other = "whsec_of_bolt"
const bodyBytesMax = 16 * 1024
const now = () => Math.floor(Date.now() / 1000)

const until = <R>(what: string, check: Effect.Effect<boolean, unknown, R>) =>
  check.pipe(
    Effect.orDie,
    Effect.flatMap((is) => (is ? Effect.void : Effect.fail(`timed out: ${what}`))),
    Effect.retry({ schedule: Schedule.spaced("10 millis"), times: 1_000 })
  )

/** An empty inbox behind a gate. `count` bypasses the gate. */
const emptyInbox = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate tributary.inbox`
  const { endpoint } = yield* Database
  const { host, port, user, password, database } = endpoint
  const gate = yield* makeGate(
    Redacted.make(`postgres://${user}:${Redacted.value(password)}@${host}:${port}/${database}`)
  )
  const count = sql<{ readonly count: bigint }>`select count(*) as count from tributary.inbox`.pipe(
    Effect.map(([row]) => Number(row!.count))
  )
  return { gate, count, database: Database.layerUrl(gate.url) }
})

/** The whole receiver on a real socket, with its own inbox behind a gate. */
const receiving = Effect.fnUntraced(function* (options: Partial<HttpServer.HttpServerOptions> = {}) {
  const { gate, count, database } = yield* emptyInbox
  const inbox = yield* InboxWriter.make().pipe(Effect.provide(database))
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
  const listener = yield* HttpServer.listen({
    host: "127.0.0.1",
    port: 0,
    tls: null,
    bodyBytesMax,
    receiver,
    ready: inbox.probe,
    metrics: Effect.sync(() => Metrics.render(ReceivingMetrics.make(receiver.stats(), inbox.stats()))),
    ...options
  })
  yield* inbox.probe
  return { gate, count, inbox, receiver, listener }
})

/** Writes bytes to a socket in the given pieces. Returns everything that was received until the other side closed. */
const exchange = (port: number, pieces: Iterable<string | Buffer>, options: { readonly end?: boolean } = {}) =>
  Effect.callback<{ readonly text: string }>((resume) => {
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
    socket.on("close", () => resume(Effect.succeed({ text })))
    return Effect.sync(() => socket.destroy())
  })

const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]))

const rawDelivery = (body: string, headers: ReadonlyArray<string>, company = "acme") =>
  [
    `POST /hooks/${company} HTTP/1.1`,
    "Host: x",
    ...headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "",
    body
  ].join("\r\n")
const good = (id: string, more: ReadonlyArray<string> = []) => {
  const body = bodyOf(id)
  return rawDelivery(body, [`Svc-Signature: ${signatureOf(secret, now(), body)}`, ...more])
}

const send = (
  url: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
  company = "acme",
  method = "POST"
) =>
  Effect.promise(async () => {
    const response = await fetch(`${url}/hooks/${company}`, { method, headers, ...(method === "POST" ? { body } : {}) })
    return { status: response.status, text: await response.text(), headers: response.headers }
  })
const sendGood = (url: string, id: string) => {
  const body = bodyOf(id)
  return send(url, body, { "svc-signature": signatureOf(secret, now(), body) })
}
const get = (url: string, path: string, method = "GET") =>
  Effect.promise(async () => {
    const response = await fetch(`${url}${path}`, { method })
    return { status: response.status, text: await response.text(), headers: response.headers }
  })

/** PEM files that are deleted with the scope, their contents, and a function that replaces them. */
const tlsFiles = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-tls-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true }))
  )
  const files = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  const write = ({ cert, key }: { readonly cert: string; readonly key: string }) => {
    writeFileSync(files.certificate, cert)
    writeFileSync(files.key, key)
  }
  const first = certificate(["localhost"])
  write(first)
  return { folder, files, first, write }
})

layer(warehouse, { excludeTestServices: true, timeout: "30 seconds" })("the webhook HTTP server", (it) => {
  describe("responses", () => {
    it.effect("have the documented status for every kind of request", () =>
      Effect.gen(function* () {
        const { listener, count, receiver } = yield* receiving()
        const { url } = listener
        assert.strictEqual((yield* sendGood(url, "evt_1")).status, 204)
        assert.strictEqual((yield* sendGood(url, "evt_1")).status, 204)
        const encoded = bodyOf("evt_2")
        const signature = { "svc-signature": signatureOf(secret, now(), encoded) }
        assert.strictEqual((yield* send(url, encoded, signature, "%61cme")).status, 204)
        assert.strictEqual((yield* send(url, encoded, signature, "%2561cme")).status, 404)
        assert.strictEqual((yield* send(url, encoded, signature, "a%2Fb")).status, 404)
        assert.strictEqual((yield* send(url, encoded, signature, "%ff")).status, 404)
        assert.strictEqual((yield* send(url, encoded, signature, "a".repeat(65))).status, 404)
        assert.strictEqual((yield* send(url, encoded, { ...signature, "content-type": "text/html" })).status, 204)
        assert.strictEqual((yield* send(url, encoded, { ...signature, "content-encoding": "identity" })).status, 204)
        const noEvent = yield* send(url, "{}", { "svc-signature": signatureOf(secret, now(), "{}") })
        assert.strictEqual(noEvent.status, 400)
        const [bad, unknown] = [
          yield* send(url, encoded, { "svc-signature": signatureOf(other, now(), encoded) }),
          yield* send(url, encoded, signature, "unknown")
        ]
        assert.deepStrictEqual([bad.status, unknown.status, bad.text], [401, 401, unknown.text])
        const wrongMethod = yield* send(url, "", {}, "acme", "GET")
        assert.deepStrictEqual([wrongMethod.status, wrongMethod.headers.get("allow")], [405, "POST"])
        for (const path of ["/", "/hooks", "/hooks/", "/hooks/acme/", "/hooks/acme/x", "/metrics/x"]) {
          assert.strictEqual((yield* get(url, path)).status, 404, path)
        }
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
    )

    it.effect("come from the additional handler for its own paths", () =>
      Effect.gen(function* () {
        const { listener } = yield* receiving({
          more: (request, response) => {
            if (request.url !== "/page") return false
            response.end("a page")
            return true
          }
        })
        assert.strictEqual((yield* get(listener.url, "/page")).text, "a page")
        assert.strictEqual((yield* get(listener.url, "/other")).status, 404)
      })
    )
  })

  describe("request bodies", () => {
    it.effect("that are too large are rejected before they are read completely", () =>
      Effect.gen(function* () {
        const { listener, count, receiver } = yield* receiving()
        const large = bodyOf("evt_large", { memo: "x".repeat(bodyBytesMax) })
        const head = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nSvc-Signature: ${signatureOf(secret, now(), large)}\r\n`
        // No byte of the body is sent.
        const announced = yield* exchange(listener.port, [`${head}Content-Length: ${large.length}\r\n\r\n`], {
          end: true
        })
        assert.deepStrictEqual(statusesOf(announced.text), [413])
        const whole = yield* exchange(listener.port, [`${head}Content-Length: ${large.length}\r\n\r\n${large}`])
        assert.deepStrictEqual(statusesOf(whole.text), [413])
        const expected = yield* exchange(
          listener.port,
          [`${head}Expect: 100-continue\r\nContent-Length: ${large.length}\r\n\r\n`],
          { end: true }
        )
        assert.deepStrictEqual(statusesOf(expected.text), [413])
        const chunked = yield* exchange(listener.port, [
          `${head}Transfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`
        ])
        assert.deepStrictEqual(statusesOf(chunked.text), [413])
        const endless = yield* exchange(
          listener.port,
          (function* () {
            yield `${head}Transfer-Encoding: chunked\r\n\r\n`
            for (;;) yield `400\r\n${"x".repeat(1024)}\r\n`
          })()
        )
        assert.deepStrictEqual(statusesOf(endless.text), [413])
        assert.strictEqual(receiver.stats().outcomes.tooLarge, 5)
        assert.strictEqual(yield* count, 0)
        // A body of exactly this size.
        const padded = (size: number) => {
          const body = bodyOf("evt_exact", { memo: "" })
          return body.replace(`"memo":""`, `"memo":"${"x".repeat(size - body.length)}"`)
        }
        for (const [size, status] of [
          [bodyBytesMax, 204],
          [bodyBytesMax + 1, 413]
        ] as const) {
          const body = padded(size)
          const raw = rawDelivery(body, [`Svc-Signature: ${signatureOf(secret, now(), body)}`, "Connection: close"])
          assert.deepStrictEqual(statusesOf((yield* exchange(listener.port, [raw])).text), [status])
        }
      })
    )

    it.effect("that are compressed are rejected without decompression", () =>
      Effect.gen(function* () {
        const { listener, count } = yield* receiving()
        const zipped = gzipSync(bodyOf("evt_zip"))
        const signature = `t=${now()},v1=${signatureOf(secret, now(), zipped).split("v1=")[1]}`
        const answer = yield* send(listener.url, zipped, { "content-encoding": "gzip", "svc-signature": signature })
        assert.strictEqual(answer.status, 415)
        // Without the header the compressed body is an ordinary body, and it is not an event.
        const plain = yield* send(listener.url, zipped, { "svc-signature": signatureOf(secret, now(), zipped) })
        assert.strictEqual(plain.status, 400)
        // Ten megabytes that arrive as ten kilobytes stay ten kilobytes, whatever the headers declare.
        const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024))
        assert.isBelow(bomb.length, bodyBytesMax)
        const signed = { "svc-signature": signatureOf(secret, now(), bomb) }
        assert.strictEqual((yield* send(listener.url, bomb, signed)).status, 400)
        for (const encoding of ["gzip", "GZIP", "deflate", "br", "gzip, gzip", "identity, gzip"]) {
          const { status } = yield* send(listener.url, bomb, { ...signed, "content-encoding": encoding })
          assert.strictEqual(status, 415, encoding)
        }
        const transferred = yield* exchange(listener.port, [
          `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSvc-Signature: ${signed["svc-signature"]}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${bomb.length.toString(16)}\r\n`,
          bomb,
          "\r\n0\r\n\r\n"
        ])
        assert.deepStrictEqual(statusesOf(transferred.text), [400])
        assert.strictEqual(yield* count, 0)
      })
    )

    it.effect("are accepted in pieces of any size", () =>
      Effect.gen(function* () {
        const { listener, count } = yield* receiving()
        const body = bodyOf("evt_pieces")
        const head = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nConnection: close\r\nSvc-Signature: ${signatureOf(secret, now(), body)}\r\n`
        const bytes = `${head}Content-Length: ${body.length}\r\n\r\n${body}`.split("")
        assert.deepStrictEqual(statusesOf((yield* exchange(listener.port, bytes)).text), [204])
        const chunks = bodyOf("evt_pieces")
          .split("")
          .map((byte) => `1\r\n${byte}\r\n`)
        const chunked = yield* exchange(listener.port, [
          `${head}Transfer-Encoding: chunked\r\n\r\n`,
          ...chunks,
          "0\r\n\r\n"
        ])
        assert.deepStrictEqual(statusesOf(chunked.text), [204])
        const expect = yield* exchange(listener.port, [
          `${head}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
          body
        ])
        assert.deepStrictEqual(statusesOf(expect.text), [100, 204])
        assert.strictEqual(yield* count, 1)
      })
    )
  })

  describe("connections", () => {
    it.effect("with unfinished large bodies never block events of usual size, and are counted", () =>
      Effect.gen(function* () {
        const large = bodyOf("evt_large", { memo: "x".repeat(300_000) })
        const { listener, count } = yield* receiving({ bodyBytesMax: 512 * 1024, readingBytesMax: 512 * 1024 })
        const head = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nSvc-Signature: ${signatureOf(secret, now(), large)}\r\n`
        const unended = Effect.forkChild(
          exchange(listener.port, [`${head}Content-Length: ${large.length}\r\n\r\n${large.slice(0, -1)}`])
        )
        const left = [yield* unended, yield* unended]
        const sendLarge = send(listener.url, large, { "svc-signature": signatureOf(secret, now(), large) })
        yield* until(
          "rejecting another large body",
          Effect.map(sendLarge, ({ status, headers }) => status === 503 && headers.get("retry-after") === "10")
        )
        assert.strictEqual((yield* sendGood(listener.url, "evt_small")).status, 204)
        for (const one of left) yield* Fiber.interrupt(one)
        yield* until(
          "accepting a large body",
          Effect.map(sendLarge, ({ status }) => status === 204)
        )
        assert.strictEqual(yield* count, 2)
        assert.match((yield* get(listener.url, "/metrics")).text, /_deliveries_total\{outcome="busy"\} [1-9]/)
      })
    )

    it.effect("for health and metrics use a separate listener when one is configured", () =>
      Effect.gen(function* () {
        const { listener } = yield* receiving({
          monitoring: { host: "127.0.0.1", port: 0 },
          metricsToken: Redacted.make("a token")
        })
        const own = listener.monitoringUrl
        assert.notStrictEqual(own, listener.url)
        for (const url of [own, listener.url]) {
          assert.strictEqual((yield* get(url, "/healthz")).status, 200)
          assert.strictEqual((yield* get(url, "/readyz")).status, 200)
        }
        assert.strictEqual((yield* get(listener.url, "/metrics")).status, 404)
        assert.strictEqual((yield* sendGood(listener.url, "evt_1")).status, 204)
        assert.strictEqual((yield* sendGood(own, "evt_2")).status, 404)
        assert.strictEqual((yield* get(own, "/metrics")).status, 401)
        const withToken = (token: string) =>
          Effect.promise(() => fetch(`${own}/metrics`, { headers: { authorization: `Bearer ${token}` } }))
        assert.strictEqual((yield* withToken("another")).status, 401)
        const answer = yield* withToken("a token")
        assert.include(yield* Effect.promise(() => answer.text()), "_deliveries_total")
      })
    )

    it.effect("that send no valid HTTP get 400 or 431", () =>
      Effect.gen(function* () {
        const { listener } = yield* receiving()
        assert.deepStrictEqual(
          statusesOf((yield* exchange(listener.port, ["\u0016\u0003\u0001garbage\r\n\r\n"])).text),
          [400]
        )
        const long = `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(20_000)}\r\n\r\n`
        assert.deepStrictEqual(statusesOf((yield* exchange(listener.port, [long])).text), [431])
        const two = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab`
        assert.deepStrictEqual(statusesOf((yield* exchange(listener.port, [two])).text), [400])
        const both = `POST /hooks/acme HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`
        assert.deepStrictEqual(statusesOf((yield* exchange(listener.port, [both])).text), [400])
      })
    )

    it.effect("may pipeline requests or close in the middle of one", () =>
      Effect.gen(function* () {
        const { listener, count, inbox } = yield* receiving()
        const pipelined = yield* exchange(listener.port, [
          ["evt_1", "evt_2", "evt_1"].map((id) => good(id)).join("") + good("evt_3", ["Connection: close"])
        ])
        assert.deepStrictEqual(statusesOf(pipelined.text), [204, 204, 204, 204])
        assert.strictEqual(yield* count, 3)
        const half = good("evt_4")
        yield* exchange(listener.port, [half.slice(0, -5)], { end: true })
        // A complete request whose sender has ended its side and waits for the response.
        assert.deepStrictEqual(statusesOf((yield* exchange(listener.port, [good("evt_3")], { end: true })).text), [204])
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
    )
  })

  describe("the webhook HTTP server in trouble", () => {
    it.effect("reports an address that is in use", () =>
      Effect.gen(function* () {
        const { listener, receiver, inbox } = yield* receiving()
        const error = yield* HttpServer.listen({
          host: "127.0.0.1",
          port: listener.port,
          tls: null,
          bodyBytesMax,
          receiver,
          ready: inbox.probe,
          metrics: Effect.succeed("")
        }).pipe(Effect.flip)
        assert.strictEqual(
          error.message,
          `cannot receive deliveries: 127.0.0.1:${listener.port} is in use; stop the other program, or name another port`
        )
      })
    )

    it.effect("finishes requests in flight at shutdown, closes idle connections and accepts no new ones", () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        let release: (() => void) | null = null
        const { listener } = yield* receiving().pipe(
          Effect.flatMap(({ receiver, inbox }) =>
            Effect.map(
              HttpServer.listen({
                host: "127.0.0.1",
                port: 0,
                tls: null,
                bodyBytesMax,
                receiver: {
                  ...receiver,
                  receive: (arrival, done) =>
                    receiver.receive(arrival, (answer) => {
                      release = () => done(answer)
                    })
                },
                ready: inbox.probe,
                metrics: Effect.succeed("")
              }).pipe(Effect.provideService(Scope.Scope, scope)),
              (one) => ({ listener: one })
            )
          )
        )
        const idle = yield* Effect.forkChild(exchange(listener.port, ["GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"]))
        const inHand = yield* Effect.forkChild(exchange(listener.port, [good("evt_1")]))
        yield* until(
          "the delivery",
          Effect.sync(() => release !== null)
        )
        const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
        const isRefused = Effect.callback<boolean>((resume) => {
          const socket = connect(listener.port, "127.0.0.1", () => {
            socket.destroy()
            resume(Effect.succeed(false))
          })
          socket.on("error", () => resume(Effect.succeed(true)))
        })
        yield* until("closing the port", isRefused)
        assert.deepStrictEqual(statusesOf((yield* Fiber.join(idle)).text), [200])
        release!()
        const { text } = yield* Fiber.join(inHand)
        assert.deepStrictEqual(statusesOf(text), [204])
        assert.match(text, /connection: close/i)
        yield* Fiber.join(closing)
      })
    )
  })

  describe("TLS", () => {
    it.effect("loads a renewed certificate, keeps the old one if it is invalid, and rejects old versions", () =>
      Effect.gen(function* () {
        const { folder, files: paths, first, write } = yield* tlsFiles
        const second = certificate(["localhost"])
        const lines: Array<string> = []
        const { listener, count } = yield* receiving({ tls: paths, certificateInterval: Duration.millis(20) }).pipe(
          Effect.provide(Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]))
        )
        const post = (ca: string, id: string) =>
          Effect.callback<number | string>((resume) => {
            const body = bodyOf(id)
            const headers = { "svc-signature": signatureOf(secret, now(), body), "content-length": body.length }
            const request = httpsRequest(
              {
                port: listener.port,
                path: "/hooks/acme",
                method: "POST",
                ca,
                headers,
                agent: false,
                servername: "localhost"
              },
              (response) => {
                response.resume()
                resume(Effect.succeed(response.statusCode!))
              }
            )
            request.on("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code ?? error.message)))
            request.end(body)
          })
        assert.strictEqual(yield* post(first.cert, "evt_1"), 204)
        assert.isString(yield* post(second.cert, "evt_2"))
        // A key that does not fit the certificate: the old certificate stays in use.
        writeFileSync(paths.certificate, second.cert)
        yield* until(
          "the warning",
          Effect.sync(() => lines.some((line) => line.startsWith("The renewed certificate is not used")))
        )
        assert.strictEqual(yield* post(first.cert, "evt_3"), 204)
        assert.isFalse(lines.some((line) => line.includes("PRIVATE KEY")))
        write(second)
        yield* until(
          "the new certificate",
          Effect.map(post(second.cert, "evt_4"), (status) => status === 204)
        )
        assert.isString(yield* post(first.cert, "evt_5"))
        const old = yield* Effect.callback<string>((resume) => {
          const socket = tlsConnect(
            {
              port: listener.port,
              ca: second.cert,
              servername: "localhost",
              minVersion: "TLSv1",
              maxVersion: "TLSv1.1"
            },
            () => resume(Effect.succeed("connected"))
          )
          socket.on("error", () => resume(Effect.succeed("refused")))
        })
        assert.strictEqual(old, "refused")
        assert.strictEqual(yield* count, 3)
        const broken = yield* Effect.flip(receiving({ tls: { ...paths, key: join(folder, "none.pem") } }))
        assert.match(String(broken), /none\.pem.*cannot be used/)
      })
    )
  })
})

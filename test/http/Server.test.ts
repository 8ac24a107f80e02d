/** The limits of a listener against peers that are slow, silent or too many, or do not read. */
import { writeFileSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { connect as tlsConnect } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as ConnectionLimit from "../../src/http/ConnectionLimit.ts"
import * as Server from "../../src/http/Server.ts"
import { certificate } from "../support/certificate.ts"
import { until } from "../support/until.ts"
import { test } from "../support/suite.ts"
import { temporaryFolder } from "../support/servers.ts"

const pem = certificate(["localhost"])

/** PEM files that are deleted with the scope. */
const files = Effect.map(temporaryFolder, (folder) => {
  const tls = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  writeFileSync(tls.certificate, pem.cert)
  writeFileSync(tls.key, pem.key)
  return tls
})

const listening = (options: Partial<Server.ServerOptions> = {}) =>
  Server.listen({
    purpose: "be tested",
    host: "127.0.0.1",
    port: 0,
    tls: null,
    bodyBytesMax: 1024,
    handle: (_request, response) => void response.end("ok"),
    ...options
  })

/** A connection that is closed with the scope, and the text that it received. */
const connected = (port: number, first = "", isTls = false) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Socket>((resume) => {
        const socket: Socket = isTls
          ? tlsConnect({ port, host: "127.0.0.1", ca: pem.cert, servername: "localhost" }, begin)
          : connect({ port, host: "127.0.0.1", allowHalfOpen: true }, begin)
        socket.on("error", () => {})
        function begin() {
          if (first !== "") socket.write(first)
          resume(Effect.succeed(socket))
        }
      }),
      (socket) => Effect.sync(() => socket.destroy())
    ),
    (socket) => {
      const peer = { socket, text: "", isClosed: false }
      socket.on("data", (chunk: Buffer) => (peer.text += chunk.toString("latin1")))
      socket.on("end", () => socket.end())
      socket.on("close", () => (peer.isClosed = true))
      return peer
    }
  )

const when = (what: string, holds: () => boolean) => until(what, Effect.sync(holds), (does) => does)
const cut = (what: string, peer: { readonly isClosed: boolean }) => when(`closing ${what}`, () => peer.isClosed)
const untilReceived = (peer: { readonly text: string }, what: string) =>
  when(`receiving "${what}"`, () => peer.text.includes(what))
/** Connects until a connection gets its response: the server may close it before, for its timeouts or its limit. */
const answered = (port: number, isTls = false) =>
  until(
    "a response",
    Effect.gen(function* () {
      const peer = yield* connected(port, get, isTls)
      yield* when("a response or a closed connection", () => peer.isClosed || peer.text.includes("200 OK"))
      return peer.text
    }).pipe(Effect.scoped),
    (text) => text.includes("200 OK")
  )
const half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx"
const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

describe("an HTTP listener", () => {
  test("closes TLS peers that are silent, too slow, or speak no TLS", function* () {
    const { port } = yield* listening({ tls: yield* files, requestTimeout: Duration.millis(400) })
    const silent = yield* connected(port)
    // The beginning of a ClientHello.
    const partial = yield* connected(port, "\u0016\u0003\u0001\u0002\u0000")
    const dripping = yield* connected(port)
    const slowHeaders = yield* connected(port, "GET / HTTP/1.1\r\nHost: ", true)
    const plain = yield* connected(port, get)
    const bytes = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]
    yield* when("closing one that sends slowly", () => {
      if (!dripping.isClosed) dripping.socket.write(Uint8Array.of(bytes.shift() ?? 7))
      return dripping.isClosed
    })
    yield* answered(port, true)
    yield* cut("a silent one", silent)
    yield* cut("one that sent five bytes", partial)
    yield* cut("one with slow headers", slowHeaders)
    yield* cut("one without TLS", plain)
    const open = yield* listening({ requestTimeout: Duration.millis(400) })
    yield* untilReceived(yield* connected(open.port, "GET / HTTP/1.1\r\nHost: "), "408 Request Timeout")
    for (const { text } of [silent, partial, dripping, plain]) assert.strictEqual(text, "")
  })

  test("closes a peer that reads neither its responses nor its close", function* () {
    const sockets = new Set<Socket>()
    const deaf = Effect.fnUntraced(function* (options: Partial<Server.ServerOptions>, request: string) {
      const { port } = yield* listening({
        ...options,
        handle: (request, response) => {
          sockets.add(request.socket)
          response.end(Buffer.alloc(8 * 1024 * 1024))
        }
      })
      const { socket } = yield* connected(port)
      socket.pause().write(request)
    })
    yield* deaf({ silenceTimeout: Duration.millis(500) }, get)
    // The body never arrives completely. The peer would read the error behind the response.
    yield* deaf({ requestTimeout: Duration.millis(300) }, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx")
    yield* when("two connections", () => sockets.size === 2)
    yield* when("closing the connections", () => [...sockets].every(({ destroyed }) => destroyed))
  })

  test("answers a peer that ends its side after its request", function* () {
    const waiting: Array<ServerResponse> = []
    let endCount = 0
    const { port } = yield* listening({
      answersHalfOpen: true,
      handle: (request, response) => {
        waiting.push(response)
        request.socket.once("end", () => (endCount += 1))
        request.resume()
      }
    })
    const half = yield* connected(port)
    half.socket.end("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
    yield* when("the end of the peer's side", () => endCount === 1)
    waiting[0]!.end("late")
    yield* untilReceived(half, "late")
    yield* cut("one with its response", half)
    // A connection without a request is closed, and so is one with half a request.
    const nothing = yield* connected(port)
    nothing.socket.end()
    const part = yield* connected(port)
    part.socket.end("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx")
    yield* cut("one without a request", nothing)
    yield* cut("one with half a request", part)
    assert.include(part.text, "400 Bad Request")
  })

  test("without a free place closes idle, then the slowest, and never answering connections", function* () {
    let cutCount = 0
    const busy: Array<ServerResponse> = []
    const { port } = yield* listening({
      connectionsMax: 4,
      onCut: () => (cutCount += 1),
      handle: (request, response) => {
        if (request.url === "/work") busy.push(response)
        else request.on("end", () => response.end("ok")).resume()
      }
    })
    const work = yield* connected(port, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n")
    const slow = [yield* connected(port, half), yield* connected(port, "GET / HT")]
    const idle = yield* connected(port, get)
    yield* untilReceived(idle, "ok")
    const next = yield* connected(port, get)
    yield* untilReceived(next, "ok")
    yield* cut("the idle one", idle)
    assert.deepStrictEqual([cutCount, next.isClosed, slow[0]!.isClosed], [0, false, false])
    const others = [yield* connected(port, half), yield* connected(port, half)]
    yield* cut("the idle one", next)
    yield* cut("the slowest", slow[0]!)
    assert.deepStrictEqual([cutCount, slow[1]!.isClosed], [1, false])
    for (const one of [...others, slow[1]!]) one.socket.destroy()
    const working = [1, 2, 3].map(() => connected(port, "GET /work HTTP/1.1\r\nHost: x\r\n\r\n"))
    yield* Effect.all(working)
    yield* when("four requests in progress", () => busy.length === 4)
    yield* cut("the surplus one", yield* connected(port, get))
    for (const response of busy) response.end("done")
    yield* untilReceived(work, "done")
  })

  for (const isTls of [false, true]) {
    test(`answers while slow connections take all places and are renewed${isTls ? ", over TLS" : ""}`, function* () {
      // Over TLS, so many handshakes would cost the machine more than the limit does.
      const connectionsMax = isTls ? 16 : 1_024
      let cutCount = 0
      const { port } = yield* listening({
        connectionsMax,
        connectionsPerAddressMax: connectionsMax,
        tls: isTls ? yield* files : null,
        onCut: () => (cutCount += 1),
        handle: (request, response) => void request.on("end", () => response.end("ok")).resume()
      })
      const attackers = new Set<{ readonly isClosed: boolean }>()
      // A closed connection is opened again.
      const attack = Effect.gen(function* () {
        for (const one of attackers) if (one.isClosed) attackers.delete(one)
        while (attackers.size < connectionsMax + 10) attackers.add(yield* connected(port, half, isTls))
        return cutCount
      })
      for (let round = 1; round <= 10; round++) {
        yield* until("all places in use", attack, (cuts) => cuts >= round * 10)
        const genuine = yield* connected(port, `${half}y`, isTls)
        yield* untilReceived(genuine, "ok")
        genuine.socket.destroy()
      }
    })
  }

  test("limits one address to its share of slow requests", function* () {
    const { port } = yield* listening({ connectionsPerAddressMax: 2, handle: () => {} })
    const slow = [yield* connected(port, half), yield* connected(port, half)]
    // A burst does not count as slow.
    const burst = yield* Effect.all([1, 2, 3, 4].map(() => connected(port, half)))
    assert.isFalse(slow[0]!.isClosed)
    yield* TestClock.adjust("1100 millis")
    yield* connected(port, half)
    yield* cut("the slowest", slow[0]!)
    assert.deepStrictEqual([slow[1]!.isClosed, burst[3]!.isClosed], [false, false])
  })

  test("closes a peer that pipelines requests without waiting for responses", function* () {
    let handled = 0
    const { port } = yield* listening({
      handle: () => {
        handled += 1
      }
    })
    const peer = yield* connected(port, get.repeat(2_000))
    yield* cut("the one that pipelines", peer)
    assert.isBelow(handled, 10)
  })

  test("replaces a peer that has not read its response for a second", function* () {
    let isRequested = false
    const { port } = yield* listening({
      connectionsMax: 1,
      handle: (request, response) => {
        isRequested ||= request.url === "/large"
        response.end(request.url === "/" ? "ok" : Buffer.alloc(8 * 1024 * 1024))
      }
    })
    const { socket } = yield* connected(port)
    socket.pause().write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    yield* when("its request", () => isRequested)
    yield* answered(port)
  })

  it("identifies a peer by its IPv4 address or its IPv6 prefix", () => {
    const cases = {
      "192.0.2.7": "192.0.2.7",
      "::ffff:192.0.2.7": "192.0.2.7",
      "2001:db8:1:2:3:4:5:6": "2001:db8:1:2",
      "2001:db8::6": "2001:db8:0:0",
      "::1": "0:0:0:0",
      "fe80::1%eth0": "fe80:0:0:0"
    }
    for (const [remote, address] of Object.entries(cases))
      assert.strictEqual(ConnectionLimit.addressOf(remote), address)
  })
})

/** The limits of a listener against peers that are slow, silent or too many, or do not read. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as tlsConnect } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import { Effect } from "effect"
import * as ConnectionLimit from "../../src/http/ConnectionLimit.ts"
import * as Server from "../../src/http/Server.ts"
import { certificate } from "../support/certificate.ts"
import { until } from "../support/until.ts"

const pem = certificate(["localhost"])

/** PEM files that are deleted with the scope. */
const files = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-listen-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => {
    const tls = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
    writeFileSync(tls.certificate, pem.cert)
    writeFileSync(tls.key, pem.key)
    return tls
  }
)

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

const cut = (what: string, peer: { readonly isClosed: boolean }) =>
  until(
    `closing ${what}`,
    Effect.sync(() => peer.isClosed),
    (is) => is,
    3
  )
const untilReceived = (peer: { readonly text: string }, what: string) =>
  until(
    `receiving "${what}"`,
    Effect.sync(() => peer.text),
    (text) => text.includes(what),
    3
  )
const half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx"
const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

describe("an HTTP listener", () => {
  it.live("closes TLS peers that are silent, too slow, or speak no TLS", () =>
    Effect.gen(function* () {
      const { port } = yield* listening({ tls: yield* files, requestTimeout: Duration.millis(400) })
      const silent = yield* connected(port)
      // The beginning of a ClientHello.
      const partial = yield* connected(port, "\u0016\u0003\u0001\u0002\u0000")
      const dripping = yield* connected(port)
      yield* Effect.forkScoped(
        Effect.forEach(
          [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, ...Array.from({ length: 200 }, () => 7)],
          (byte) =>
            Effect.andThen(
              Effect.sync(() => dripping.socket.write(Uint8Array.of(byte))),
              Effect.sleep(50)
            ),
          { discard: true }
        )
      )
      const slowHeaders = yield* connected(port, "GET / HTTP/1.1\r\nHost: ", true)
      const plain = yield* connected(port, get)
      const good = yield* connected(port, get, true)
      yield* untilReceived(good, "200 OK")
      yield* cut("a silent one", silent)
      yield* cut("one that sent five bytes", partial)
      yield* cut("one that sends slowly", dripping)
      yield* cut("one with slow headers", slowHeaders)
      yield* cut("one without TLS", plain)
      assert.include(slowHeaders.text, "408 Request Timeout")
      for (const { text } of [silent, partial, dripping, plain]) assert.strictEqual(text, "")
    })
  )

  it.live("closes a peer that reads neither its responses nor its close", () =>
    Effect.gen(function* () {
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
      const openSockets = Effect.sync(() => [...sockets].map(({ destroyed }) => !destroyed))
      yield* deaf({ silenceTimeout: Duration.millis(500) }, get)
      // The body never arrives completely. The peer would read the error behind the response.
      yield* deaf({ requestTimeout: Duration.millis(300) }, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx")
      yield* until("two open connections", openSockets, ({ length }) => length === 2, 3)
      yield* until("closing the connections", openSockets, (all) => !all.includes(true), 3)
    })
  )

  it.live("answers a peer that ends its side after its request", () =>
    Effect.gen(function* () {
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
      yield* until(
        "the end of the peer's side",
        Effect.sync(() => endCount),
        (count) => count === 1,
        3
      )
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
  )

  it.live("without a free place closes idle, then the slowest, and never answering connections", () =>
    Effect.gen(function* () {
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
      yield* until(
        "four requests in progress",
        Effect.sync(() => busy.length),
        (count) => count === 4,
        3
      )
      yield* cut("the surplus one", yield* connected(port, get))
      for (const response of busy) response.end("done")
      yield* untilReceived(work, "done")
    })
  )

  for (const isTls of [false, true]) {
    it.live(
      `answers at once while 1,024 slow connections are open and renewed${isTls ? ", over TLS" : ""}`,
      () =>
        Effect.gen(function* () {
          // Over TLS, so many handshakes would cost the machine more than the limit does.
          const connectionsMax = isTls ? 64 : 1_024
          let cutCount = 0
          const { port } = yield* listening({
            connectionsMax,
            connectionsPerAddressMax: connectionsMax,
            tls: isTls ? yield* files : null,
            onCut: () => (cutCount += 1),
            handle: (request, response) => void request.on("end", () => response.end("ok")).resume()
          })
          // A closed connection is opened again.
          const attackers = new Set<Socket>()
          let isOver = false
          const attack = () => {
            if (isOver) return
            const begin = () => void socket.write(half)
            const socket = isTls
              ? tlsConnect({ port, host: "127.0.0.1", ca: pem.cert, servername: "localhost" }, begin)
              : connect(port, "127.0.0.1", begin)
            attackers.add(socket)
            socket
              .on("error", () => {})
              .once("close", () => {
                attackers.delete(socket)
                setTimeout(attack, 20)
              })
          }
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              isOver = true
              for (const socket of attackers) socket.destroy()
            })
          )
          for (let count = 0; count < connectionsMax + 10; count++) attack()
          yield* until(
            "all slots in use",
            Effect.sync(() => cutCount),
            (count) => count > 10,
            20
          )
          for (let count = 0; count < 20; count++) {
            const began = performance.now()
            const genuine = yield* connected(port, `${half}y`, isTls)
            yield* untilReceived(genuine, "ok")
            assert.isBelow(performance.now() - began, 2_000)
            genuine.socket.destroy()
          }
        }),
      60_000
    )
  }

  it.live("limits one address to its share of slow requests", () =>
    Effect.gen(function* () {
      const { port } = yield* listening({ connectionsPerAddressMax: 2, handle: () => {} })
      const slow = [yield* connected(port, half), yield* connected(port, half)]
      // A burst does not count as slow.
      const burst = yield* Effect.all([1, 2, 3, 4].map(() => connected(port, half)))
      assert.isFalse(slow[0]!.isClosed)
      yield* Effect.sleep(1_100)
      yield* connected(port, half)
      yield* cut("the slowest", slow[0]!)
      assert.deepStrictEqual([slow[1]!.isClosed, burst[3]!.isClosed], [false, false])
    })
  )

  it.live("closes a peer that pipelines requests without waiting for responses", () =>
    Effect.gen(function* () {
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
  )

  it.live("replaces a peer that has not read its response for a second", () =>
    Effect.gen(function* () {
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
      yield* until(
        "its request",
        Effect.sync(() => isRequested),
        (is) => is,
        3
      )
      const next = Effect.gen(function* () {
        const peer = yield* connected(port, get)
        yield* until(
          "a response or a closed connection",
          Effect.sync(() => peer.isClosed || peer.text.includes("200 OK")),
          (is) => is,
          3
        )
        return peer.text
      }).pipe(Effect.scoped)
      yield* until("its response", next, (text) => text.includes("200 OK"), 5)
    })
  )

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

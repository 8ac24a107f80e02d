/** What a receiver may do to a connection: every message is sent, each has an outcome in time, and the next ones too. */
import { createServer, type AddressInfo, type Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { assert, describe } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as Transport from "../../src/delivery/Transport.ts"
import { flowing, settled } from "../support/until.ts"
import { test } from "../support/suite.ts"
import { valuesOf } from "../support/rows.ts"

/** More than the messages that the sender has in flight. */
const messages = 20
const concurrency = 16
/** Nothing waits for the long limit: the answers either have a status, or are those that end by the short one. */
const [long, short] = [Duration.seconds(20), Duration.seconds(2)]
const body = Duration.millis(50)

/** What the receiver does with a request, given its number on the connection. */
type Behaviour = (socket: Socket, place: number) => void

const sound: Behaviour = (socket) => socket.write("HTTP/1.1 204 No Content\r\n\r\n")

const endless = (socket: Socket) => {
  const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`
  const fill = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
  socket.on("drain", fill)
  fill()
}

const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024))

const answers: Readonly<Record<string, readonly [status: number, behaviour: Behaviour]>> = {
  "a body of a stated length that does not come": [
    200,
    (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
  ],
  "a body in chunks that does not end": [
    200,
    (socket) => socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
  ],
  "a body without a length that does not end": [
    200,
    (socket) => socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nx")
  ],
  "a body that comes byte by byte": [
    200,
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
      const next = () => socket.destroyed || (socket.write("x"), setImmediate(next))
      next()
    }
  ],
  "an endless body": [200, endless],
  "a body that is cut": [200, (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")],
  "a small body that unpacks to a large one": [
    200,
    (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`)
      socket.write(bomb)
    }
  ],
  "a refusal whose body does not end": [
    503,
    (socket) => socket.write("HTTP/1.1 503 Busy\r\ncontent-length: 9\r\nretry-after: 7\r\n\r\n")
  ],
  "a redirect whose body does not end": [
    302,
    (socket) => socket.write("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 9\r\n\r\n")
  ],
  "an early hint before the status": [
    204,
    (socket) => socket.write("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
  ],
  "a body where none is allowed": [204, (socket) => socket.write("HTTP/1.1 204 No Content\r\n\r\nxyz")]
}

/** Answers without a status. The last one is no TLS handshake. */
const silent: ReadonlyArray<readonly [behaviour: Behaviour, protocol: string]> = [
  [(socket) => socket.write("HTTP/1.1 100 Continue\r\n\r\n"), "http"],
  [(socket) => socket.write("HTTP/1.1 200 OK\r\nx-first: 1\r\n"), "http"],
  [() => {}, "http"],
  [(socket, place) => (place === 0 ? sound(socket, place) : undefined), "http"],
  [() => {}, "https"]
]

/** A receiver of raw requests, until the end of the scope. */
const makeReceiver = (behaviour: Behaviour) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; received: number; behaviour: Behaviour; readonly close: () => void }>(
      (resume) => {
        const sockets = new Set<Socket>()
        const server = createServer((socket) => {
          sockets.add(socket.on("error", () => {}))
          let place = 0
          let text = ""
          socket.on("data", (part) => {
            text += part.toString("latin1")
            while (text.includes("{}")) {
              text = text.slice(text.indexOf("{}") + 2)
              receiver.received += 1
              receiver.behaviour(socket, place)
              place += 1
            }
          })
        })
        const receiver = {
          port: 0,
          received: 0,
          behaviour,
          close: () => {
            server.close()
            for (const socket of sockets) socket.destroy()
          }
        }
        server.listen(0, "127.0.0.1", () => {
          receiver.port = (server.address() as AddressInfo).port
          resume(Effect.succeed(receiver))
        })
      }
    ),
    ({ close }) => Effect.sync(close)
  )

const sendTo = (transport: Transport.Transport, port: number, path: string, protocol = "http") =>
  transport
    .send({ url: `${protocol}://127.0.0.1:${port}${path}`, allowPrivate: true, headers: {}, body: "{}" })
    .pipe(Effect.match({ onSuccess: ({ status }) => status, onFailure: ({ message }) => message }))

/** As many at once as the sender has in flight. */
const repeat = (one: Effect.Effect<number | string>) =>
  flowing(Effect.forEach(Array.from({ length: messages }), () => one, { concurrency }))

describe("an answer", () => {
  /** Sends messages that meet the behaviour, then messages to a receiver that is sound again. */
  const meet = Effect.fnUntraced(function* (behaviour: Behaviour, limits: Transport.Limits, protocol = "http") {
    const receiver = yield* makeReceiver(behaviour)
    const transport = yield* Transport.make(null, limits)
    const outcomes = yield* repeat(sendTo(transport, receiver.port, "/", protocol))
    const { received } = receiver
    receiver.behaviour = sound
    assert.deepStrictEqual(new Set(yield* repeat(sendTo(transport, receiver.port, "/"))), new Set([204]))
    return { outcomes, received }
  }, Effect.scoped)

  for (const [name, [status, behaviour]] of Object.entries(answers)) {
    test(`with ${name} has a status, and costs no other message anything`, function* () {
      const { outcomes, received } = yield* meet(behaviour, { status: long, body })
      assert.strictEqual(received, messages)
      assert.deepStrictEqual(new Set(outcomes), new Set([status]))
    })
  }

  test("without a status ends in time, and costs no other message anything", function* () {
    const met = yield* Effect.forEach(
      silent,
      ([behaviour, protocol]) => meet(behaviour, { status: short, body }, protocol),
      {
        concurrency: "unbounded"
      }
    )
    for (const { outcomes } of met) {
      assert.include(
        outcomes.map((one) => typeof one),
        "string"
      )
    }
    assert.deepStrictEqual(
      valuesOf(met.slice(0, -1), "received"),
      silent.slice(1).map(() => messages)
    )
  })

  test("that does not end occupies no connection of another endpoint with the same origin", function* () {
    const receiver = yield* makeReceiver(() => {})
    const patient = { status: Duration.seconds(30), body: Duration.seconds(30) }
    const [open, other] = [yield* Transport.make(null, patient), yield* Transport.make(null, patient)]
    yield* Effect.forkScoped(repeat(sendTo(open, receiver.port, "/open")))
    yield* settled(
      "all messages in flight",
      Effect.sync(() => receiver.received),
      (count) => count === concurrency
    )
    receiver.behaviour = sound
    assert.deepStrictEqual(new Set(yield* repeat(sendTo(other, receiver.port, "/other"))), new Set([204]))
  })
})

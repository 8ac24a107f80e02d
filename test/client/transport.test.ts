/** The network layer against a faulty server. */
import * as http from "node:http"
import { gzipSync } from "node:zlib"
import type { AddressInfo } from "node:net"
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Redacted, type Scope, Tracer } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as TestClock from "effect/testing/TestClock"
import * as ServiceClient from "../../connectors/service-v2/client/ServiceClient.ts"
import * as Transport from "../../connectors/service-v2/client/Transport.ts"
import { Budget } from "../../src/budget/Budget.ts"
import { things, tiny } from "../support/tiny.ts"
import { flowing, settled } from "../support/until.ts"
import { failureOf } from "./ScriptedHttp.ts"
import { test } from "../support/suite.ts"

const first = { resource: things, since: null, token: null }
const good = JSON.stringify({ data: [{ id: 1, name: "é😀", price: "1.1000" }], _meta: { has_more: false } })

type Behaviour = (request: http.IncomingMessage, response: http.ServerResponse) => void

const isGood: Behaviour = (_request, response) => {
  response.setHeader("content-type", "application/json").end(good)
}

/**
 * A server that handles the nth request with the nth behaviour, and later requests with the last one; and a client of
 * it.
 */
const world = Effect.fnUntraced(function* (
  behaviours: ReadonlyArray<Behaviour>,
  options: Partial<ServiceClient.ServiceClientOptions> = {},
  transport: Transport.TransportOptions = {}
) {
  const seen: Array<http.IncomingMessage> = []
  let connections = 0
  const server = http.createServer((request, response) => {
    seen.push(request)
    behaviours[Math.min(seen.length, behaviours.length) - 1]!(request, response)
  })
  server.on("connection", () => connections++)
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  const { port } = server.address() as AddressInfo
  const context = yield* Layer.build(Layer.merge(Transport.layerUndici(transport), Budget.layerUnlimited))
  const connector = yield* ServiceClient.make({
    baseUrl: `http://127.0.0.1:${port}/!/api/v2`,
    token: Redacted.make("secret"),
    catalogue: tiny,
    retry: { backoffBase: Duration.millis(1), backoffMax: Duration.millis(5), attemptsMax: 4 },
    ...options
  }).pipe(Effect.provideContext(context))
  return { connector, context, port, seen, connections: () => connections }
})

/** A test during which the clock moves, within a span. */
const flows = (title: string, body: () => Generator<Effect.Effect<unknown, unknown, Scope.Scope>, unknown>) =>
  test(title, function* () {
    yield* Effect.gen(body).pipe(Effect.withSpan("outer"), flowing)
  })

const reasonOf = <A, E>(effect: Effect.Effect<A, E>) => Effect.map(failureOf(effect), ({ reason }) => reason)

describe("the undici transport", () => {
  flows("reads pages over kept connections and sends no trace header", function* () {
    const { connector, seen, connections } = yield* world([isGood])
    for (let turn = 0; turn < 5; turn++) {
      const page = yield* connector.page(first)
      assert.strictEqual(page.records[0]!.columns[1], "é😀")
      assert.strictEqual(page.bytes, Buffer.byteLength(good))
    }
    // The client may open a second connection just before the first is free.
    assert.isAtMost(connections(), 2)
    assert.strictEqual(seen[0]!.url, "/!/api/v2/things?cancel=any")
    assert.strictEqual(seen[0]!.headers["authorization"], "Bearer secret")
    assert.strictEqual(seen[0]!.headers["traceparent"], undefined)
    assert.strictEqual(seen[0]!.headers["accept-encoding"], "gzip")
  })

  flows("creates no spans", function* () {
    const { context, port } = yield* world([isGood])
    const names: Array<string> = []
    const tracer = Tracer.make({
      span: (options) => {
        names.push(options.name)
        return new Tracer.NativeSpan(options)
      }
    })
    const client = yield* HttpClient.HttpClient.pipe(Effect.provideContext(context))
    const response = yield* client.get(`http://127.0.0.1:${port}/`).pipe(Effect.withTracer(tracer))
    assert.strictEqual(yield* response.text, good)
    assert.deepStrictEqual(names, [])
  })

  flows("retries a request whose connection is cut around the response head", function* () {
    const { connector, seen } = yield* world([
      (request) => request.socket.destroy(),
      (_request, response) => {
        response.writeHead(200, { "content-length": String(good.length + 100) })
        response.write(good.slice(0, 10), () => response.socket?.resetAndDestroy())
      },
      (_request, response) => {
        response.writeHead(200)
        response.write(good.slice(0, 10), () => response.socket?.destroy())
      },
      isGood
    ])
    assert.strictEqual((yield* connector.page(first)).attempts, 4)
    assert.strictEqual(seen.length, 4)
  })

  flows("reads compressed responses, and retries one that is cut", function* () {
    const packed = gzipSync(good)
    const gzip =
      (body: Buffer, status = 200): Behaviour =>
      (_request, response) =>
        response.writeHead(status, { "content-encoding": "gzip", "content-length": body.length }).end(body)
    const { connector, seen } = yield* world([gzip(packed.subarray(0, packed.length - 9)), gzip(packed)])
    const page = yield* connector.page(first)
    assert.strictEqual(page.records[0]!.columns[1], "é😀")
    assert.strictEqual(page.bytes, Buffer.byteLength(good))
    assert.lengthOf(seen, 2)
    assert.strictEqual((yield* connector.usage).bytes, 2 * packed.length - 9)

    const large = yield* world([gzip(gzipSync(Buffer.alloc(100_000, " ")))], { answerBytesMax: 50_000 })
    assert.strictEqual((yield* reasonOf(large.connector.page(first)))._tag, "TooLarge")

    const refusal = JSON.stringify({ error: { code: "insufficient_scope", message: "no" } })
    for (const body of [gzipSync(refusal), Buffer.from(refusal)]) {
      const refused = yield* world([gzip(body, 403)])
      const reason = yield* reasonOf(refused.connector.page(first))
      assert.strictEqual(reason._tag, "Forbidden", "an error is classified even where it is not compressed as stated")
    }
  })

  flows("fails as Unreachable if the body is cut at any byte, or if no server listens", function* () {
    const bytes = Buffer.from(good)
    let cut = 0
    const { connector } = yield* world(
      [
        (_request, response) => {
          // The response states no length and the connection ends, as when a server dies: chunked, without the last
          // chunk.
          response.writeHead(200)
          response.write(bytes.subarray(0, cut), () => response.socket?.end())
        }
      ],
      { retry: { attemptsMax: 1 } }
    )
    for (cut = 1; cut <= bytes.length; cut++) {
      assert.strictEqual((yield* reasonOf(connector.page(first)))._tag, "Unreachable", `cut after ${cut} bytes`)
    }
    const away = yield* world([isGood], { baseUrl: "http://127.0.0.1:1/!/api/v2" })
    const refused = yield* reasonOf(away.connector.page(first))
    assert(refused._tag === "Unreachable")
    assert.include(refused.detail, "ECONNREFUSED")
  })

  test("fails without a complete response in time", function* () {
    const closed: Array<number> = []
    const { connector, seen } = yield* world(
      [
        (request) => request.socket.on("close", () => closed.push(1)),
        (request, response) => {
          request.socket.on("close", () => closed.push(2))
          response.writeHead(200)
          response.write("{")
        }
      ],
      { requestTimeout: Duration.seconds(30), retry: { attemptsMax: 2, backoffBase: Duration.zero } }
    )
    const reading = yield* Effect.forkChild(reasonOf(connector.page(first)))
    for (const attempt of [1, 2]) {
      const received = Effect.sync(() => seen.length)
      yield* settled(`attempt ${attempt}`, received, (count) => count === attempt)
      yield* TestClock.adjust("31 seconds")
    }
    assert.strictEqual((yield* Fiber.join(reading))._tag, "TimedOut")
    // An abandoned request closes its connection.
    yield* settled(
      "both are closed",
      Effect.sync(() => closed.length),
      (count) => count === 2
    )
  })

  flows("reports a redirect and does not follow it", function* () {
    const { connector, seen } = yield* world([
      (_request, response) => response.writeHead(307, { location: "/elsewhere" }).end("moved"),
      (_request, response) => response.end(`{"companyid":1}`),
      isGood
    ])
    assert.deepInclude(yield* reasonOf(connector.page(first)), { _tag: "Redirected", status: 307, to: "/elsewhere" })
    assert.lengthOf(seen, 2, "the second request is for the identity")
    assert.strictEqual((yield* connector.page(first)).records.length, 1)
  })

  flows("cuts off a response that exceeds the limit", function* () {
    const endless: Behaviour = (_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(10_000)));
        if (!response.destroyed) response.once("drain", more)
      }
      response.writeHead(200)
      more()
    }
    const counted = yield* world([endless], { answerBytesMax: 100_000 })
    assert.strictEqual((yield* reasonOf(counted.connector.page(first)))._tag, "TooLarge")
    assert.isBelow((yield* counted.connector.usage).bytes, 10_000_000)
    const capped = yield* world([endless], {}, { answerBytesMax: 100_000 })
    assert.strictEqual((yield* reasonOf(capped.connector.page(first)))._tag, "TooLarge")
    const large: Behaviour = (_request, response) =>
      response.writeHead(200, { "content-length": "99999999" }).write("x")
    const declared = yield* world([large], { answerBytesMax: 100_000 })
    assert.strictEqual((yield* reasonOf(declared.connector.page(first)))._tag, "TooLarge")
  })

  flows("sends a write byte for byte", function* () {
    const bodies: Array<string> = []
    const { connector, seen } = yield* world([
      (request, response) => {
        const parts: Array<Buffer> = []
        request.on("data", (part: Buffer) => parts.push(part))
        request.on("end", () => {
          bodies.push(Buffer.concat(parts).toString("utf8"))
          response.writeHead(201, { "content-type": "application/json" }).end(`{"id":1}`)
        })
      }
    ])
    const body = `{"name":"é😀","price":"1.10"}`
    const write = { resource: things, operation: "create", id: null, idempotencyKey: "k-1", ifMatch: null } as const
    assert.strictEqual((yield* connector.write({ ...write, body })).status, 201)
    assert.deepStrictEqual(bodies, [body])
    assert.strictEqual(seen[0]!.headers["content-type"], "application/json")
    assert.strictEqual(seen[0]!.headers["content-length"], String(Buffer.byteLength(body)))
    assert.strictEqual(seen[0]!.headers["idempotency-key"], "k-1")
  })
})

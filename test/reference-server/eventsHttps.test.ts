/** Deliveries over real HTTPS on loopback: the behaviour of the network layer. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Exit, Scope } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { isPublic } from "../../connectors/service-v2/reference-server/events/addresses.ts"
import { httpsNetwork } from "../../connectors/service-v2/reference-server/events/httpsNetwork.ts"
import type { HttpsNetworkOptions } from "../../connectors/service-v2/reference-server/events/httpsNetwork.ts"
import { start } from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import { certificate } from "../support/certificate.ts"
import { startRecording } from "../support/recording.ts"
import type { Json } from "./support.ts"
import { assertNone } from "../support/assertions.ts"

const own = certificate(["localhost", "receiver.test"], ["127.0.0.1"])
const trusted = [own.cert]

interface ReceivedRequest {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
}

const receivedRequests: Array<ReceivedRequest> = []
let connections = 0
let answer: (response: ServerResponse, path: string) => void = (response) => response.writeHead(204).end()
let receiver: Awaited<ReturnType<typeof startRecording>>
let port: number

const scope = Scope.makeUnsafe()
let baseUrl: string
let controlUrl: string

beforeAll(async () => {
  receiver = await startRecording((message, body, response) => {
    receivedRequests.push({ path: message.url!, headers: message.headers, body })
    answer(response, message.url!)
  }, own)
  receiver.server.on("connection", () => connections++)
  port = receiver.port
  const urls = await Effect.runPromise(Scope.provide(start({ port: 0, controlPort: 0, data: "empty" }), scope))
  baseUrl = urls.baseUrl
  controlUrl = urls.controlUrl
})

afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await receiver.close()
})

const never: HttpsNetworkOptions["sleep"] = (_, signal) =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("given up")))
  })

/** One attempt. The name receiver.test resolves to the addresses. */
const send = (
  url: string,
  more: Partial<{ allowPrivate: boolean; trusted: ReadonlyArray<string>; signal: AbortSignal }> = {},
  options: Partial<HttpsNetworkOptions> = {},
  addresses: ReadonlyArray<string> = ["127.0.0.1"]
) =>
  httpsNetwork({
    now: () => 0,
    sleep: never,
    resolve: (_, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }))
      ),
    ...options
  }).send(
    {
      url,
      headers: { "Svc-Event-Id": "evt_1" },
      body: Buffer.from("{}"),
      trusted,
      allowPrivate: true,
      ...more
    },
    more.signal ?? new AbortController().signal
  )

const text = (body: Uint8Array) => Buffer.from(body).toString()

describe("an attempt over HTTPS", () => {
  it("ends after 15 seconds, and on abort", async () => {
    const arrived = Promise.withResolvers<void>()
    answer = () => arrived.resolve()
    const waited: Array<number> = []
    const sleep = (ms: number) => {
      waited.push(ms)
      return arrived.promise
    }
    const late = await send(`https://127.0.0.1:${port}/`, {}, { sleep })
    assert.deepStrictEqual(waited, [15_000])
    assert.isNull(late.status)
    assert.include(late.failure, "15 seconds")
    const stop = new AbortController()
    answer = () => stop.abort()
    assert.deepInclude(await send(`https://127.0.0.1:${port}/`, { signal: stop.signal }), {
      status: null,
      failure: "the attempt was given up"
    })
    assert.isNull((await send(`https://127.0.0.1:${port}/`, { signal: stop.signal })).status)
  })

  it("returns a status that came in time although the response does not end", async () => {
    // The timeout ends when the status has arrived: the client reads in the turns of the same event loop.
    const sent = Promise.withResolvers<void>()
    const afterTurns = (turns: number): unknown =>
      turns === 0 ? sent.resolve() : setImmediate(() => afterTurns(turns - 1))
    answer = (response) => {
      response.writeHead(200)
      response.write("begun", () => afterTurns(1000))
    }
    const sleep = () => sent.promise
    const outcome = await send(`https://127.0.0.1:${port}/`, {}, { sleep })
    assert.strictEqual(outcome.status, 200)
    assert.strictEqual(text(outcome.body), "begun")
  })

  it("fails if the receiver gives no valid HTTP response", async () => {
    answer = (response) => response.socket?.destroy()
    assert.isNull((await send(`https://127.0.0.1:${port}/`)).status)
    answer = (response) => {
      response.socket?.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
    }
    assert.isNull((await send(`https://127.0.0.1:${port}/`)).status)
    answer = (response) => response.socket?.end("nonsense\r\n\r\n")
    assert.isNull((await send(`https://127.0.0.1:${port}/`)).status)
    const unreachable = await send("https://127.0.0.1:1/")
    assert.isNull(unreachable.status)
    assert.include(unreachable.failure, "ECONNREFUSED")
  })

  it("verifies the certificate and its name, independently of the environment", async () => {
    answer = (response) => response.writeHead(200).end()
    const before = receivedRequests.length
    const insecure = process.env["NODE_TLS_REJECT_UNAUTHORIZED"]
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"
    try {
      assert.isNull((await send(`https://127.0.0.1:${port}/`, { trusted: [] })).status)
      const stranger = certificate(["localhost"], ["127.0.0.1"])
      assert.isNull((await send(`https://127.0.0.1:${port}/`, { trusted: [stranger.cert] })).status)
      const misnamed = await send(`https://other.test:${port}/`)
      assert.isNull(misnamed.status)
      assert.include(misnamed.failure, "altnames")
    } finally {
      if (insecure === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = insecure
    }
    assert.lengthOf(receivedRequests, before)
  })

  it("never reaches a private address, by name, number or DNS change", async () => {
    answer = (response) => response.writeHead(200).end()
    const closed = { allowPrivate: false }
    const before = receivedRequests.length
    const opened = connections
    for (const host of [
      "127.0.0.1",
      "127.1",
      "2130706433",
      "0x7f000001",
      "0177.0.0.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "0"
    ]) {
      const { status, failure } = await send(`https://${host}:${port}/`, closed)
      assert.isNull(status)
      assert.include(failure, "not a public address")
    }
    for (const address of ["127.0.0.1", "10.0.0.1", "::1", "fd00::1", "::ffff:192.168.0.1"]) {
      const { status, failure } = await send(`https://receiver.test:${port}/`, closed, {}, [address])
      assert.isNull(status)
      assert.include(failure, "receiver.test is not a public address")
    }
    assert.isNull((await send(`https://receiver.test:${port}/`, closed, {}, [])).status)
    assert.isNull((await send(`https://localhost:${port}/`, closed)).status)
    assert.lengthOf(receivedRequests, before)
    assert.strictEqual(connections, opened)
  })
})

describe("addresses of receivers", () => {
  const words = (text: string) => text.trim().split(/\s+/)

  it("are accepted only if they are public, in any notation", () => {
    const refused = words(`
      0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254
      169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1
      192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255
      240.0.0.1 255.255.255.255 :: ::1 0:0:0:0:0:0:0:1 ::127.0.0.1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:7f00:1
      ::FFFF:10.0.0.1 0:0:0:0:0:ffff:c0a8:1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 64:ff9b::7f00:1
      64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:10::1 2001:db8::1 2001:db8:ffff::1
      2002:7f00:1:: 2002:a00:1::1 3fff::1 5f00::1 fc00::1 fd12:3456:789a::1 fe80::1 fe80::1%eth0 febf::1
      fec0::1 ff02::1 ff0e::1 localhost 127.1 0x7f.1 1.2.3 ::g
    `)
    assert.deepStrictEqual(["", ...refused].filter(isPublic), [])
    const open = words(`
      1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0
      192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255 ::ffff:8.8.8.8
      2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450:4001:81b::200e
    `)
    assertNone(open, (address) => !isPublic(address))
  })
})

describe("the running reference server", () => {
  const control = async (method: string, path: string, body?: unknown) => {
    const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const response = await fetch(`${controlUrl}${path}`, init)
    return { status: response.status, body: (await response.json()) as Json }
  }

  it("delivers when a cycle is due, and when the clock is moved past it", async () => {
    answer = (response) => response.writeHead(204).end()
    const issued = await control("POST", "/tokens", { company: 1, scopes: ["*"] })
    const headers = { authorization: `Bearer ${String(issued.body["token"])}` }
    await control("PUT", "/limits", { allowPrivateReceivers: true })
    await control("POST", "/trust", { caPem: own.cert })
    const post = (path: string, body: unknown) =>
      fetch(`${baseUrl}${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    await post("/webhooks", { url: `https://127.0.0.1:${port}/own`, events: ["salesmen.created"] })
    receivedRequests.length = 0
    await post("/salesmen", { name: "Moved" })
    await control("POST", "/clock", { advanceSeconds: 300 })
    assert.deepStrictEqual(
      receivedRequests.map(({ path }) => path).filter((path) => path === "/own"),
      ["/own"]
    )
    const arrived = Promise.withResolvers<void>()
    answer = (response) => {
      response.writeHead(204).end()
      arrived.resolve()
    }
    await control("PUT", "/limits", { cycleSeconds: 1 })
    await post("/salesmen", { name: "Alone" })
    await arrived.promise
    assert.strictEqual(receivedRequests.at(-1)?.path, "/own")
  })
})

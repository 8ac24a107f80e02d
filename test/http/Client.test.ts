/** Requests through a proxy: what it gets, and what becomes of its failures. */
import { createSecureContext, getCACertificates } from "node:tls"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Redacted } from "effect"
import type { Dispatcher } from "undici"
import { request } from "undici"
import * as Client from "../../src/http/Client.ts"
import { proxiesOfVariables, ProxyFailed } from "../../src/http/Proxies.ts"
import { certificate } from "../support/certificate.ts"
import { makeProxy, makeTls, through } from "../support/proxy.ts"
import { recording } from "../support/recording.ts"
import { test } from "../support/suite.ts"

const own = certificate(["erp.test", "localhost"])
const body = "x".repeat(50_000)

/** A receiver behind a proxy, as https://erp.test and http://plain.test. */
const makeWorld = Effect.gen(function* () {
  const proxy = yield* makeProxy
  const receiver = yield* recording((_request, _body, response) => response.end(body), own)
  const plain = yield* recording(({ headers }, _body, response) => response.end(headers.host))
  proxy.hosts.set("erp.test:443", receiver.port).set("plain.test:80", plain.port)
  const dispatcherOf = (options: Partial<Client.Options> = {}) =>
    Client.makeDispatcher({
      proxies: through(proxy),
      connectTimeout: Duration.seconds(10),
      tls: { ca: own.cert },
      ...options
    })
  return { proxy, receiver, plain, dispatcherOf }
})

const get = (dispatcher: Dispatcher, url: string) =>
  Effect.tryPromise({
    try: async () => {
      const answer = await request(url, { dispatcher })
      return { status: answer.statusCode, text: await answer.body.text() }
    },
    catch: (error) => error
  })

const failureOf = Effect.fnUntraced(function* (dispatcher: Dispatcher, url = "https://erp.test/") {
  const error = yield* Effect.flip(get(dispatcher, url))
  assert.instanceOf(error, ProxyFailed)
  const { code, message, remedy } = error
  return { code, message, remedy }
})

describe("a request through a proxy", () => {
  test("goes through a tunnel, over TLS or not, which later requests use again", function* () {
    const { proxy, dispatcherOf } = yield* makeWorld
    const dispatcher = yield* dispatcherOf()
    for (const _ of [1, 2]) {
      assert.deepStrictEqual(yield* get(dispatcher, "https://erp.test/a"), { status: 200, text: body })
      assert.deepStrictEqual(yield* get(dispatcher, "http://plain.test/a"), { status: 200, text: "plain.test" })
    }
    assert.deepStrictEqual(proxy.tunnels, ["erp.test:443", "plain.test:80"])
    assert.strictEqual(proxy.forwarded, 0)
  })

  test("verifies the certificate of the receiver", function* () {
    const { dispatcherOf, proxy } = yield* makeWorld
    const distrusting = yield* dispatcherOf({ tls: {} })
    const { code, message, remedy } = yield* failureOf(distrusting)
    assert.strictEqual(code, "DEPTH_ZERO_SELF_SIGNED_CERT")
    assert.include(message, `the connection through the proxy 127.0.0.1:${proxy.port} failed`)
    assert.include(remedy, "requests.ca_file")
    proxy.hosts.set("other.test:443", proxy.hosts.get("erp.test:443")!)
    assert.strictEqual(
      (yield* failureOf(yield* dispatcherOf(), "https://other.test/")).code,
      "ERR_TLS_CERT_ALTNAME_INVALID"
    )
  })

  test("has user and password, and names neither when they are refused", function* () {
    const { proxy, dispatcherOf } = yield* makeWorld
    proxy.login = "us er:pa%20ss"
    const address = (password: string) => Redacted.make(`http://us%20er:${password}@127.0.0.1:${proxy.port}`)
    const proxies = (password: string) => ({ https: address(password), http: null, noProxy: "" })
    const right = yield* dispatcherOf({ proxies: proxies("pa%2520ss") })
    assert.strictEqual((yield* get(right, "https://erp.test/")).status, 200)
    const wrong = yield* failureOf(yield* dispatcherOf({ proxies: proxies("wrong4711") }))
    assert.deepStrictEqual(
      [wrong.code, wrong.message],
      ["ERR_PROXY_407", `the proxy 127.0.0.1:${proxy.port} refused the connection to erp.test:443 with status 407`]
    )
    assert.include(wrong.remedy, "requests.proxy_env")
    assert.notInclude(JSON.stringify(wrong), "wrong4711")
  })

  test("fails in the same way whatever the proxy does, and not with an answer", function* () {
    const { proxy, dispatcherOf } = yield* makeWorld
    const dispatcher = yield* dispatcherOf()
    for (const [refusal, code] of [
      [403, "ERR_PROXY_403"],
      [204, "ERR_PROXY_204"],
      [0, "ERR_PROXY_UNREACHABLE"]
    ] as const) {
      proxy.refusal = refusal
      assert.strictEqual((yield* failureOf(dispatcher)).code, code)
    }
    proxy.refusal = null
    assert.strictEqual((yield* failureOf(dispatcher, "https://unknown.test/")).code, "ERR_PROXY_502")
    proxy.refusal = -1
    const silent = yield* failureOf(yield* dispatcherOf({ connectTimeout: Duration.millis(100) }))
    assert.strictEqual(silent.code, "ERR_PROXY_UNREACHABLE")
    const nowhere = Redacted.make("http://user:secret4711@127.0.0.1:1")
    const away = yield* failureOf(yield* dispatcherOf({ proxies: { https: nowhere, http: null, noProxy: "" } }))
    assert.strictEqual(away.code, "ECONNREFUSED")
    assert.include(away.message, "the proxy 127.0.0.1:1 cannot be reached")
    assert.notInclude(JSON.stringify(away), "secret4711")
  })

  test("fails when the tunnel ends in the handshake or in the answer, and works again", function* () {
    const { proxy, dispatcherOf } = yield* makeWorld
    const dispatcher = yield* dispatcherOf()
    proxy.cuts.push(10, 20_000)
    for (const _ of [1, 2]) {
      assert.match(
        (yield* failureOf(dispatcher)).message,
        new RegExp(`^the connection through the proxy 127.0.0.1:${proxy.port} failed`)
      )
    }
    assert.strictEqual((yield* get(dispatcher, "https://erp.test/")).status, 200)
    assert.lengthOf(proxy.tunnels, 3)
  })

  test("keeps the limits of its caller", function* () {
    const { dispatcherOf } = yield* makeWorld
    const dispatcher = yield* dispatcherOf({ maxResponseSize: 1000 })
    assert.strictEqual((yield* failureOf(dispatcher)).code, "UND_ERR_RES_EXCEEDED_MAX_SIZE")
  })

  test("goes through a proxy that has TLS, if its certificate is right", function* () {
    const { proxy, dispatcherOf } = yield* makeWorld
    const foreign = certificate(["foreign.test"])
    const [right, wrong] = [yield* makeTls(proxy.port, own), yield* makeTls(proxy.port, foreign)]
    const dispatcherAt = (port: number) =>
      dispatcherOf({
        proxies: { https: Redacted.make(`https://localhost:${port}`), http: null, noProxy: "" },
        tls: { ca: [own.cert, foreign.cert] }
      })
    assert.strictEqual((yield* get(yield* dispatcherAt(right), "https://erp.test/")).status, 200)
    const failure = yield* failureOf(yield* dispatcherAt(wrong))
    assert.strictEqual(failure.code, "ERR_PROXY_UNREACHABLE")
    assert.include(failure.message, `the proxy localhost:${wrong} cannot be reached`)
  })

  test("is direct for the exceptions", function* () {
    const { proxy, plain, receiver, dispatcherOf } = yield* makeWorld
    const dispatcher = yield* dispatcherOf({ proxies: through(proxy, "127.0.0.1,localhost") })
    assert.strictEqual((yield* get(dispatcher, plain.url)).status, 200)
    assert.strictEqual((yield* get(dispatcher, receiver.url)).status, 200)
    const secureContext = createSecureContext({ ca: [...getCACertificates(), own.cert] })
    const without = yield* dispatcherOf({ proxies: null, tls: { secureContext } })
    assert.strictEqual((yield* get(without, receiver.url)).status, 200)
    assert.deepStrictEqual(proxy.tunnels, [])
  })

  test("asks for the checked address where there is a check", function* () {
    const { proxy, receiver, dispatcherOf } = yield* makeWorld
    proxy.hosts.set("93.184.216.34:443", receiver.port).set("[2606:4700::1111]:443", receiver.port)
    for (const address of ["93.184.216.34", "2606:4700::1111"]) {
      const dispatcher = yield* dispatcherOf({
        resolve: (host) => (host === "erp.test" ? Promise.resolve(address) : Promise.reject(new Error("refused")))
      })
      assert.strictEqual((yield* get(dispatcher, "https://erp.test/")).status, 200)
      assert.strictEqual(String(yield* Effect.flip(get(dispatcher, "https://[::1]/"))), "Error: refused")
    }
    assert.deepStrictEqual(proxy.tunnels, ["93.184.216.34:443", "[2606:4700::1111]:443"])
  })
})

describe("the proxies of the environment", () => {
  const read = (variables: Readonly<Record<string, string>>) => {
    const problems: Array<string> = []
    const proxies = proxiesOfVariables((name) => variables[name], problems)
    const valueOf = (one: Redacted.Redacted | null | undefined) => (one ? Redacted.value(one) : null)
    return { https: valueOf(proxies?.https), http: valueOf(proxies?.http), noProxy: proxies?.noProxy ?? null, problems }
  }
  const always = "localhost,127.0.0.1,::1"

  it("are those of both cases, of which the lower one counts, with loopback excepted", () => {
    const none = { https: null, http: null, noProxy: null, problems: [] }
    assert.deepStrictEqual(read({ NO_PROXY: "a" }), none)
    assert.deepStrictEqual(read({ HTTPS_PROXY: "http://a:1", https_proxy: "b:2", NO_PROXY: " c, .d " }), {
      https: "http://b:2/",
      http: null,
      noProxy: `${always},c,.d`,
      problems: []
    })
    assert.deepStrictEqual(read({ HTTP_PROXY: "https://a" }), {
      https: "https://a/",
      http: "https://a/",
      noProxy: always,
      problems: []
    })
  })

  it("are refused without repeating them", () => {
    for (const text of ["socks5://a:1", "http://", "http://a:secret@", "http://a/path", "http://a%:b@c", "a b"]) {
      assert.deepStrictEqual(read({ HTTPS_PROXY: text }).problems, [
        "HTTPS_PROXY: expected the address of a proxy, such as http://proxy.example.com:3128"
      ])
    }
  })
})

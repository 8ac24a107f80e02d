/** Private addresses in every spelling, and the check at the time of the connection. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { isPrivate } from "../../src/delivery/PrivateAddress.ts"
import * as Transport from "../../src/delivery/Transport.ts"
import { makeReceiver } from "../support/feeding.ts"
import { makeProxy, through } from "../support/proxy.ts"
import { test } from "../support/suite.ts"
import { assertNone } from "../support/assertions.ts"

const words = (text: string) => text.trim().split(/\s+/)

describe("a private address", () => {
  it("is known in every spelling", () => {
    const refused = words(`
      0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1 172.31.255.255 192.168.1.1
      198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::127.0.0.1
      64:ff9b::7f00:1 2002:7f00:1:: 2001:db8::1 fc00::1 fd12:3456::1 fe80::1%eth0 ff02::1 example.com`)
    assertNone(["", ...refused], (address) => !isPrivate(address))
    const accepted = ["8.8.8.8", "172.32.0.1", "100.128.0.1", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"]
    assert.deepStrictEqual(accepted.filter(isPrivate), [])
  })

  test("is refused when it is connected to, by address and by name", function* () {
    const receiver = yield* makeReceiver
    const transport = yield* Transport.make(null)
    const send = (host: string, allowPrivate: boolean) =>
      transport.send({ url: `http://${host}:${receiver.port}/`, allowPrivate, headers: {}, body: "{}" })
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"]) {
      assert.match((yield* Effect.flip(send(host, false))).message, /private; allow it for this endpoint/, host)
    }
    assert.lengthOf(receiver.received, 0)
    assert.strictEqual((yield* send("localhost", true)).status, 204)
  })

  test("is refused behind a proxy, which gets the checked address", function* () {
    const receiver = yield* makeReceiver
    const proxy = yield* makeProxy
    const transport = yield* Transport.make(through(proxy))
    const send = (host: string, allowPrivate: boolean) =>
      transport.send({ url: `http://${host}/`, allowPrivate, headers: {}, body: "{}" })
    for (const host of ["10.1.2.3", "127.0.0.2", "localhost", "[::ffff:169.254.169.254]", "2130706433"]) {
      assert.match((yield* Effect.flip(send(host, false))).message, /private; allow it for this endpoint/, host)
    }
    const unknown = yield* Effect.flip(send("endpoint.invalid", false))
    assert.match(
      unknown.message,
      /^endpoint\.invalid has no address that can be checked.*; allow_private for this endpoint leaves/
    )
    assert.deepStrictEqual(proxy.tunnels, [])
    proxy.hosts.set("93.184.216.34:80", receiver.port).set("127.0.0.2:80", receiver.port)
    assert.strictEqual((yield* send("93.184.216.34", false)).status, 204)
    assert.strictEqual((yield* send("127.0.0.2", true)).status, 204)
    proxy.login = "user:secret4711"
    const refused = yield* Effect.flip(send("93.184.216.35", false))
    assert.match(refused.message, /^the proxy 127\.0\.0\.1:\d+ refused .* status 407; put the user/)
  })

  test("follows no redirect, and reads Retry-After", function* () {
    const receiver = yield* makeReceiver
    const transport = yield* Transport.make(null)
    receiver.answer = () => ({ status: 302, headers: { location: receiver.url, "retry-after": "7" } })
    const answer = yield* transport.send({ url: receiver.url, allowPrivate: true, headers: {}, body: "{}" })
    assert.deepStrictEqual(answer, { status: 302, retryAfterMs: 7000 })
    assert.lengthOf(receiver.received, 1)
    receiver.answer = () => null
    assert.match(
      (yield* Effect.flip(transport.send({ url: receiver.url, allowPrivate: true, headers: {}, body: "" }))).message,
      /closed|reset|other side/i
    )
  })
})

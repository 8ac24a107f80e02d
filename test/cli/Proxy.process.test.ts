/** The commands on a machine that reaches the service, a receiver and a collector only through a proxy. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { certificate } from "../support/certificate.ts"
import { collector } from "../support/collector.ts"
import { liveTest } from "../support/live.ts"
import { makeProxy, makeTls } from "../support/proxy.ts"
import { recording } from "../support/recording.ts"
import { makeWorld } from "../support/world.ts"

const secret = "a-password-of-the-proxy-4711"

liveTest("requests leave through the proxy, and a proxy that fails loses no row", function* () {
  const world = yield* makeWorld({ data: ["--data", "demo"], company: 1 })
  const own = certificate(["erp.test"])
  writeFileSync(join(world.folder, "authority.pem"), own.cert)
  const collected = yield* collector
  const received: Array<string> = []
  const receiver = yield* recording((_request, body, response) => {
    received.push(body.toString("utf8"))
    response.end()
  })
  const proxy = yield* makeProxy
  proxy.login = `north:${secret}`
  proxy.hosts
    .set("erp.test:443", yield* makeTls(Number(new URL(world.reference.baseUrl).port), own))
    .set("alerts.test:80", receiver.port)
    .set("collector.test:80", Number(new URL(collected.url).port))
  const address = (password: string) => `http://north:${password}@127.0.0.1:${proxy.port}`
  const env = {
    SERVICE_API_URL: "https://erp.test/!/api/v2",
    HTTPS_PROXY: address(secret),
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector.test",
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
  }
  world.configure(`requests: { ca_file: authority.pem, attempts_max: 3 }
paging: { page_size: 20 }
allow_http: true
alerts: { routes: [{ name: team, http: { url: "http://alerts.test/" } }] }
`)
  const outputs: Array<string> = []
  const run = Effect.fnUntraced(function* (code: number, args: ReadonlyArray<string>, more = {}) {
    const done = yield* world.run(args, { ...env, ...more })
    outputs.push(done.stdout, done.stderr)
    assert.strictEqual(done.code, code, `${args.join(" ")}: ${done.stdout}${done.stderr}`)
    return done
  })

  // The tunnel ends within an answer, twice.
  proxy.cuts.push(12_000, 8_000)
  yield* run(0, ["sync", "customers", "--json"])
  const compared = yield* world.compare("customers")
  assert.deepStrictEqual([compared.differences, compared.warehouse], [[], compared.source])
  const [first] = yield* world.query<{ retries: number }>("select sum(retries)::int as retries from tributary.runs")
  assert.deepStrictEqual([first!.retries, proxy.cut], [2, 2])
  assert.isTrue(
    proxy.tunnels.every((host) => host === "erp.test:443"),
    "http addresses have no proxy"
  )
  assert.lengthOf(collected.posts, 0)

  yield* run(0, ["sync", "customers"], { HTTP_PROXY: address(secret), no_proxy: "intern.test" })
  assert.isNotEmpty(collected.spans())
  yield* run(0, ["alerts", "test"], { HTTP_PROXY: address(secret) })
  assert.lengthOf(received, 1)
  const doctor = (yield* run(0, ["doctor"])).stdout
  assert.match(doctor, /address +https:\/\/erp\.test\/!\/api\/v2: it answers/)
  assert.match(doctor, /certificate +https:\/\/erp\.test\/!\/api\/v2: the certificate is valid/)

  const refused = yield* run(5, ["sync", "customers"], { HTTPS_PROXY: address("wrong") })
  assert.include(
    refused.stderr,
    `the proxy 127.0.0.1:${proxy.port} refused the connection to erp.test:443 with status 407`
  )
  assert.include(refused.stderr, "requests.proxy_env")
  const examined = yield* run(5, ["doctor"], { HTTPS_PROXY: address("wrong") })
  assert.match(
    examined.stdout,
    /FAILED +address .*refused the connection to erp\.test:443 with status 407\n +-> put the user/
  )
  proxy.login = null
  const away = yield* run(5, ["sync", "customers"], { HTTPS_PROXY: `http://north:${secret}@127.0.0.1:1` })
  assert.include(away.stderr, "the proxy 127.0.0.1:1 cannot be reached")
  const wrong = yield* run(2, ["sync", "customers"], { HTTPS_PROXY: `socks5://north:${secret}@127.0.0.1` })
  assert.include(wrong.stderr, "HTTPS_PROXY: expected the address of a proxy")
  // The reference server on loopback needs no proxy.
  yield* run(0, ["sync", "customers", "--accept-new-source"], {
    SERVICE_API_URL: world.reference.baseUrl,
    HTTPS_PROXY: "http://127.0.0.1:1",
    HTTP_PROXY: "http://127.0.0.1:1"
  })
  yield* run(5, ["sync", "customers"], { NO_PROXY: "erp.test" })

  assert.notInclude(outputs.join("\n"), secret)
  assert.notInclude(collected.posts.map(({ text }) => text).join("\n"), secret)
})

/** The listeners beyond loopback: what is refused, who may control the server, TLS, and links in answers. */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { request as httpRequest } from "node:http"
import type { IncomingHttpHeaders } from "node:http"
import { request as httpsRequest } from "node:https"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted } from "effect"
import { afterAll, assert, describe, it } from "vitest"
import { networkProblem } from "../../connectors/service-v2/reference-server/http/access.ts"
import type { NetworkOptions } from "../../connectors/service-v2/reference-server/http/access.ts"
import { selfSigned } from "../../connectors/service-v2/reference-server/http/certificate.ts"
import { start } from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import type {
  ReferenceServerOptions,
  RunningServer
} from "../../connectors/service-v2/reference-server/ReferenceServer.ts"
import type { Json } from "./support.ts"

const controlToken = Redacted.make("control-token-of-a-test")
const bearer = `Bearer ${Redacted.value(controlToken)}`

const folder = mkdtempSync(join(tmpdir(), "network-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs `work` with a server; both end together. */
const withServer = <A>(
  options: Partial<ReferenceServerOptions>,
  work: (server: RunningServer) => Promise<A>
): Promise<A> =>
  start({ port: 0, controlPort: 0, data: "empty", ...options }).pipe(
    Effect.flatMap((server) => Effect.promise(() => work(server))),
    Effect.scoped,
    Effect.runPromise
  )

const failureOf = (options: Partial<ReferenceServerOptions>): Promise<string> =>
  start({ port: 0, controlPort: 0, data: "empty", ...options }).pipe(
    Effect.flip,
    Effect.map(({ message }) => message),
    Effect.scoped,
    Effect.runPromise
  )

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly ca?: string | null
}

/** A request with any Host header, over HTTP or HTTPS. */
const send = (url: string, { method = "GET", headers = {}, body, ca = null }: Sent = {}) =>
  new Promise<{
    readonly status: number
    readonly headers: IncomingHttpHeaders
    readonly text: string
    readonly body: Json
  }>((resolve, reject) => {
    const make = url.startsWith("https:") ? httpsRequest : httpRequest
    const sent = make(url, { method, headers, agent: false, ...(ca === null ? {} : { ca }) }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("error", reject)
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString()
        const parsed = text.startsWith("{") ? (JSON.parse(text) as Json) : {}
        resolve({ status: response.statusCode!, headers: response.headers, text, body: parsed })
      })
    })
    sent.on("error", reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

/** A token of the API. */
const issue = async (controlUrl: string, more: Sent = {}) => {
  const { body } = await send(`${controlUrl}/tokens`, {
    ...more,
    method: "POST",
    body: { company: 1, scopes: ["*"] }
  })
  return `Bearer ${String(body["token"])}`
}

/** Sends bytes and reads until the server closes. */
const raw = (url: string, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text))
    let answer = ""
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
    socket.on("close", () => resolve(answer))
    socket.on("error", reject)
  })

describe("unsafe combinations", () => {
  const refused: ReadonlyArray<readonly [options: NetworkOptions, reason: RegExp]> = [
    [{ controlHost: "0.0.0.0", tls: "self-signed" }, /set REFERENCE_SERVER_CONTROL_TOKEN/],
    [{ controlHost: "192.168.1.5", allowHttp: true }, /set REFERENCE_SERVER_CONTROL_TOKEN/],
    [{ controlHost: "localhost.example.com", allowHttp: true }, /set REFERENCE_SERVER_CONTROL_TOKEN/],
    [{ controlHost: "0.0.0.0", controlToken }, /over plain HTTP/],
    [{ host: "::" }, /sent to :: over plain HTTP/],
    [{ tls: { cert: "cert.pem", key: undefined } }, /certificate without a key/],
    [{ tls: { cert: undefined, key: "key.pem" } }, /key without a certificate/],
    [{ controlToken: Redacted.make("short") }, /at least 16/],
    [{ controlToken: Redacted.make("a token with spaces") }, /at least 16/],
    [{ advertiseUrl: "erp.test" }, /advertised address/],
    [{ advertiseUrl: "http://a:b@erp.test" }, /advertised address/],
    [{ advertiseUrl: "http://erp.test?x=1" }, /advertised address/]
  ]

  it.each(refused)("are refused with the reason: %j", (options, reason) => {
    assert.match(networkProblem(options) ?? "accepted", reason)
  })

  const accepted: ReadonlyArray<NetworkOptions> = [
    {},
    { host: "localhost", controlHost: "::1" },
    { host: "127.0.0.2" },
    { host: "0.0.0.0", allowHttp: true },
    { host: "0.0.0.0", tls: "self-signed" },
    { host: "[::1]" },
    { controlHost: "0.0.0.0", controlToken, tls: "self-signed" },
    { host: "::", controlHost: "::", controlToken, allowHttp: true, advertiseUrl: "https://erp.test:8443/base/" }
  ]

  it.each(accepted)("are not these: %j", (options) => {
    assert.isNull(networkProblem(options))
  })

  it("end the start before a port is open", async () => {
    assert.match(
      await failureOf({ controlHost: "0.0.0.0" }),
      /^the reference server does not start: the control plane on/
    )
    assert.match(await failureOf({ tls: { cert: "none.pem", key: "none.pem" } }), /TLS: ENOENT/)
    assert.match(await failureOf({ load: "none.ndjson" }), /none\.ndjson: ENOENT/)
    assert.match(await failureOf({ saveOnExit: "/nowhere/state.ndjson" }), /cannot be saved: ENOENT/)
    assert.match(await failureOf({ scenario: "none" }), /there is no scenario none/)
    assert.match(await failureOf({ saveOnExit: folder }), /cannot be saved: .* is a directory/)
    assert.match(await failureOf({ host: "", allowHttp: true }), /an address is empty/)
    assert.match(await failureOf({ host: "192.0.2.1", allowHttp: true }), /192\.0\.2\.1 is no address of this machine/)
    const wrong = join(folder, "wrong.ndjson")
    writeFileSync(wrong, '{"format":"tributary-reference-server","version":1}\n{"kind":"clock"}\n')
    assert.match(await failureOf({ load: wrong }), /wrong\.ndjson: line 2: stopped must be/)
  })
})

describe("the control plane", () => {
  it("needs its token on every call, in the same words for each wrong one", () =>
    withServer({ host: "0.0.0.0", controlHost: "0.0.0.0", allowHttp: true, controlToken }, async ({ controlUrl }) => {
      for (const authorization of [
        undefined,
        "",
        "Bearer x",
        `${bearer}x`,
        `Basic ${btoa("a:b")}`,
        bearer.slice(0, -1)
      ]) {
        const headers = authorization === undefined ? {} : { authorization }
        for (const path of ["/clock", "/ui/", "/openapi.json", "/worlds/a/clock"]) {
          const answer = await send(`${controlUrl}${path}`, { headers })
          assert.strictEqual(answer.status, 401, `${path} ${authorization}`)
          // A browser prompts for the token of the pages.
          const scheme = path === "/ui/" ? 'Basic realm="reference server"' : "Bearer"
          assert.strictEqual(answer.headers["www-authenticate"], scheme, path)
        }
      }
      const answer = await send(`${controlUrl}/clock`, { headers: { authorization: bearer, host: "erp.test" } })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.deepStrictEqual((await send(`${controlUrl}/readyz`)).body, { ready: true })
    }))

  it("opens its pages to a browser that knows the token as a password, and only them", () =>
    withServer({ host: "0.0.0.0", controlHost: "0.0.0.0", allowHttp: true, controlToken }, async ({ controlUrl }) => {
      const { host } = new URL(controlUrl)
      const authorization = `Basic ${btoa(`any:${bearer.replace(/^Bearer /, "")}`)}`
      const page = await fetch(`${controlUrl}/ui/clock`, { headers: { authorization } })
      assert.strictEqual(page.status, 200)
      const formToken = /name="form_token" value="([^"]+)"/.exec(await page.text())?.[1] ?? ""
      assert.isAtLeast(formToken.length, 30)
      const submit = (origin: string) =>
        fetch(`${controlUrl}/ui/do/clock`, {
          method: "POST",
          redirect: "manual",
          headers: { authorization, origin, "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams({ manual: "true", form_token: formToken }).toString()
        })
      assert.strictEqual((await submit("http://other.example")).status, 403)
      assert.strictEqual((await submit(`http://${host}`)).status, 303)
      assert.strictEqual((await send(`${controlUrl}/clock`, { headers: { authorization } })).status, 401)
      const clock = await send(`${controlUrl}/clock`, { headers: { authorization: bearer } })
      assert.deepInclude(clock.body, { manual: true })
    }))

  it("refuses a caller without the token before it reads the body", () =>
    withServer({ controlToken }, async ({ controlUrl }) => {
      // The rest of the body never arrives.
      const head = "POST /records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000000\r\n\r\nx"
      assert.match(await raw(controlUrl, head), /^HTTP\/1\.1 401 /)
    }))

  it("answers on loopback only requests for a loopback name, so that no web page reaches it", () =>
    withServer({}, async ({ controlUrl }) => {
      for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0", "[::2]"]) {
        assert.strictEqual((await send(`${controlUrl}/clock`, { headers: { host } })).status, 403, host)
      }
      for (const host of ["localhost", "localhost:1", "127.0.0.1:8124", "127.9.9.9", "[::1]:80", "LOCALHOST"]) {
        assert.strictEqual((await send(`${controlUrl}/clock`, { headers: { host } })).status, 200, host)
      }
    }))
})

describe("links in answers", () => {
  const linkOf = async ({ baseUrl, controlUrl }: RunningServer, host: string | null) => {
    await send(`${controlUrl}/dialect`, { method: "PUT", body: { paging: "link" } })
    const authorization = await issue(controlUrl)
    const headers = { authorization, ...(host === null ? {} : { host }) }
    const local = baseUrl.replace(/^https?:\/\/[^/]*(?:\/erp)?/, reached)
    const answer = await send(`${local}/invoiceterms?limit=1`, { headers })
    assert.strictEqual(answer.status, 200, answer.text)
    return String(answer.headers["link"])
  }
  let reached = ""

  it("have the address by which the client came, on every interface", () =>
    withServer({ host: "0.0.0.0", allowHttp: true }, async (server) => {
      reached = new URL(server.baseUrl).origin
      assert.match(reached, /^http:\/\/127\.0\.0\.1:\d+$/)
      assert.match(await linkOf(server, null), new RegExp(`^<${reached}/!/api/v2/invoiceterms\\?`))
      assert.match(
        await linkOf(server, "mapped.test:32768"),
        /^<http:\/\/mapped\.test:32768\/!\/api\/v2\/invoiceterms\?/
      )
      assert.match(await linkOf(server, "no host, but <text>"), new RegExp(`^<${reached}/`))
    }))

  it("have the advertised address, whatever the client sends", () =>
    withServer({ advertiseUrl: "https://api.test/erp/" }, async (server) => {
      assert.strictEqual(server.baseUrl, "https://api.test/erp/!/api/v2")
      const { body } = await send(`${server.controlUrl}/worlds`, { method: "POST", body: { name: "w" } })
      assert.strictEqual(body["baseUrl"], "https://api.test/erp/worlds/w/!/api/v2")
      assert.strictEqual(body["controlUrl"], `${server.controlUrl}/worlds/w`)
    }))

  it("do not follow the Host header on loopback", () =>
    withServer({}, async (server) => {
      reached = new URL(server.baseUrl).origin
      assert.match(await linkOf(server, "evil.example"), new RegExp(`^<${reached}/`))
    }))
})

describe("TLS", () => {
  it("serves both ports with a certificate of its own, which the client trusts", () =>
    withServer({ tls: "self-signed", host: "0.0.0.0", advertiseUrl: "https://erp.test" }, async (server) => {
      const { controlUrl, certificate: ca } = server
      assert.match(controlUrl, /^https:\/\/127\.0\.0\.1:\d+$/)
      assert.isNotNull(ca)
      assert.strictEqual((await send(`${controlUrl}/readyz`, { ca })).status, 200)
      assert.instanceOf(await send(`${controlUrl}/readyz`).catch((problem: Error) => problem), Error)
      const authorization = await issue(controlUrl, { ca })
      await send(`${controlUrl}/faults`, { ca, method: "POST", body: { rules: [{ kind: "reset", times: 1 }] } })
      assert.strictEqual(server.baseUrl, "https://erp.test/!/api/v2")
      assert.match(authorization, /^Bearer svct_/)
    }))

  it("serves with the files of a certificate, and refuses a key of another one", async () => {
    const [one, other] = [await selfSigned([]), await selfSigned([])]
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }
    const cert = file("cert.pem", one.cert)
    const tls = { cert, key: file("key.pem", one.key) }
    await withServer({ tls }, async ({ baseUrl, controlUrl, certificate }) => {
      assert.isNull(certificate)
      const ca = one.cert
      const authorization = await issue(controlUrl, { ca })
      const me = () => send(`${baseUrl}/me`, { ca, headers: { authorization } })
      assert.strictEqual((await me()).status, 200)
      for (const kind of ["reset", "dropResponse", "truncate"]) {
        await send(`${controlUrl}/faults`, { ca, method: "POST", body: { rules: [{ kind, times: 1 }] } })
        assert.instanceOf(await me().catch((problem: Error) => problem), Error, kind)
        assert.strictEqual((await me()).status, 200)
      }
    })
    assert.match(await failureOf({ tls: { cert, key: file("other.pem", other.key) } }), /TLS: .*key/)
  })
})

describe("a server with a snapshot file", () => {
  it("saves at its end what the next one loads, byte for byte, for its owner only", async () => {
    const file = join(folder, "state.ndjson")
    let authorization = ""
    await withServer({ scenario: "ties", saveOnExit: file }, async ({ controlUrl }) => {
      await send(`${controlUrl}/clock`, { method: "POST", body: { manual: true } })
      authorization = await issue(controlUrl)
      await send(`${controlUrl}/worlds`, { method: "POST", body: {} })
      const body = { company: 1, resource: "salesmen", records: [{ name: "last" }] }
      await send(`${controlUrl}/records`, { method: "POST", body })
    })
    const text = readFileSync(file, "utf8")
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    for (const name of ["TIE-00600", '"name":"last"']) assert.include(text, name)
    const copy = join(folder, "copy.ndjson")
    await withServer({ load: file, saveOnExit: copy }, async ({ controlUrl }) => {
      assert.strictEqual((await send(`${controlUrl}/readyz`)).status, 200)
    })
    assert.strictEqual(readFileSync(copy, "utf8"), text)
    await withServer({ load: file }, async ({ baseUrl, controlUrl }) => {
      assert.strictEqual((await send(`${baseUrl}/me`, { headers: { authorization } })).status, 200)
      await send(`${controlUrl}/reset`, { method: "POST", body: { data: "empty" } })
      assert.strictEqual((await send(`${baseUrl}/me`, { headers: { authorization } })).status, 401)
      const restored = await send(`${controlUrl}/restore`, { method: "POST", body: { name: "loaded" } })
      assert.strictEqual(restored.status, 200, restored.text)
      assert.strictEqual((await send(`${baseUrl}/me`, { headers: { authorization } })).status, 200)
    })
  })

  it("follows no link that lies at the place of its unfinished file, and leaves none behind", async () => {
    const file = join(folder, "linked.ndjson")
    const other = join(folder, "other.txt")
    writeFileSync(other, "of another")
    symlinkSync(other, `${file}.part`)
    await withServer({ saveOnExit: file }, () => Promise.resolve())
    assert.strictEqual(readFileSync(other, "utf8"), "of another")
    assert.include(readFileSync(file, "utf8"), '"kind":"end"')
    assert.isFalse(existsSync(`${file}.part`))
  })
})

describe("the listener", () => {
  it("breaks responses as the faults say", () =>
    withServer({}, async ({ baseUrl, controlUrl }) => {
      const headers = { authorization: await issue(controlUrl) }
      const under = async (rule: Json) => {
        await send(`${controlUrl}/faults`, { method: "POST", body: { rules: [{ times: 1, ...rule }] } })
        return fetch(`${baseUrl}/invoiceterms`, { headers }).then(
          (response) => response.text(),
          () => null
        )
      }
      const length = (text: string | null) => text?.replace(/"_meta".*$/, "")
      const plain = await under({ kind: "delay", ms: 5 })
      assert.include(plain, '"data":[')
      assert.strictEqual(length(await under({ kind: "slowBody", ms: 1 })), length(plain))
      for (const kind of ["reset", "dropResponse"]) assert.isNull(await under({ kind }))
      assert.match((await under({ kind: "html" }))!, /^<!doctype html>/)
      const garbage = await under({ kind: "garbage" })
      assert.throws(() => JSON.parse(garbage!) as unknown)
    }))

  it("answers 400 to bytes that are not a request, and to a body that is too long", () =>
    withServer({}, async ({ baseUrl, controlUrl }) => {
      const head = `POST /!/api/v2/salesmen HTTP/1.1\r\nHost: x\r\nAuthorization: ${await issue(controlUrl)}\r\n`
      for (const text of [
        "nonsense\r\n\r\n",
        // The rest of the body never arrives. The server responds, then closes the connection.
        `${head}Content-Length: 9000000\r\n\r\n${"x".repeat(8_500_000)}`
      ]) {
        const answer = await raw(baseUrl, text)
        assert.match(answer, /^HTTP\/1\.1 400 /)
        assert.match(answer, /"code":"invalid_request"/)
      }
      assert.match(await raw(baseUrl, "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n"), /^HTTP\/1\.1 400 /)
    }))

  it("accepts a base path with an encoded mark", () =>
    withServer({}, async ({ baseUrl, controlUrl }) => {
      const headers = { authorization: await issue(controlUrl) }
      assert.strictEqual((await send(`${new URL(baseUrl).origin}/%21/api/v2/me`, { headers })).status, 200)
    }))
})

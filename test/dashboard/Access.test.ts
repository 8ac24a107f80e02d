import { request as httpsRequest } from "node:https"
import { createHash, createHmac, hkdfSync } from "node:crypto"
import { connect as connectTcp } from "node:net"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Access from "../../src/dashboard/Access.ts"
import * as AccessTokens from "../../src/dashboard/AccessTokens.ts"
import type { AccessRequest } from "../../src/dashboard/AccessDecision.ts"
import * as SessionCookies from "../../src/dashboard/SessionCookies.ts"
import { make as makeSessions, type Sessions } from "../../src/dashboard/Sessions.ts"
import { certificate } from "../support/certificate.ts"
import { execute, layerPages, layerWarehouse, sql } from "../support/postgres.ts"
import {
  acting,
  ask,
  cookieOf,
  listening,
  password,
  post,
  type Reply,
  seed,
  shownCompany,
  showing,
  tokenOf,
  withPassword
} from "../support/pages.ts"
import { suite, test } from "../support/suite.ts"
import { temporaryFolder } from "../support/servers.ts"

const companies = [shownCompany("north", 1n)]
const warehouse = Layer.effectDiscard(seed([["north", 1]], ["things"], 1)).pipe(
  Layer.provideMerge(layerPages),
  Layer.merge(SecureRandom.layerWebCrypto)
)

/** Logs in as a browser does. Returns the cookie. */
const logIn = Effect.fnUntraced(function* (url: string, word: string = password) {
  const form = yield* ask(`${url}/login`)
  const reply = yield* post(`${url}/login`, { form_token: tokenOf(form.text), password: word, next: "/runs" })
  return { reply, cookie: cookieOf(reply, "tributary_session") }
})

const addToken = (name: string) => AccessTokens.add(name, "a test")

/** A new token of a program. */
const newToken = (name: string) => Effect.map(addToken(name), (token) => token ?? assert.fail(`${name} is in use`))

const requestedTasks = Effect.map(
  sql<{ n: number }>`select count(*)::int as n from tributary.tasks where requested_at is not null`,
  ([row]) => row!.n
)

/** The fields of a form, from its confirmation page. */
const syncForm = Effect.fnUntraced(function* (url: string, cookie?: string) {
  const page = yield* ask(`${url}/confirm/sync?company=north&resource=things`, {
    headers: cookie === undefined ? {} : { cookie }
  })
  return { form_token: tokenOf(page.text), company: "north", resource: "things" }
})

suite("dashboard access", warehouse, (test) => {
  describe("without a password", () => {
    test("is granted on this machine under its own names, and for a link from another site", function* () {
      const url = yield* showing(companies)
      const { port } = new URL(url)
      const as = (headers: Record<string, string>) => Effect.map(ask(url, { headers }), ({ status }) => status)
      const hosts: ReadonlyArray<readonly [status: number, hosts: ReadonlyArray<string>]> = [
        [200, [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]],
        [403, ["127.0.0.1", "localhost", `127.0.0.1:${Number(port) + 1}`]],
        [403, [`attacker.example:${port}`, `127.0.0.1.attacker.example:${port}`]]
      ]
      for (const [status, names] of hosts) {
        for (const host of names) assert.strictEqual(yield* as({ host }), status, host)
      }
      for (const header of ["x-forwarded-for", "x-forwarded-host", "forwarded", "via", "x-real-ip"]) {
        const reply = yield* ask(url, { headers: { [header]: "127.0.0.1" } })
        assert.strictEqual(reply.status, 403, header)
        assert.include(reply.text, "set a password")
        assert.notInclude(reply.text, "things")
      }
      for (const site of ["cross-site", "same-site"]) {
        for (const [mode, dest, status] of [
          ["navigate", "document", 200],
          ["no-cors", "image", 403],
          ["cors", "empty", 403],
          ["navigate", "iframe", 403]
        ] as const) {
          const headers = { "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest }
          assert.strictEqual(yield* as(headers), status, `${site} ${dest}`)
        }
      }
      assert.strictEqual(yield* as({ "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" }), 200)
    })

    test("changes nothing without a session, as through a proxy without headers", function* () {
      const page = yield* acting(companies)
      const { port } = new URL(page.url)
      // The request of a plain proxy_pass: the Host header of the page itself, and no forwarding headers.
      const host = { host: `127.0.0.1:${port}` }
      const question = yield* ask(`${page.url}/confirm/sync?company=north&resource=things`, { headers: host })
      assert.strictEqual(question.status, 200)
      assert.notInclude(question.text, "form_token")
      assert.include(question.text, "Reading only: to act, open the link that tributary serve link prints")
      yield* execute("update tributary.tasks set requested_at = null")
      const fields = { company: "north", resource: "things" }
      const from = { ...host, origin: page.url }
      for (const form_token of ["", "guessed"]) {
        const reply = yield* post(`${page.url}/do/sync`, { ...fields, form_token }, from)
        assert.strictEqual(reply.status, 403)
        assert.include(reply.text, "Reading only")
      }
      for (const token of ["", "guessed", "undefined", "null"]) {
        const reply = yield* ask(`${page.url}/open?token=${token}`, { headers: host })
        assert.deepStrictEqual([reply.status, reply.headers["set-cookie"]], [403, undefined], token)
      }
      assert.strictEqual(yield* requestedTasks, 0)
      // The link itself authorises the session.
      const form = yield* syncForm(page.url, page.headers.cookie)
      assert.strictEqual((yield* post(`${page.url}/do/sync`, form, page.headers)).status, 303)
      assert.strictEqual(yield* requestedTasks, 1)
      const plain = yield* Effect.callback<string>((resume) => {
        const socket = connectTcp(Number(port), "127.0.0.1", () =>
          socket.write(`GET / HTTP/1.0\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
        )
        let text = ""
        socket.on("data", (bytes: Buffer) => (text += bytes.toString()))
        socket.on("close", () => resume(Effect.succeed(text)))
      })
      assert.match(plain, /^HTTP\/1\.1 403/)
    })

    test("accepts a link of the installation, and forms of a session only", function* () {
      const page = yield* acting(companies)
      const other = yield* listening()
      yield* Effect.forkScoped(other.connect(() => companies))
      assert.strictEqual((yield* ask(`${page.url}/login`)).status, 404)
      const linked = yield* Effect.repeat(other.link, { until: (link) => link !== null, times: 50_000 })
      const { pathname, search } = new URL(linked ?? "")
      // Every process of the warehouse has the same key; a changed link has no signature.
      assert.strictEqual((yield* ask(`${page.url}${pathname}${search}`)).status, 303)
      assert.strictEqual((yield* ask(`${page.url}${pathname}${search.replace(/=\d/, "=9")}`)).status, 403)
      const form = yield* syncForm(page.url, page.headers.cookie)
      assert.strictEqual((yield* post(`${page.url}/do/sync`, form)).status, 403)
      assert.strictEqual(
        (yield* post(`${page.url}/do/sync`, form, { ...page.headers, host: "attacker.example" })).status,
        403
      )
      assert.strictEqual((yield* post(`${page.url}/do/sync`, { ...form, form_token: "x" }, page.headers)).status, 403)
      const overview = yield* ask(page.url, page)
      yield* post(`${page.url}/logout`, { form_token: tokenOf(overview.text) }, page.headers)
      assert.strictEqual((yield* post(`${page.url}/do/sync`, form, page.headers)).status, 403)
    })
  })

  describe("with a password", () => {
    test("shows no page to a request without a session", function* () {
      const url = yield* showing(companies, withPassword)
      for (const path of ["/", "/runs", "/companies/north/things", "/nothing", "/confirm/sync?company=north"]) {
        const reply = yield* ask(`${url}${path}`)
        assert.strictEqual(reply.status, 303, path)
        assert.strictEqual(reply.headers.location, `/login?next=${encodeURIComponent(path)}`)
        assert.notInclude(reply.text, "things")
      }
      // A background request of a page is not answered with the login form.
      const again = yield* ask(url, { headers: { "hx-request": "true" } })
      assert.deepStrictEqual([again.status, again.headers["hx-redirect"]], [401, "/login?next=%2F"])
      const form = yield* ask(`${url}/login`)
      assert.include(form.text, "Log in")
      assert.notInclude(form.text, password)
      assert.notInclude(form.text, "<nav")
      // A page that another site linked is loaded again, so that the cookie is sent.
      const linked = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }
      const reply = yield* ask(`${url}/runs`, { headers: linked })
      assert.strictEqual(reply.status, 200)
      assert.include(reply.text, `http-equiv="refresh"`)
    })

    test("opens a session with an HttpOnly, SameSite cookie", function* () {
      const url = yield* showing(companies, withPassword)
      const { reply, cookie } = yield* logIn(url)
      assert.deepStrictEqual([reply.status, reply.headers.location], [303, "/runs"])
      const [set = ""] = reply.headers["set-cookie"] ?? []
      for (const part of ["HttpOnly", "SameSite=Strict", "Path=/"]) assert.include(set, part)
      for (const part of ["Secure", password]) assert.notInclude(set, part)
      const page = yield* ask(`${url}/companies/north/things`, { headers: { cookie } })
      assert.strictEqual(page.status, 200)
      assert.include(page.text, "Log out")
      // Every process with the same password accepts the session. A process with another password does not.
      const second = yield* showing(companies, withPassword)
      assert.strictEqual((yield* ask(second, { headers: { cookie } })).status, 200)
      for (const changed of [
        `${cookie}x`,
        cookie!.replace(/=s\.\d/, "=s.9"),
        cookie!.replace("~", "~A"),
        "tributary_session=~"
      ]) {
        assert.strictEqual((yield* ask(url, { headers: { cookie: changed } })).status, 303, changed)
      }
      const out = yield* post(`${url}/logout`, { form_token: tokenOf(page.text) }, { cookie })
      assert.strictEqual(out.headers.location, "/login")
      assert.match(String(out.headers["set-cookie"]), /tributary_session=;.*Max-Age=0/)
      // A copy of the cookie is invalid too, in every process.
      for (const one of [url, second]) assert.strictEqual((yield* ask(one, { headers: { cookie } })).status, 303)
      // A login leads to the pages only.
      const form = yield* ask(`${url}/login`)
      for (const next of [
        "https://attacker.example/",
        "//attacker.example",
        "/.//attacker.example",
        "/x/%2e%2e//attacker.example",
        "/\\attacker.example",
        "javascript:alert(1)"
      ]) {
        const opened = yield* post(`${url}/login`, { form_token: tokenOf(form.text), password, next })
        assert.strictEqual(opened.headers.location, "/", next)
      }
    })

    test("ends all sessions on request and when the password changes", function* () {
      const url = yield* showing(companies, withPassword)
      const status = (one: string, cookie: string | undefined) =>
        Effect.map(ask(one, { headers: { cookie: cookie ?? "" } }), (reply) => reply.status)
      const cookies = [(yield* logIn(url)).cookie, (yield* logIn(url)).cookie]
      const page = yield* ask(url, { headers: { cookie: cookies[0] } })
      yield* post(`${url}/logout`, { form_token: tokenOf(page.text), everywhere: "yes" }, { cookie: cookies[0] })
      for (const cookie of cookies) assert.strictEqual(yield* status(url, cookie), 303)
      const { cookie } = yield* logIn(url)
      assert.strictEqual(yield* status(url, cookie), 200)
      const changed = yield* showing(companies, { password: Redacted.make("another password") })
      assert.strictEqual(yield* status(changed, cookie), 303)
      assert.strictEqual(yield* status(url, cookie), 303)
      // The password is changed back for the tests that follow.
      const back = yield* showing(companies, withPassword)
      assert.strictEqual((yield* logIn(back)).reply.status, 303)
    })

    test("shows no value against which a guessed password could be checked", function* () {
      const one = yield* showing(companies, withPassword)
      const form = yield* ask(`${one}/login`)
      const { cookie = "" } = yield* logIn(one)
      const shown = [tokenOf(form.text), cookie.split("~")[1] ?? ""]
      // Every key that can be derived from the password alone, without the stored key.
      const keys = [
        new Uint8Array(hkdfSync("sha256", password, "", "tributary dashboard session 1", 32)),
        Buffer.from(password),
        createHash("sha256").update(password).digest()
      ]
      const [session = ""] = cookie.replace("tributary_session=", "").split("~")
      for (const key of keys) {
        for (const text of ["form\nlog in", `session\n${session}`, `form\n${session}`]) {
          assert.notInclude(shown, createHmac("sha256", key).update(text).digest("base64url"))
        }
      }
      // The values depend only on the stored key and the generation, not on the password.
      const [kept] = yield* sql<{ key: Uint8Array; generation: string }>`
          select session_key as key, password_generation as generation from tributary.warehouse`
      const signed = (text: string) => createHmac("sha256", kept!.key).update(text).digest("base64url")
      assert.deepStrictEqual(shown, [
        signed(`form\n${kept!.generation}\nlog in`),
        signed(`session\n${kept!.generation}\n${session}`)
      ])
      const rows = yield* sql.unsafe<{ text: string }>(
        `select i::text || coalesce((select string_agg(s::text, '') from tributary.dashboard_sessions s), '') as text
             from tributary.warehouse i`
      )
      for (const secret of [password, session, Buffer.from(password).toString("hex")]) {
        assert.notInclude(rows[0]!.text, secret)
      }
    })

    test("sets Secure cookies behind an https public URL or proxy", function* () {
      const url = yield* showing(companies, { ...withPassword, publicUrl: "https://tributary.example.com" })
      const form = yield* ask(`${url}/login`)
      const fields = { form_token: tokenOf(form.text), password }
      const front = { host: "inside:1", origin: "https://tributary.example.com", "x-forwarded-for": "203.0.113.9" }
      // Without public_url, the headers of the proxy decide.
      const behind = yield* showing(companies, withPassword)
      for (const [to, headers] of [
        [url, front],
        [behind, { "x-forwarded-proto": "https" }]
      ] as const) {
        const reply = yield* post(`${to}/login`, fields, headers)
        assert.strictEqual(reply.status, 303)
        assert.match(String(reply.headers["set-cookie"]), /Secure/)
      }
    })

    test("lets programs read with a token, whatever strangers try, and change nothing", function* () {
      const url = yield* showing(companies, withPassword)
      const bearer = { authorization: `Bearer ${yield* newToken("program")}` }
      const tries = [password, "wrong", `trb_${"A".repeat(43)}`, `${bearer.authorization.slice(7)}x`]
      for (let count = 0; count < 120; count += 1) {
        const wrong = yield* ask(url, { headers: { authorization: `Bearer ${tries[count % tries.length]}` } })
        assert.deepStrictEqual([wrong.status, wrong.headers["retry-after"]], [401, undefined])
      }
      // Nor do they count as guesses of the password.
      assert.strictEqual((yield* logIn(url)).reply.status, 303)
      assert.strictEqual((yield* ask(url, { headers: bearer })).status, 200)
      const wrong = yield* ask(url, { headers: { authorization: "Bearer wrong" } })
      assert.deepStrictEqual([wrong.status, wrong.headers["www-authenticate"]], [401, "Bearer"])
      assert.strictEqual((yield* ask(url, { headers: { authorization: `Basic ${password}` } })).status, 401)
      const page = yield* ask(`${url}/confirm/sync?company=north&resource=things`, { headers: bearer })
      const fields = { form_token: tokenOf(page.text), company: "north", resource: "things" }
      assert.strictEqual((yield* post(`${url}/do/sync`, fields, bearer)).status, 403)
      const listed = yield* AccessTokens.list
      assert.isNotNull(listed.find(({ name }) => name === "program")!.usedAt)
      assert.isNull(yield* addToken("program"), "a name is used once")
      yield* AccessTokens.revoke("program")
      assert.strictEqual((yield* ask(url, { headers: bearer })).status, 401)
    })

    test("accepts a link of the machine while strangers guess passwords", function* () {
      const url = yield* showing(companies, withPassword)
      const form = yield* ask(`${url}/login`)
      const guess = post(`${url}/login`, { form_token: tokenOf(form.text), password: "guess", next: "/" })
      for (let count = 0; count < 10; count += 1) assert.strictEqual((yield* guess).status, 401)
      assert.strictEqual((yield* logIn(url)).reply.status, 429)
      const context = yield* Effect.context<SqlClient.SqlClient | SecureRandom.SecureRandom>()
      const sessions = makeSessions(Effect.provideContext(context))
      const cookies = yield* SessionCookies.make(withPassword.password, sessions)
      const token = yield* Effect.flatMap(SessionCookies.loadKeys(cookies), SessionCookies.linkToken)
      const opened = yield* ask(`${url}/open?token=${token}`)
      const cookie = cookieOf(opened, "tributary_session") ?? ""
      assert.strictEqual((yield* ask(url, { headers: { cookie } })).status, 200)
      // A link of another password is refused.
      const other = yield* SessionCookies.make(null, sessions)
      const foreign = yield* Effect.flatMap(SessionCookies.loadKeys(other), SessionCookies.linkToken)
      assert.strictEqual((yield* ask(`${url}/open?token=${foreign}`)).status, 403)
    })

    test("accepts a change only from a page of the same session", function* () {
      const url = yield* showing(companies, withPassword)
      const { cookie } = yield* logIn(url)
      const { cookie: other } = yield* logIn(url)
      const fields = yield* syncForm(url, cookie)
      const before = yield* requestedTasks
      type Headers = Readonly<Record<string, string | undefined>>
      const postSync = (headers: Headers, body: Readonly<Record<string, string>>) => {
        const type = "application/x-www-form-urlencoded"
        const all: Headers = { "content-type": type, origin: new URL(url).origin, cookie, ...headers }
        const given = Object.entries(all).filter(([, value]) => value !== undefined)
        return Effect.map(
          ask(`${url}/do/sync`, {
            method: "POST",
            headers: Object.fromEntries(given),
            body: new URLSearchParams(body).toString()
          }),
          ({ status }) => status
        )
      }
      const chunked = { "transfer-encoding": "chunked" }
      const large = { ...fields, more: "x".repeat(70_000) }
      for (const [status, headers, form] of [
        [303, { cookie: undefined }],
        [403, { origin: "https://attacker.example" }],
        [403, { origin: "null" }],
        [403, { origin: undefined }],
        [403, { "sec-fetch-site": "cross-site" }],
        [403, { "sec-fetch-site": "same-site" }],
        // The token of another session, and none.
        [403, { cookie: other }],
        [403, {}, { company: "north", resource: "things" }],
        [415, { "content-type": "text/plain" }],
        [415, { "content-type": "multipart/form-data; boundary=x" }],
        [413, {}, large],
        [413, chunked, large]
      ] as ReadonlyArray<readonly [status: number, headers: Headers, form?: Readonly<Record<string, string>>]>) {
        assert.strictEqual(yield* postSync(headers, form ?? fields), status, JSON.stringify(headers))
      }
      assert.strictEqual(yield* requestedTasks, before)
      for (const headers of [{}, chunked]) {
        assert.strictEqual(yield* postSync({ "sec-fetch-site": "same-origin", ...headers }, fields), 303)
      }
      for (const method of ["PUT", "OPTIONS", "DELETE", "PATCH"]) {
        assert.strictEqual((yield* ask(url, { method, headers: chunked })).status, 405, method)
      }
    })
  })

  test("sends headers that forbid features that a page does not need", function* () {
    const url = yield* showing(companies)
    const replies: ReadonlyArray<Reply> = [
      yield* ask(url),
      yield* ask(`${url}/nothing`),
      yield* ask(url, { headers: { host: "x" } })
    ]
    for (const { headers } of replies) {
      assert.deepInclude(headers, {
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cache-control": "no-store"
      })
      assert.isUndefined(headers["x-powered-by"])
    }
  })

  test("over TLS sends Strict-Transport-Security", function* () {
    const folder = yield* temporaryFolder
    const tls = { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") }
    const { cert, key } = certificate(["localhost"])
    writeFileSync(tls.certificate, cert)
    writeFileSync(tls.key, key)
    const { url } = yield* listening({ ...withPassword, tls })
    assert.match(url, /^https:/)
    const headers = yield* Effect.callback<string | undefined>((resume) => {
      const request = httpsRequest(`${url}/login`, { ca: cert, servername: "localhost", agent: false }, (response) => {
        response.resume()
        resume(Effect.succeed(response.headers["strict-transport-security"]))
      })
      request.on("error", (error) => resume(Effect.die(error)))
      request.end()
    })
    assert.strictEqual(headers, "max-age=31536000")
  })
})

/** Sessions as the warehouse stores them, in memory. */
const inMemory = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const key = yield* random.randomBytes(32)
  const open = new Map<string, string>()
  return {
    key: Effect.succeed(key),
    generation: () => Effect.succeed("one"),
    begin: (session, generation) => Effect.sync(() => void open.set(session, generation)),
    isOpen: (session, generation) => Effect.sync(() => open.get(session) === generation),
    end: (session) => Effect.sync(() => void open.delete(session)),
    endAll: Effect.sync(() => open.clear()),
    isToken: (text) => Effect.succeed(text === "a token")
  } satisfies Sessions
})

describe("the dashboard password", () => {
  const stranger = (address: string, cookie?: string): AccessRequest => ({
    method: "POST",
    address,
    header: () => undefined,
    httpVersion: "1.1",
    cookie
  })
  const newAccess = Effect.flatMap(inMemory, (sessions) =>
    Access.make({ host: "0.0.0.0", port: 1, password: Redacted.make(password), publicUrl: null, sessions })
  ).pipe(Effect.provide(SecureRandom.layerWebCrypto))
  const attempt = (access: Access.Access, request: AccessRequest) =>
    Effect.map(access.logIn(request, password), ({ _tag }) => _tag)
  const guess = (access: Access.Access, address: string, times: number) =>
    Effect.forEach(
      Array.from({ length: times }),
      () => Effect.map(access.logIn(stranger(address), "guess"), ({ _tag }) => _tag),
      { concurrency: "unbounded" }
    )
  const opened = Effect.fnUntraced(function* (access: Access.Access) {
    const outcome = yield* access.logIn(stranger("198.51.100.1"), password)
    return outcome._tag === "Open" ? outcome.cookie : assert.fail(outcome._tag)
  })

  test("has a limit of guesses per minute and address, also for concurrent guesses", function* () {
    const access = yield* newAccess
    const outcomes = yield* guess(access, "2001:db8:1:2::9", 50)
    assert.strictEqual(outcomes.filter((one) => one === "Wrong").length, 10)
    assert.strictEqual(outcomes.filter((one) => one === "TooMany").length, 40)
    // A whole IPv6 network counts as one address. The limit applies neither to others nor after the minute.
    assert.strictEqual(yield* attempt(access, stranger("2001:db8:1:2:3::4")), "TooMany")
    assert.strictEqual(yield* attempt(access, stranger("2001:db8:1:3::9")), "Open")
    yield* TestClock.adjust("1 minute")
    assert.strictEqual(yield* attempt(access, stranger("2001:db8:1:2::9")), "Open")
  })

  test("is still accepted from a browser with an earlier login during distributed guesses", function* () {
    const access = yield* newAccess
    const cookie = yield* opened(access)
    for (let index = 0; index < 10; index += 1) yield* guess(access, `203.0.113.${index}`, 10)
    assert.strictEqual(yield* attempt(access, stranger("192.0.2.1")), "TooMany")
    assert.strictEqual(yield* attempt(access, stranger("203.0.113.1", cookie)), "Open")
    assert.strictEqual(yield* attempt(access, stranger("192.0.2.1", `${cookie}x`)), "TooMany")
  })

  test("opens a session for twelve hours", function* () {
    const access = yield* newAccess
    const request = stranger("198.51.100.1", yield* opened(access))
    yield* TestClock.adjust("11 hours")
    assert.strictEqual((yield* access.decide(request))._tag, "Granted")
    yield* TestClock.adjust("1 hour")
    assert.strictEqual((yield* access.decide(request))._tag, "LogIn")
  })
})

suite("a session in the warehouse", Layer.merge(layerWarehouse, SecureRandom.layerWebCrypto), (test) => {
  test("is open until its end, and ends with its password", function* () {
    const context = yield* Effect.context<SqlClient.SqlClient | SecureRandom.SecureRandom>()
    const sessions = makeSessions(Effect.provideContext(context))
    const [first, second] = yield* Effect.all([sessions.generation("one"), sessions.generation("one")], {
      concurrency: 2
    })
    assert.strictEqual(first, second, "two processes agree on one generation")
    yield* sessions.begin("a", first, Duration.minutes(1))
    yield* sessions.begin("b", first, Duration.minutes(1))
    yield* sessions.begin("past", first, Duration.millis(-1))
    const areOpen = (generation: string) =>
      Effect.forEach(["a", "b", "past", "none"], (session) => sessions.isOpen(session, generation))
    assert.deepStrictEqual(yield* areOpen(first), [true, true, false, false])
    assert.deepStrictEqual(yield* areOpen("another"), [false, false, false, false])
    yield* sessions.end("b")
    assert.deepStrictEqual(yield* areOpen(first), [true, false, false, false])
    const changed = yield* sessions.generation("two")
    assert.notStrictEqual(changed, first)
    assert.strictEqual(yield* sessions.generation("two"), changed)
    assert.deepStrictEqual(yield* areOpen(first), [false, false, false, false])
    yield* sessions.begin("a", changed, Duration.minutes(1))
    yield* sessions.endAll
    assert.deepStrictEqual(yield* areOpen(changed), [false, false, false, false])
    assert.strictEqual((yield* sessions.key).length, 32)
    assert.deepStrictEqual(yield* sessions.key, yield* sessions.key)
  })
})

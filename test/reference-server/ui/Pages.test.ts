/** The web pages in process: their content, escaping, secrets, access, actions. */
import { assert, beforeEach, describe, it } from "vitest"
import { root } from "../../../connectors/service-v2/reference-server/ui/Page.ts"
import { menu } from "../../../connectors/service-v2/reference-server/ui/Routes.ts"
import type { Json } from "../support.ts"
import { errorOf } from "../support.ts"
import { host, visited, type Visited } from "./visited.ts"
import { assertEach, assertNone } from "../../support/assertions.ts"
import { valuesOf } from "../../support/rows.ts"

let site: Visited
beforeEach(async () => {
  site = await visited()
})

const pathsOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/href="\/ui([^"]*)"/g)].map(([, path]) => path!.replaceAll("&amp;", "&").replace(/#.*/, ""))

const notice = ({ headers }: { readonly headers: Readonly<Record<string, string>> }) =>
  decodeURIComponent(/reference_server_said=([^;]*)/.exec(headers["set-cookie"] ?? "")?.[1] ?? "")

/** What the pages say after an action. */
const said = async (action: string, form: Readonly<Record<string, string>>) => notice(await site.submit(action, form))

const journal = () => site.control("GET", "/requests").body["requests"] as ReadonlyArray<Json>

/** The page of the newest request with this status and path. */
const detail = async (query: string) => {
  const { text } = await site.look(`/requests?${query}`)
  const path = pathsOf(text).find((one) => /^\/requests\/\d+$/.test(one))
  assert.isDefined(path, query)
  return (await site.look(path)).text
}

describe("every page", () => {
  it("answers below the menu and its links, escapes hostile texts and shows no secret", async () => {
    const secrets = [site.secret, "abcdef", "Bearer svct"]
    const open = new Set(menu.map(({ path }) => path.slice(root.length)))
    const seen = new Set<string>()
    for (
      let path = [...open][0];
      path !== undefined && seen.size < 150;
      path = [...open].find((one) => !seen.has(one))
    ) {
      seen.add(path)
      const { status, text, headers } = await site.look(path)
      const isAsset = path.startsWith("/assets/")
      assert.strictEqual(status, 200, path)
      if (isAsset) continue
      assert.match(headers["content-security-policy"] ?? "", /default-src 'none'; script-src 'self'/)
      assert.notInclude(text, "<script>alert", path)
      assert.notInclude(text, "\u202e", path)
      for (const secret of secrets) assert.notInclude(text, secret, path)
      assert.notMatch(text, /(?:whsec|svct)_[\w-]{8,}/, path)
      for (const next of pathsOf(text)) if (!/^\/(?:facts|records)/.test(next) || open.size < 120) open.add(next)
    }
    assert.isAbove(seen.size, 60)
    assert.deepStrictEqual(site.defects, [])
  })

  it("answers 404 to an unknown address, and 400 to an invalid number", async () => {
    for (const path of [
      "/nothing",
      "/requests/9999",
      "/deliveries/9999",
      "/facts/ABC-01",
      "/records/1/nothing",
      "/records/77/orders",
      "/records/1/orders/9999"
    ]) {
      assert.strictEqual((await site.look(path)).status, 404, path)
    }
    for (const path of ["/requests?token=x", "/requests?before=-1", "/records?company=x"]) {
      assert.strictEqual((await site.look(path)).status, 400, path)
    }
    assert.deepStrictEqual(site.defects, [])
  })

  it("inserts no name that no world can have, and refuses other methods", async () => {
    for (const name of ['"><b>', "$'", "$`", "$&"]) {
      const answer = await site.ask("GET", `/worlds/${name}${root}/`, { host })
      assert.strictEqual(answer.status, 404, name)
      assert.include(answer.text, `href="${root}/`)
      assert.notInclude(answer.text, `/worlds/${name}`)
    }
    const traced = await site.ask("TRACE", `${root}/`, { host })
    assert.strictEqual(traced.status, 405)
    assert.strictEqual(traced.headers["Allow"], "GET, HEAD, POST")
    assert.deepStrictEqual(site.defects, [])
  })

  it("leads a browser from the address of the control plane to the pages, and answers programs as before", async () => {
    const browser = await site.ask("GET", "/", { host, accept: "text/html,*/*" })
    assert.strictEqual(browser.status, 302)
    assert.strictEqual(browser.headers["Location"], "/ui/")
    assert.strictEqual((await site.ask("GET", "/", { host })).status, 404)
    const clock = await site.ask("GET", "/clock", { host, accept: "text/html" })
    assert.strictEqual(clock.headers["Content-Type"], "application/json")
  })
})

describe("the page of a request", () => {
  it.each([
    ["code=invalid_precision", ["/payments", "CODE-08", "FIELD-06", "FIELD-05", "WRITE-10", "rejected, never rounded"]],
    ["code=rule_violation", ["I-16"]],
    ["code=token_revoked", ["AUTH-13"]],
    ["code=unknown_parameter", ["EP-18"]],
    ["path=GET+%2Forders%3Flimit", ["A-03"]],
    ["path=POST+%2Fsalesmen%2Fbatch", ["SALESMEN-04"]],
    ["path=%2Fsalesmen", ["B-09"]],
    ["status=with+a+fault", ["D-15"]],
    // A body without the value of its secret.
    ["path=POST+%2Fwebhooks", ["secret_note", "&quot;secret&quot;: &quot;…&quot;"]]
  ])("shows the facts and decisions behind its answer: %s", async (query, parts) => {
    const text = await detail(query)
    for (const part of parts) assert.include(text, part)
  })

  it("finds requests by status, path, token and code", async () => {
    const { text } = await site.look("/requests?status=4xx&path=%2Fpayments")
    assert.lengthOf(text.match(/role="rowheader"/g) ?? [], 2)
    assert.include((await site.look("/requests?path=%2Fnowhere")).text, "No request matches")
  })
})

it("the journal gives programs the code, the field, the rule and the facts of each refusal", () => {
  const precise = journal().find(({ refusal }) => (refusal as Json | null)?.["code"] === "invalid_precision")
  assert.deepInclude(precise!["refusal"], { code: "invalid_precision", field: "amount" })
  assert.includeMembers((precise!["refusal"] as { facts: Array<string> }).facts, ["CODE-08", "FIELD-06", "FIELD-05"])
  const batch = journal().find(({ path }) => path === "/salesmen/batch")
  assert.isNull(batch!["refusal"])
  assertEach(batch!["items"] as ReadonlyArray<Json>, ({ index, code }) => [index, code], [
    [1, "duplicate"],
    [2, "invalid_type"]
  ])
})

it("records lists resources with their counts, finds a record, and shows the differences of its versions", async () => {
  assert.match((await site.look("/records?company=1")).text, /customers<\/a>/)
  const id = String(site.customer["id"])
  assert.include((await site.look(`/records/1/customers?id=${id}`)).text, `/ui/records/1/customers/${id}`)
  const { text } = await site.look(`/records/1/customers/${id}`)
  for (const part of ["Version 1", "Version 2", "creditlimit", "12.5000", "What version 2 changed"])
    assert.include(text, part)
})

describe("a form", () => {
  const clock = { manual: "true" }

  it("is refused from another site, without the token and with a wrong one", async () => {
    const own = { host, origin: `http://${host}` }
    const refused = [
      await site.submit("clock", clock, { host, origin: "http://evil.example" }),
      await site.submit("clock", clock, { host, origin: "http://127.0.0.1:9" }),
      await site.submit("clock", clock, { host }),
      await site.submit("clock", clock, { ...own, "sec-fetch-site": "cross-site" }),
      await site.submit("clock", { ...clock, form_token: "guessed" }, own),
      await site.ask("POST", "/ui/do/clock", own, clock),
      await site.submit("clock", clock, { host: "rebound.example", origin: "http://rebound.example" })
    ]
    assert.deepStrictEqual(
      valuesOf(refused, "status"),
      refused.map(() => 403)
    )
    assert.strictEqual((await site.look("/", { "sec-fetch-site": "cross-site" })).status, 403)
    assert.strictEqual((await site.ask("GET", "/ui/", { host: "rebound.example" })).status, 403)
    assert.strictEqual((await site.submit("clock", {}, { ...own, "content-type": "application/json" })).status, 415)
    assert.strictEqual(site.control("GET", "/clock").body["manual"], true)
  })

  it("of a server that was started without a token is not shown and not accepted", async () => {
    const { server } = await import("../support.ts")
    const { served } = server()
    const origin = { host, origin: `http://${host}`, "content-type": "application/x-www-form-urlencoded" }
    const body = Buffer.from("manual=false&form_token=")
    const answer = await served.control({ method: "POST", url: "/ui/do/clock", headers: origin, body }).pending!
    assert.strictEqual(answer.status, 403)
    const clockPage = await served.control({ method: "GET", url: "/ui/clock", headers: { host }, body: null }).pending!
    assert.notInclude(Buffer.from(clockPage.bytes!).toString(), '<form method="post"')
  })
})

describe("an action", () => {
  it("issues a token, whose text is shown once, and revokes it after a confirmation", async () => {
    const issued = await site.submit("issue-token", { company: "1", scopes: "orders:read, orders:write", user: "page" })
    assert.strictEqual(issued.status, 200)
    const text = /svct_[0-9a-f]{40}/.exec(issued.text)?.[0]
    assert.isDefined(text)
    assert.strictEqual(issued.headers["cache-control"], "no-store")
    assert.notInclude((await site.look("/tokens")).text, text)
    const call = site.caller(text)
    assert.strictEqual(call("GET", "/orders").status, 200)
    const tokenid = String(call("GET", "/me").body["tokenid"])
    assert.include((await site.look(`/confirm/revoke-token?token=${tokenid}`)).text, `Revoke token ${tokenid}?`)
    assert.strictEqual(call("GET", "/orders").status, 200)
    const revoked = await site.submit("revoke-token", { token: tokenid })
    assert.strictEqual(revoked.status, 303)
    assert.strictEqual(notice(revoked), `Token ${tokenid} is revoked.`)
    assert.strictEqual(errorOf(call("GET", "/orders"))["code"], "token_revoked")
    assert.strictEqual((await site.submit("issue-token", { company: "1", scopes: "orders:own" })).status, 400)
  })

  it("replays a delivery with the same bytes and a new attempt number", async () => {
    const { deliveries } = (await site.plane("GET", "/deliveries")).body as { readonly deliveries: ReadonlyArray<Json> }
    const delivered = deliveries.find(({ delivered: isDone }) => isDone)!
    const before = site.sent.length
    const answer = await site.submit("replay", { delivery: String(delivered["delivery"]) })
    assert.strictEqual(answer.status, 303)
    assert.match(notice(answer), /was sent again as delivery \d+: status 200/)
    const sent = site.sent.at(-1)!
    assert.lengthOf(site.sent, before + 1)
    assert.strictEqual(Buffer.from(sent.body).toString("base64"), delivered["body"])
    assert.strictEqual(sent.headers["Svc-Delivery-Attempt"], String(Number(delivered["attempt"]) + 1))
    const waiting = deliveries.find(({ delivered: isDone, abandoned }) => !isDone && !abandoned)!
    assert.strictEqual((await site.submit("replay", { delivery: String(waiting["delivery"]) })).status, 400)
    assert.strictEqual((await site.submit("replay", { delivery: "99999" })).status, 400)
  })

  it("moves, stops and starts the clock", async () => {
    const now = () => String(site.control("GET", "/clock").body["now"])
    await site.submit("clock", { now: "2026-04-01T00:00:00Z", manual: "true" })
    assert.strictEqual(now(), "2026-04-01T00:00:00.000000Z")
    assert.include(notice(await site.submit("clock", { advance: "3600" })), "2026-04-01 01:00:00")
    assert.strictEqual(now(), "2026-04-01T01:00:00.000000Z")
    assert.strictEqual((await site.submit("clock", { now: "noon" })).status, 400)
    assert.strictEqual((await site.submit("clock", { advance: "soon" })).status, 400)
  })

  it("adds a fault beside the armed ones, and clears all after a confirmation", async () => {
    const fault = { kind: "status", code: "rate_limited", status: "429", path: "/zones", times: "1", rate: "1" }
    assert.strictEqual(await said("add-fault", fault), "The fault is armed; there are 2 now.")
    assert.include((await site.look("/faults")).text, "/zones")
    assert.strictEqual(site.call("GET", "/zones").status, 429)
    assert.strictEqual(site.call("GET", "/zones").status, 200)
    assert.strictEqual((await site.submit("add-fault", { kind: "flood" })).status, 400)
    assert.include((await site.look("/confirm/clear-faults")).text, "Clear all faults?")
    assert.strictEqual((await site.submit("clear-faults", {})).status, 303)
    assert.include((await site.look("/faults")).text, "No fault is armed")
  })

  it("changes limits and the dialect, and only what differs", async () => {
    for (const [action, form, changed] of [
      ["limits", { requestsPerMinute: "50", rateScope: "token", cycleSeconds: "300" }, "requestsPerMinute"],
      ["limits", { requestsPerMinute: "" }, "requestsPerMinute"],
      ["dialect", { paging: "page", etag: "true", deleteUnknown: "422" }, "paging, deleteUnknown"],
      ["dialect", { paging: "cursor", deleteUnknown: "404" }, "paging, deleteUnknown"]
    ] as const) {
      assert.strictEqual(notice(await site.submit(action, form)), `Changed: ${changed}.`)
    }
    assert.strictEqual((await site.submit("dialect", { paging: "scroll" })).status, 400)
  })

  it("runs a delivery cycle", async () => {
    site.call("POST", "/customers", { customercode: "CYCLE" })
    assert.match(notice(await site.submit("cycle", {})), /made \d+ attempts/)
  })

  it("keeps a snapshot, makes a world of it, whose pages are its own, and restores it", async () => {
    assert.match(await said("save-snapshot", { name: "before" }), /^The snapshot before has \d+ records\.$/)
    assert.strictEqual((await site.submit("save-snapshot", { name: "before" })).status, 400)
    assert.match(await said("make-world", { name: "other", from: "before" }), /^The world other is at http/)
    const scenarios = await site.look("/scenarios")
    for (const part of ["/worlds/other/ui/", "Restore", "stopped at"]) assert.include(scenarios.text, part)

    const own = { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" }
    const world = await site.ask("GET", "/worlds/other/ui/", { host })
    assert.include(world.text, "No request to the API was received yet")
    assert.include(world.text, "World: other")
    const internal = [...world.text.matchAll(/(?:href|action|src)="([^"]*)"/g)].map(([, address]) => address!)
    assertNone(internal, (address) => address.startsWith("/ui/"))
    for (const address of new Set(internal.filter((one) => one.startsWith("/")))) {
      assert.strictEqual((await site.ask("GET", address, { host })).status, 200, address)
    }
    const form = { form_token: "the-token-of-forms", advance: "86400" }
    const moved = await site.ask("POST", "/worlds/other/ui/do/clock", own, form)
    assert.strictEqual(moved.headers["location"], "/worlds/other/ui/clock")
    const clockOf = (prefix: string) => String(site.control("GET", `${prefix}/clock`).body["now"])
    assert.strictEqual(Date.parse(clockOf("/worlds/other")) - Date.parse(clockOf("")), 86_400_000)
    assert.strictEqual((await site.ask("GET", "/worlds/none/ui/", { host })).status, 404)

    site.control("POST", "/remove", { company: 1, resource: "customers", id: site.customer["id"] })
    assert.include((await site.look("/confirm/restore?name=before")).text, "The present state is lost")
    assert.strictEqual(notice(await site.submit("restore", { name: "before" })), "The world is as the snapshot before.")
    assert.strictEqual((await site.look(`/records/1/customers?id=${String(site.customer["id"])}`)).status, 200)
    assert.strictEqual((await site.submit("remove-world", { name: "other" })).status, 303)
    assert.strictEqual((await site.submit("forget-snapshot", { name: "before" })).status, 303)
    assert.strictEqual((await site.submit("restore", { name: "before" })).status, 400)
  })

  it("runs a scenario", async () => {
    const { text } = await site.look("/scenarios")
    for (const part of ["late-rows", "closed-period", "webhook-outage"]) assert.include(text, part)
    const before = site.served.world.store.table(1, "customers").size
    const form = { name: "late-rows", company: "1", count: "3" }
    assert.match(await said("run-scenario", form), /^late-rows changed .*customers/)
    assert.strictEqual(site.served.world.store.table(1, "customers").size, before + 3)
    assert.strictEqual((await site.submit("run-scenario", { name: "late-rows", count: "many" })).status, 400)
    assert.strictEqual((await site.submit("run-scenario", { name: "none" })).status, 404)
  })

  it("resets the server after a confirmation", async () => {
    assert.include((await site.look("/confirm/reset?data=empty")).text, "cannot be undone")
    assert.strictEqual(await said("reset", { data: "empty" }), "The server was reset; its data is empty.")
    assert.include((await site.look("/")).text, "No request to the API was received yet")
    assert.deepStrictEqual(site.defects, [])
  })
})

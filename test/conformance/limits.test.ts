/** The rate limit: 600 requests per minute, in a sliding window, per token. */
import { afterAll, afterEach, assert, beforeEach } from "vitest"
import {
  advance,
  companyOf,
  control,
  freeze,
  fresh,
  it,
  keptPromises,
  mint,
  newCompany,
  page,
  refused,
  succeeded,
  thaw,
  useServer,
  type Answer,
  type Company
} from "./harness.ts"
import { assertCount, assertEach } from "../support/assertions.ts"

useServer()
const limit = (settings: Record<string, unknown>) => control("PUT", "/limits", settings)
beforeEach(async () => {
  await freeze()
})
afterEach(async () => {
  await limit({ requestsPerMinute: 600, rateScope: "token" })
})
afterAll(thaw)

function limited(answer: Answer): number {
  refused(answer, "rate_limited")
  const after = String(answer.headers["retry-after"])
  assert.match(after, /^[1-9]\d*$/, "Retry-After in whole seconds, at least 1 (E-03)")
  assert.isAtMost(Number(after), 60)
  return Number(after)
}

async function times(count: number, c: Company): Promise<void> {
  for (let i = 0; i < count; i += 1) page(await c.get("/salesmen?limit=1"))
}

it("[LIM-02][CODE-31][ERR-10] the rate limit passes 600 requests a minute and answers 429 to the next", async (c) => {
  await times(600, c)
  const wait = limited(await c.get("/salesmen"))
  await advance(wait)
  page(await c.get("/salesmen"))
}, 60_000)

it("[LIM-02][E-02][E-03][EP-04] the rate limit slides: Retry-After is the time until the oldest request leaves the window", async (c) => {
  await limit({ requestsPerMinute: 5 })
  await times(3, c)
  await advance(20)
  await times(2, c)
  assert.strictEqual(limited(await c.get("/salesmen")), 40)
  await advance(39)
  assert.strictEqual(limited(await c.get("/salesmen")), 1)
  await advance(1)
  await times(3, c)
  assert.strictEqual(limited(await c.get("/salesmen")), 20)
  await advance(20)
  await times(2, c)
  limited(await c.get("/salesmen"))
})

it("[E-04] the rate limit does not count refused requests, which have no effect", async (c) => {
  await limit({ requestsPerMinute: 2 })
  await times(2, c)
  for (let i = 0; i < 10; i += 1) {
    limited(await c.post("/salesmen", { name: "x" }))
    await advance(5)
  }
  await advance(10)
  assert.isEmpty(page(await c.get("/salesmen")).data)
})

it("[E-04][LIM-02] the rate limit counts failing requests", async (c) => {
  const narrow = await c.with("setup:read")
  await limit({ requestsPerMinute: 5 })
  refused(await narrow.get("/salesmen/999999999"), "not_found")
  refused(await narrow.get("/salesmen?bogus=1"), "unknown_parameter")
  refused(await narrow.get("/payments"), "insufficient_scope")
  refused(await narrow.get("/nosuchthing"), "not_found")
  refused(await narrow.send({ method: "PUT", path: "/salesmen", body: {} }), "method_not_allowed")
  limited(await narrow.get("/salesmen"))
})

it("[E-04] the rate limit counts a batch as one request", async (c) => {
  await limit({ requestsPerMinute: 2 })
  for (let i = 0; i < 2; i += 1) {
    const answer = await c.post(
      "/salesmen/batch",
      Array.from({ length: 50 }, (_, k) => ({ name: fresh(`${i}-${k}`) }))
    )
    succeeded(answer, 207)
  }
  limited(await c.get("/salesmen"))
})

it("[E-01] the rate limit counts per token, or per user or install if configured", async (c) => {
  const users = async () => [
    companyOf(c.id, (await mint({ company: c.id, user: "ann" })).token),
    companyOf(c.id, (await mint({ company: c.id, user: "ann" })).token),
    companyOf(c.id, (await mint({ company: c.id, user: "bob" })).token),
    await newCompany()
  ]
  for (const [rateScope, statuses] of [
    ["token", [200, 200, 200, 200]],
    ["user", [200, 429, 200, 200]],
    ["install", [200, 429, 429, 429]]
  ] as const) {
    await advance(61)
    await limit({ requestsPerMinute: 1, rateScope })
    const callers = await users()
    const answers = []
    for (const one of callers) answers.push(await one.get("/salesmen"))
    assertEach(answers, ({ status }) => status, [...statuses], rateScope)
    for (const one of callers) limited(await one.get("/salesmen"))
  }
})

it("[C-02] the rate limit is checked after 401, path, verb and scope, before body and id", async (c) => {
  const narrow = await c.with("setup:read", "setup:write")
  await limit({ requestsPerMinute: 1 })
  page(await narrow.get("/salesmen"))
  refused(await narrow.get("/nosuchthing"), "not_found")
  refused(await narrow.send({ method: "PUT", path: "/salesmen", body: {} }), "method_not_allowed")
  refused(await narrow.get("/payments"), "insufficient_scope")
  limited(await narrow.get("/salesmen/999999999"))
  limited(await narrow.get("/salesmen?bogus=1"))
  limited(await narrow.send({ method: "POST", path: "/salesmen", raw: "{" }))
  await control("POST", "/tokens/revoke", { token: narrow.token })
  refused(await narrow.get("/salesmen"), "token_revoked")
})

it("[E-04] the rate limit of a token ignores requests without a valid token", async (c) => {
  await limit({ requestsPerMinute: 1 })
  for (let i = 0; i < 5; i += 1) refused(await companyOf(c.id, `${c.token}x`).get("/salesmen"), "unauthorized")
  page(await c.get("/salesmen"))
})

it("[E-06] the rate limit is stated in no header but Retry-After", async (c) => {
  const answer = await c.get("/salesmen")
  assert.isEmpty(Object.keys(answer.headers).filter((name) => /ratelimit|rate-limit/i.test(name)))
  assert.isUndefined(answer.headers["retry-after"])
})

it("[LIM-02] the rate limit passes exactly its budget of fifty concurrent requests", async (c) => {
  await limit({ requestsPerMinute: 20 })
  const answers = await Promise.all(Array.from({ length: 50 }, () => c.get("/salesmen")))
  assertCount(answers, (answer) => answer.status === 200, 20)
})

keptPromises()

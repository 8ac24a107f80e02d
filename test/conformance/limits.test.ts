/** The rate limit: 600 requests per minute, in a sliding window, per token. */
import { afterAll, afterEach, assert, beforeEach, it } from "vitest"
import {
  advance,
  companyOf,
  control,
  freeze,
  fresh,
  keptPromises,
  mint,
  newCompany,
  page,
  refused,
  succeeded,
  thaw,
  tokenFor,
  useServer,
  type Answer,
  type Company
} from "./harness.ts"

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

it("[LIM-02][CODE-31][ERR-10] the rate limit passes 600 requests a minute and answers 429 to the next", async () => {
  const c = await newCompany()
  await times(600, c)
  const wait = limited(await c.get("/salesmen"))
  await advance(wait)
  page(await c.get("/salesmen"))
}, 60_000)

it("[LIM-02][E-02][E-03][EP-04] the rate limit slides: Retry-After is the time until the oldest request leaves the window", async () => {
  const c = await newCompany()
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

it("[E-04] the rate limit does not count refused requests", async () => {
  const c = await newCompany()
  await limit({ requestsPerMinute: 2 })
  await times(2, c)
  for (let i = 0; i < 10; i += 1) {
    limited(await c.get("/salesmen"))
    await advance(5)
  }
  await advance(10)
  page(await c.get("/salesmen"))
})

it("[E-04][LIM-02] the rate limit counts failing requests", async () => {
  const c = await newCompany()
  const narrow = await c.with("setup:read")
  await limit({ requestsPerMinute: 5 })
  refused(await narrow.get("/salesmen/999999999"), "not_found")
  refused(await narrow.get("/salesmen?bogus=1"), "unknown_parameter")
  refused(await narrow.get("/payments"), "insufficient_scope")
  refused(await narrow.get("/nosuchthing"), "not_found")
  refused(await narrow.send({ method: "PUT", path: "/salesmen", body: {} }), "method_not_allowed")
  limited(await narrow.get("/salesmen"))
})

it("[E-04] the rate limit counts a batch as one request", async () => {
  const c = await newCompany()
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

it("[E-01] the rate limit counts per token", async () => {
  const c = await newCompany()
  const other = companyOf(c.id, await tokenFor(c.id, "*"))
  const stranger = await newCompany()
  await limit({ requestsPerMinute: 1 })
  await times(1, c)
  limited(await c.get("/salesmen"))
  await times(1, other)
  await times(1, stranger)
  limited(await other.get("/salesmen"))
})

it("[E-01] the rate limit counts per install if configured", async () => {
  const c = await newCompany()
  const stranger = await newCompany()
  await limit({ requestsPerMinute: 1, rateScope: "install" })
  await times(1, c)
  limited(await stranger.get("/salesmen"))
})

it("[E-01] the rate limit counts per user if configured", async () => {
  const c = await newCompany()
  const one = companyOf(c.id, (await mint({ company: c.id, user: "ann" })).token)
  const same = companyOf(c.id, (await mint({ company: c.id, user: "ann" })).token)
  const another = companyOf(c.id, (await mint({ company: c.id, user: "bob" })).token)
  await limit({ requestsPerMinute: 1, rateScope: "user" })
  await times(1, one)
  limited(await same.get("/salesmen"))
  await times(1, another)
})

it("[C-02] the rate limit is checked after 401, path, verb and scope, before body and id", async () => {
  const c = await newCompany()
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

it("[E-04] the rate limit prevents the effect of a refused write", async () => {
  const c = await newCompany()
  await limit({ requestsPerMinute: 1 })
  page(await c.get("/salesmen"))
  limited(await c.post("/salesmen", { name: "x" }))
  await advance(61)
  assert.isEmpty(page(await c.get("/salesmen")).data)
})

it("[E-04] the rate limit of a token ignores requests without a valid token", async () => {
  const c = await newCompany()
  await limit({ requestsPerMinute: 1 })
  for (let i = 0; i < 5; i += 1) refused(await companyOf(c.id, `${c.token}x`).get("/salesmen"), "unauthorized")
  page(await c.get("/salesmen"))
})

it("[E-06] the rate limit is stated in no header but Retry-After", async () => {
  const c = await newCompany()
  const answer = await c.get("/salesmen")
  assert.isEmpty(Object.keys(answer.headers).filter((name) => /ratelimit|rate-limit/i.test(name)))
  assert.isUndefined(answer.headers["retry-after"])
})

it("[LIM-02] the rate limit passes exactly its budget of fifty concurrent requests", async () => {
  const c = await newCompany()
  await limit({ requestsPerMinute: 20 })
  const answers = await Promise.all(Array.from({ length: 50 }, () => c.get("/salesmen")))
  assert.lengthOf(
    answers.filter((answer) => answer.status === 200),
    20
  )
})

keptPromises()

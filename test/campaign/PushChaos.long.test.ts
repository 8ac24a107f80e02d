/** A test of the push campaign itself: its proxy and its comparison, with test clients in place of pushes. */
import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Chance } from "../fuzz/Chance.ts"
import { type ReferenceProcess, startReference } from "../support/reference.ts"
import { openPushChaos } from "./PushChaos.ts"
import { differences } from "./PushDifference.ts"
import { draw, type ExpectedRecord, type PushRecord, poisonMark, resource } from "./PushFile.ts"

const clientTimeoutMs = 300
const timeoutMs = 120_000
const records = 120
const perCall = 4

describe("the push campaign, with chaos between client and source", () => {
  let reference: ReferenceProcess
  beforeAll(async () => {
    reference = await startReference()
    await reference.control("PUT", "/limits", { requestsPerMinute: null })
  }, timeoutMs)
  afterAll(() => reference.stop())

  /** Pushes drawn records until the answers show that all exist. Returns the problems at the source then. */
  const pushAll = async (company: number, seed: number, keyOf: (key: string) => string) => {
    const token = await reference.token(company)
    const chance = new Chance(seed)
    const chaos = await openPushChaos({
      upstream: reference.baseUrl,
      chance: new Chance(seed),
      clientTimeoutMs,
      poisonMark,
      onFirst: async () => {}
    })
    const all = Array.from({ length: records }, (_, place) => draw(chance, `n${place}`))
    const authorization = `Bearer ${token}`
    const isThere = async ({ externalid }: PushRecord): Promise<boolean> => {
      for (;;) {
        const answer = await fetch(`${chaos.baseUrl}/${resource}?cancel=any&externalid=${externalid}`, {
          headers: { authorization }
        }).catch(() => null)
        if (answer?.ok === true) return ((await answer.json()) as { data: ReadonlyArray<unknown> }).data.length > 0
      }
    }
    const post = (key: string, chunk: ReadonlyArray<PushRecord>) =>
      fetch(`${chaos.baseUrl}/${resource}/batch`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json", "idempotency-key": keyOf(key) },
        body: JSON.stringify(chunk),
        signal: AbortSignal.timeout(clientTimeoutMs)
      }).then(
        (answer) => answer.status,
        () => null
      )
    for (let at = 0; at < all.length; at += perCall) {
      let left: ReadonlyArray<PushRecord> = all.slice(at, at + perCall)
      let key = randomUUID()
      for (let faults = 0; left.length > 0;) {
        const status = await post(key, left)
        if (status === 207) break
        if (status === 409) await sleep(50)
        faults = status === 500 ? faults + 1 : 0
        if (faults < 10) continue
        // The source answers this key with 500 for ever: a record that does not exist is sent under another key.
        const there = await Promise.all(left.map(isThere))
        left = left.filter((_, place) => !there[place]!)
        key = randomUUID()
        faults = 0
      }
    }
    await chaos.flush()
    await chaos.close()
    const expected: ReadonlyArray<ExpectedRecord> = all.map((record) => ({
      record,
      poison: null,
      changes: 0,
      isCancelled: false
    }))
    const of = `company=${company}&resource=${resource}`
    return {
      counts: chaos.counts,
      misused: chaos.misused,
      problems: differences(
        expected,
        await reference.lines(`/state?${of}`),
        await reference.lines(`/history?${of}`),
        (externalid) => externalid.startsWith("push-")
      )
    }
  }

  it(
    "reports no problem when each push request keeps its idempotency key",
    async () => {
      const { counts, misused, problems } = await pushAll(11, 5, (key) => key)
      assert.deepStrictEqual(problems, [])
      assert.deepStrictEqual(misused, [])
      assert.isAtLeast([...counts.keys()].length, 10)
    },
    timeoutMs
  )

  it(
    "reports duplicated records when a push request is retried under another idempotency key",
    async () => {
      const { problems } = await pushAll(12, 5, () => randomUUID())
      assert.match(problems.join("\n"), /was created 2 times/)
    },
    timeoutMs
  )
})

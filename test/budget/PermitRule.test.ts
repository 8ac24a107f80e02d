/** The rule of a rate budget, on random histories. */
import { assert, describe, it } from "@effect/vitest"
import {
  allowedAt,
  emptyState,
  endProbe,
  forAll,
  pause,
  type PauseRequest,
  type PermitState,
  release,
  sumOf,
  take,
  usedAt
} from "../../src/budget/PermitRule.ts"
import { most, servers } from "./Servers.ts"

/** A deterministic generator of numbers below a bound. */
const draws = (seed: number) => {
  let state = seed >>> 0
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const beganAt = 1_800_000_000_000
const urgently = (urgent: number, validMs = 100) => ({ wanted: { ...forAll(0), urgent }, validMs })
const refusal: PauseRequest = { origin: "intermediary", status: 503, request: "GET /a", statedMs: 3e10, limited: false }

describe("the rule of a rate budget", () => {
  it("never grants more permits than the limit in any minute, however they are asked for and used", () => {
    for (let seed = 1; seed <= 27; seed++) {
      const draw = draws(seed)
      const perMinute = [1, 2, 7, 60, 199, 200, 500, 600, 6_000][seed % 9]!
      const size = 1 + Math.ceil(perMinute / [4, 40, 400][seed % 3]!)
      const uses: Array<number> = []
      let state = emptyState(perMinute)
      let now = beganAt
      for (let step = 0; step < 600; step++) {
        now += [draw(30), draw(400), draw(9_000), draw(200_000)][draw(60) === 0 ? 3 : draw(3)]!
        if (draw(60) === 0)
          state = pause(state, { ...refusal, statedMs: draw(9_000), limited: draw(2) === 0 }, perMinute, now)
        const wanted = { urgent: draw(4) === 0 ? draw(size) : 0, live: draw(size), backfill: draw(size) }
        const validMs = 100 + draw(15_000) * draw(2)
        const before = usedAt(state, now)
        const [next, { granted, pausedMs, waitMs }] = take(state, { wanted, validMs }, perMinute, now)
        const where = `seed ${seed}, step ${step}`
        const permits = sumOf(granted)
        assert.strictEqual(usedAt(next, now), before + permits, where)
        assert.isAtMost(before + permits, Math.max(before, allowedAt(perMinute, next.memory, now)), where)
        if (pausedMs > 0) assert.strictEqual(permits, 0, where)
        if (permits < sumOf(wanted) && pausedMs === 0) assert.isTrue(waitMs >= 1 && waitMs <= 1_000, where)
        for (let permit = 0; permit < permits; permit++) uses.push(now + draw(validMs))
        state = next
      }
      uses.sort((one, other) => one - other)
      assert.isAtMost(most(uses, 60_500), perMinute, `seed ${seed}`)
      // A request arrives up to half a second after it was sent.
      const arrivals = uses.map((at) => at - beganAt + draw(500)).sort((one, other) => one - other)
      for (const server of servers) assert.strictEqual(server.refused(arrivals, perMinute), 0, `${server.name} ${seed}`)
    }
  })

  it("grants a waiting backfill a tenth while live requests of other processes want everything", () => {
    for (const perMinute of [100, 200, 500]) {
      let state = emptyState(perMinute)
      const granted = { live: 0, backfill: 0 }
      // The process of the backfill asks last.
      for (let now = beganAt; now < beganAt + 240_000; now += 125) {
        for (const one of ["live", "live", "backfill"] as const) {
          const [next, grant] = take(state, { wanted: { ...forAll(0), [one]: 8 }, validMs: 100 }, perMinute, now)
          state = next
          if (now >= beganAt + 60_000) granted[one] += grant.granted[one]
        }
      }
      const sum = granted.live + granted.backfill
      assert.isAtLeast(sum, 0.97 * 3 * perMinute)
      if (perMinute >= 200) assert.closeTo(granted.backfill / sum, 0.1, 0.02, `limit ${perMinute}`)
    }
  })

  it("keeps permits for urgent and live requests while backfills want everything", () => {
    for (const perMinute of [500, 600]) {
      let state = emptyState(perMinute)
      const waits: Array<number> = []
      for (let now = beganAt; now < beganAt + 180_000; now += 50) {
        state = take(state, { wanted: { ...forAll(0), backfill: 8 }, validMs: 100 }, perMinute, now)[0]
        const one = now % 20_000 < 10_000 ? "live" : "urgent"
        if (now % 5_000 > 0 || now < beganAt + 90_000) continue
        for (let waitedMs = 0; ; waitedMs += 50) {
          const [next, grant] = take(
            state,
            { wanted: { ...forAll(0), [one]: 1 }, validMs: 100 },
            perMinute,
            now + waitedMs
          )
          state = next
          if (grant.granted[one] === 0) continue
          waits.push(waitedMs)
          break
        }
      }
      assert.isAtMost(Math.max(...waits), 100)
    }
  })

  it("after the clock was set back, neither counts permits longer nor makes a pause longer", () => {
    let [state] = take(emptyState(10), urgently(10), 10, beganAt)
    const grantedAt = (at: number) => {
      const [next, { granted }] = take(state, urgently(10), 10, at)
      state = next
      return granted.urgent
    }
    const earlier = beganAt - 7_200_000
    assert.strictEqual(grantedAt(earlier), 0)
    assert.strictEqual(grantedAt(earlier + 60_000), 0)
    assert.strictEqual(grantedAt(earlier + 61_000), 10)
    state = pause(state, { ...refusal, origin: "source", statedMs: 300_000 }, 10, earlier + 61_000)
    const pausedAt = (at: number) => {
      const [next, { pausedMs }] = take(state, urgently(10), 10, at)
      state = next
      return pausedMs
    }
    assert.strictEqual(pausedAt(earlier - 7_200_000), 300_000)
    assert.strictEqual(pausedAt(earlier - 7_200_000 + 200_000), 100_000)
    assert.strictEqual(pausedAt(earlier - 7_200_000 + 300_000), 0)
  })
})

describe("a pause", () => {
  const minuteMs = 60_000
  const probeAt = (state: PermitState, now: number) => take(state, urgently(5), 600, now)

  it("obeys Retry-After up to a cap of its sender: four times longer after each probe with the same answer", () => {
    const pausedMs = (request: PauseRequest) => pause(emptyState(600), request, 600, beganAt).pausedUntil - beganAt
    for (const statedMs of [0, 1_000, 59_999]) assert.strictEqual(pausedMs({ ...refusal, statedMs }), statedMs)
    for (const statedMs of [3e10, 1e23]) {
      assert.strictEqual(pausedMs({ ...refusal, statedMs }), minuteMs)
      assert.strictEqual(pausedMs({ ...refusal, statedMs, limited: true }), 60 * minuteMs)
      assert.strictEqual(pausedMs({ ...refusal, statedMs, origin: "source" }), 24 * 60 * minuteMs)
    }
    let state = emptyState(600)
    let now = beganAt
    for (const minutes of [1, 4, 16, 60, 60]) {
      state = pause(state, refusal, 600, now)
      // Answers to requests in flight together count once.
      state = pause(state, refusal, 600, now + 1)
      assert.closeTo((state.pausedUntil - now) / minuteMs, minutes, 0.001)
      now = state.pausedUntil
      const [probing, grant] = probeAt(state, now)
      assert.isTrue(grant.isProbe)
      state = probing
    }
  })

  it("that was capped is followed by one probe, whose answer lets all requests go on", () => {
    const paused = pause(emptyState(600), refusal, 600, beganAt)
    const [waiting, none] = probeAt(paused, beganAt + minuteMs - 1)
    assert.deepInclude(none.pausedBy, { origin: "intermediary", status: 503, request: "GET /a", statedMs: 3e10 })
    assert.strictEqual(sumOf(none.granted), 0)
    const [out, probe] = probeAt(waiting, beganAt + minuteMs)
    assert.deepStrictEqual([probe.granted.urgent, probe.isProbe], [1, true])
    assert.strictEqual(sumOf(probeAt(out, beganAt + minuteMs + 1)[1].granted), 0)
    // Without an answer another probe is sent, at once where its process says so.
    assert.isTrue(probeAt(out, beganAt + 2 * minuteMs)[1].isProbe)
    assert.isTrue(probeAt(endProbe(out, "", false), beganAt + minuteMs + 1)[1].isProbe)
    const answered = endProbe(out, "GET /b", true)
    assert.strictEqual(probeAt(answered, beganAt + minuteMs + 1)[1].granted.urgent, 5)
    // The request of the pause pauses no other one any more, until it is answered itself.
    const again = pause(answered, refusal, 600, beganAt + minuteMs + 2)
    assert.strictEqual(again, answered)
    assert.notStrictEqual(pause(answered, { ...refusal, request: "GET /c" }, 600, beganAt + minuteMs + 2), answered)
    assert.notStrictEqual(pause(answered, { ...refusal, limited: true }, 600, beganAt + minuteMs + 2), answered)
    const itself = endProbe(out, "GET /a", true)
    assert.notStrictEqual(pause(itself, refusal, 600, beganAt + minuteMs + 2), itself)
  })

  it("ends when a person ends it, without a probe", () => {
    const paused = pause(emptyState(600), refusal, 600, beganAt)
    const [released, was] = release(paused, beganAt + 1)
    assert.isTrue(was)
    assert.deepStrictEqual(release(released, beganAt + 1), [released, false])
    assert.strictEqual(probeAt(released, beganAt + 1)[1].granted.urgent, 5)
  })

  it("without a limit pauses and probes likewise, and stores nothing else", () => {
    const empty = emptyState(null)
    const [same, grant] = take(empty, urgently(1_000), null, beganAt)
    assert.strictEqual(same, empty)
    assert.strictEqual(grant.granted.urgent, 1_000)
    const paused = pause(empty, { ...refusal, limited: true }, null, beganAt)
    assert.isNull(paused.memory.lowered)
    assert.strictEqual(sumOf(take(paused, urgently(5), null, beganAt + 1)[1].granted), 0)
    assert.isTrue(take(paused, urgently(5), null, paused.pausedUntil)[1].isProbe)
  })
})

/** The rules of starts, worse states and ends, by sequences of evaluations. */
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import type { Route } from "../../src/alerts/Route.ts"
import { type Condition, evaluate, keyOf, type Observation, type Silence } from "../../src/alerts/Transitions.ts"
import type { Kind } from "../../src/status/ProblemKinds.ts"
import { alertsTo, slackRoute } from "../support/alerting.ts"

const team: Route = { ...slackRoute("https://hooks.example.com/x"), name: "team" }

const late = (level = 0, subject = "things"): Observation => ({
  kind: "late",
  company: "north",
  subject,
  level,
  since: null,
  what: "things is late",
  remedy: "tributary sync things",
  isConsequence: false
})
const token: Observation = { ...late(), kind: "token", subject: "" }

/** Evaluations minute by minute; an answer lists `route event kind`, with the minute at which a later one is due. */
const timeline = (routes: ReadonlyArray<Route> = [team]) => {
  const settings = alertsTo(routes)
  const conditions = new Map<string, Condition>()
  const announced = new Map<string, Map<string, number>>()
  let minute = 0
  return {
    conditions,
    evaluate: (
      observations: ReadonlyArray<Observation>,
      {
        silences = [],
        minutes = 1,
        isAfterBreak = false
      }: { silences?: ReadonlyArray<Silence>; minutes?: number; isAfterBreak?: boolean } = {}
    ): ReadonlyArray<string> => {
      minute += minutes
      const now = new Date(minute * 60_000)
      const changes = evaluate(
        { now, isAfterBreak, conditions: [...conditions.values()], observations, silences, announced },
        settings
      )
      for (const one of changes.stored) conditions.set(keyOf(one), one)
      for (const { event, level, route, ...key } of changes.messages) {
        if (event === "end") continue
        const levels = announced.get(keyOf(key)) ?? new Map<string, number>()
        announced.set(keyOf(key), levels.set(route, level))
      }
      for (const one of changes.ended) {
        conditions.delete(keyOf(one))
        announced.delete(keyOf(one))
      }
      return changes.messages.map(({ route, event, kind, dueAt }) => {
        const wait = (dueAt.getTime() - now.getTime()) / 60_000
        return `${route} ${event} ${kind}${wait === 0 ? "" : ` +${wait}`}`
      })
    }
  }
}

describe("a condition", () => {
  it("starts once it was observed for long enough, gets worse by its level, and ends once it was absent for long enough", () => {
    const { conditions, evaluate: next } = timeline()
    assert.deepStrictEqual(next([late()]), [])
    assert.deepStrictEqual(next([late()], { minutes: 4 }), [])
    assert.deepStrictEqual(next([late()]), ["team start late"])
    assert.deepStrictEqual(next([late()]), [])
    assert.deepStrictEqual(next([late(1)]), ["team worse late"])
    assert.deepStrictEqual(next([late(0)]), [])
    assert.deepStrictEqual(next([late(1)]), [], "the level was reported")
    assert.deepStrictEqual(next([]), [])
    assert.deepStrictEqual(next([]), [])
    assert.deepStrictEqual(next([]), ["team end late"])
    assert.strictEqual(conditions.size, 0)
    assert.deepStrictEqual(next([]), [])
  })

  it("has no message while it flaps, and one start and one end around short absences", () => {
    const { conditions, evaluate: next } = timeline()
    for (let round = 0; round < 10; round += 1) assert.deepStrictEqual(next(round % 2 === 0 ? [late()] : []), [])
    assert.strictEqual(conditions.size, 0)
    for (let round = 0; round < 5; round += 1) next([late()])
    assert.deepStrictEqual(next([late()]), ["team start late"])
    for (let round = 0; round < 10; round += 1) assert.deepStrictEqual(next(round % 2 === 0 ? [] : [late()]), [])
    next([])
    next([])
    assert.deepStrictEqual(next([]), ["team end late"])
  })

  it("starts at once where its kind says so, and is observed anew after a break of the evaluations", () => {
    const { evaluate: next } = timeline()
    assert.deepStrictEqual(next([token]), ["team start token"])
    assert.deepStrictEqual(next([token, late()], { minutes: 60 }), [])
    assert.deepStrictEqual(next([token, late()], { minutes: 60, isAfterBreak: true }), [])
    assert.deepStrictEqual(next([token, late()], { minutes: 5 }), ["team start late"])
  })

  it("does not start while it is the consequence of another one, and goes on when it becomes one", () => {
    const { evaluate: next } = timeline()
    const consequence = { ...late(), isConsequence: true }
    next([consequence])
    assert.deepStrictEqual(next([consequence], { minutes: 60 }), [])
    next([late()])
    assert.deepStrictEqual(next([late()], { minutes: 5 }), ["team start late"])
    assert.deepStrictEqual(next([consequence], { minutes: 60 }), [])
    assert.deepStrictEqual(next([late()], { minutes: 60 }), [])
  })
})

describe("a route", () => {
  it("gets the conditions of its companies, kinds and severities, and the ends of those that it got", () => {
    const only = (name: string, change: Partial<Route>): Route => ({ ...team, ...change, name })
    const { evaluate: next } = timeline([
      only("critical", { severityMin: "critical" }),
      only("south", { companies: ["south"] }),
      only("tokens", { kinds: ["token" satisfies Kind] }),
      only("all", {})
    ])
    const restore: Observation = { ...late(), kind: "restore", company: "", subject: "" }
    next([late()])
    assert.deepStrictEqual(next([late()], { minutes: 5 }), ["all start late"])
    assert.deepStrictEqual(next([late(2)]), ["critical start late", "all worse late"])
    assert.deepStrictEqual(next([late(2), token]), ["critical start token", "tokens start token", "all start token"])
    assert.deepStrictEqual(next([late(2), token, restore]).toSorted(), [
      "all start restore",
      "critical start restore",
      "south start restore"
    ])
    next([])
    assert.deepStrictEqual(next([], { minutes: 2 }).length, 2 + 3 + 3)
  })

  it("with a digest gets messages at the end of the interval, and critical ones at once", () => {
    const digest = Duration.minutes(60)
    const { evaluate: next } = timeline([
      { ...team, name: "hourly", digest },
      { ...team, name: "gathered", digest, isCriticalAtOnce: false }
    ])
    next([late()])
    assert.deepStrictEqual(next([late(), token], { minutes: 9 }), [
      "hourly start late +50",
      "gathered start late +50",
      "hourly start token",
      "gathered start token +50"
    ])
    next([token])
    assert.deepStrictEqual(next([token], { minutes: 2 }), ["hourly end late +47", "gathered end late +47"])
  })
})

describe("a silence", () => {
  const silences: ReadonlyArray<Silence> = [{ kind: "late", company: "north", subject: null }]
  it("holds everything back, and a condition that still holds at its end starts then", () => {
    const { evaluate: next } = timeline()
    next([late(), token], { silences })
    assert.deepStrictEqual(next([late(), token], { silences, minutes: 60 }), [])
    assert.deepStrictEqual(next([late(1), token]), ["team start late"])
  })

  it("leaves no trace of a condition that ended before", () => {
    const { conditions, evaluate: next } = timeline()
    next([late()], { silences })
    next([late()], { silences, minutes: 60 })
    next([], { silences })
    assert.deepStrictEqual(next([], { silences, minutes: 2 }), [])
    assert.strictEqual(conditions.size, 0)
    assert.deepStrictEqual(next([]), [])
  })

  it("delays a worse state and the end of a condition whose start was sent", () => {
    const { evaluate: next } = timeline()
    next([late()])
    assert.deepStrictEqual(next([late()], { minutes: 5 }), ["team start late"])
    assert.deepStrictEqual(next([late(1)], { silences }), [])
    assert.deepStrictEqual(next([late(1)]), ["team worse late"])
    next([], { silences })
    assert.deepStrictEqual(next([], { silences, minutes: 60 }), [])
    assert.deepStrictEqual(next([]), ["team end late"])
  })
})

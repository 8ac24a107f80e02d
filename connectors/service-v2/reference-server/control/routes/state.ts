/** Control calls for the whole server: its data, its clock. */
import * as Schema from "effect/Schema"
import type { World } from "../../World.ts"
import { microsPerSecond, printInstant, readInstant } from "../../time.ts"
import { ControlError, count, flag, instant, optional } from "../Input.ts"
import { jsonAnswer, jsonOf, later, route } from "../Route.ts"

/** The first instant that the clock cannot show. */
const clockEnd = Date.parse("+010000-01-01T00:00:00Z") * 1000

const clockShown = Schema.Struct({
  now: Schema.String.annotate({ description: "the server's time", format: "date-time" }),
  manual: Schema.Boolean.annotate({ description: "whether the clock moves only on request" })
})

const readClock = (world: World) => jsonAnswer({ now: printInstant(world.clock.now()), manual: world.clock.isManual() })

const reset = route({
  method: "POST",
  path: "/reset",
  summary: "Resets the server to a known state.",
  description:
    "Removes all records, tokens, subscriptions, deliveries, faults and journal entries. Limits, dialect and clock return to their defaults.",
  input: Schema.Struct({
    data: optional(
      Schema.NullOr(Schema.Literals(["empty", "demo", "scale"])),
      "empty, demo or scale",
      "the initial data; default: as the server was started"
    ),
    rows: count(1, "invoice lines of `scale`; default: as the server was started"),
    seed: count(0, "the seed of all random values; default: as the server was started")
  }),
  output: jsonOf(
    Schema.Struct({
      data: Schema.Literals(["empty", "demo", "scale"]),
      rows: Schema.Int,
      seed: Schema.Int,
      now: Schema.String.annotate({ format: "date-time" }),
      companies: Schema.Array(Schema.Int).annotate({ description: "the companies that exist" })
    })
  ),
  example: {
    input: { data: "demo", seed: 1 },
    output: { data: "demo", rows: 200_000, seed: 1, now: "2026-03-16T09:00:00.000000Z", companies: [1, 2] }
  },
  answer: ({ world, started, input }) => {
    const options = {
      data: input.data ?? started.data,
      rows: input.rows ?? started.rows,
      seed: input.seed ?? started.seed
    }
    world.reset(options)
    return jsonAnswer({ ...options, now: printInstant(world.clock.now()), companies: world.store.companies() })
  }
})

const getClock = route({
  method: "GET",
  path: "/clock",
  summary: "Shows the server's clock.",
  output: jsonOf(clockShown),
  example: { output: { now: "2026-03-16T09:00:00.000000Z", manual: false } },
  answer: ({ world }) => readClock(world)
})

const setClock = route({
  method: "POST",
  path: "/clock",
  summary: "Sets, advances, stops or starts the clock.",
  description: "`advanceSeconds` also runs what falls due, each at its own time: delivery cycles, purges, expiries.",
  input: Schema.Struct({
    now: optional(instant, "RFC 3339 in UTC", "the new time; nothing that falls due in between runs"),
    advanceSeconds: optional(Schema.Finite, "a number", "seconds to advance, after `now`"),
    manual: flag("true stops the clock: it moves only on request")
  }),
  output: jsonOf(clockShown),
  example: {
    input: { now: "2026-03-16T09:00:00Z", advanceSeconds: 1.5, manual: true },
    output: { now: "2026-03-16T09:00:01.500000Z", manual: true }
  },
  errors: ["The clock would leave the years 1970 to 9999."],
  answer: ({ world, input: { now, advanceSeconds = 0, manual } }) => {
    const target = (now === undefined ? world.clock.now() : readInstant(now)!) + advanceSeconds * microsPerSecond
    if (target < 0 || target >= clockEnd) throw new ControlError("the clock must stay in the years 1970 to 9999")
    if (manual !== undefined) world.clock.setManual(manual)
    if (now !== undefined) {
      world.clock.set(readInstant(now)!)
      world.events.rebase()
    }
    const moving = advanceSeconds === 0 ? null : world.events.advance(Math.round(advanceSeconds * microsPerSecond))
    return moving === null ? readClock(world) : later(moving.then(() => readClock(world)))
  }
})

export const stateRoutes = [reset, getClock, setClock]

/** Control calls for scenarios. */
import * as Schema from "effect/Schema"
import { runScenario, scenarios } from "../../scenarios/index.ts"
import { count, field, optional, whole } from "../Input.ts"
import { jsonAnswer, jsonOf, route } from "../Route.ts"

const hoursMax = 100_000

const names = scenarios.map(({ name }) => name)

const list = route({
  method: "GET",
  path: "/scenarios",
  summary: "Lists the scenarios.",
  output: jsonOf(
    Schema.Struct({
      scenarios: Schema.Array(
        Schema.Struct({
          name: Schema.Literals(names),
          description: Schema.String,
          defaults: Schema.Record(Schema.String, Schema.Finite).annotate({
            description: "the members that it takes, with their defaults"
          })
        })
      )
    })
  ),
  example: {
    output: { scenarios: scenarios.map(({ name, description, defaults }) => ({ name, description, defaults })) }
  },
  answer: () =>
    jsonAnswer({ scenarios: scenarios.map(({ name, description, defaults }) => ({ name, description, defaults })) })
})

const run = route({
  method: "POST",
  path: "/scenarios/{name}",
  summary: "Runs a scenario.",
  parameters: Schema.Struct({ name: field(Schema.String, "a name of GET /scenarios", "the name of the scenario") }),
  input: Schema.Struct({
    company: optional(whole(1), "a whole number from 1", "the company whose records change; default 1"),
    count: count(1, "how many records or requests"),
    hours: optional(
      Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: hoursMax })),
      `a number from 0 to ${hoursMax}`,
      "how many hours of the server's clock"
    )
  }),
  output: jsonOf(
    Schema.Struct({
      scenario: Schema.Literals(names),
      changed: Schema.Record(Schema.String, Schema.Unknown).annotate({ description: "what the scenario changed" })
    })
  ),
  example: {
    parameters: { name: "closed-period" },
    input: { company: 2 },
    output: { scenario: "closed-period", changed: { company: 2, closedThrough: "2026-02-28" } }
  },
  errors: [
    "the scenario does not exist",
    "the scenario does not take a member",
    "a rule refuses a record of the scenario"
  ],
  answer: ({ world, input, parameters: { name } }) =>
    jsonAnswer({ scenario: name, changed: runScenario(world, name, input) })
})

export const scenarioRoutes = [list, run]

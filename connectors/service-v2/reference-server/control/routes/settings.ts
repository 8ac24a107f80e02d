/** Control calls for settings: licences and caps of a company, limits of the service, its dialect. */
import * as Schema from "effect/Schema"
import type { Limits } from "../../Limits.ts"
import { plainLimits } from "../../Limits.ts"
import type { Dialect } from "../../http/dialect.ts"
import { plainDialect } from "../../http/dialect.ts"
import { changeCompany } from "../companies.ts"
import { day, field, optional, whole } from "../Input.ts"
import { jsonAnswer, jsonOf, route } from "../Route.ts"
import { limitFields, switches } from "../settingForms.ts"

const companies = route({
  method: "PUT",
  path: "/companies/{id}",
  summary: "Changes a company's licences, record limits and closed periods.",
  description: "What is left out keeps its value. The answer has all settings.",
  parameters: Schema.Struct({
    id: field(
      Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)),
      "a whole number from 1",
      "the number of the company"
    )
  }),
  input: Schema.Struct({
    features: optional(
      Schema.Record(Schema.String, Schema.Boolean),
      "an object of modules and true or false",
      "whether each module is licensed, such as `estimating`"
    ),
    recordLimits: optional(
      Schema.Record(Schema.String, Schema.NullOr(whole(0))),
      "an object of resources and whole numbers from 0, or null",
      "the licensed number of records, such as `customers`; null removes the limit"
    ),
    closedThrough: optional(
      Schema.NullOr(day),
      "a day, YYYY-MM-DD, or null",
      "the last day of the closed periods; null opens them"
    )
  }),
  output: jsonOf(
    Schema.Struct({
      company: Schema.Int,
      features: Schema.Record(Schema.String, Schema.Boolean),
      recordLimits: Schema.Record(Schema.String, Schema.Int),
      closedThrough: Schema.NullOr(Schema.String)
    })
  ),
  example: {
    parameters: { id: 2 },
    input: { features: { estimating: false }, recordLimits: { customers: 10 }, closedThrough: "2025-12-31" },
    output: {
      company: 2,
      features: { estimating: false, assets: true, jobs: true, properties: true, projects: true, payroll: true },
      recordLimits: { customers: 10 },
      closedThrough: "2025-12-31"
    }
  },
  errors: ["A module does not exist.", "A resource is not capped."],
  answer: ({ world, input, parameters }) => jsonAnswer(changeCompany(world, parameters.id, input))
})

const limits = route({
  method: "PUT",
  path: "/limits",
  summary: "Changes the limits of the service.",
  description: "What is left out keeps its value. The answer has all limits.",
  input: Schema.Struct(limitFields),
  output: jsonOf(
    Schema.Struct({
      requestsPerMinute: Schema.NullOr(Schema.Int),
      rateScope: Schema.Literals(["token", "user", "install"]),
      testCallsPerMinute: Schema.Int,
      failureThreshold: Schema.Int,
      attemptsPerEvent: Schema.Int,
      cycleSeconds: Schema.Int,
      rotationHours: Schema.Int,
      allowPrivateReceivers: Schema.Boolean
    })
  ),
  example: {
    input: { requestsPerMinute: 600, allowPrivateReceivers: true },
    output: { ...plainLimits, requestsPerMinute: 600, allowPrivateReceivers: true }
  },
  answer: ({ world, input }) => {
    const before: Limits = world.limits
    world.limits = { ...before, ...input }
    if (world.limits.cycleSeconds !== before.cycleSeconds) world.events.rebase()
    return jsonAnswer(world.limits)
  }
})

const dialect = route({
  method: "PUT",
  path: "/dialect",
  summary: "Switches to other readings of the service's documents.",
  description: "What is left out keeps its value. The answer has all switches.",
  input: Schema.Struct(switches),
  output: jsonOf(Schema.Struct(switches)),
  example: { input: { paging: "page", pageMax: 1000 }, output: { ...plainDialect, paging: "page", pageMax: 1000 } },
  answer: ({ world, input }) => {
    const changed: Dialect = { ...world.dialect, ...input }
    world.dialect = changed
    return jsonAnswer(changed)
  }
})

export const settingRoutes = [companies, limits, dialect]

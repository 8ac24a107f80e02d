/** Control calls for faults of the API's answers. */
import * as Schema from "effect/Schema"
import type { Fault } from "../../http/faults.ts"
import { faultKinds } from "../../http/faults.ts"
import { print } from "../../json.ts"
import { random } from "../../random.ts"
import { count, field, flag, optional } from "../Input.ts"
import { jsonAnswer, jsonOf, route } from "../Route.ts"

const httpStatus = Schema.Int.check(Schema.isBetween({ minimum: 200, maximum: 599 }))

const Rule = Schema.Struct({
  kind: field(
    Schema.Literals(faultKinds),
    `one of ${faultKinds.join(", ")}`,
    "`status`, `html` and `garbage` answer instead of the service: the work is not done. `reset` closes the connection before the work, `delay` waits before it. `dropResponse`, `truncate` and `slowBody` do the work and damage the answer"
  ),
  method: optional(Schema.String, "a string", "only this method"),
  path: optional(
    Schema.String,
    "a string",
    "a prefix of the path below the base address (`/orders`), or a glob with `*`"
  ),
  after: count(0, "skips this many matching requests first"),
  times: count(0, "maximum number of uses; default unlimited"),
  rate: optional(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    "from 0 to 1",
    "the probability with which the rule fires; default 1"
  ),
  status: optional(httpStatus, "from 200 to 599", "of `status`, `html` and `garbage`"),
  code: optional(
    Schema.Union([Schema.String, httpStatus]),
    "an error code, or a status from 200 to 599",
    "of `status`: the code of the error, or its status"
  ),
  headers: optional(
    Schema.Record(Schema.String, Schema.String),
    "an object of strings",
    "headers of the answer; without them, 429 has `Retry-After: 1`"
  ),
  body: optional(Schema.Unknown, "text or JSON", "the body of the answer, as text or JSON"),
  ms: count(0, "of `delay`, default 1000; of `slowBody` the time between two pieces, default 50"),
  bytes: count(0, "of `truncate` the bytes sent; of `slowBody` the bytes of a piece")
})

const globOf = (path: string): RegExp => {
  const escaped = (path.startsWith("/") ? path : `/${path}`)
    .split("*")
    .map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, "\\$&"))
    .join(".*")
  return new RegExp(`^${escaped}${path.includes("*") ? "$" : ""}`)
}

const faultOf = ({ kind, method, path, code, body, ...rule }: typeof Rule.Type): Fault => ({
  kind,
  method: method?.toUpperCase() ?? null,
  path: path === undefined ? null : globOf(path),
  after: rule.after ?? 0,
  times: rule.times ?? null,
  rate: rule.rate ?? 1,
  status: (typeof code === "number" ? code : rule.status) ?? null,
  code: typeof code === "string" ? code : null,
  headers: rule.headers ?? null,
  body: body === undefined ? null : typeof body === "string" ? body : print(body),
  ms: rule.ms ?? (kind === "delay" ? 1000 : 50),
  bytes: rule.bytes ?? null
})

const armed = jsonOf(Schema.Struct({ rules: Schema.Int.annotate({ description: "the number of active rules" }) }))

const arm = route({
  method: "POST",
  path: "/faults",
  summary: "Replaces the fault rules.",
  description:
    "The first rule that fires hits a request. Which one depends only on the rules, the seed and the order of requests.",
  input: Schema.Struct({
    rules: field(Schema.Array(Rule), "an array of rules", "the rules, in their order"),
    add: flag("whether the present rules stay, with their counts, before the new ones; default false"),
    seed: count(0, "the seed of `rate`; default 1")
  }),
  exact: ["body"],
  output: armed,
  example: {
    input: {
      rules: [
        { kind: "status", status: 503, path: "/orders", method: "GET", times: 2, headers: { "Retry-After": "5" } }
      ],
      seed: 3
    },
    output: { rules: 1 }
  },
  answer: ({ world, input }) => {
    const faults = input.rules.map(faultOf)
    if (input.add === true) world.faults.add(faults, random(input.seed ?? 1))
    else world.faults.arm(faults, random(input.seed ?? 1))
    return jsonAnswer({ rules: world.faults.all().length })
  }
})

const clear = route({
  method: "DELETE",
  path: "/faults",
  summary: "Removes all fault rules.",
  output: armed,
  example: { output: { rules: 0 } },
  answer: ({ world }) => {
    world.faults.clear()
    return jsonAnswer({ rules: 0 })
  }
})

export const faultRoutes = [arm, clear]

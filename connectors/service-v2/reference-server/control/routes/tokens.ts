/** Control calls for tokens. */
import * as Schema from "effect/Schema"
import { company, count, field, flag, instant, optional, whole } from "../Input.ts"
import { jsonAnswer, jsonOf, route } from "../Route.ts"
import { issueToken, revokeToken } from "../tokens.ts"

/** The first token of a server with the default seed. */
const exampleToken = "svct_a08700b38706fb26f7e747f69ce3b8826d01feac"

const tokenid = Schema.Int.annotate({ description: "as `GET /me` and the journal show it" })

const issue = route({
  method: "POST",
  path: "/tokens",
  summary: "Issues a token.",
  input: Schema.Struct({
    company,
    scopes: field(
      Schema.Array(Schema.String),
      'an array such as ["orders:read"] or ["*"]',
      "`area:access` each, or `*` alone for all"
    ),
    user: optional(
      Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(50)),
      "a login name of at most 50 characters",
      "the login of its user, created when absent; default `api`"
    ),
    supervisor: flag("whether the user is a supervisor in that company; default true"),
    active: flag("whether the user is active; default true"),
    usercompany: optional(whole(1), "a whole number from 1", "the company of the user; default: the token's"),
    expires: optional(Schema.NullOr(instant), "RFC 3339 in UTC, or null", "default null: the token does not expire")
  }),
  output: jsonOf(
    Schema.Struct({
      token: Schema.String.annotate({ description: "the bearer token; no other answer shows it" }),
      tokenid
    }),
    201
  ),
  example: {
    input: { company: 1, scopes: ["orders:read", "orders:write"], user: "ann" },
    output: { token: exampleToken, tokenid: 1 }
  },
  errors: ["A scope does not exist."],
  answer: ({ world, input }) => jsonAnswer(issueToken(world, input), 201)
})

const revoke = route({
  method: "POST",
  path: "/tokens/revoke",
  summary: "Revokes a token, from the next request on.",
  input: Schema.Struct({
    token: optional(Schema.String, "a token", "the token as it was issued"),
    tokenid: count(1, "the number of the token, instead of its text")
  }),
  output: jsonOf(Schema.Struct({ revoked: Schema.Literal(true), tokenid })),
  example: {
    input: { token: exampleToken },
    output: { revoked: true, tokenid: 1 }
  },
  errors: ["The token is not known."],
  answer: ({ world, input }) => jsonAnswer(revokeToken(world, input))
})

export const tokenRoutes = [issue, revoke]

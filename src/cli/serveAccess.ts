/** `tributary serve link` and `serve tokens`: access to the dashboard for a person and for programs. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as SqlClient from "effect/sql/SqlClient"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Configuration from "../configuration/Configuration.ts"
import * as AccessTokens from "../dashboard/AccessTokens.ts"
import * as SessionCookies from "../dashboard/SessionCookies.ts"
import * as Sessions from "../dashboard/Sessions.ts"
import { textFlag, warehouseCommand } from "./Command.ts"
import { operator, refuse } from "./company/Editing.ts"
import * as Output from "./Output.ts"

const readLink = Effect.fnUntraced(function* ({ dashboard: at }: Configuration.Configuration) {
  if (at === null) return yield* refuse("dashboard.listen is off; set an address, and restart tributary serve")
  if (at.port === 0 && at.publicUrl === null) {
    return yield* refuse("dashboard.listen has no port; give the address of the dashboard: --dashboard HOST:PORT")
  }
  const context = yield* Effect.context<SqlClient.SqlClient | SecureRandom.SecureRandom>()
  const cookies = yield* SessionCookies.make(at.password, Sessions.make(Effect.provideContext(context)))
  const token = yield* Effect.orDie(Effect.flatMap(SessionCookies.loadKeys(cookies), SessionCookies.linkToken))
  const host = at.host.includes(":") ? `[${at.host}]` : at.host
  const url = at.publicUrl ?? `${at.tls === null ? "http" : "https"}://${host}:${at.port}`
  return { link: `${url}/open?token=${token}` }
}, Effect.provide(SecureRandom.layerWebCrypto))

export const linkCommand = warehouseCommand({
  name: "link",
  description: "Print a link that opens the dashboard for acting, for twelve hours; it needs no password",
  examples: { "tributary serve link": "Open it in a browser" },
  flags: {
    dashboard: textFlag("dashboard", "HOST:PORT", "Address of the dashboard (default: dashboard.listen)")
  },
  run: (settings, { dashboard }, file) =>
    Effect.flatMap(
      Option.match(dashboard, {
        onNone: () => Effect.succeed(settings),
        onSome: (at) => Configuration.load({ config: Option.getOrUndefined(file), dashboard: at }, process.env)
      }),
      readLink
    ),
  lines: ({ link }) => [link]
})

const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name of the token"))

const add = warehouseCommand({
  name: "add",
  description: "Make a token by which a program reads the dashboard and /mcp; it is shown once",
  examples: { "tributary serve tokens add assistant": "Prints the token" },
  flags: { name: nameArgument },
  makesWarehouse: true,
  run: (_, { name }) =>
    Effect.gen(function* () {
      if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name)) {
        return yield* refuse(`${name} is no name of a token: lower case letters, digits, - and _, at most 63`)
      }
      const token = yield* AccessTokens.add(name, yield* operator)
      return token === null
        ? yield* refuse(`there is a token ${name} already; revoke it: tributary serve tokens revoke ${name}`)
        : { name, token }
    }).pipe(Effect.provide(SecureRandom.layerWebCrypto)),
  lines: ({ name, token }) => [
    token,
    `Token ${name} reads the dashboard and /mcp (Authorization: Bearer). It is not shown again.`
  ]
})

const list = warehouseCommand({
  name: "list",
  description: "Show the tokens of programs and their last use; never a token itself",
  examples: { "tributary serve tokens list --json": "For programs" },
  flags: {},
  run: () => Effect.map(AccessTokens.list, (tokens) => ({ tokens })),
  lines: ({ tokens }) =>
    tokens.length === 0
      ? ["there is no token; make one: tributary serve tokens add NAME"]
      : [
          Output.table(
            ["token", "made", "by", "last use"],
            tokens.map(({ createdAt, createdBy, name, usedAt }) => [
              name,
              createdAt.toISOString(),
              createdBy,
              usedAt?.toISOString() ?? "never"
            ])
          )
        ]
})

const revoke = warehouseCommand({
  name: "revoke",
  description: "Revoke a token",
  examples: { "tributary serve tokens revoke assistant": "Refused from the next request on" },
  flags: { name: nameArgument },
  run: (_, { name }) =>
    Effect.gen(function* () {
      if (yield* AccessTokens.revoke(name)) return { name }
      return yield* refuse(`there is no token ${name}; see them with tributary serve tokens list`)
    }),
  lines: ({ name }) => [`Token ${name} is revoked: every process refuses it from the next request on`]
})

export const tokensCommand = Command.make("tokens").pipe(
  Command.withDescription("Add, list and revoke tokens by which programs read the dashboard"),
  Command.withSubcommands([add, list, revoke])
)

/** `tributary budget`: how the request budget of each company stands, who asked for a pause, and how to end it. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as SqlClient from "effect/sql/SqlClient"
import { tellHold } from "../budget/Hold.ts"
import { fingerprintOf } from "../budget/PostgresLedger.ts"
import * as Standing from "../budget/Standing.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import { company, config, configuration, json, reported } from "./Command.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Warehouse from "./Warehouse.ts"

/** The companies that the flags name, with what their budgets are called in the warehouse. */
const wantedOf = (settings: Configuration, names: ReadonlyArray<string>) => {
  const unknown = names.filter((name) => !settings.companies.some((one) => one.name === name))
  if (unknown.length > 0) {
    return new CommandFailed({
      code: exitCode.usage,
      message: `no company of the configuration: ${unknown.join(", ")}`
    })
  }
  return Effect.succeed(
    settings.companies
      .filter(({ name }) => names.length === 0 || names.includes(name))
      .map(({ name, token, url }) => ({ name, fingerprint: fingerprintOf(url, token, settings.budgetScope) }))
  )
}

const lineOf = (name: string, standing: Standing.BudgetStanding | undefined, now: number): ReadonlyArray<string> => {
  if (standing === undefined) return [`${name}: no request has been made yet`]
  const { allowed, configured, heldBy, heldUntil, isProbing, refusals, used } = standing
  const limit =
    configured === null
      ? "no limit"
      : `${Output.count(allowed ?? configured)} of ${Output.count(configured)} requests a minute may be used`
  return [
    `${name}: ${limit}, ${Output.count(used)} used now, ${Output.count(refusals)} answers 429`,
    ...(heldUntil === null
      ? []
      : [
          `  nothing is sent until ${heldUntil.toISOString()} (${Output.elapsed(heldUntil.getTime() - now)}): ` +
            (heldBy === null ? "an answer asked to wait" : tellHold(heldBy)),
          "  what to do: wait, or when the fault is gone: npx tributary budget release"
        ]),
    ...(isProbing
      ? ["  a pause ended before its Retry-After: the next request is a probe, the others wait for its answer"]
      : [])
  ]
}

const release = Command.make(
  "release",
  { company, config, json },
  Effect.fn(function* (flags) {
    const released = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        const wanted = yield* wantedOf(settings, flags.company)
        return yield* Warehouse.provide(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            return yield* Effect.forEach(wanted, ({ fingerprint, name }) =>
              Effect.map(
                sql<{ readonly released: boolean }>`select tributary.release_budget(${fingerprint}) as released`,
                ([row]) => ({ company: name, released: row?.released === true })
              )
            )
          }),
          settings
        )
      })
    )
    if (flags.json) return yield* Output.print(Output.toJson({ companies: released }))
    for (const { company, released: was } of released) {
      yield* Output.print(
        was ? `${company}: released; running processes send again within 5 s` : `${company}: there was no pause`
      )
    }
  })
).pipe(
  Command.withDescription("End the pause that a Retry-After requested; every process on the warehouse sends again"),
  Command.withExamples([
    { command: "tributary budget release", description: "For every company" },
    { command: "tributary budget release --company main", description: "For one" }
  ])
)

export const command = Command.make(
  "budget",
  { company, config, json },
  Effect.fn(function* (flags) {
    const { now, standings, wanted } = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        const wanted = yield* wantedOf(settings, flags.company)
        return yield* Warehouse.provide(
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            const [row] = yield* sql<{ readonly now: Date }>`select tributary.now() as now`
            return {
              wanted,
              now: row!.now.getTime(),
              standings: yield* Standing.read(wanted.map(({ fingerprint }) => fingerprint))
            }
          }),
          settings
        )
      })
    )
    const standingOf = (fingerprint: string) => standings.find((one) => one.fingerprint === fingerprint)
    if (flags.json) {
      const companies = wanted.map(({ fingerprint, name }) => {
        const found = standingOf(fingerprint)
        if (found === undefined) return { company: name, budget: null }
        const { fingerprint: _, ...budget } = found
        return { company: name, budget }
      })
      return yield* Output.print(Output.toJson({ companies }))
    }
    for (const { fingerprint, name } of wanted) {
      for (const line of lineOf(name, standingOf(fingerprint), now)) yield* Output.print(line)
    }
  })
).pipe(
  Command.withDescription("Show how many requests each company may make, and who asked for a pause until when"),
  Command.withExamples([{ command: "tributary budget", description: "Every company" }]),
  Command.withSubcommands([release])
)

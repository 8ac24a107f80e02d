/** `tributary budget`: the request budget of each company, the answer that requested a pause, and how to end the pause. */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { describePause } from "../budget/Pause.ts"
import { fingerprintOf } from "../budget/PostgresPermitStore.ts"
import * as BudgetState from "../budget/BudgetState.ts"
import { chooseCompanies } from "../configuration/Configuration.ts"
import { company, config, configuration, json, reported } from "./Command.ts"
import * as Output from "./Output.ts"
import * as Warehouse from "./Warehouse.ts"

/** Asks the warehouse about the budget of each company that the flags name. */
const eachCompany = <A>(
  flags: { readonly company: ReadonlyArray<string>; readonly config: Option.Option<string> },
  ask: (fingerprint: string) => Effect.Effect<A, SqlError, SqlClient.SqlClient>
) =>
  reported(
    Effect.gen(function* () {
      const settings = yield* configuration(flags.config)
      const wanted = yield* chooseCompanies(settings, flags.company)
      return yield* Warehouse.provide(
        Effect.forEach(wanted, ({ name, token, url }) =>
          Effect.map(ask(fingerprintOf(url, token, settings.budgetScope)), (answer) => ({ name, answer }))
        ),
        settings
      )
    })
  )

const lineOf = (name: string, standing: BudgetState.BudgetState | undefined, now: number): ReadonlyArray<string> => {
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
            (heldBy === null ? "an answer requested a pause" : describePause(heldBy)),
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
    const released = yield* eachCompany(flags, (fingerprint) =>
      Effect.flatMap(SqlClient.SqlClient, (sql) =>
        Effect.map(
          sql<{ readonly released: boolean }>`select tributary.release_budget(${fingerprint}) as released`,
          ([row]) => row?.released === true
        )
      )
    )
    if (flags.json) {
      const companies = released.map(({ name, answer }) => ({ company: name, released: answer }))
      return yield* Output.print(Output.toJson({ companies }))
    }
    for (const { name, answer } of released) {
      yield* Output.print(
        answer ? `${name}: released; running processes send again within 5 s` : `${name}: there was no pause`
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
    const standings = yield* eachCompany(flags, (fingerprint) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ readonly now: Date }>`select tributary.now() as now`
        const [standing] = yield* BudgetState.readBudgets([fingerprint])
        return { now: row!.now.getTime(), standing }
      })
    )
    if (flags.json) {
      const companies = standings.map(({ name, answer: { standing } }) => {
        if (standing === undefined) return { company: name, budget: null }
        const { fingerprint: _, ...budget } = standing
        return { company: name, budget }
      })
      return yield* Output.print(Output.toJson({ companies }))
    }
    for (const { name, answer } of standings) {
      for (const line of lineOf(name, answer.standing, answer.now)) yield* Output.print(line)
    }
  })
).pipe(
  Command.withDescription("Show how many requests each company may make, and until when an answer paused them"),
  Command.withExamples([{ command: "tributary budget", description: "Every company" }]),
  Command.withSubcommands([release])
)

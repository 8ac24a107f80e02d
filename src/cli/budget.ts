/** The command `budget`: the rate budget of each company, its pause, and the end of the pause. */
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import { describePause } from "../budget/Pause.ts"
import { companyFingerprint } from "../budget/TokenFingerprint.ts"
import * as BudgetState from "../budget/BudgetState.ts"
import { chooseCompanies } from "../configuration/Configuration.ts"
import type * as Sql from "../postgres/Sql.ts"
import { company, config, json, onWarehouse, withExamples } from "./Command.ts"
import * as Output from "./Output.ts"

/** Reads from the warehouse for each company that the flags name. */
const eachCompany = <A>(
  flags: { readonly company: ReadonlyArray<string>; readonly config: Option.Option<string> },
  ask: (fingerprint: string) => Sql.Query<A>
) =>
  onWarehouse(
    flags,
    Effect.fnUntraced(function* (settings) {
      const wanted = yield* chooseCompanies(settings, flags.company)
      return yield* Effect.forEach(wanted, (one) =>
        Effect.map(ask(companyFingerprint(one)), (answer) => ({ name: one.name, answer }))
      )
    })
  )

const budgetLines = (name: string, state: BudgetState.BudgetState | undefined): ReadonlyArray<string> => {
  if (state === undefined) return [`${name}: no request has been made yet`]
  const { allowed, configured, pausedBy, pausedMs, pausedUntil, isProbing, refusals, used } = state
  const limit =
    configured === null
      ? "no limit"
      : `${Output.count(allowed ?? configured)} of ${Output.count(configured)} requests a minute may be used`
  return [
    `${name}: ${limit}, ${Output.count(used)} used now, ${Output.count(refusals)} answers 429`,
    ...(pausedUntil === null
      ? []
      : [
          `  nothing is sent until ${pausedUntil.toISOString()} (${Output.elapsed(pausedMs)}): ` +
            (pausedBy === null ? "an answer requested a pause" : describePause(pausedBy)),
          "  what to do: wait, or when the fault is gone: tributary budget release"
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
    const released = yield* eachCompany(flags, BudgetState.releaseBudget)
    const companies = released.map(({ name, answer }) => ({ company: name, released: answer }))
    yield* Output.printResult(flags.json, { companies }, () =>
      companies.map(({ company, released }) =>
        released ? `${company}: released; running processes send again within 5 s` : `${company}: there was no pause`
      )
    )
  })
).pipe(
  Command.withDescription("End the pause that a Retry-After requested; every process on the warehouse sends again"),
  withExamples({
    "tributary budget release": "For every company",
    "tributary budget release --company main": "For one"
  })
)

export const command = Command.make(
  "budget",
  { company, config, json },
  Effect.fn(function* (flags) {
    const budgets = yield* eachCompany(flags, (fingerprint) => BudgetState.readBudgets([fingerprint]))
    const companies = budgets.map(({ name, answer: [state] }) => {
      if (state === undefined) return { company: name, budget: null }
      const { fingerprint: _, readAt: __, ...budget } = state
      return { company: name, budget }
    })
    yield* Output.printResult(flags.json, { companies }, () =>
      budgets.flatMap(({ name, answer: [state] }) => budgetLines(name, state))
    )
  })
).pipe(
  withExamples({
    "tributary budget": "Every company"
  }),
  Command.withSubcommands([release])
)

/** What the `tributary company` commands share: the settings, the person, the token, and its check by the source. */
import { hostname, userInfo } from "node:os"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { text } from "node:stream/consumers"
import * as CompanyStore from "../../companies/CompanyStore.ts"
import * as Removal from "../../companies/Removal.ts"
import * as StoredCompanies from "../../companies/StoredCompanies.ts"
import { companiesKeyVariable, type CompanyConfiguration } from "../../configuration/Companies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { variables } from "../../configuration/Inputs.ts"
import { switchFlag, textFlag } from "../Command.ts"
import { CommandFailed, exitCode, exitCodeOfSource, usageError } from "../Exit.ts"
import * as Output from "../Output.ts"
import * as Targets from "../Targets.ts"
import * as Argument from "effect/cli/Argument"

export const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name of the company"))

export const tokenFlags = {
  tokenEnv: textFlag("token-env", "VAR", "The environment variable (or .env entry) that has the token"),
  tokenStdin: switchFlag("token-stdin", "Read the token from the standard input")
}

/** The person and the machine, for the record. */
export const operator = Effect.sync(() => `${userInfo().username}@${hostname()}`)

export const refuse = (message: string) => new CommandFailed({ code: exitCode.configuration, message })

/** The key of the tokens. */
export const requireKey = ({ companiesKey }: Configuration) =>
  companiesKey === null
    ? Effect.fail(
        refuse(
          `${companiesKeyVariable} is not set: it seals the tokens in the warehouse. Make a key with openssl rand ` +
            "-base64 32, keep a copy, and set it for every process of tributary"
        )
      )
    : Effect.succeed(companiesKey)

/** A secret from the variable that a flag names. */
export const readVariable = Effect.fnUntraced(function* (flag: string, name: string, label = flag) {
  const value = (yield* variables(process.env))(name)
  if (value === undefined) return yield* refuse(`the variable of ${flag} is not set in the environment or .env`)
  return Redacted.make(value, { label })
})

/** Reads the token that the flags name. */
export const readToken = Effect.fnUntraced(function* (
  name: string,
  flags: { readonly tokenEnv: Option.Option<string>; readonly tokenStdin: boolean }
) {
  const label = `token of ${name}`
  if (flags.tokenStdin === Option.isSome(flags.tokenEnv)) {
    return yield* usageError("name the token: --token-env VAR, or --token-stdin")
  }
  if (Option.isSome(flags.tokenEnv)) return yield* readVariable("--token-env", flags.tokenEnv.value, label)
  const value = (yield* Effect.promise(() => text(process.stdin))).trim()
  return value === "" ? yield* usageError("the standard input has no token") : Redacted.make(value, { label })
})

/** The rows of the warehouse. A key that opens none of them is refused, since other tokens were sealed with another. */
export const readRows = Effect.fnUntraced(function* (key: Redacted.Redacted) {
  const rows = yield* CompanyStore.read
  const sealed = rows.filter(({ token }) => token === null)
  if (sealed.length > 0 && sealed.every((row) => CompanyStore.tokenOf(key, row) === null)) {
    return yield* refuse(
      `${companiesKeyVariable} opens no token of the warehouse (${Output.firstOf(
        sealed.map(({ company }) => company),
        3
      )}): set the key with which they were added; where it is lost, store each token again: tributary company ` +
        "rotate-token NAME --token-stdin --new-key"
    )
  }
  return rows
})

/** A company of the warehouse by its name. */
export const requireRow = Effect.fnUntraced(function* (settings: Configuration, name: string) {
  const row = yield* CompanyStore.find(name)
  if (row !== undefined) return row
  return yield* settings.companies.some((one) => one.name === name)
    ? refuse(`company ${name} is in the configuration file: change it there, and restart tributary serve`)
    : refuse(`the warehouse has no company ${name}; see them with tributary company list`)
})

/** Identifies the company by its token. Nothing is written. */
export const identify = Effect.fnUntraced(function* (settings: Configuration, company: CompanyConfiguration) {
  const { connector } = yield* Targets.connectOne(settings, company)
  const address = connector.source?.address ?? null
  return yield* Effect.map(connector.identify, (identity) => ({ identity, address })).pipe(
    Effect.mapError(
      (error) =>
        new CommandFailed({
          code: exitCodeOfSource(error),
          message: `company ${company.name}: ${Output.shown(error.message)}; nothing was stored\n  what to do: ${Output.shown(error.remedy)}`
        })
    )
  )
}, Effect.scoped)

/** The company that a row describes, with a token. */
export const companyOf = Effect.fnUntraced(function* (
  file: Configuration,
  row: Parameters<typeof StoredCompanies.settingsOf>[0],
  token: Redacted.Redacted
) {
  const settings = StoredCompanies.settingsOf(row, file)
  return settings._tag === "Success"
    ? { ...settings.success, token, paused: null }
    : yield* usageError(`company ${row.company}: ${settings.failure}`)
})

/** The number of all rows, for people. */
export const rowTotal = (rows: Removal.RowCounts): string =>
  Output.plural(
    Object.values(rows).reduce((sum, count) => sum + count, 0),
    "row"
  )

/** The number of rows of each table, for people; nothing without a row. */
export const rowTable = (rows: Removal.RowCounts): ReadonlyArray<string> =>
  Object.keys(rows).length === 0
    ? []
    : [
        Output.table(
          ["table", "rows"],
          Object.entries(rows).map(([table, count]) => [table, Output.count(count)]),
          ["left", "right"]
        )
      ]

/** Processes apply a change within five seconds; a killed one counts as alive for a minute. */
const waitSecondsMax = 75

/** Waits until no process works on the company. `again` says what to do where one still does. */
export const awaitProcesses = Effect.fnUntraced(function* (name: string, companyId: bigint | null, again: string) {
  const revision = yield* CompanyStore.readRevision
  yield* Removal.countLateProcesses(revision).pipe(
    Effect.repeat({ until: (processes) => processes === 0, schedule: Schedule.spaced("250 millis") }),
    Effect.timeoutOrElse({
      duration: waitSecondsMax * 1000,
      orElse: () => Effect.fail(refuse(`a process of serve has not ended its work on the company yet; ${again}`))
    })
  )
  const { runs } = yield* Removal.readUnfinished(name, companyId)
  if (runs > 0) return yield* refuse(`${Output.plural(runs, "run")} of a command is in progress; ${again}`)
})

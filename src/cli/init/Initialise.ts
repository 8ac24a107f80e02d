/**
 * The steps of `tributary init`: each answer from a flag, a variable, or a person at the terminal.
 *
 * Promise: nothing is written before everything was checked: each token at the source, the database, and the
 * configuration by its own loader. A run that stops earlier leaves the folder unchanged. A token is `Redacted`, is not
 * shown while it is typed, and is written to `.env` alone, which only its owner can read.
 */
import { parse as parseDotEnv } from "dotenv"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Terminal from "effect/Terminal"
import * as Prompt from "effect/cli/Prompt"
import { settingsFileDefault, variables } from "../../configuration/Inputs.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import { CommandFailed, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"
import { Source } from "../Source.ts"
import { chooseExcluded, readCompanies } from "./Companies.ts"
import * as Files from "./Files.ts"
import { failWith, type InitContext, type InitOptions, type Variables } from "./InitContext.ts"
import { companyReport, type InitReport, nextCommands } from "./Report.ts"
import { chooseWarehouse, databaseUrlVariable } from "./WarehouseChoice.ts"
import { describeProblems, type Draft, environmentFile, loadDraft, write } from "./Write.ts"

/** Looks at a file. One that cannot be used ends the command. */
const reading = <A>(path: string, read: (path: string) => A) =>
  ReadFile.attempt(path, () => read(path)).pipe(
    Effect.catch(({ message }) => failWith(exitCode.configuration, message))
  )

/** Whether the configuration may be written: it is new, or its replacement is allowed. */
const mayWrite = Effect.fnUntraced(function* ({ file, options }: InitContext) {
  if (!(yield* reading(file, ReadFile.exists)) || options.replace) return true
  if (!options.isInteractive) {
    return yield* failWith(
      exitCode.configuration,
      `${file} exists already: --replace replaces it and keeps a copy beside it`
    )
  }
  return yield* Prompt.Confirm({
    message: `${file} exists already. Replace it (a copy is kept beside it)?`,
    initial: false
  })
})

/** The new text of `.env`. A replaced value becomes a note, and needs `--replace` in a script. */
const mergeSecrets = Effect.fnUntraced(function* (context: InitContext, secrets: Draft["secrets"]) {
  const { notes, options } = context
  const before = (yield* reading(environmentFile, ReadFile.textIfPresent)) ?? ""
  const dotEnv = parseDotEnv(before)
  const values = new Map([...secrets].map(([name, value]) => [name, Redacted.value(value)]))
  const replaced = [...values.keys()].filter(
    (name) => dotEnv[name] !== undefined && dotEnv[name].trim() !== values.get(name)
  )
  if (replaced.length > 0 && !options.isInteractive && !options.replace) {
    return yield* failWith(
      exitCode.configuration,
      `${environmentFile} has another value of ${replaced.join(", ")}: --replace replaces it`
    )
  }
  for (const name of replaced) notes.push(`${name} in ${environmentFile} was replaced`)
  const merged = Files.mergedEnvironment(before, values)
  if ("unwritable" in merged) {
    return yield* failWith(
      exitCode.configuration,
      `${merged.unwritable} cannot be written to ${environmentFile} so that it is read back: set it in the environment, or edit the file by hand`
    )
  }
  return merged.text
})

const writeFiles = Effect.fnUntraced(function* ({ file, notes }: InitContext, draft: Draft, environmentText: string) {
  const ignored = yield* reading(".gitignore", ReadFile.textIfPresent)
  const written = yield* write(file, Files.configurationText(draft), environmentText).pipe(
    Effect.mapError((error) => new CommandFailed({ code: exitCode.fault, message: `cannot write: ${error}` })),
    Effect.uninterruptible
  )
  if (written.wasOpen) notes.push(`other users could read ${environmentFile}; now only its owner can`)
  if (ignored !== null && !Files.ignoresEnvironment(ignored)) {
    notes.push(`.gitignore does not name ${environmentFile}: add it, so that no token gets into the repository`)
  }
  return written
})

/** Null when the person keeps the existing configuration. */
export const initialise = Effect.fn("initialise")(function* (
  options: InitOptions,
  environment: Variables
): Effect.fn.Return<InitReport | null, CommandFailed | Terminal.QuitError, Source | Prompt.Environment> {
  const context: InitContext = {
    options,
    catalogue: (yield* Source).catalogue,
    environment,
    variable: yield* variables(environment).pipe(
      Effect.catch((error) => failWith(exitCode.configuration, describeProblems(error)))
    ),
    file: options.config ?? settingsFileDefault,
    notes: []
  }
  if (!(yield* mayWrite(context))) {
    yield* Output.note("Nothing was written.")
    return null
  }
  const mistaken = options.tokenVariables.find((name) => !/^[A-Za-z_]\w*$/.test(name))
  if (mistaken !== undefined) return yield* failWith(exitCode.usage, `${mistaken} is no name of a variable`)
  const companies = yield* readCompanies(context)
  const warehouse = yield* chooseWarehouse(context)
  const excludedResources = yield* chooseExcluded(context, companies)
  const draft: Draft = {
    companies,
    excludedResources,
    hasDatabaseUrl: warehouse.url !== null,
    secrets: new Map([
      ...companies.map(({ tokenVariable, token }) => [tokenVariable, token] as const),
      ...(warehouse.url === null ? [] : [[databaseUrlVariable, warehouse.url] as const])
    ])
  }
  yield* loadDraft(context, draft).pipe(
    Effect.catch((error) => failWith(exitCode.configuration, describeProblems(error)))
  )
  const written = yield* writeFiles(context, draft, yield* mergeSecrets(context, draft.secrets))
  return {
    config: context.file,
    schema: written.schema,
    environment: environmentFile,
    variables: [...draft.secrets.keys()],
    backup: written.backup,
    companies: companies.map((company) => companyReport(context, excludedResources, company)),
    excluded: excludedResources,
    warehouse: warehouse.description,
    notes: context.notes,
    next: nextCommands(context)
  }
}, reportStop)

/** Ctrl-C at a question is an interrupt, which changed nothing. */
function reportStop<A, R>(
  steps: Effect.Effect<A, CommandFailed | Terminal.QuitError, R>
): Effect.Effect<A, CommandFailed, R> {
  return steps.pipe(
    Effect.catchTag("QuitError", () => Effect.interrupt),
    Effect.onInterrupt(() => Output.note("\nStopped; nothing was written."))
  )
}

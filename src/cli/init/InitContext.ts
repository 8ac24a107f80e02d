/** The context of `tributary init`: the command line, the variables, and the notes that its steps share. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Prompt from "effect/cli/Prompt"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import { CommandFailed, type ExitCode, exitCode } from "../Exit.ts"
import * as Output from "../Output.ts"

/** The command line; null where a flag is absent. */
export interface InitOptions {
  readonly url: string | null
  readonly companies: ReadonlyArray<string>
  readonly tokenVariables: ReadonlyArray<string>
  /** Whether resources with personal data are read too. */
  readonly withPersonalData: boolean
  readonly replace: boolean
  readonly config: string | null
  /** Whether a person at a terminal can answer questions. */
  readonly isInteractive: boolean
}

export type Variables = Readonly<Record<string, string | undefined>>

export interface InitContext {
  readonly options: InitOptions
  readonly catalogue: Catalogue
  /** The environment of the process, which precedes `.env`. */
  readonly environment: Variables
  /** A variable of the environment or of `.env`. */
  readonly variable: (name: string) => string | undefined
  /** The configuration file that is written. */
  readonly file: string
  /** Warnings of the report. Steps append to it. */
  readonly notes: Array<string>
}

/** Adds a note where the environment has another value, since it precedes `.env`. */
export const noteOverridden = ({ environment, notes }: InitContext, name: string, value: Redacted.Redacted): void => {
  const current = environment[name]?.trim() ?? ""
  if (current !== "" && current !== Redacted.value(value)) {
    notes.push(`${name} has another value in the environment, which precedes .env: unset it there`)
  }
}

/** A failure before anything was written. */
export const failWith = (code: ExitCode, message: string) =>
  Effect.fail(new CommandFailed({ code, message: `${message}; nothing was written` }))

/** The failure of a question that no flag or variable answers. */
export const failUnanswered = (message: string) =>
  failWith(exitCode.usage, `${message}, and there is no terminal for a prompt`)

/** A line for the person at the terminal. */
export const say = ({ options }: InitContext, line: string): Effect.Effect<void> =>
  options.isInteractive ? Output.note(line) : Effect.void

/**
 * A text typed at the terminal; an empty one is the default, which the message shows. `read` returns the text to use, or
 * what is wrong with it.
 */
export const askText = (
  message: string,
  otherwise: string,
  read: (text: string) => { readonly value: string } | { readonly problem: string }
) =>
  // The prompt's own default is text that the person would add to.
  Prompt.String({
    message: otherwise === "" ? `${message}:` : `${message} (Enter for ${otherwise}):`,
    validate: (typed) => {
      const text = typed.trim()
      const answer = read(text === "" ? otherwise : text)
      return "problem" in answer ? Effect.fail(answer.problem) : Effect.succeed(answer.value)
    }
  })

/** A secret typed at the terminal, without an echo. `problemOf` returns null for a valid one. */
export const askSecret = (message: string, label: string, problemOf: (text: string) => string | null) =>
  Effect.map(
    Prompt.Hidden({
      message,
      validate: (value) => {
        const text = value.trim()
        const problem = problemOf(text)
        return problem === null ? Effect.succeed(text) : Effect.fail(problem)
      }
    }),
    (value) => Redacted.make(Redacted.value(value), { label })
  )

/** The inputs of a configuration: flags, environment, `.env` and the settings file. */
import { parse as parseDotEnv } from "dotenv"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as ReadFile from "../files/ReadFile.ts"
import { ConfigurationError } from "./ConfigurationError.ts"
import { allowedNames, Settings } from "./Settings.ts"

export interface ConfigurationFlags {
  readonly config?: string | undefined
  readonly url?: string | undefined
  /** `host:port` for deliveries. */
  readonly listen?: string | undefined
  /** `host:port` for health and metrics. */
  readonly monitoring?: string | undefined
  /** `host:port` or `off` for the dashboard. */
  readonly dashboard?: string | undefined
}

interface SettingsFile {
  /** The file; null without one. */
  readonly path: string | null
  readonly settings: Settings
  /** The valid settings as the file has them. */
  readonly written: Readonly<Record<string, unknown>>
  /** `file:line:column` of the nearest node that exists, and the name of the setting; for messages. */
  readonly place: (...keys: ReadonlyArray<string | number>) => string
}

export interface Inputs extends SettingsFile {
  readonly flags: ConfigurationFlags
  /** A value of the environment or `.env`. */
  readonly variable: (name: string) => string | undefined
  /** Mistakes found so far. Each part of the configuration adds its own. */
  readonly problems: Array<string>
}

export const settingsFileDefault = "config/tributary.yaml"

/** The text of a file; null where it does not exist. */
const textIfPresent = (file: string): Effect.Effect<string | null, ConfigurationError> =>
  Effect.mapError(
    ReadFile.attempt(file, () => ReadFile.textIfPresent(file)),
    ({ message }) => new ConfigurationError({ problems: [message] })
  )

/** `docker run --env-file` keeps the quotes of a value. A shell, systemd, Compose and `.env` remove them. */
export const unquoted = (value: string | undefined) => value?.trim().replace(/^(["'])(.*)\1$/s, "$2")

/** Values of the environment, else of `.env`. An empty value counts as unset and hides nothing. */
export const variables = Effect.fnUntraced(function* (
  environment: Readonly<Record<string, string | undefined>>
): Effect.fn.Return<(name: string) => string | undefined, ConfigurationError> {
  const dotEnv = parseDotEnv((yield* textIfPresent(".env")) ?? "")
  return (name) =>
    [unquoted(environment[name]), dotEnv[name]]
      .map((value) => value?.trim())
      .find((value) => value !== undefined && value !== "")
})

/** A variable's name for messages. A secret in the place of a name is not repeated. */
export const variableStatus = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) && !name.startsWith("whsec_") ? name : "the variable that is named"

/** A token or password from the variable that a setting names, else from the default variable. */
export const secretVariable = (
  { place, problems, variable }: Inputs,
  section: string,
  key: string,
  name: string | null,
  nameDefault: string
): string | undefined => {
  const secret = variable(name ?? nameDefault)
  if (name !== null && secret === undefined)
    problems.push(`${place(section, key)}: ${name} is not set in the environment or .env`)
  return secret
}

const decodeSettings = Schema.decodeUnknownResult(Settings, { errors: "all", onExcessProperty: "error" })

interface Mistake {
  readonly path: ReadonlyArray<PropertyKey>
  readonly message: string
}

const excessProperty = "Expected no excess property"

const isOfShape = ({ message }: Mistake): boolean => message === excessProperty || message === "Missing key"

/** The mistakes of a union: those of the form that the value resembles most, or one that names all forms. */
const mistakesOfUnion = (issue: SchemaIssue.AnyOf, path: Mistake["path"]): ReadonlyArray<Mistake> => {
  const [best, next] = issue.issues
    .map((member) => mistakesOf(member, path))
    .filter((mistakes) =>
      mistakes.every((one) => one.path.length > path.length || !one.message.startsWith('Expected "'))
    )
    .map((mistakes) => ({ mistakes, strange: mistakes.filter(isOfShape).length }))
    .sort((a, b) => a.strange - b.strange)
  const isClear = best !== undefined && (next === undefined || best.strange < next.strange)
  const message = issue.ast.annotations?.["message"]
  return isClear || typeof message !== "string" ? (best?.mistakes ?? []) : [{ path, message }]
}

/** The mistakes of a file, or of a part at `path`, by their places. */
export const mistakesIn = (issue: SchemaIssue.Issue, path: Mistake["path"] = []): ReadonlyArray<Mistake> =>
  mistakesOf(issue, path).map(({ path, message }) => ({
    path,
    message:
      message === excessProperty
        ? // A file of YAML has no symbols as keys.
          `there is no such setting; allowed: ${allowedNames(path.slice(0, -1) as ReadonlyArray<string | number>)}`
        : message.replace(/^Expected/, "expected")
  }))

const mistakesOf = (issue: SchemaIssue.Issue, path: Mistake["path"] = []): ReadonlyArray<Mistake> => {
  switch (issue._tag) {
    case "Pointer":
      return mistakesOf(issue.issue, [...path, ...issue.path])
    case "Encoding":
      return mistakesOf(issue.issue, path)
    case "Composite":
      return issue.issues.flatMap((one) => mistakesOf(one, path))
    case "AnyOf":
      if (issue.issues.length > 0) return mistakesOfUnion(issue, path)
  }
  return SchemaIssue.makeFormatterStandardSchemaV1()(issue).issues.map((one) => ({
    path: [...path, ...(one.path ?? []).map((part) => (typeof part === "object" ? part.key : part))],
    message: one.message
  }))
}

/** Decodes the text of a YAML file by the Schema. Each mistake carries its line. */
const decodeFile = (file: string, text: string): Effect.Effect<SettingsFile, ConfigurationError> =>
  Effect.gen(function* () {
    const { isNode, LineCounter, parseDocument } = yield* Effect.promise(() => import("yaml"))
    const lines = new LineCounter()
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
    const problem = (offset: number, message: string) => {
      const { line, col } = lines.linePos(offset)
      return `${file}:${line}:${col}: ${message}`
    }
    if (document.errors.length > 0) {
      return yield* new ConfigurationError({
        problems: document.errors.map((error) => problem(error.pos[0], error.message))
      })
    }
    const written = (document.toJS() ?? {}) as SettingsFile["written"]
    const decoded = decodeSettings(written)
    const at = (keys: ReadonlyArray<unknown>): number => {
      // A missing key has no node of its own.
      for (let length = keys.length; length >= 0; length -= 1) {
        const node = length === 0 ? document.contents : document.getIn(keys.slice(0, length), true)
        if (isNode(node) && node.range) return node.range[0]
      }
      return 0
    }
    if (decoded._tag === "Success") {
      return { path: file, settings: decoded.success, written, place: (...keys) => problem(at(keys), keys.join(".")) }
    }
    const problems = mistakesIn(decoded.failure.issue).map(({ path, message }) =>
      problem(at(path), `${path.join(".")}: ${message}`)
    )
    return yield* new ConfigurationError({ problems })
  })

/** Reads flags, environment and settings file. A file that a flag names must exist. */
export const readInputs = Effect.fn("Inputs.readInputs")(function* (
  flags: ConfigurationFlags,
  environment: Readonly<Record<string, string | undefined>>
): Effect.fn.Return<Inputs, ConfigurationError> {
  const variable = yield* variables(environment)
  const file = flags.config ?? settingsFileDefault
  const text = yield* textIfPresent(file)
  if (flags.config !== undefined && text === null) {
    return yield* new ConfigurationError({ problems: [`${file}: there is no such file`] })
  }
  const settingsFile: SettingsFile =
    text === null
      ? {
          path: null,
          settings: Schema.decodeUnknownSync(Settings)({}),
          written: {},
          place: (...keys) => keys.join(".")
        }
      : yield* decodeFile(file, text)
  return { ...settingsFile, flags, variable, problems: [] }
})

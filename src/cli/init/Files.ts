/**
 * The texts that `tributary init` writes: the configuration and `.env`.
 *
 * Promise: the configuration holds no secret. Only replaced values of `.env` are lost. A written value is read back as
 * the same value.
 */
import { parse as parseDotEnv } from "dotenv"
import * as Duration from "effect/Duration"
import { stringify } from "yaml"
import { freshnessDefault } from "../../sync/EngineSettings.ts"

export interface CompanyText {
  readonly name: string
  readonly url: string
  readonly tokenVariable: string
}

export interface ConfigurationValues {
  readonly companies: ReadonlyArray<CompanyText>
  /** Resources that no company reads. */
  readonly excludedResources: ReadonlyArray<string>
  /** True when DATABASE_URL names the warehouse. */
  readonly hasDatabaseUrl: boolean
}

export const schemaName = "tributary.schema.json"

/** A value in YAML; also the versions of YAML that read `yes` or `off` as a truth value read it as text. */
const scalar = (value: string): string => stringify(value, { version: "1.1", lineWidth: 0 }).trimEnd()

const companyLines = ({ name, url, tokenVariable }: CompanyText): ReadonlyArray<string> => [
  `  - name: ${scalar(name)}`,
  `    url: ${scalar(url)}`,
  `    token_env: ${scalar(tokenVariable)} # the token itself is in .env`,
  "    # resources: [...] # default: every resource that the token may read"
]

/** The configuration with a comment at each setting. */
export const configurationText = (chosen: ConfigurationValues): string =>
  [
    `# yaml-language-server: $schema=./${schemaName}`,
    "# Written by tributary init. A setting that is left out has its default; an editor shows every setting by the schema.",
    "# After a change: tributary doctor",
    "",
    "companies:",
    ...chosen.companies.flatMap(companyLines),
    "",
    ...(chosen.excludedResources.length === 0
      ? ["# exclude_resources: [...] # resources that are not read"]
      : [
          "exclude_resources: # they hold personal data; a resource that is removed from the list is read by the next sync",
          ...chosen.excludedResources.map((resource) => `  - ${scalar(resource)}`)
        ]),
    "",
    "# The warehouse is " +
      (chosen.hasDatabaseUrl
        ? "the database that DATABASE_URL names (in .env or the environment)."
        : "the embedded Postgres in .tributary; set DATABASE_URL (in .env) for a database of your own."),
    "# warehouse:",
    "#   current: erp # default; dataset of the current records",
    "#   history: erp_history # default; dataset of all versions",
    "#   as_of: erp_asof # default; dataset of the records as of a moment",
    "",
    "freshness:",
    `  default_minutes: ${Duration.toMinutes(freshnessDefault)} # the maximum age of a resource; tributary serve syncs often enough for it`,
    "  # resources: {} # other targets for single resources, in minutes",
    "",
    "budget:",
    "  requests_per_minute: 500 # for one token; the service allows 600, the rest is left to other programs",
    "",
    "# webhooks: # a change arrives within seconds (tributary serve, then tributary webhooks ensure)",
    "#   public_url: https://hooks.example.com # the service delivers to <public_url>/hooks/<company>",
    "#   listen: 127.0.0.1:8085 # default; a TLS proxy forwards /hooks/ to it",
    "",
    "# dashboard: # the pages of tributary serve for people; without a password on this machine only",
    "#   listen: 127.0.0.1:8086 # default; off for no dashboard",
    "#   password_env: TRIBUTARY_DASHBOARD_PASSWORD",
    ""
  ].join("\n")

// ----------------------------------------------------------------------------------------------------------------- .env

/** The form that dotenv reads back; undefined for a text that no quotes can hold. */
const quoted = (value: string): string | undefined => {
  const forms = [
    ...(/^[\w!%+,./:=?@~^&*()[\]{}|;<>-]+$/.test(value) ? [value] : []),
    `'${value}'`,
    `\`${value}\``,
    `"${value}"`
  ]
  return forms.find((form) => {
    const read = parseDotEnv(`A=${form}\nB=1`)
    return read["A"] === value && read["B"] === "1"
  })
}

/** The name that a line sets. */
const nameOf = (line: string): string | undefined => /^\s*(?:export\s+)?([\w.-]+)\s*[=:]/.exec(line)?.[1]

/**
 * The file with these variables. An equal value stays, a different one is replaced in its line, a new one is appended.
 * Returns the name of a variable whose value cannot be written.
 */
export const mergedEnvironment = (
  before: string,
  variables: ReadonlyMap<string, string>
): { readonly text: string } | { readonly unwritable: string } => {
  const present = parseDotEnv(before)
  const lines = before === "" ? [] : before.replace(/\r?\n$/, "").split("\n")
  const added: Array<string> = []
  for (const [name, value] of variables) {
    if (present[name] === value) continue
    const form = quoted(value)
    if (form === undefined) return { unwritable: name }
    // The last line of a name counts.
    const at = lines.findLastIndex((line) => nameOf(line) === name)
    if (at < 0) added.push(`${name}=${form}`)
    else lines[at] = `${/^\s*export\s/.test(lines[at]!) ? "export " : ""}${name}=${form}`
  }
  if (added.length > 0 && lines.length > 0 && lines.at(-1)?.trim() !== "") lines.push("")
  const text = [...lines, ...added, ""].join("\n")
  const read = parseDotEnv(text)
  // A value over several lines or in an unknown form is not replaced correctly.
  for (const [name, value] of variables) if (read[name] !== value) return { unwritable: name }
  for (const name of Object.keys(present))
    if (!variables.has(name) && read[name] !== present[name]) return { unwritable: name }
  return {
    text: before !== "" && added.length === 0 && lines.join("\n") === before.replace(/\r?\n$/, "") ? before : text
  }
}

/** Whether a `.gitignore` keeps `.env` out of the repository; its last matching line counts. */
export const ignoresEnvironment = (gitignore: string): boolean =>
  gitignore
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .reduce((ignored, line) => {
      const isOut = line.startsWith("!")
      const pattern = line.replace(/^!/, "").replace(/^(?:\*\*)?\//, "")
      const regex = new RegExp(
        `^${pattern
          .replace(/[.+^${}()|\\]/g, "\\$&")
          .replace(/\*+/g, "[^/]*")
          .replace(/\?/g, "[^/]")}$`
      )
      return regex.test(".env") ? !isOut : ignored
    }, false)

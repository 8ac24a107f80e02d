/** The page of the environment variables, from their table and from the settings that name further ones. */
import { variableEntries } from "../../src/configuration/EnvironmentVariables.ts"
import { settings } from "./configuration.ts"
import { tableText } from "./generated.ts"

const yes = (is: true | undefined) => (is === true ? "yes" : "")

export const environmentPage = (): string => `# Environment variables

Every variable that the program reads by a fixed name. \`npm run docs\` generates this page from the program.

- An empty variable counts as unset.
- \`.env\` in the working directory may hold those marked so. The environment takes precedence.

${tableText(
  ["variable", "default", "meaning", "secret", ".env"],
  variableEntries.map(([name, { default: fallback = "", meaning, isSecret, inDotEnv }]) => [
    `\`${name}\``,
    fallback,
    meaning,
    yes(isSecret),
    yes(inDotEnv)
  ])
)}
## Variables that the settings name

These [settings](configuration.md) hold the name of a variable, which the environment or \`.env\` holds. Its value is a secret. Some commands have such flags, for example \`--token-env\` ([commands](commands.md)).

${tableText(
  ["setting", "meaning"],
  settings.flatMap(({ path, meaning }) => (path.endsWith("_env") ? [[`\`${path}\``, meaning]] : []))
)}`

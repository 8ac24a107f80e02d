/**
 * `npm run new:resource NAME`: a generator of the file of a resource of Service API v2, and of its catalogue entry.
 *
 * Promise: an invalid name, and one that the catalogue has, are refused; then nothing is written.
 * A crash between the two writes leaves a file that the catalogue does not list: delete it and run the command again.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL("../connectors/service-v2/catalogue/resources/", import.meta.url))
const index = `${folder}index.ts`

/** Names that the file itself uses, and words of TypeScript that could be the path of a list. */
const reservedNames = new Set(
  (
    "cancel case catch class commonFields const continue debugger default delete do else enum exact export extends " +
    "false finally for function id if implements import in instanceof interface let new null package partial private " +
    "protected public resource resources return static string super switch this throw true try typeof var void while " +
    "with yield await"
  ).split(" ")
)

const template = (
  name: string
) => `/** Describe the resource here, and the documents or the decision that it follows. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const ${name} = resource({
  path: "${name}",
  area: "setup",
  purpose: "describe it in a few words",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true
})
`

/** The mistake in a name; null for a valid one. */
const problemOf = (name: string): string | null => {
  if (!/^[a-z][a-z0-9]{0,62}$/.test(name))
    return "is no name of a resource: use the path of its list, a to z and 0 to 9"
  if (reservedNames.has(name)) return "is a reserved word, which needs a file written by hand"
  return existsSync(`${folder}${name}.ts`)
    ? `exists: change connectors/service-v2/catalogue/resources/${name}.ts`
    : null
}

/** The index with the resource: its import in alphabetical order, and its entry at the end of the list. */
const withResource = (text: string, name: string): string => {
  const line = `import { ${name} } from "./${name}.ts"\n`
  const imports = text.match(/^import \{ \w+ \} from "\.\/.*\n/gm) ?? []
  const next = imports.find((one) => one > line)
  const withImport =
    next === undefined ? text.replace("\nexport const", `${line}\nexport const`) : text.replace(next, line + next)
  return withImport.replace(/\n\]\n$/, `,\n  ${name}\n]\n`)
}

const [name, ...others] = process.argv.slice(2)
if (name === undefined || others.length > 0) {
  process.stderr.write("usage: npm run new:resource NAME\n")
  process.exit(2)
}
const problem = problemOf(name)
if (problem !== null) {
  process.stderr.write(`"${name}" ${problem}\n`)
  process.exit(1)
}
const text = readFileSync(index, "utf8")
writeFileSync(`${folder}${name}.ts`, template(name), { flag: "wx" })
writeFileSync(index, withResource(text, name))
process.stdout.write(
  `wrote connectors/service-v2/catalogue/resources/${name}.ts and its entry in index.ts\n` +
    "next: state its area, purpose, operations and fields; raise `generation` in connectors/service-v2/catalogue/index.ts\n" +
    "then: npx vitest run --config config/vitest.config.ts test/catalogue, which reports what is still missing\n"
)

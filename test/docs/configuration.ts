/** The page of the settings, from the JSON Schema of the configuration. */
import { jsonSchema } from "../../src/configuration/Settings.ts"
import { code, tableText } from "./generated.ts"

interface Node {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<string>
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Node>>
  readonly patternProperties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | false
  readonly required?: ReadonlyArray<string>
  readonly items?: Node
  readonly anyOf?: ReadonlyArray<Node>
}

/** The schema of the values of a map. */
const entryOf = ({ additionalProperties, patternProperties }: Node): Node | undefined =>
  Object.values(patternProperties ?? {})[0] ?? (additionalProperties === false ? undefined : additionalProperties)

const boundsOf = ({ minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER }: Node) => {
  if (minimum === Number.MIN_SAFE_INTEGER) return ""
  return maximum === Number.MAX_SAFE_INTEGER ? ` from ${minimum}` : ` from ${minimum} to ${maximum}`
}

/** The values that a setting may have. */
const valuesOf = (node: Node): string => {
  if (node.enum !== undefined) return code(node.enum)
  if (node.anyOf !== undefined) return [...new Set(node.anyOf.map(valuesOf))].join(", or ")
  if (node.items !== undefined) return `list: ${valuesOf(node.items)}`
  const entry = entryOf(node)
  if (entry !== undefined) return `for each resource: ${valuesOf(entry)}`
  switch (node.type) {
    case "object":
      return "settings"
    case "boolean":
      return code(["true", "false"])
    case "integer":
      return `whole number${boundsOf(node)}`
    case "number":
      return `number${boundsOf(node)}`
    default:
      return node.title ?? "text"
  }
}

const units = /_(seconds|minutes|hours|days|percent|kilobytes)$/

/** The description without its default, and the default. */
const partsOf = ({ description = "" }: Node) => {
  const [, meaning = "", fallback = ""] = /^(.*?)(?:(?:; |^)default:? (.*))?$/.exec(description) ?? []
  return { meaning, fallback }
}

interface Row {
  readonly path: string
  readonly cells: ReadonlyArray<string>
}

const rowsBelow = (node: Node, path: string): ReadonlyArray<Row> => [
  ...Object.entries(node.properties ?? {}).flatMap(([key, child]) =>
    rowsOf(child, path === "" ? key : `${path}.${key}`, node.required?.includes(key) === true)
  ),
  ...(node.anyOf ?? []).flatMap((one) => rowsBelow(one, path)),
  ...(node.items === undefined ? [] : rowsBelow(node.items, `${path}[]`)),
  ...[entryOf(node)].flatMap((entry) => (entry === undefined ? [] : rowsBelow(entry, `${path}.<resource>`)))
]

const rowsOf = (node: Node, path: string, isRequired: boolean): ReadonlyArray<Row> => {
  const { fallback, meaning } = partsOf(node)
  const unit = units.exec(path)?.[1]
  const value = unit === undefined ? valuesOf(node) : `${valuesOf(node)}; ${unit}`
  const defaultText = isRequired ? "required" : fallback
  return [{ path, cells: [`\`${path}\``, value, defaultText, meaning] }, ...rowsBelow(node, path)]
}

/** The rows of a setting of the file. Alternatives have settings in common, which are listed once. */
const sectionOf = ([key, node]: readonly [string, Node]) => {
  const rows = [...new Map(rowsOf(node, key, false).map((one) => [one.path, one])).values()]
  const { meaning } = partsOf(node)
  const isSingle = rows.length === 1
  return (
    `## ${key}\n\n${isSingle ? "" : `${meaning[0]!.toUpperCase()}${meaning.slice(1)}.\n\n`}` +
    tableText(["setting", "value", "default", "meaning"], valuesOfRows(isSingle ? rows : rows.slice(1)))
  )
}

const valuesOfRows = (rows: ReadonlyArray<Row>) => rows.map(({ cells }) => cells)

const { properties = {} } = jsonSchema() as Node

/** Every setting with its description. */
export const settings: ReadonlyArray<{ readonly path: string; readonly meaning: string }> = Object.entries(
  properties
).flatMap(([key, node]) => rowsOf(node, key, false).map(({ path, cells }) => ({ path, meaning: cells[3]! })))

export const configurationPage = (): string => `# Settings

Every setting of \`config/tributary.yaml\`. \`--config FILE\` names another file. \`npm run docs\` generates this page from the program.

- The order of precedence: flag, environment, \`.env\`, file, default.
- \`[]\` is an entry of a list, and \`<resource>\` the path of a resource, for example \`invoices\`.
- A setting whose default is empty is off until it is set. A required one is needed wherever its section is written.
- A name ending in \`_env\` takes the name of an environment variable, which holds the value ([environment](environment.md)).
- Mistakes are reported with file, line and the allowed values, and nothing starts (exit code 2).

An editor that knows JSON Schema checks the file with \`config/tributary.schema.json\`. [The example](../../config/tributary.example.yaml) has all sections.

${Object.entries(properties).map(sectionOf).join("\n")}`

/** `tributary installation`: the installations of the source, and what each has otherwise than the top level. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as InstallationStore from "../companies/InstallationStore.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Written } from "../configuration/InstallationSettings.ts"
import * as Comparisons from "../companies/Comparisons.ts"
import { repeatedFlag, textFlag, warehouseCommand } from "./Command.ts"
import { refuse } from "./company/Editing.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"

const nameArgument = Argument.String("name").pipe(Argument.withDescription("The name of the installation"))

/** A value as YAML reads it: `300`, `true`, `cursor`. */
const valueOf = Effect.fnUntraced(function* (text: string) {
  const { parse } = yield* Effect.promise(() => import("yaml"))
  return yield* Effect.try({ try: (): unknown => parse(text), catch: () => text }).pipe(
    Effect.catch((unread) => Effect.succeed<unknown>(unread))
  )
})

/** The settings with one of another value, at `section.key` or `section`; undefined takes it out. */
export const withSetting = (settings: Written, path: string, value: unknown): Written => {
  const [section = "", key] = path.split(".")
  const { [section]: before, ...others } = settings
  if (key === undefined) return value === undefined ? others : { ...others, [section]: value }
  const own = { ...(typeof before === "object" ? before : {}), [key]: value }
  const kept = Object.entries(own).filter(([, one]) => one !== undefined)
  return { ...others, [section]: Object.fromEntries(kept) }
}

/** An installation with these changes, `section.key=value`; an empty value takes the setting out. Nothing is stored. */
const changedRow = Effect.fnUntraced(function* (
  name: string,
  before: Written,
  changes: ReadonlyArray<string>,
  { written }: Configuration
) {
  let settings = before
  for (const change of changes) {
    const [, path = "", text = ""] = /^([a-z_]+(?:\.[a-z_]+)?)=(.*)$/su.exec(change) ?? []
    if (path === "") {
      return yield* usageError(`${change} is no setting; write for example paging.mode=cursor, or url=ADDRESS`)
    }
    settings = withSetting(settings, path, text === "" ? undefined : yield* valueOf(text))
  }
  const row: InstallationStore.InstallationRow = { name, settings }
  const result = InstallationStore.installationOfRow(row, written)
  return result._tag === "Success" ? row : yield* refuse(`installation ${name}: ${result.failure}; nothing was stored`)
})

/** An installation of the warehouse; those of the file are changed there. */
export const requireRow = Effect.fnUntraced(function* ({ installations }: Configuration, name: string) {
  const row = yield* InstallationStore.find(name)
  if (row !== undefined) return row
  return yield* installations.some((one) => one.name === name)
    ? refuse(`installation ${name} is in the configuration file: change it there, and restart tributary serve`)
    : refuse(`the warehouse has no installation ${name}; see them with tributary installation list`)
})

const settingLines = (settings: Written): ReadonlyArray<string> =>
  Object.entries(settings).flatMap(([section, value]) =>
    typeof value === "object" && value !== null
      ? Object.entries(value).map(([key, one]) => `  ${section}.${key}=${Output.shown(String(one))}`)
      : [`  ${section}=${Output.shown(String(value))}`]
  )

const addCommand = warehouseCommand({
  name: "add",
  description: "Add an installation of the service to the warehouse",
  examples: {
    "tributary installation add hosted --url https://erp.example.com/!/api/v2": "With the settings of the top level",
    "tributary installation add site --url https://site.example.com/!/api/v2 --set paging.mode=cursor --set budget.requests_per_minute=100":
      "One that pages and limits otherwise"
  },
  flags: {
    name: nameArgument,
    url: textFlag("url", "ADDRESS", "The base address of its companies, ending in /!/api/v2"),
    set: repeatedFlag("set", "SETTING=VALUE", "A setting that it has otherwise, such as paging.mode=cursor")
  },
  makesWarehouse: true,
  run: (settings, { name, url, set }) =>
    Effect.gen(function* () {
      if (settings.installations.some((one) => one.name === name))
        return yield* refuse(`there is an installation ${name}; change it: tributary installation set ${name}`)
      const address = Option.match(url, { onNone: () => ({}), onSome: (given) => ({ url: given }) })
      const row = yield* changedRow(name, address, set, settings)
      if (!(yield* InstallationStore.add(row)))
        return yield* refuse(`another program has just added an installation ${name}`)
      return { installation: name, settings: row.settings }
    }),
  lines: ({ installation, settings }) => [
    `Added installation ${installation}`,
    ...settingLines(settings),
    `  its companies: tributary company add COMPANY --installation ${installation} --token-env VAR`
  ]
})

const listCommand = warehouseCommand({
  name: "list",
  description: "Show the installations of the configuration file and of the warehouse",
  examples: { "tributary installation list --json": "For programs" },
  flags: {},
  run: ({ companies, installation: first, installations }) =>
    Effect.gen(function* () {
      const stored = new Set((yield* InstallationStore.read).map(({ name }) => name))
      const compared = yield* Comparisons.read
      return {
        installations: [first, ...installations].map(({ name, url }) => ({
          installation: name,
          origin: stored.has(name ?? "") ? "warehouse" : "file",
          url,
          companies: companies.filter(({ installation }) => installation.name === name).length,
          comparedAt: compared.get(name)?.comparedAt ?? null
        }))
      }
    }),
  lines: ({ installations }) => [
    Output.table(
      ["installation", "from", "companies", "compared", "address"],
      installations.map(({ companies, comparedAt, installation, origin, url }) => [
        installation ?? "(top level)",
        origin,
        Output.count(companies),
        comparedAt === null ? "never" : comparedAt.toISOString().slice(0, 10),
        url ?? "of each company"
      ]),
      ["left", "left", "right", "left", "left"]
    )
  ]
})

const showCommand = warehouseCommand({
  name: "show",
  description: "Show the settings of an installation and its companies",
  examples: { "tributary installation show hosted": "Its settings and its companies" },
  flags: { name: nameArgument },
  run: ({ companies, installations }, { name }) =>
    Effect.gen(function* () {
      const found = installations.find((one) => one.name === name)
      if (found === undefined)
        return yield* refuse(`there is no installation ${name}; see them with tributary installation list`)
      const names = companies.flatMap((one) => (one.installation.name === name ? [one.name] : []))
      const own = (yield* InstallationStore.find(name))?.settings ?? null
      return { installation: name, url: found.url, companies: names, settings: found.written, own }
    }),
  lines: ({ companies, installation, own, settings, url }) => [
    `Installation ${installation} at ${url ?? "the address of each company"}: ${Output.plural(companies.length, "company", "companies")}`,
    ...(companies.length === 0 ? [] : [`  ${Output.firstOf(companies, 10)}`]),
    own === null
      ? "In the configuration file. Settings, with those of its top level:"
      : "Settings, with those of the top level of the file:",
    ...settingLines(settings),
    "  the rest has its default: docs/reference/configuration.md"
  ]
})

const setCommand = warehouseCommand({
  name: "set",
  description: "Change settings of an installation of the warehouse",
  examples: {
    "tributary installation set hosted budget.requests_per_minute=300 paging.mode=cursor": "Two settings",
    "tributary installation set hosted paging.mode=": "Back to the setting of the top level"
  },
  flags: {
    name: nameArgument,
    changes: Argument.String("SETTING=VALUE").pipe(
      Argument.withDescription("A setting and its value, such as paging.mode=cursor; without a value it is taken out"),
      Argument.variadic({ min: 1 })
    )
  },
  run: (settings, { name, changes }) =>
    Effect.gen(function* () {
      const before = yield* requireRow(settings, name)
      const row = yield* changedRow(name, before.settings, changes, settings)
      yield* InstallationStore.set(row)
      return { installation: name, settings: row.settings }
    }),
  lines: ({ installation, settings }) => [
    `Installation ${installation} has these settings beside the top level's; running processes of serve apply them within seconds`,
    ...settingLines(settings)
  ]
})

const removeCommand = warehouseCommand({
  name: "remove",
  description: "Remove an installation of the warehouse that has no company",
  examples: { "tributary installation remove hosted": "Its settings are gone" },
  flags: { name: nameArgument },
  run: (settings, { name }) =>
    Effect.gen(function* () {
      yield* requireRow(settings, name)
      if (yield* InstallationStore.remove(name)) return { installation: name }
      const companies = yield* InstallationStore.companiesOf(name)
      return yield* refuse(
        `companies belong to installation ${name}: ${Output.firstOf(companies, 5)}; remove or move them first`
      )
    }),
  lines: ({ installation }) => [`Removed installation ${installation}`]
})

export const command = Command.make("installation").pipe(
  Command.withSubcommands([addCommand, listCommand, showCommand, setCommand, removeCommand])
)

/** The last comparison of each installation with the documentation (`tributary radar`), and what changed since. */
import * as Effect from "effect/Effect"
import * as Comparisons from "../../companies/Comparisons.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import { type Installation, writtenAt } from "../../configuration/Installations.ts"
import * as Output from "../Output.ts"
import { about, type Finding } from "./Finding.ts"

const namesMax = 5

/** ` 2 are new (a, b), 1 is gone (c)`; empty where the comparison before had the same. */
const changesOf = ({ before, differences }: Comparisons.Comparison): string => {
  if (before === null) return ""
  const added = differences.filter((one) => !before.includes(one))
  const gone = before.filter((one) => !differences.includes(one))
  const say = (names: ReadonlyArray<string>, what: string) =>
    names.length === 0 ? [] : [`${names.length} ${what} (${Output.firstOf(names, namesMax)})`]
  const changes = [...say(added, "new"), ...say(gone, "gone")]
  return changes.length === 0 ? ", as in the comparison before" : `; since the comparison before: ${changes.join(", ")}`
}

const findingOf = (installation: Installation, comparison: Comparisons.Comparison | undefined): Finding => {
  const { name } = installation
  const its = about("radar", name)
  const command = `tributary radar${name === null ? "" : ` --installation ${name}`}`
  if (comparison === undefined) return its.skipped(`it was never compared with the documentation: ${command}`)
  const { comparedAt, differences, recommended } = comparison
  const other = recommended.filter(({ path, value }) => writtenAt(installation, path) !== value)
  const compared =
    `compared ${comparedAt.toISOString().slice(0, 10)}: ` +
    `${Output.plural(differences.length, "difference")}${changesOf(comparison)}`
  return other.length === 0
    ? its.ok(compared)
    : its.warning(
        `${compared}; recommended and not configured: ${other.map(({ path, value }) => `${path}: ${value}`).join(", ")}`,
        `configure it, or compare again: ${command}`
      )
}

/** A finding for each installation that has a company. */
export const checkInstallations = ({ companies }: Configuration) =>
  Effect.map(Comparisons.read, (comparisons) =>
    [...new Map(companies.map(({ installation }) => [installation.name, installation])).values()].map((one) =>
      findingOf(one, comparisons.get(one.name))
    )
  )

/** The resources that a company reads: those that are named, else its own, else all; without the excluded ones. */
import type { Catalogue } from "../catalogue/Catalogue.ts"
import { didYouMean } from "../catalogue/Nearest.ts"
import { matches } from "../catalogue/Protection.ts"
import type { Resource } from "../catalogue/Resource.ts"
import { type CompanyConfiguration, exclusionOf } from "../configuration/Companies.ts"

type Resources = Pick<Catalogue, "resources">

/** The message about a path that no resource has. */
export const unknownResource = ({ resources }: Resources, path: string): string =>
  `there is no resource "${path}"; ` +
  (didYouMean(path, resources.keys()) ?? `the catalogue has ${[...resources.keys()].sort().join(", ")}`)

/** Why the company does not read a resource that is named at a place; null where nothing excludes it. */
export const exclusionProblem = (
  company: Pick<CompanyConfiguration, "name" | "excluded">,
  path: string,
  named: string
): string | null => {
  const exclusion = exclusionOf(company, path)
  return exclusion === undefined
    ? null
    : `company ${company.name}: ${named} names ${path}, and "${exclusion.pattern}" excludes it (${exclusion.place}); ` +
        "remove one of the two"
}

/** Why none of these companies reads the resource; null where one does, or where there is no company. */
export const unreadReason = (
  companies: ReadonlyArray<Pick<CompanyConfiguration, "excluded">>,
  path: string
): string | null => {
  const exclusions = companies.map((company) => exclusionOf(company, path))
  const [first] = exclusions
  return first === undefined || exclusions.includes(undefined)
    ? null
    : `${path} is not read, since exclude_resources has "${first.pattern}" (${first.place})`
}

/** The resources of a company, and what is wrong with the names. `named` is from the command line. */
export const chooseResources = (
  catalogue: Resources,
  company: Pick<CompanyConfiguration, "name" | "resources" | "excluded">,
  named: ReadonlyArray<string> = []
): { readonly resources: ReadonlyArray<Resource>; readonly problems: ReadonlyArray<string> } => {
  const known = [...catalogue.resources.keys()]
  const explicit = named.length > 0 ? named : company.resources
  const paths = new Set(explicit ?? known)
  const place = named.length > 0 ? "the command line" : "its list of resources"
  const problems = company.excluded
    .filter(({ pattern }) => !known.some((path) => matches(pattern, path)))
    .map(
      ({ pattern, place: at }) =>
        `${at}: no resource matches "${pattern}"; ${didYouMean(pattern, known) ?? "correct or remove it"}`
    )
  const resources = [...paths].flatMap((path): ReadonlyArray<Resource> => {
    const resource = catalogue.resources.get(path)
    const problem =
      resource === undefined
        ? (named.length > 0 ? "" : `company ${company.name}: `) + unknownResource(catalogue, path)
        : exclusionProblem(company, path, place)
    if (problem === null) return [resource!]
    if (explicit !== null) problems.push(problem)
    return []
  })
  if (problems.length === 0 && resources.length === 0)
    problems.push(`company ${company.name}: every resource is excluded; remove an entry of exclude_resources`)
  return { resources, problems }
}

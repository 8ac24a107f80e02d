/**
 * The installations of the source: their readings, limits and way there.
 *
 * Promise: a setting that an installation leaves out has the value of the top level, else its default. Companies of an
 * installation differ from others in nothing but these settings.
 */
import { isDeepStrictEqual } from "node:util"
import * as Schema from "effect/Schema"
import { didYouMean } from "../catalogue/Nearest.ts"
import type { EngineSettings } from "../sync/EngineSettings.ts"
import type { ConfiguredResource } from "../warehouse/WarehouseCatalogue.ts"
import type { Exclusion } from "./Companies.ts"
import type { Inputs } from "./Inputs.ts"
import { Complete, type List, type Paging, type Requests, type Stored, type Written } from "./InstallationSettings.ts"

export interface Installation
  extends Readonly<typeof Requests.Type>, Readonly<typeof Paging.Type>, Readonly<typeof List.Type> {
  /** Null is the one that the top level describes. */
  readonly name: string | null
  /** The base address of its companies; null where each company has its own. */
  readonly url: string | null
  /** The budget without its reserve; null is no limit beside the source's own. */
  readonly requestsPerMinute: number | null
  /** The unit that the source's limit counts by. */
  readonly budgetScope: "token" | "install"
  /** Whether the fields of its own are read too. */
  readonly customFields: boolean
  readonly engine: EngineSettings
  readonly allowHttp: boolean
  /** What is written of these settings, by section and name; the rest has its default. */
  readonly written: Written
}

const decode = Schema.decodeUnknownSync(Complete)

/** The limit of the budget with the reserve subtracted. */
const perMinuteOf = ({ budget: { requestsPerMinute, reservePercent } }: typeof Complete.Type): number | null =>
  requestsPerMinute === "unlimited" ? null : Math.max(1, Math.floor((requestsPerMinute * (100 - reservePercent)) / 100))

const isObject = (value: unknown): value is Written => typeof value === "object" && value !== null

/** Two names of one thing: an installation that has one of them has neither of the top level. */
const proxySettings = ["proxy", "proxy_env"]

/** An installation with what is written for it, over what the top level has; both are valid. */
export const installationOf = (
  topLevel: Written,
  name: string | null = null,
  own: Partial<typeof Stored.Type> = {}
): Installation => {
  const { url = null, allowHttp = null } = own
  const of = (key: "budget" | "requests" | "paging" | "list" | "sync") => {
    const its = own[key] ?? {}
    const isReplaced = (name: string) => proxySettings.includes(name) && proxySettings.some((one) => one in its)
    const above = Object.entries(isObject(topLevel[key]) ? topLevel[key] : {})
    return { ...Object.fromEntries(above.filter(([name]) => !isReplaced(name))), ...its }
  }
  const allowed = allowHttp ?? topLevel["allow_http"]
  const written = {
    budget: of("budget"),
    requests: of("requests"),
    paging: of("paging"),
    list: of("list"),
    sync: of("sync"),
    ...(allowed === undefined ? {} : { allow_http: allowed })
  }
  const settings = decode(written)
  const { customFields, ...engine } = settings.sync
  return {
    name,
    url,
    ...settings.requests,
    ...settings.paging,
    ...settings.list,
    requestsPerMinute: perMinuteOf(settings),
    budgetScope: settings.budget.scope,
    customFields,
    engine,
    allowHttp: settings.allowHttp,
    written
  }
}

/** The name of a company's installation for people and metrics; without one, the host of its address. */
export const installationLabel = ({
  installation,
  url
}: {
  readonly url: string
  readonly installation: Pick<Installation, "name">
}): string => installation.name ?? URL.parse(url)?.host ?? url

/** What is written for a setting, by its section and name (`paging.mode`); undefined where it has its default. */
export const writtenAt = ({ written }: Pick<Installation, "written">, path: string): unknown => {
  const [section = "", key] = path.split(".")
  const value = written[section]
  return key === undefined ? value : isObject(value) ? value[key] : undefined
}

/** The installations of the file. */
export const installationsOf = ({ problems, settings, written }: Inputs): ReadonlyArray<Installation> => {
  const names = settings.installations.map(({ name }) => name)
  for (const twice of new Set(names.filter((one, index) => names.indexOf(one) !== index)))
    problems.push(`two installations are called ${twice}`)
  return settings.installations.map((one) => installationOf(written, one.name, one))
}

/** The installation of this name; else what is wrong. */
export const findInstallation = (
  installations: ReadonlyArray<Installation>,
  name: string
): Installation | { readonly problem: string } => {
  const [found, other] = installations.filter((one) => one.name === name)
  if (found !== undefined && other === undefined) return found
  if (found !== undefined)
    return {
      problem: `the installation ${name} is in the configuration file and in the warehouse; remove one: tributary installation remove ${name}`
    }
  const names = installations.flatMap((one) => one.name ?? [])
  const listed = names.length === 0 ? "none is configured" : `configured: ${names.join(", ")}`
  return { problem: `there is no installation "${name}"; ${didYouMean(name, names) ?? listed}` }
}

/** A resource that only some installations have. */
export interface InstallationResource {
  readonly installation: string
  readonly resource: ConfiguredResource
  /** Its place in the file, for messages. */
  readonly place: string
}

/** The resources that the installations of the file have beside those of the top level. */
export const installationResourcesOf = ({ place, problems, settings }: Inputs): ReadonlyArray<InstallationResource> => {
  const found: Array<InstallationResource> = []
  for (const [index, { name: installation, resources }] of settings.installations.entries()) {
    for (const [path, one] of Object.entries(resources)) {
      const resource = { path, ...one }
      const its = place("installations", index, "resources", path)
      const same = found.find((other) => other.resource.path === path)
      if (path.includes("*")) problems.push(`${its}: expected the path of one resource`)
      else if (settings.resources[path] !== undefined)
        problems.push(`${its}: resources of the top level has it for every installation; leave one of them out`)
      else if (same !== undefined && !isDeepStrictEqual(same.resource, resource))
        problems.push(`${its}: ${same.installation} has another resource of this path, and both would share a table`)
      found.push({ installation, resource, place: its })
    }
  }
  return found
}

/** What a company does not read since only other installations have it. */
export const foreignTo = (
  resources: ReadonlyArray<InstallationResource>,
  installation: string | null
): ReadonlyArray<Exclusion> => {
  const own = new Set(resources.flatMap((one) => (one.installation === installation ? one.resource.path : [])))
  return resources.flatMap(({ place, resource: { path } }) => (own.has(path) ? [] : [{ pattern: path, place }]))
}

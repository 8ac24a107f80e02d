/** The settings of a company: licensed modules, record limits, closed periods. */
import { ensureCompany } from "../seed/install.ts"
import type { World } from "../World.ts"
import { ControlError } from "./Input.ts"

export interface CompanyInput {
  readonly features?: Readonly<Record<string, boolean>>
  readonly recordLimits?: Readonly<Record<string, number | null>>
  /** A day, YYYY-MM-DD. */
  readonly closedThrough?: string | null
}

/** Changes the given settings; returns all of them. */
export const changeCompany = (world: World, company: number, input: CompanyInput) => {
  const before = world.settingsOf(company)
  const { features, resources } = world.store.catalogue
  const unlicensed = new Set(before.unlicensed)
  for (const [name, licensed] of Object.entries(input.features ?? {})) {
    if (!features.includes(name)) {
      throw new ControlError(`features: there is no module "${name}"; there are: ${features.join(", ")}`)
    }
    if (licensed) unlicensed.delete(name)
    else unlicensed.add(name)
  }
  const recordLimits = new Map(before.recordLimits)
  for (const [path, limit] of Object.entries(input.recordLimits ?? {})) {
    if (resources.get(path)?.capped !== true) throw new ControlError(`recordLimits: ${path} is not capped`)
    if (limit === null) recordLimits.delete(path)
    else recordLimits.set(path, limit)
  }
  const closedThrough = input.closedThrough === undefined ? before.closedThrough : input.closedThrough
  ensureCompany(world, company)
  world.changeSettings(company, { unlicensed, recordLimits, closedThrough })
  return {
    company,
    features: Object.fromEntries(features.map((name) => [name, !unlicensed.has(name)])),
    recordLimits: Object.fromEntries(recordLimits),
    closedThrough
  }
}

/**
 * A planted bug: the production code with one place changed while it is loaded.
 *
 * Promise: the production code has no test hooks. The text to be replaced must be in the file exactly once. If the code
 * has changed, the runner names the bug instead of running without it.
 */
import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type FaultClass, type Later, noneLater, type Plan, type PlanOptions } from "../Plan.ts"

export interface Change {
  /** Relative to the repository's root. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

interface Plain {
  /** `museum 8` (see the README beside) or the kind of mistake, and why a developer could write it so. */
  readonly why: readonly [origin: string, story: string]
  /** The plan in which the bug shows best; absent: any plan. */
  readonly options?: PlanOptions
}

/** Bugs by their name: of one change each, or of several. */
export type Mutants = Readonly<Record<string, Plain & (Change | { readonly changes: ReadonlyArray<Change> })>>

export type Mutant = Mutants[string] & { readonly name: string; readonly origin: string }

/** A plan with these classes and no other. */
export const just = (on: ReadonlyArray<FaultClass>, overrides: Partial<Plan> = {}): PlanOptions => ({
  on,
  only: on,
  overrides
})

/** Rates of classes that were added later, without the others. */
export const rates = (some: Partial<Later>): Later => ({ ...noneLater, ...some })

const changesOf = (mutant: Mutant): ReadonlyArray<Change> => ("changes" in mutant ? mutant.changes : [mutant])

export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Why a bug cannot be planted; null when it can. */
export const misfit = (mutant: Mutant): string | null => {
  const { name } = mutant
  for (const { file, find } of changesOf(mutant)) {
    let text: string
    try {
      text = readFileSync(`${root}${file}`, "utf8")
    } catch {
      return `${name}: ${file} does not exist any more`
    }
    const times = text.split(find).length - 1
    if (times !== 1) return `${name}: its text is ${times} times in ${file}, not once: ${find.split("\n")[0]}`
  }
  return null
}

/** Patches modules that are loaded from now on. */
export const plant = (mutant: Mutant): void => {
  const wrong = misfit(mutant)
  if (wrong !== null) throw new Error(wrong)
  const byUrl = Map.groupBy(changesOf(mutant), ({ file }) => pathToFileURL(`${root}${file}`).href)
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      const changes = byUrl.get(url.split("?")[0]!)
      if (changes === undefined) return loaded
      const { source } = loaded
      let text = typeof source === "string" ? source : new TextDecoder().decode(source ?? new Uint8Array())
      for (const { find, replace, file } of changes) {
        if (!text.includes(find)) throw new Error(`${mutant.name}: ${file} was loaded without the text to be replaced`)
        text = text.replace(find, () => replace)
      }
      return { ...loaded, source: text }
    }
  })
}

/**
 * A planted bug: the production code with one place changed while it is loaded.
 *
 * Promise: no seam in the production code. The text to be replaced must stand in the file exactly once; when the code has
 * changed, the runner says which bug needs care instead of running without it.
 */
import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Wish } from "../Plan.ts"

export interface Change {
  /** Below the repository's root. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  readonly name: string
  /** `museum 8` (see the README beside), or what kind of mistake it is. */
  readonly origin: string
  /** What somebody could have thought when writing it so. */
  readonly story: string
  readonly changes: ReadonlyArray<Change>
  /** What suits it; the swarm when not said. */
  readonly wish?: Wish
}

export const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Why a mutant cannot be planted; null when it can. */
export const misfit = ({ name, changes }: Mutant): string | null => {
  for (const { file, find } of changes) {
    let text: string
    try {
      text = readFileSync(`${root}${file}`, "utf8")
    } catch {
      return `${name}: ${file} is not there any more`
    }
    const times = text.split(find).length - 1
    if (times !== 1) return `${name}: its text stands ${times} times in ${file}, not once: ${find.split("\n")[0]}`
  }
  return null
}

/** From now on, modules are loaded with the bug in them. */
export const plant = (mutant: Mutant): void => {
  const wrong = misfit(mutant)
  if (wrong !== null) throw new Error(wrong)
  const byUrl = Map.groupBy(mutant.changes, ({ file }) => pathToFileURL(`${root}${file}`).href)
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

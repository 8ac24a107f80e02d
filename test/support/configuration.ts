/** The configuration of a text, from a file that exists for the moment. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { load } from "../../src/configuration/Configuration.ts"

/** Loads the text. A place of a problem begins with `file`. */
export const loadText = (
  yaml: string,
  environment: Readonly<Record<string, string>> = {},
  flags: Parameters<typeof load>[0] = {}
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-configuration-"))),
    (folder) => {
      const config = join(folder, "tributary.yaml")
      writeFileSync(config, yaml)
      return load({ ...flags, config }, environment)
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

/** The problems of the text. */
export const problemsOf = (yaml: string, environment: Readonly<Record<string, string>> = {}) =>
  Effect.match(loadText(yaml, environment), {
    onSuccess: (): ReadonlyArray<string> => [],
    onFailure: ({ problems }) => problems.map((problem) => problem.replace(/^.*tributary\.yaml/, "file"))
  })

/** A draft of the configuration with its secrets, loaded as a command loads the written one. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Configuration from "../../configuration/Configuration.ts"
import { ConfigurationError } from "../../configuration/ConfigurationError.ts"
import * as Files from "./Files.ts"
import type { InitContext } from "./InitContext.ts"

/** The configuration's values, with the secrets that it names. */
export interface Draft extends Files.ConfigurationValues {
  readonly secrets: ReadonlyMap<string, Redacted.Redacted>
}

/** Loads the draft from a temporary file. Problems name the file that is written later. */
export const loadDraft = ({ environment, file }: InitContext, draft: Draft) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tributary-init-"))),
    (folder) => {
      const draftFile = join(folder, "tributary.yaml")
      writeFileSync(draftFile, Files.configurationText(draft))
      const secrets = [...draft.secrets].map(([name, value]) => [name, Redacted.value(value)])
      return Configuration.load({ config: draftFile }, { ...environment, ...Object.fromEntries(secrets) }).pipe(
        Effect.mapError(
          ({ problems }) =>
            new ConfigurationError({
              problems: problems.map((problem) => problem.replaceAll(draftFile, file))
            })
        )
      )
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

export const describeProblems = ({ problems }: ConfigurationError): string => problems.join("; ")

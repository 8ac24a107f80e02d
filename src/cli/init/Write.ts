/**
 * The files of `tributary init`: a draft with its secrets, loaded as a command loads the written one, and the writing.
 *
 * Promise: each file appears whole. Only its owner can read a file with secrets. A replaced configuration is kept, and a
 * foreign schema is not replaced.
 */
import { copyFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Configuration from "../../configuration/Configuration.ts"
import { ConfigurationError } from "../../configuration/ConfigurationError.ts"
import { jsonSchema } from "../../configuration/Settings.ts"
import * as AtomicFile from "../../files/AtomicFile.ts"
import * as Folder from "../../files/Folder.ts"
import * as Mode from "../../files/Mode.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import * as Files from "./Files.ts"
import type { InitContext } from "./InitContext.ts"

export const environmentFile = ".env"

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

const backupName = (file: string): string => {
  for (let number = 1; ; number += 1) {
    const name = `${file}.backup-${number}`
    if (!ReadFile.exists(name)) return name
  }
}

/** Writes the JSON Schema; another file of that name stays. */
const writeSchema = (path: string) => {
  const content = jsonSchema()
  const before = ReadFile.textIfPresent(path)
  if (before !== null) {
    const present = parseJson(before)
    const isOurs = Predicate.hasProperty(present, "title") && present.title === content.title
    if (!isOurs || isDeepStrictEqual(present, content)) return
  }
  AtomicFile.replace(path, `${JSON.stringify(content, null, 2)}\n`, { mode: Mode.settingsFile })
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export interface WrittenFiles {
  readonly schema: string
  /** The copy of the previous configuration; null when there was none. */
  readonly backup: string | null
  /** Whether other users could read `.env` before. */
  readonly wasOpen: boolean
}

/** Writes the configuration to `file`, and `.env`. Fails with the message of the file system. */
export const write = (file: string, text: string, environment: string): Effect.Effect<WrittenFiles, string> =>
  Effect.try({
    try: () => {
      Folder.make(dirname(file))
      const wasOpen = ReadFile.exists(environmentFile) && (statSync(environmentFile).mode & 0o077) !== 0
      AtomicFile.replace(environmentFile, environment, { mode: Mode.secretFile })
      const schema = join(dirname(file), Files.schemaName)
      writeSchema(schema)
      const backup = ReadFile.exists(file) ? backupName(file) : null
      if (backup !== null) copyFileSync(file, backup)
      AtomicFile.replace(file, text, { mode: Mode.settingsFile })
      return { schema, backup, wasOpen: wasOpen && process.platform !== "win32" }
    },
    catch: (error) => (error instanceof Error ? error.message : String(error))
  })

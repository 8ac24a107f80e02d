/**
 * The program that writes the JSON Schema beside the example configuration: `node test/support/write-config-schema.ts`.
 */
import { writeFileSync } from "node:fs"
import { jsonSchema } from "../../src/configuration/Settings.ts"

writeFileSync(
  new URL("../../config/tributary.schema.json", import.meta.url),
  `${JSON.stringify(jsonSchema(), null, 2)}\n`
)

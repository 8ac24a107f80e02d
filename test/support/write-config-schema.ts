/** `node test/support/write-config-schema.ts`: writes the JSON Schema that stands beside the example. */
import { writeFileSync } from "node:fs"
import { jsonSchema } from "../../src/configuration/Settings.ts"

writeFileSync(
  new URL("../../config/tributary.schema.json", import.meta.url),
  `${JSON.stringify(jsonSchema(), null, 2)}\n`
)

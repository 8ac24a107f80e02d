/**
 * The catalogue that a command works with: what the connector states and the resources that the configuration names.
 * `WarehouseCatalogue.load` adds the inferred columns of the warehouse.
 */
import * as Effect from "effect/Effect"
import type { Configuration } from "../configuration/Configuration.ts"
import { ConfigurationError } from "../configuration/ConfigurationError.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { Source } from "./Source.ts"

export const catalogueOf = Effect.fnUntraced(function* (settings: Pick<Configuration, "resources">) {
  const { catalogue } = yield* Source
  return yield* WarehouseCatalogue.addConfigured(catalogue, settings.resources).pipe(
    Effect.mapError(({ problems }) => new ConfigurationError({ problems }))
  )
})

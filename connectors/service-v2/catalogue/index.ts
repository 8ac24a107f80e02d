/**
 * Service API v2 as data.
 *
 * Promise: each resource is one file in `resources/`. Server, client, warehouse and documents are derived from it.
 */
import { catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { areas, features } from "./areas.ts"
import { errorCodes } from "./errors.ts"
import { resources } from "./resources/index.ts"
import { traits } from "./traits.ts"

export const serviceV2: Catalogue = catalogue({
  name: "Service API v2",
  version: "2.0.0",
  // Raise it with every change of a field; test/catalogue fails when that is missing.
  generation: 1,
  areas,
  traits,
  features,
  errorCodes,
  resources
})

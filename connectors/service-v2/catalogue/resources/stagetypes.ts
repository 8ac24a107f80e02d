/** Types of stages: inferred (L3, L4) from stagetypeid. */
import { id, string } from "../../../../src/catalogue/Field.ts"
import { partial, resource } from "../../../../src/catalogue/Resource.ts"
import { commonFields } from "./common.ts"

export const stagetypes = resource({
  path: "stagetypes",
  area: "setup",
  purpose: "types of stages",
  basis: "inferred",
  operations: "L R",
  fields: [id(), string("name", 100), commonFields()],
  filters: [partial("name")],
  modifiedSince: true
})

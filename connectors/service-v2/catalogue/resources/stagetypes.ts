/** Types of stages: inferred (L3, L4) from stagetypeid. */
import { id, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"
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

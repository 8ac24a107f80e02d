/**
 * Item comparison groups: ITEMCOMPARISONGROUPS-01..09. It has lastchangedate, and its row offers no modifiedsince
 * (I-03).
 */
import { boolean, cancel, externalid, id, lastchangedate, string } from "../../../../src/catalogue/Field.ts"
import { partial, resource } from "../../../../src/catalogue/Resource.ts"

export const itemcomparisongroups = resource({
  path: "itemcomparisongroups",
  area: "items",
  purpose: "groups of items that are compared",
  basis: "documented",
  operations: "L C B R U",
  fields: [id(), string("name", 255), boolean("hidden"), cancel(), externalid(), lastchangedate()],
  filters: [partial("name")]
})

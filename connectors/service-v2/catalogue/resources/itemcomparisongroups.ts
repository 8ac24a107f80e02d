/**
 * Item comparison groups: ITEMCOMPARISONGROUPS-01..09. It has lastchangedate, but its row offers no modifiedsince
 * (I-03).
 */
import { boolean, cancel, externalid, id, lastchangedate, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const itemcomparisongroups = resource({
  path: "itemcomparisongroups",
  area: "items",
  purpose: "groups of items that are compared",
  basis: "documented",
  operations: "L C B R U",
  fields: [id(), string("name", 255), boolean("hidden"), cancel(), externalid(), lastchangedate()],
  filters: [partial("name")]
})

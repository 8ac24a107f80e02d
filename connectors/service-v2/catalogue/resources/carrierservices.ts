/**
 * Services of a carrier: CARRIERSERVICES-01..22. No cancel, entrydate or lastchangedate. code is no unique key (F-05),
 * and its filter is exact while description is partial.
 */
import { boolean, externalid, id, integer, money, pair, string } from "../fields.ts"
import { exact, partial, resource } from "../resource.ts"

export const carrierservices = resource({
  path: "carrierservices",
  area: "setup",
  purpose: "services of a carrier",
  basis: "documented",
  operations: "L C B",
  fields: [
    id(),
    pair("carrier", "carriers", { by: "name", length: 100, note: "carrier by id or name" }),
    string("description", 50),
    string("abbreviation", 50),
    integer("sortorder", { typed: false }),
    integer("not_on_b2b", { typed: false, note: "1 hides from portal" }),
    integer("onquote", { typed: false, note: "1 hides from quote entry" }),
    money("box1_charge", { dp: 5 }),
    money("box_addl", { dp: 5 }),
    integer("require_shippernum", { typed: false, note: "1 requires customer shipper number" }),
    integer("showvalue", { typed: false, note: "1 prints order value on ticket" }),
    string("code", 10, { note: "carrier's service code" }),
    money("methodmarkupflat"),
    string("saturdaydelivery", 1, { note: "Y when delivers Saturday" }),
    boolean("allowonpointofsaleorders"),
    externalid()
  ],
  filters: [exact("code"), partial("description")],
  key: { field: "code", unique: false }
})

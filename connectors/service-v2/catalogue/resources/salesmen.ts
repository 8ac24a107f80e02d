/** Salespeople and service reps in one table: SALESMEN-01..14. The key ignores case (F-05). */
import { boolean, cancel, externalid, id, lastchangedate, money, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const salesmen = resource({
  path: "salesmen",
  area: "setup",
  purpose: "salespeople and service reps",
  basis: "documented",
  operations: "L C B R U D",
  fields: [
    id(),
    string("name", 50, { note: "the key" }),
    boolean("salesman"),
    boolean("servicerep"),
    money("commissionrate", { dp: 3, note: "percentage" }),
    string("email1", 50),
    string("phone1", 20),
    cancel(),
    externalid(),
    lastchangedate()
  ],
  filters: [partial("name")],
  modifiedSince: true,
  key: { field: "name", caseSensitive: false },
  required: ["name"]
})

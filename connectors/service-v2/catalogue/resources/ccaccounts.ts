/** Card accounts: CCACCOUNTS-01..11. No entrydate; name is no key (F-05). */
import { cancel, externalid, id, lastchangedate, pair, string } from "../fields.ts"
import { partial, resource } from "../resource.ts"

export const ccaccounts = resource({
  path: "ccaccounts",
  area: "banking",
  purpose: "card accounts",
  basis: "documented",
  operations: "L C B R",
  fields: [
    id(),
    string("name", 100),
    pair("ccprocessor", "ccprocessors", { by: "name", length: 100, note: "card processor by id or processor name" }),
    pair("checkacct", "checkaccounts", { by: "name", length: 30, note: "bank account by id or name" }),
    cancel(),
    externalid(),
    lastchangedate()
  ],
  filters: [partial("name")],
  modifiedSince: true
})

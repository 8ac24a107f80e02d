/**
 * Order-from addresses of a vendor: VENDORORDERFROMS-01..22. It has lastchangedate, but its row offers no modifiedsince
 * (I-03).
 */
import { cancel, entrydate, externalid, id, lastchangedate, pair, string } from "../fields.ts"
import { exact, resource } from "../resource.ts"

export const vendororderfroms = resource({
  path: "vendororderfroms",
  area: "vendors",
  purpose: "addresses that a vendor is ordered from",
  basis: "documented",
  operations: "L C B",
  fields: [
    id(),
    pair("vendor", "vendors", { by: "vendorcode", length: 30, note: "vendor by id or vendorcode" }),
    string("companyname", 100),
    string("contactname", 100),
    string("address", 100),
    string("address2", 100),
    string("city", 50),
    string("state", 20),
    string("zip", 15),
    string("country", 20),
    string("phone", 20),
    string("fax", 20),
    string("email", 50),
    string("mailstop", 20),
    entrydate({ readOnly: true, typed: false }),
    cancel(),
    lastchangedate(),
    string("addressverified", 32, {
      readOnly: true,
      note: "hash of the address at its last successful verification; mismatch means unverified"
    }),
    externalid()
  ],
  filters: [exact("vendorid")],
  // A new code of a vendor changes the code that its addresses show (VENDORORDERFROMS-04, A-15). That a new address
  // changes its vendor is likely, but not documented.
  parent: { resource: "vendors", field: "vendorid" }
})

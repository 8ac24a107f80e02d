/**
 * Service API v2 as data.
 *
 * Promise: adding a resource is adding one file in `resources/` and one line here; everything that is built from the
 * catalogue (server, client, warehouse, documents) follows.
 */
import { catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import { areas, features } from "./areas.ts"
import { errorCodes } from "./errors.ts"
import { remaining } from "./remaining.ts"
import { carriers } from "./resources/carriers.ts"
import { carrierservices } from "./resources/carrierservices.ts"
import { checkaccounts } from "./resources/checkaccounts.ts"
import { costcodes } from "./resources/costcodes.ts"
import { customers } from "./resources/customers.ts"
import { customfields } from "./resources/customfields.ts"
import { glaccounts } from "./resources/glaccounts.ts"
import { inventorylocations } from "./resources/inventorylocations.ts"
import { invoicelines } from "./resources/invoicelines.ts"
import { invoices } from "./resources/invoices.ts"
import { invoiceterms } from "./resources/invoiceterms.ts"
import { items } from "./resources/items.ts"
import { ledgerperiods } from "./resources/ledgerperiods.ts"
import { orderdeposits } from "./resources/orderdeposits.ts"
import { orderlines } from "./resources/orderlines.ts"
import { orders } from "./resources/orders.ts"
import { payments } from "./resources/payments.ts"
import { producttypetaxes } from "./resources/producttypetaxes.ts"
import { prpaytypes } from "./resources/prpaytypes.ts"
import { qtyunits } from "./resources/qtyunits.ts"
import { rmareturns } from "./resources/rmareturns.ts"
import { salesmen } from "./resources/salesmen.ts"
import { shipmentlines } from "./resources/shipmentlines.ts"
import { shipments } from "./resources/shipments.ts"
import { shiptos } from "./resources/shiptos.ts"
import { taxclasses } from "./resources/taxclasses.ts"
import { taxexemptions } from "./resources/taxexemptions.ts"
import { users } from "./resources/users.ts"
import { vouchers } from "./resources/vouchers.ts"
import { worktypes } from "./resources/worktypes.ts"

export const serviceV2: Catalogue = catalogue({
  name: "Service API v2",
  version: "2.0.0",
  // Raise it with every change of a field; test/catalogue says when.
  generation: 1,
  areas,
  features,
  errorCodes,
  resources: [
    invoicelines,
    payments,
    orderdeposits,
    shipments,
    shipmentlines,
    rmareturns,
    orders,
    orderlines,
    invoices,
    customers,
    shiptos,
    items,
    salesmen,
    invoiceterms,
    carrierservices,
    carriers,
    producttypetaxes,
    taxclasses,
    taxexemptions,
    glaccounts,
    costcodes,
    vouchers,
    checkaccounts,
    inventorylocations,
    ledgerperiods,
    qtyunits,
    worktypes,
    prpaytypes,
    users,
    customfields,
    ...remaining
  ]
})

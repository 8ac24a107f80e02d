/** What each document adds to the plain writes; a resource that is not here needs nothing. */
import { invoicelines, invoices } from "./invoices.ts"
import { lookups } from "./lookups.ts"
import { orderdeposits } from "./orderdeposits.ts"
import { orderlines, orders } from "./orders.ts"
import { payments } from "./payments.ts"
import { rmareturns } from "./rmareturns.ts"
import type { Rules } from "./Rules.ts"
import { shipments } from "./shipments.ts"

export const rules: ReadonlyMap<string, Rules> = new Map<string, Rules>([
  ["orders", orders],
  ["orderlines", orderlines],
  ["shipments", shipments],
  ["invoices", invoices],
  ["invoicelines", invoicelines],
  ["payments", payments],
  ["orderdeposits", orderdeposits],
  ["rmareturns", rmareturns],
  ...lookups
])

/** The rules of all documents; a resource without an entry has only the plain writes. */
import { apbilllines } from "./apbilllines.ts"
import { apbills } from "./apbills.ts"
import { estquotes } from "./estquotes.ts"
import { gltransactions } from "./gltransactions.ts"
import { inventorycounts } from "./inventorycounts.ts"
import { inventorytransfers } from "./inventorytransfers.ts"
import { invoicelines, invoices } from "./invoices.ts"
import { items } from "./items.ts"
import { lookups } from "./lookups.ts"
import { orderdeposits } from "./orderdeposits.ts"
import { orderlines, orders } from "./orders.ts"
import { payments } from "./payments.ts"
import { purchaseorderlines } from "./purchaseorderlines.ts"
import { purchaseorderreceipts } from "./purchaseorderreceipts.ts"
import { purchaseorders } from "./purchaseorders.ts"
import { rmareturns } from "./rmareturns.ts"
import type { Rules } from "./Rules.ts"
import { serviceordertimes } from "./serviceordertimes.ts"
import { shipments } from "./shipments.ts"
import { teamprojectrecurringtasks } from "./teamprojectrecurringtasks.ts"

export const rules: ReadonlyMap<string, Rules> = new Map<string, Rules>([
  ["orders", orders],
  ["orderlines", orderlines],
  ["shipments", shipments],
  ["invoices", invoices],
  ["invoicelines", invoicelines],
  ["payments", payments],
  ["orderdeposits", orderdeposits],
  ["rmareturns", rmareturns],
  ["serviceordertimes", serviceordertimes],
  ["purchaseorders", purchaseorders],
  ["purchaseorderlines", purchaseorderlines],
  ["purchaseorderreceipts", purchaseorderreceipts],
  ["apbills", apbills],
  ["apbilllines", apbilllines],
  ["gltransactions", gltransactions],
  ["inventorytransfers", inventorytransfers],
  ["inventorycounts", inventorycounts],
  ["items", items],
  ["estquotes", estquotes],
  ["teamprojectrecurringtasks", teamprojectrecurringtasks],
  ...lookups
])

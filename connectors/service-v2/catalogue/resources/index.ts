/** The resources of Service API v2, in the order in which `/me` shows them; `npm run new:resource NAME` adds one. */
import type { Resource } from "../resource.ts"
import { apbilllines } from "./apbilllines.ts"
import { apbills } from "./apbills.ts"
import { ardailycloses } from "./ardailycloses.ts"
import { areas } from "./areas.ts"
import { assetcategories } from "./assetcategories.ts"
import { b2busers } from "./b2busers.ts"
import { bankaccounts } from "./bankaccounts.ts"
import { bankdeposits } from "./bankdeposits.ts"
import { buildings } from "./buildings.ts"
import { carriers } from "./carriers.ts"
import { carrierservices } from "./carrierservices.ts"
import { ccaccounts } from "./ccaccounts.ts"
import { ccprocessors } from "./ccprocessors.ts"
import { cctransactions } from "./cctransactions.ts"
import { checkaccounts } from "./checkaccounts.ts"
import { contactnames } from "./contactnames.ts"
import { costcenters } from "./costcenters.ts"
import { costcodes } from "./costcodes.ts"
import { countries } from "./countries.ts"
import { customers } from "./customers.ts"
import { customfields } from "./customfields.ts"
import { departments } from "./departments.ts"
import { emailtemplates } from "./emailtemplates.ts"
import { employees } from "./employees.ts"
import { estquotepricelists } from "./estquotepricelists.ts"
import { estquotes } from "./estquotes.ts"
import { fixedassets } from "./fixedassets.ts"
import { glaccounts } from "./glaccounts.ts"
import { glcategories } from "./glcategories.ts"
import { gltransactions } from "./gltransactions.ts"
import { inventorycounts } from "./inventorycounts.ts"
import { inventorylocations } from "./inventorylocations.ts"
import { inventorytransfers } from "./inventorytransfers.ts"
import { invoicelines } from "./invoicelines.ts"
import { invoices } from "./invoices.ts"
import { invoiceterms } from "./invoiceterms.ts"
import { itemcomparisongroups } from "./itemcomparisongroups.ts"
import { items } from "./items.ts"
import { jobdraws } from "./jobdraws.ts"
import { jobs } from "./jobs.ts"
import { jobsites } from "./jobsites.ts"
import { leases } from "./leases.ts"
import { ledgerperiods } from "./ledgerperiods.ts"
import { orderdeposits } from "./orderdeposits.ts"
import { orderlines } from "./orderlines.ts"
import { orders } from "./orders.ts"
import { payments } from "./payments.ts"
import { producttypetaxes } from "./producttypetaxes.ts"
import { propertyunits } from "./propertyunits.ts"
import { prpaytypes } from "./prpaytypes.ts"
import { purchaseorderlines } from "./purchaseorderlines.ts"
import { purchaseorderreceipts } from "./purchaseorderreceipts.ts"
import { purchaseorders } from "./purchaseorders.ts"
import { qtyunits } from "./qtyunits.ts"
import { rmareturns } from "./rmareturns.ts"
import { salesmen } from "./salesmen.ts"
import { serviceordertimes } from "./serviceordertimes.ts"
import { shipmentlines } from "./shipmentlines.ts"
import { shipments } from "./shipments.ts"
import { shiptos } from "./shiptos.ts"
import { stages } from "./stages.ts"
import { stagetypes } from "./stagetypes.ts"
import { taskstatuses } from "./taskstatuses.ts"
import { taxclasses } from "./taxclasses.ts"
import { taxexemptions } from "./taxexemptions.ts"
import { taxgroups } from "./taxgroups.ts"
import { taxjurisdictions } from "./taxjurisdictions.ts"
import { taxusecodes } from "./taxusecodes.ts"
import { teamprojectautomations } from "./teamprojectautomations.ts"
import { teamprojectmilestones } from "./teamprojectmilestones.ts"
import { teamprojectrecurringtasks } from "./teamprojectrecurringtasks.ts"
import { teamprojectreminders } from "./teamprojectreminders.ts"
import { teamprojects } from "./teamprojects.ts"
import { teamprojectstatuses } from "./teamprojectstatuses.ts"
import { teamprojecttags } from "./teamprojecttags.ts"
import { teamprojecttasks } from "./teamprojecttasks.ts"
import { teamprojecttasktags } from "./teamprojecttasktags.ts"
import { teamprojecttemplateitems } from "./teamprojecttemplateitems.ts"
import { teamprojecttemplates } from "./teamprojecttemplates.ts"
import { timezones } from "./timezones.ts"
import { users } from "./users.ts"
import { vendororderfroms } from "./vendororderfroms.ts"
import { vendors } from "./vendors.ts"
import { vouchers } from "./vouchers.ts"
import { worktypes } from "./worktypes.ts"
import { zones } from "./zones.ts"

export const resources: ReadonlyArray<Resource> = [
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
  ardailycloses,
  apbilllines,
  teamprojectreminders,
  teamprojecttasktags,
  teamprojectrecurringtasks,
  teamprojecttemplateitems,
  teamprojectautomations,
  emailtemplates,
  stages,
  estquotepricelists,
  vendororderfroms,
  assetcategories,
  ccaccounts,
  itemcomparisongroups,
  taskstatuses,
  areas,
  contactnames,
  b2busers,
  vendors,
  serviceordertimes,
  purchaseorders,
  purchaseorderlines,
  purchaseorderreceipts,
  apbills,
  estquotes,
  inventorytransfers,
  inventorycounts,
  gltransactions,
  glcategories,
  costcenters,
  bankaccounts,
  bankdeposits,
  cctransactions,
  fixedassets,
  jobs,
  jobdraws,
  jobsites,
  buildings,
  propertyunits,
  leases,
  teamprojects,
  teamprojecttasks,
  teamprojectstatuses,
  teamprojecttags,
  teamprojectmilestones,
  teamprojecttemplates,
  employees,
  departments,
  taxgroups,
  taxusecodes,
  taxjurisdictions,
  stagetypes,
  ccprocessors,
  countries,
  zones,
  timezones
]

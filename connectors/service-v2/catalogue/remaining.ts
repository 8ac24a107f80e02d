/**
 * The rest of Service API v2: the documented resources that no document of the order-to-cash flow needs, and everything
 * that is only named or inferred.
 *
 * Promise: with these, every area of the scope table answers (L4).
 */
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { apbilllines } from "./resources/apbilllines.ts"
import { apbills } from "./resources/apbills.ts"
import { ardailycloses } from "./resources/ardailycloses.ts"
import { areas } from "./resources/areas.ts"
import { assetcategories } from "./resources/assetcategories.ts"
import { b2busers } from "./resources/b2busers.ts"
import { bankaccounts } from "./resources/bankaccounts.ts"
import { bankdeposits } from "./resources/bankdeposits.ts"
import { buildings } from "./resources/buildings.ts"
import { ccaccounts } from "./resources/ccaccounts.ts"
import { ccprocessors } from "./resources/ccprocessors.ts"
import { cctransactions } from "./resources/cctransactions.ts"
import { contactnames } from "./resources/contactnames.ts"
import { costcenters } from "./resources/costcenters.ts"
import { countries } from "./resources/countries.ts"
import { departments } from "./resources/departments.ts"
import { emailtemplates } from "./resources/emailtemplates.ts"
import { employees } from "./resources/employees.ts"
import { estquotepricelists } from "./resources/estquotepricelists.ts"
import { estquotes } from "./resources/estquotes.ts"
import { fixedassets } from "./resources/fixedassets.ts"
import { glcategories } from "./resources/glcategories.ts"
import { gltransactions } from "./resources/gltransactions.ts"
import { inventorycounts } from "./resources/inventorycounts.ts"
import { inventorytransfers } from "./resources/inventorytransfers.ts"
import { itemcomparisongroups } from "./resources/itemcomparisongroups.ts"
import { jobdraws } from "./resources/jobdraws.ts"
import { jobs } from "./resources/jobs.ts"
import { jobsites } from "./resources/jobsites.ts"
import { leases } from "./resources/leases.ts"
import { propertyunits } from "./resources/propertyunits.ts"
import { purchaseorderlines } from "./resources/purchaseorderlines.ts"
import { purchaseorderreceipts } from "./resources/purchaseorderreceipts.ts"
import { purchaseorders } from "./resources/purchaseorders.ts"
import { serviceordertimes } from "./resources/serviceordertimes.ts"
import { stages } from "./resources/stages.ts"
import { stagetypes } from "./resources/stagetypes.ts"
import { taskstatuses } from "./resources/taskstatuses.ts"
import { taxgroups } from "./resources/taxgroups.ts"
import { taxjurisdictions } from "./resources/taxjurisdictions.ts"
import { taxusecodes } from "./resources/taxusecodes.ts"
import { teamprojectautomations } from "./resources/teamprojectautomations.ts"
import { teamprojectmilestones } from "./resources/teamprojectmilestones.ts"
import { teamprojectrecurringtasks } from "./resources/teamprojectrecurringtasks.ts"
import { teamprojectreminders } from "./resources/teamprojectreminders.ts"
import { teamprojects } from "./resources/teamprojects.ts"
import { teamprojectstatuses } from "./resources/teamprojectstatuses.ts"
import { teamprojecttags } from "./resources/teamprojecttags.ts"
import { teamprojecttasks } from "./resources/teamprojecttasks.ts"
import { teamprojecttasktags } from "./resources/teamprojecttasktags.ts"
import { teamprojecttemplateitems } from "./resources/teamprojecttemplateitems.ts"
import { teamprojecttemplates } from "./resources/teamprojecttemplates.ts"
import { timezones } from "./resources/timezones.ts"
import { vendororderfroms } from "./resources/vendororderfroms.ts"
import { vendors } from "./resources/vendors.ts"
import { zones } from "./resources/zones.ts"

export const remaining: ReadonlyArray<Resource> = [
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

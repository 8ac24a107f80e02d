/** Written by `generate.ts` from the catalogue: change it there. */
import type { InvoicelinesShape } from "./invoicelines.ts"
import type { PaymentsShape } from "./payments.ts"
import type { OrderdepositsShape } from "./orderdeposits.ts"
import type { ShipmentsShape } from "./shipments.ts"
import type { ShipmentlinesShape } from "./shipmentlines.ts"
import type { RmareturnsShape } from "./rmareturns.ts"
import type { OrdersShape } from "./orders.ts"
import type { OrderlinesShape } from "./orderlines.ts"
import type { InvoicesShape } from "./invoices.ts"
import type { CustomersShape } from "./customers.ts"
import type { ShiptosShape } from "./shiptos.ts"
import type { ItemsShape } from "./items.ts"
import type { SalesmenShape } from "./salesmen.ts"
import type { InvoicetermsShape } from "./invoiceterms.ts"
import type { CarrierservicesShape } from "./carrierservices.ts"
import type { CarriersShape } from "./carriers.ts"
import type { ProducttypetaxesShape } from "./producttypetaxes.ts"
import type { TaxclassesShape } from "./taxclasses.ts"
import type { TaxexemptionsShape } from "./taxexemptions.ts"
import type { GlaccountsShape } from "./glaccounts.ts"
import type { CostcodesShape } from "./costcodes.ts"
import type { VouchersShape } from "./vouchers.ts"
import type { CheckaccountsShape } from "./checkaccounts.ts"
import type { InventorylocationsShape } from "./inventorylocations.ts"
import type { LedgerperiodsShape } from "./ledgerperiods.ts"
import type { QtyunitsShape } from "./qtyunits.ts"
import type { WorktypesShape } from "./worktypes.ts"
import type { PrpaytypesShape } from "./prpaytypes.ts"
import type { UsersShape } from "./users.ts"
import type { CustomfieldsShape } from "./customfields.ts"
import type { ArdailyclosesShape } from "./ardailycloses.ts"
import type { ApbilllinesShape } from "./apbilllines.ts"
import type { TeamprojectremindersShape } from "./teamprojectreminders.ts"
import type { TeamprojecttasktagsShape } from "./teamprojecttasktags.ts"
import type { TeamprojectrecurringtasksShape } from "./teamprojectrecurringtasks.ts"
import type { TeamprojecttemplateitemsShape } from "./teamprojecttemplateitems.ts"
import type { TeamprojectautomationsShape } from "./teamprojectautomations.ts"
import type { EmailtemplatesShape } from "./emailtemplates.ts"
import type { StagesShape } from "./stages.ts"
import type { EstquotepricelistsShape } from "./estquotepricelists.ts"
import type { VendororderfromsShape } from "./vendororderfroms.ts"
import type { AssetcategoriesShape } from "./assetcategories.ts"
import type { CcaccountsShape } from "./ccaccounts.ts"
import type { ItemcomparisongroupsShape } from "./itemcomparisongroups.ts"
import type { TaskstatusesShape } from "./taskstatuses.ts"
import type { AreasShape } from "./areas.ts"
import type { ContactnamesShape } from "./contactnames.ts"
import type { B2busersShape } from "./b2busers.ts"
import type { VendorsShape } from "./vendors.ts"
import type { ServiceordertimesShape } from "./serviceordertimes.ts"
import type { PurchaseordersShape } from "./purchaseorders.ts"
import type { PurchaseorderlinesShape } from "./purchaseorderlines.ts"
import type { PurchaseorderreceiptsShape } from "./purchaseorderreceipts.ts"
import type { ApbillsShape } from "./apbills.ts"
import type { EstquotesShape } from "./estquotes.ts"
import type { InventorytransfersShape } from "./inventorytransfers.ts"
import type { InventorycountsShape } from "./inventorycounts.ts"
import type { GltransactionsShape } from "./gltransactions.ts"
import type { GlcategoriesShape } from "./glcategories.ts"
import type { CostcentersShape } from "./costcenters.ts"
import type { BankaccountsShape } from "./bankaccounts.ts"
import type { BankdepositsShape } from "./bankdeposits.ts"
import type { CctransactionsShape } from "./cctransactions.ts"
import type { FixedassetsShape } from "./fixedassets.ts"
import type { JobsShape } from "./jobs.ts"
import type { JobdrawsShape } from "./jobdraws.ts"
import type { JobsitesShape } from "./jobsites.ts"
import type { BuildingsShape } from "./buildings.ts"
import type { PropertyunitsShape } from "./propertyunits.ts"
import type { LeasesShape } from "./leases.ts"
import type { TeamprojectsShape } from "./teamprojects.ts"
import type { TeamprojecttasksShape } from "./teamprojecttasks.ts"
import type { TeamprojectstatusesShape } from "./teamprojectstatuses.ts"
import type { TeamprojecttagsShape } from "./teamprojecttags.ts"
import type { TeamprojectmilestonesShape } from "./teamprojectmilestones.ts"
import type { TeamprojecttemplatesShape } from "./teamprojecttemplates.ts"
import type { EmployeesShape } from "./employees.ts"
import type { DepartmentsShape } from "./departments.ts"
import type { TaxgroupsShape } from "./taxgroups.ts"
import type { TaxusecodesShape } from "./taxusecodes.ts"
import type { TaxjurisdictionsShape } from "./taxjurisdictions.ts"
import type { StagetypesShape } from "./stagetypes.ts"
import type { CcprocessorsShape } from "./ccprocessors.ts"
import type { CountriesShape } from "./countries.ts"
import type { ZonesShape } from "./zones.ts"
import type { TimezonesShape } from "./timezones.ts"

export type * from "./invoicelines.ts"
export type * from "./payments.ts"
export type * from "./orderdeposits.ts"
export type * from "./shipments.ts"
export type * from "./shipmentlines.ts"
export type * from "./rmareturns.ts"
export type * from "./orders.ts"
export type * from "./orderlines.ts"
export type * from "./invoices.ts"
export type * from "./customers.ts"
export type * from "./shiptos.ts"
export type * from "./items.ts"
export type * from "./salesmen.ts"
export type * from "./invoiceterms.ts"
export type * from "./carrierservices.ts"
export type * from "./carriers.ts"
export type * from "./producttypetaxes.ts"
export type * from "./taxclasses.ts"
export type * from "./taxexemptions.ts"
export type * from "./glaccounts.ts"
export type * from "./costcodes.ts"
export type * from "./vouchers.ts"
export type * from "./checkaccounts.ts"
export type * from "./inventorylocations.ts"
export type * from "./ledgerperiods.ts"
export type * from "./qtyunits.ts"
export type * from "./worktypes.ts"
export type * from "./prpaytypes.ts"
export type * from "./users.ts"
export type * from "./customfields.ts"
export type * from "./ardailycloses.ts"
export type * from "./apbilllines.ts"
export type * from "./teamprojectreminders.ts"
export type * from "./teamprojecttasktags.ts"
export type * from "./teamprojectrecurringtasks.ts"
export type * from "./teamprojecttemplateitems.ts"
export type * from "./teamprojectautomations.ts"
export type * from "./emailtemplates.ts"
export type * from "./stages.ts"
export type * from "./estquotepricelists.ts"
export type * from "./vendororderfroms.ts"
export type * from "./assetcategories.ts"
export type * from "./ccaccounts.ts"
export type * from "./itemcomparisongroups.ts"
export type * from "./taskstatuses.ts"
export type * from "./areas.ts"
export type * from "./contactnames.ts"
export type * from "./b2busers.ts"
export type * from "./vendors.ts"
export type * from "./serviceordertimes.ts"
export type * from "./purchaseorders.ts"
export type * from "./purchaseorderlines.ts"
export type * from "./purchaseorderreceipts.ts"
export type * from "./apbills.ts"
export type * from "./estquotes.ts"
export type * from "./inventorytransfers.ts"
export type * from "./inventorycounts.ts"
export type * from "./gltransactions.ts"
export type * from "./glcategories.ts"
export type * from "./costcenters.ts"
export type * from "./bankaccounts.ts"
export type * from "./bankdeposits.ts"
export type * from "./cctransactions.ts"
export type * from "./fixedassets.ts"
export type * from "./jobs.ts"
export type * from "./jobdraws.ts"
export type * from "./jobsites.ts"
export type * from "./buildings.ts"
export type * from "./propertyunits.ts"
export type * from "./leases.ts"
export type * from "./teamprojects.ts"
export type * from "./teamprojecttasks.ts"
export type * from "./teamprojectstatuses.ts"
export type * from "./teamprojecttags.ts"
export type * from "./teamprojectmilestones.ts"
export type * from "./teamprojecttemplates.ts"
export type * from "./employees.ts"
export type * from "./departments.ts"
export type * from "./taxgroups.ts"
export type * from "./taxusecodes.ts"
export type * from "./taxjurisdictions.ts"
export type * from "./stagetypes.ts"
export type * from "./ccprocessors.ts"
export type * from "./countries.ts"
export type * from "./zones.ts"
export type * from "./timezones.ts"

/** All resources by path. */
export interface Resources {
  /** invoice lines */
  readonly invoicelines: InvoicelinesShape
  /** payments applied to an invoice */
  readonly payments: PaymentsShape
  /** deposits against an order */
  readonly orderdeposits: OrderdepositsShape
  /** shipments against an order; children: shipmentlines */
  readonly shipments: ShipmentsShape
  /** what was shipped per order line */
  readonly shipmentlines: ShipmentlinesShape
  /** returned lines against a return authorization */
  readonly rmareturns: RmareturnsShape
  /** sales orders, service orders, rentals and quotes; children: orderlines, shipments */
  readonly orders: OrdersShape
  /** order lines */
  readonly orderlines: OrderlinesShape
  /** AR invoices; children: invoicelines */
  readonly invoices: InvoicesShape
  /** companies invoiced: terms, credit limit */
  readonly customers: CustomersShape
  /** delivery addresses on a customer */
  readonly shiptos: ShiptosShape
  /** items sold */
  readonly items: ItemsShape
  /** salespeople and service reps */
  readonly salesmen: SalesmenShape
  /** payment terms, shared install-wide */
  readonly invoiceterms: InvoicetermsShape
  /** services of a carrier */
  readonly carrierservices: CarrierservicesShape
  /** carriers */
  readonly carriers: CarriersShape
  /** taxes on product types */
  readonly producttypetaxes: ProducttypetaxesShape
  /** tax classes */
  readonly taxclasses: TaxclassesShape
  /** tax exemptions */
  readonly taxexemptions: TaxexemptionsShape
  /** chart of accounts */
  readonly glaccounts: GlaccountsShape
  /** cost codes */
  readonly costcodes: CostcodesShape
  /** ledger vouchers: what posting a document writes */
  readonly vouchers: VouchersShape
  /** bank accounts that payments are deposited to */
  readonly checkaccounts: CheckaccountsShape
  /** inventory locations */
  readonly inventorylocations: InventorylocationsShape
  /** ledger periods; nothing can be posted into a closed one */
  readonly ledgerperiods: LedgerperiodsShape
  /** units of quantity and price */
  readonly qtyunits: QtyunitsShape
  /** work types */
  readonly worktypes: WorktypesShape
  /** payroll pay types */
  readonly prpaytypes: PrpaytypesShape
  /** users of the application */
  readonly users: UsersShape
  /** definitions of the install's custom fields */
  readonly customfields: CustomfieldsShape
  /** end-of-day close records */
  readonly ardailycloses: ArdailyclosesShape
  /** coding lines of vendor bills */
  readonly apbilllines: ApbilllinesShape
  /** reminders of project tasks */
  readonly teamprojectreminders: TeamprojectremindersShape
  /** tags on project tasks */
  readonly teamprojecttasktags: TeamprojecttasktagsShape
  /** project tasks that a generator makes again and again */
  readonly teamprojectrecurringtasks: TeamprojectrecurringtasksShape
  /** milestones and tasks of a project template */
  readonly teamprojecttemplateitems: TeamprojecttemplateitemsShape
  /** automations of a project: what happens when */
  readonly teamprojectautomations: TeamprojectautomationsShape
  /** email templates */
  readonly emailtemplates: EmailtemplatesShape
  /** stages that documents pass through */
  readonly stages: StagesShape
  /** price lists of estimating quotes */
  readonly estquotepricelists: EstquotepricelistsShape
  /** addresses that a vendor is ordered from */
  readonly vendororderfroms: VendororderfromsShape
  /** categories of fixed assets */
  readonly assetcategories: AssetcategoriesShape
  /** card accounts */
  readonly ccaccounts: CcaccountsShape
  /** groups of items that are compared */
  readonly itemcomparisongroups: ItemcomparisongroupsShape
  /** CRM task statuses */
  readonly taskstatuses: TaskstatusesShape
  /** areas */
  readonly areas: AreasShape
  /** named contacts on a customer or ship-to */
  readonly contactnames: ContactnamesShape
  /** customer-portal logins */
  readonly b2busers: B2busersShape
  /** vendors */
  readonly vendors: VendorsShape
  /** hours on a service order */
  readonly serviceordertimes: ServiceordertimesShape
  /** purchase orders; children: purchaseorderlines, purchaseorderreceipts */
  readonly purchaseorders: PurchaseordersShape
  /** purchase order lines */
  readonly purchaseorderlines: PurchaseorderlinesShape
  /** receipts against a purchase order */
  readonly purchaseorderreceipts: PurchaseorderreceiptsShape
  /** vendor bills; children: apbilllines */
  readonly apbills: ApbillsShape
  /** quotes from the estimating module */
  readonly estquotes: EstquotesShape
  /** stock moving between companies or locations */
  readonly inventorytransfers: InventorytransfersShape
  /** physical and cycle count batches with their counted lines */
  readonly inventorycounts: InventorycountsShape
  /** raw journal entries, one record per journal set */
  readonly gltransactions: GltransactionsShape
  /** categories of ledger accounts */
  readonly glcategories: GlcategoriesShape
  /** cost centers */
  readonly costcenters: CostcentersShape
  /** bank accounts */
  readonly bankaccounts: BankaccountsShape
  /** deposits into a bank account */
  readonly bankdeposits: BankdepositsShape
  /** card transactions */
  readonly cctransactions: CctransactionsShape
  /** fixed assets */
  readonly fixedassets: FixedassetsShape
  /** construction jobs */
  readonly jobs: JobsShape
  /** draws on a construction job */
  readonly jobdraws: JobdrawsShape
  /** sites of a construction job */
  readonly jobsites: JobsitesShape
  /** buildings */
  readonly buildings: BuildingsShape
  /** units of a building */
  readonly propertyunits: PropertyunitsShape
  /** leases of a unit to a customer */
  readonly leases: LeasesShape
  /** projects */
  readonly teamprojects: TeamprojectsShape
  /** tasks of a project */
  readonly teamprojecttasks: TeamprojecttasksShape
  /** statuses of project tasks */
  readonly teamprojectstatuses: TeamprojectstatusesShape
  /** tags for project tasks */
  readonly teamprojecttags: TeamprojecttagsShape
  /** milestones of projects */
  readonly teamprojectmilestones: TeamprojectmilestonesShape
  /** project templates */
  readonly teamprojecttemplates: TeamprojecttemplatesShape
  /** employees, read-only and minimal */
  readonly employees: EmployeesShape
  /** departments */
  readonly departments: DepartmentsShape
  /** tax groups */
  readonly taxgroups: TaxgroupsShape
  /** tax use codes */
  readonly taxusecodes: TaxusecodesShape
  /** tax authorities with their rates */
  readonly taxjurisdictions: TaxjurisdictionsShape
  /** types of stages */
  readonly stagetypes: StagetypesShape
  /** card processors */
  readonly ccprocessors: CcprocessorsShape
  /** countries */
  readonly countries: CountriesShape
  /** zones */
  readonly zones: ZonesShape
  /** time zones */
  readonly timezones: TimezonesShape
}

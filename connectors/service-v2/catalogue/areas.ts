/**
 * Scope areas and optional modules.
 *
 * Promise: exactly the 22 areas of SCOPE-05; the modules are those of decision C-08.
 */
import type { Area } from "../../../src/catalogue/Catalogue.ts"

export const areas: ReadonlyArray<Area> = [
  { name: "customers", covers: "customers, ship-to addresses, contacts" },
  { name: "vendors", covers: "vendors, their types and order-from addresses" },
  { name: "orders", covers: "sales orders, service orders, AR quotes, with lines" },
  { name: "invoices", covers: "AR invoices and lines; posting an invoice writes to the ledger" },
  { name: "payments", covers: "payments applied to invoices, order deposits, daily closes" },
  { name: "shipments", covers: "shipments against an order" },
  { name: "purchaseorders", covers: "purchase orders and receipts against them" },
  { name: "bills", covers: "vendor bills and lines" },
  { name: "estimating", covers: "quotes from the estimating module and their price lists" },
  { name: "items", covers: "items, item vendors, options, special pricing, comparison groups" },
  { name: "glaccounts", covers: "chart of accounts, categories, cost centers, cost codes" },
  { name: "gltransactions", covers: "raw journal entries; bypasses the document layer; granted only on request" },
  { name: "banking", covers: "bank accounts, deposits, card accounts, card transactions" },
  { name: "assets", covers: "fixed assets and their categories" },
  { name: "jobs", covers: "construction jobs, draws, sites, projects" },
  { name: "properties", covers: "buildings, units, leases" },
  { name: "projects", covers: "the whole team-projects module: projects, tasks, time and everything under them" },
  { name: "payroll", covers: "employees, departments, pay types (employee records are read-only and minimal)" },
  { name: "tax", covers: "tax groups, exemptions, classes, use codes, product tax types" },
  {
    name: "setup",
    covers:
      "shared lookups: terms, salespeople, categories, carriers, carrier services, work types, statuses, stages, " +
      "areas, email templates, webhook subscriptions and the rest"
  },
  { name: "reference", covers: "countries, zones, time zones; read-only and static" },
  { name: "users", covers: "read-only lookup of users" }
]

/** Optional modules; a resource of one that is not licensed answers 403 feature_not_licensed. */
export const features: ReadonlyArray<string> = ["estimating", "assets", "jobs", "properties", "projects", "payroll"]

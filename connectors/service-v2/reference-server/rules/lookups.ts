/**
 * Records that others depend on (I-25).
 *
 * Promise: a lookup is not cancelled while an active record uses it; the table below lists these uses.
 */
import { ApiError } from "../ApiError.ts"
import type { Context, Rules } from "./Rules.ts"
import { customerBalance } from "./customers.ts"
import { active, change } from "./records.ts"

interface Use {
  readonly resource: string
  readonly field: string
}

const uses: Readonly<Record<string, ReadonlyArray<Use>>> = {
  invoiceterms: [{ resource: "customers", field: "invoicetermid" }],
  salesmen: [{ resource: "customers", field: "salesmanid" }],
  producttypetaxes: [{ resource: "invoicelines", field: "producttypetaxid" }],
  teamprojecttemplateitems: [{ resource: "teamprojecttemplateitems", field: "parentitemid" }],
  vendors: [
    { resource: "purchaseorders", field: "vendorid" },
    { resource: "apbills", field: "vendorid" }
  ],
  customers: [
    { resource: "orders", field: "customerid" },
    { resource: "invoices", field: "customerid" }
  ]
}

const cancelUnused =
  (path: string, used: ReadonlyArray<Use>): NonNullable<Rules["cancel"]> =>
  (context: Context, version) => {
    const companies = version.table.resource.shared ? context.store.companies() : [context.company]
    for (const company of companies) {
      for (const { resource, field } of used) {
        const [user] = active({ ...context, company }, resource, field, version.id)
        if (user !== undefined) {
          throw new ApiError("cannot_cancel", `${path} ${version.id} is used by ${resource} ${user.id}`)
        }
      }
    }
    return { version: change(context, version, { cancel: true }) }
  }

/** Further rules of some lookups. */
const more: Readonly<Record<string, Rules>> = { customers: { specials: { balance: customerBalance } } }

export const lookups: ReadonlyArray<readonly [path: string, rules: Rules]> = Object.entries(uses).map(
  ([path, used]) => [path, { ...more[path], cancel: cancelUnused(path, used) }] as const
)

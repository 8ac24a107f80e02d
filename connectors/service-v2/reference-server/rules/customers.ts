/** The balance of a customer (J-09). */
import { format, units } from "../decimal.ts"
import type { Value } from "../json.ts"
import type { SpecialRule } from "./Rules.ts"
import { isPosted, openBalance } from "./invoices.ts"
import { active } from "./records.ts"

const moneyOf = (value: Value | undefined): string | null =>
  value === null || value === undefined ? null : format(units(value, 4), 4)

export const customerBalance: SpecialRule = {
  run: (context, customer) => {
    const open = active(context, "invoices", "customerid", customer.id)
      .filter((invoice) => isPosted(invoice) && openBalance(invoice) !== 0n)
      .map(openBalance)
    const balance = format(
      open.reduce((sum, amount) => sum + amount, 0n),
      4
    )
    const creditlimit = moneyOf(customer.values["creditlimit"])
    const text = JSON.stringify({ customerid: customer.id, balance, openinvoices: open.length, creditlimit })
    return { kind: "object", text }
  }
}

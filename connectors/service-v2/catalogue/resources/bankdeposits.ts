/** Bank deposits: inferred (L4) from bankdepositid. */
import { date, id, money, ref } from "../fields.ts"
import { exact, resource } from "../resource.ts"
import { commonFields } from "./common.ts"

export const bankdeposits = resource({
  path: "bankdeposits",
  area: "banking",
  purpose: "deposits into a bank account",
  basis: "inferred",
  operations: "L R",
  businessDate: { field: "depositdate" },
  fields: [id(), ref("bankaccountid", "bankaccounts"), date("depositdate"), money("amount"), commonFields()],
  filters: [exact("bankaccountid")],
  modifiedSince: true
})

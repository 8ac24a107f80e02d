/**
 * GET /invoicelines/{id}/tax (J-05).
 *
 * Promise: a line without applicable tax has none. Otherwise every authority of the company taxes the part of the line
 * that is not exempt, at its own rate, rounded half away from zero.
 */
import { format, rescale, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Context, SpecialRule } from "./Rules.ts"

const hundredPercent = 100_000_000n

/** `rate` percent, with 6 decimals, of an amount of money. */
const percentOf = (amount: bigint, rate: bigint): bigint => rescale(amount * rate, 12, 4)

const taxesOf = ({ store, company }: Context, { values }: Version) => {
  const taxes = [...store.table(company, "taxjurisdictions").all()]
    .filter(({ cancelled }) => !cancelled)
    .map(({ values: { authority, rate } }) => ({ authority: authority ?? null, rate: units(rate, 6) }))
  const { producttypetaxid } = values
  const own =
    typeof producttypetaxid === "number" ? store.table(company, "producttypetaxes").get(producttypetaxid) : undefined
  return own === undefined
    ? taxes
    : [...taxes, { authority: own.values["name"] ?? null, rate: units(own.values["taxrate"], 6) }]
}

const exemptOf = ({ store, company }: Context, { values }: Version, total: bigint): bigint => {
  const { partialtaxexemptionid } = values
  if (typeof partialtaxexemptionid !== "number") return 0n
  const rate = units(store.table(company, "taxexemptions").get(partialtaxexemptionid)?.values["rate"], 6)
  return percentOf(total, rate > hundredPercent ? hundredPercent : rate)
}

export const lineTax: SpecialRule = {
  unknownId: "unknown_value",
  run: (context, line) => {
    const isTaxed = ["taxflag", "taxflag2", "taxflag3"].some((flag) => Number(line.values[flag] ?? 0) > 0)
    const total = units(line.values["totalprice"], 4)
    const exempt = exemptOf(context, line, total)
    const entries = (isTaxed ? taxesOf(context, line) : []).map(({ authority, rate }) =>
      JSON.stringify({
        authority,
        rate: format(rate, 6),
        taxableamount: format(total - exempt, 4),
        exemptamount: format(exempt, 4),
        taxamount: format(percentOf(total - exempt, rate), 4)
      })
    )
    return { kind: "entries", entries }
  }
}

/**
 * The packages of a shipment (J-01).
 *
 * Promise: packages follow from the shipped quantities and the carrier service, so every request gives the same ones:
 * cartons of a fixed number of units, one pound per unit, the service's charges for the first and further boxes.
 */
import { format, rescale, units } from "../decimal.ts"
import type { Version } from "../store/Table.ts"
import type { Context } from "./Rules.ts"
import { active } from "./records.ts"

export interface Package {
  readonly id: number
  readonly trackingnumber: string | null
  readonly weight: string
  readonly carriercharge: string
}

const unitsPerCarton = 40n * 1_000_000n
/** Maximum number of cartons; the last one contains the rest. */
const cartonsMax = 99n

export const packagesOf = (context: Context, shipment: Version): ReadonlyArray<Package> => {
  let left = 0n
  for (const { values } of active(context, "shipmentlines", "shipmentid", shipment.id)) {
    left += units(values["quantity"], 6)
  }
  const { carrierserviceid } = shipment.values
  const service =
    typeof carrierserviceid === "number"
      ? context.store.table(context.company, "carrierservices").get(carrierserviceid)?.values
      : undefined
  const packages: Array<Package> = []
  while (left > 0n) {
    const number = packages.length + 1
    const isLast = BigInt(number) >= cartonsMax || left < unitsPerCarton
    const weight = isLast ? left : unitsPerCarton
    left -= weight
    const charge = units(service?.[number === 1 ? "box1_charge" : "box_addl"], 5)
    packages.push({
      id: shipment.id * 100 + number,
      trackingnumber:
        service === undefined ? null : `1Z${String(shipment.id).padStart(10, "0")}${String(number).padStart(2, "0")}`,
      weight: format(weight, 6),
      carriercharge: format(rescale(charge, 5, 4), 4)
    })
  }
  return packages
}

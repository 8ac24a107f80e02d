/** The writable fields in the message about an unknown one, the most likely first. */
import { distance } from "../catalogue/Nearest.ts"
import type { WriteColumns } from "./WriteSchema.ts"

/** Lists the writable fields: the one that sets the field of this name, then the others by their spelling. */
export const listFields = (name: string, columns: WriteColumns, others: ReadonlyArray<string>): string => {
  const ranked = [...columns.values()]
    .map((column) => ({
      name: column.name,
      rank: column.sets === name ? -1 : distance(name, column.name)
    }))
    .sort((a, b) => a.rank - b.rank)
  const names = [...ranked.map((column) => column.name), ...others]
  return names.length === 0 ? "nothing is" : `these are: ${names.join(", ")}`
}

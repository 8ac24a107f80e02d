/** Items for sale, and the operations below them. */
import type { Rules } from "./Rules.ts"
import { itemStock } from "./stock.ts"

export const items: Rules = { specials: { stock: itemStock } }

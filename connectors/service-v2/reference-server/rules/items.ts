/** Items sold: what else may be asked of one. */
import type { Rules } from "./Rules.ts"
import { itemStock } from "./stock.ts"

export const items: Rules = { specials: { stock: itemStock } }

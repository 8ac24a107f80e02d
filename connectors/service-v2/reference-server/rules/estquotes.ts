/** Quotes of the estimating module: dated today by default; a cancelled quote cannot change (D-13). */
import { patchOf } from "./body.ts"
import { today } from "./Rules.ts"
import { change, insert, violation } from "./records.ts"
import type { Rules } from "./Rules.ts"

export const estquotes: Rules = {
  create: (context, resource, body) => {
    const patch = patchOf(resource, "create", body)
    return {
      version: insert(context, resource.path, { ...patch, quotedate: patch["quotedate"] ?? today(context) }, body)
    }
  },
  update: (context, quote, body) => {
    if (quote.cancelled) throw violation(`quote ${quote.id} is cancelled`)
    return { version: change(context, quote, patchOf(quote.table.resource, "update", body), body) }
  }
}

/** Returns (I-26): no side effects on stock; a cancelled return cannot change (D-13). */
import { change, violation } from "./records.ts"
import { patchOf } from "./body.ts"
import type { Rules } from "./Rules.ts"

export const rmareturns: Rules = {
  update: (context, version, body) => {
    if (version.cancelled) throw violation(`return ${version.id} is cancelled`)
    return { version: change(context, version, patchOf(version.table.resource, "update", body), body) }
  }
}

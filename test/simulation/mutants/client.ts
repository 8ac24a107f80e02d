/** Bugs of the connector: waiting, retrying, paging, reading values. */
import type { Mutant } from "./Mutant.ts"

const exchange = "connectors/service-v2/client/Exchange.ts"

export const client: ReadonlyArray<Mutant> = []
void exchange

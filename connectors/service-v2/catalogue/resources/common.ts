/** Fields of the resources whose fields the documents do not show (decisions L2 and L4). */
import { cancel, entrydate, externalid, lastchangedate } from "../fields.ts"
import type { Field } from "../fields.ts"

export const commonFields = (): ReadonlyArray<Field> => [
  cancel(),
  entrydate({ readOnly: true }),
  lastchangedate(),
  externalid()
]

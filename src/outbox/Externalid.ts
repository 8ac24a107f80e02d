/** Externalids: their folded form, and the spellings that a source may alter. */

import type { Resource } from "../catalogue/Resource.ts"
import { identifier } from "../warehouse/Identifier.ts"
import type { Table } from "../warehouse/Table.ts"

/** The field of the external key. A source without one gets the outbox's own name, which no write accepts. */
export const externalKeyOf = ({ roles }: Pick<Resource, "roles">): string => roles.externalKey ?? "externalid"

export const externalidLengthMax = 100

/** The quoted column of the external key. */
export const keySql = ({ resource }: Table): string => identifier(externalKeyOf(resource))

/** Two externalids with the same folded form may be one to a source. */
export const foldExternalid = (text: string): string => text.normalize("NFC").trim().toLowerCase()

/** {@link foldExternalid} in SQL. */
export const foldExternalidSql = (text: string): string => `lower(btrim(normalize(${text}), E' \\t\\r\\n'))`

/** Why a source could store another externalid than this one; null when it has no reason to. */
export const alterationOf = (text: string): string | null => {
  if (/\p{Cc}/u.test(text)) return "has a control character, which the service may drop: take it out"
  if (text.trim() !== text) return "begins or ends with a blank, which the service may drop: take it out"
  if (text.normalize("NFC") !== text) {
    return "is not in Unicode's composed form (NFC), into which the service may bring it: normalise it"
  }
  return null
}

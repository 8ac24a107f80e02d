/** The API of the ledger as data: one resource, with other field names than Service API v2. */
import { catalogue } from "../../../src/catalogue/Catalogue.ts"
import { integer, money, string, timestamp } from "../../../src/catalogue/Field.ts"
import { resource } from "../../../src/catalogue/Resource.ts"
import type { SourceTraits } from "../../../src/catalogue/SourceTraits.ts"

const traits: SourceTraits = {
  roles: { id: "entryno", modifiedAt: "changed", externalKey: "reference", cancelled: null },
  parameters: ["since", "page"],
  missingScope: () => null,
  batchRecordsMax: 1,
  keyLifetime: "1 hours"
}

export const entries = resource({
  path: "entries",
  traits,
  area: "books",
  purpose: "entries of the ledger",
  basis: "documented",
  operations: "L C R U",
  modifiedSince: true,
  fields: [
    integer("entryno", { readOnly: true }),
    string("reference", 40),
    money("amount"),
    timestamp("changed", { readOnly: true })
  ]
})

export const ledger = catalogue({
  name: "ledger",
  version: "1",
  traits,
  areas: [{ name: "books", covers: "everything" }],
  features: [],
  errorCodes: [],
  resources: [entries]
})

/** The readings of the dialect that reads can reveal. */
import type { Json } from "../reference-server/support.ts"

/** A reading, and the switches that the radar names. */
interface Readable {
  readonly dialect: Json
  /** The names and values that are reported; by default those of the dialect. */
  readonly named?: ReadonlyArray<string>
}

/** The readings that reads can reveal. A seed is reported as 1, whatever it is. */
export const readable: ReadonlyArray<Readable> = [
  { dialect: { itemsKey: "results" } },
  { dialect: { itemsKey: "items" } },
  { dialect: { itemsKey: "records" } },
  { dialect: { itemsKey: "resource" } },
  { dialect: { itemsKey: "bare" } },
  { dialect: { paging: "page" } },
  { dialect: { paging: "offset" } },
  { dialect: { paging: "link" } },
  { dialect: { pageDefault: 40 } },
  { dialect: { pageDefault: 200 } },
  { dialect: { pageMax: 40 }, named: ["pageDefault=40", "pageMax=40"] },
  { dialect: { pageMax: 200 } },
  { dialect: { pageMax: 1000 } },
  { dialect: { limit: "clamped" } },
  { dialect: { limit: "ignored" } },
  { dialect: { limit: "unknown" } },
  { dialect: { pageSizes: 7 }, named: ["pageSizes=1"] },
  { dialect: { tieOrder: 7 }, named: ["tieOrder=1"] },
  { dialect: { syncedThrough: false } },
  { dialect: { modifiedSince: "exclusive" } },
  { dialect: { cancelTrue: "includes" } },
  { dialect: { cancelTrue: "only" } },
  { dialect: { etag: false } },
  { dialect: { requestIdHeader: "X-Correlation" }, named: ["requestIdHeader=x-correlation"] },
  { dialect: { compression: true } },
  { dialect: { dateForm: "timestamp" } },
  { dialect: { dateForm: "seconds" } },
  { dialect: { modifiedSinceOnFour: true } },
  { dialect: { allOperations: true } },
  { dialect: { extraFields: 7 }, named: ["extraFields=1"] },
  { dialect: { keyOrder: 7 }, named: ["keyOrder=1"] }
]

/** Traits of Service API v2 that the engine needs besides its resources. */
import type { SourceTraits } from "../../../src/catalogue/SourceTraits.ts"
import { limits } from "./limits.ts"

export const traits: SourceTraits = {
  roles: { id: "id", modifiedAt: "lastchangedate", externalKey: "externalid", cancelled: "cancel" },
  parameters: ["modifiedsince", "include", "limit", "cursor"],
  missingScope: (scopes, area, access) => {
    const scope = `${area}:${access}`
    return area === "" || ["*", `${area}:*`, scope].some((one) => scopes.includes(one)) ? null : scope
  },
  deliveryRecord: "data",
  deliveryEnvelope: ["id", "type", "companyid", "createdate"],
  batchRecordsMax: limits.batchRecordsMax,
  keyLifetime: `${limits.idempotencyHours} hours`
}

/** The connector to Service API v2, for the wiring. */
export * as Deliveries from "./Deliveries.ts"
export * as ServiceClient from "./ServiceClient.ts"
export * as Signature from "./Signature.ts"
export * as Transport from "./Transport.ts"

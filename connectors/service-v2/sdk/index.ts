/**
 * The client of Service API v2 for programs: promises and plain types. `README.md` shows how to use it.
 *
 * Promise: it is the connector's own client, so that records are exact, lists are whole and writes take effect once. It
 * needs no database. Its declarations name no type of another package.
 */
export type * from "./Api.ts"
export { createClient } from "./createClient.ts"
export * from "./Errors.ts"
export type * from "./records/errorCodes.ts"
export type * from "./records/index.ts"
export type * from "./Values.ts"
export { verifyWebhook } from "./VerifyWebhook.ts"
export type * from "./WebhookEvent.ts"

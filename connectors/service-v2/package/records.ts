/**
 * The types of all records, of the bodies that write them and of the filters of their lists: `tributary-sync/records`.
 *
 * Promise: they are the types of the client. A decimal is a string with the digits of its field, and never a number.
 */
import type { Resources } from "../sdk/records/index.ts"

export type * from "../sdk/records/errorCodes.ts"
export type * from "../sdk/records/index.ts"
export type * from "../sdk/Values.ts"

/** The name of a resource: its path in the API, and its table in the warehouse. */
export type ResourceName = keyof Resources

/** The type of a record, by the name of its resource. */
export type Records = { readonly [R in ResourceName]: Resources[R]["record"] }

/** The names of all resources. `generate.ts` writes the value, so that a program does not load the catalogue for it. */
export declare const resourceNames: ReadonlyArray<ResourceName>

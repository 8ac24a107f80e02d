/** Functions that define a resource of Service API v2. */
import * as Base from "../../../src/catalogue/Resource.ts"
import { traits } from "./traits.ts"

export * from "../../../src/catalogue/Resource.ts"

export type ResourceSpec = Omit<Base.ResourceSpec, "traits">

export const resource = (spec: ResourceSpec): Base.Resource => Base.resource({ ...spec, traits })

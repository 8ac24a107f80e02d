/** The state that the operations of one client share, and requests with and without custom fields. */
import { customFieldsName } from "../../../src/catalogue/Protection.ts"
import * as Effect from "effect/Effect"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import type * as SourceError from "../../../src/connector/SourceError.ts"
import type { Answer } from "./Answer.ts"
import * as Decode from "./Decode.ts"
import type { Exchange } from "./Exchange.ts"
import type { Listing, Parameter } from "./Listing.ts"

/** Source of the value of `If-Match`. */
export type Precondition = "auto" | "etag" | "lastchangedate" | "none"

export interface ClientContext {
  /** Scheme, host, port and path of the source. */
  readonly address: string
  readonly exchange: Exchange
  readonly listing: Listing
  /** The member that holds the records of a list; null detects it. */
  readonly itemsKey: string | null
  readonly precondition: Precondition
  readonly includeCustomFields: boolean
  /** Resources that refused `include`; they are read without it. */
  readonly withoutInclude: Set<string>
  readonly decoderOf: (resource: Resource) => Decode.Decoder
}

/** Decoders by resource, each compiled once. */
export const decoders = (): ClientContext["decoderOf"] => {
  const known = new WeakMap<Resource, Decode.Decoder>()
  return (resource) => {
    const decoder = known.get(resource) ?? Decode.make(resource)
    known.set(resource, decoder)
    return decoder
  }
}

/** The parameter that includes custom fields, where they are configured and offered. */
export const includeParameters = (
  { includeCustomFields, withoutInclude }: ClientContext,
  resource: Resource
): ReadonlyArray<Parameter> =>
  includeCustomFields && !withoutInclude.has(resource.path) ? [["include", customFieldsName]] : []

/** Sends a request with `include`, and once more without it when the source refuses `include`. */
export const withOrWithoutInclude = <A>(
  { includeCustomFields, withoutInclude }: ClientContext,
  resource: Resource,
  request: Effect.Effect<A, SourceError.SourceError>
): Effect.Effect<A, SourceError.SourceError> =>
  request.pipe(
    Effect.catch((error) => {
      const { reason } = error
      const isAboutInclude = reason._tag === "Refused" && reason.field === "include"
      if (!isAboutInclude || !includeCustomFields || withoutInclude.has(resource.path)) return Effect.fail(error)
      withoutInclude.add(resource.path)
      return Effect.andThen(
        Effect.logWarning(`${resource.path} does not offer custom fields; it is read without them`),
        request
      )
    })
  )

/** Characters of a request that are stored beside records, for people. */
const sourceLengthMax = 160

/** The request that an answer came from, for people. */
export const sourceOf = (method: string, path: string, { requestId }: Answer): string => {
  const shown = path.length <= sourceLengthMax ? path : `${path.slice(0, sourceLengthMax)}…`
  return requestId === null ? `${method} ${shown}` : `${method} ${shown} [request ${requestId}]`
}

/** The company, the user and the scopes of a token, from `/me`. */
import * as Effect from "effect/Effect"
import type { Identity } from "../../../src/connector/Connector.ts"
import type * as SourceError from "../../../src/connector/SourceError.ts"
import type { Failed } from "./Answer.ts"
import { isObject, type JsonObject, member, parse, type Parsed, Unreadable } from "./Envelope.ts"
import type { Call, Exchange } from "./Exchange.ts"
import { malformed, whenOk } from "./Listing.ts"

const isScope = (value: unknown): boolean => typeof value === "string" && /^(?:\*|[a-z0-9_]+:[a-z*]+)$/.test(value)

const textsOf = (value: unknown): ReadonlyArray<string> | null =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? value : null

const companyOf = (value: unknown): bigint | null =>
  typeof value === "number" && Number.isSafeInteger(value)
    ? BigInt(value)
    : typeof value === "string" && /^\d{1,18}$/.test(value)
      ? BigInt(value)
      : null

/** Reads `/me`. The documents do not show all its fields: they are found by name, else by the form of their values. */
export const readIdentity = ({ value }: Parsed, configuredId: bigint | null): Identity | Unreadable => {
  const inner = isObject(value) ? member(value, "data") : undefined
  const me = isObject(inner) ? inner : value
  if (!isObject(me)) return new Unreadable("/me answered no object", true)
  const token = member(me, "token")
  const company = member(me, "company")
  const places: ReadonlyArray<JsonObject> = isObject(token) ? [me, token] : [me]
  const companyId =
    places.map((place) => companyOf(member(place, "companyid"))).find((id) => id !== null) ??
    companyOf(isObject(company) ? member(company, "id") : company) ??
    configuredId
  if (companyId === null) return new Unreadable("/me names no company; configure the company's number", true)
  const named = places.map((place) => textsOf(member(place, "scopes"))).find((texts) => texts !== null)
  const alike = Object.values(me)
    .map(textsOf)
    .find((texts) => texts !== null && texts.length > 0 && texts.every(isScope))
  const user = member(me, "user")
  return {
    companyId,
    sourceNumber: companyId,
    user: typeof user === "string" ? user : null,
    scopes: named ?? alike ?? null,
    features: textsOf(member(me, "features"))
  }
}

const call: Call = { method: "GET", path: "/me", headers: {}, body: null, pageParameters: null }

/** The identity of the token; the configured company where `/me` is not available. */
export const identify = (
  exchange: Exchange,
  configuredId: bigint | null
): Effect.Effect<Identity, SourceError.SourceError> =>
  exchange
    .send(
      call,
      whenOk((answer): Identity | Failed => {
        const parsed = parse(answer.bytes)
        if (parsed instanceof Unreadable) return malformed(answer, parsed)
        const identity = readIdentity(parsed, configuredId)
        return identity instanceof Unreadable ? malformed(answer, identity) : identity
      })
    )
    .pipe(
      Effect.tap(({ companyId }) =>
        configuredId === null || configuredId === companyId
          ? Effect.void
          : Effect.logWarning(`the token belongs to company ${companyId}, but company ${configuredId} is configured`)
      ),
      Effect.catch((error) => {
        const isUnavailable =
          error.reason._tag === "NotFound" ||
          error.reason._tag === "NotImplemented" ||
          error.reason._tag === "Refused" ||
          error.reason._tag === "Malformed" ||
          (error.reason._tag === "Forbidden" && error.reason.code === "insufficient_scope")
        return configuredId !== null && isUnavailable
          ? Effect.succeed<Identity>({
              companyId: configuredId,
              sourceNumber: configuredId,
              user: null,
              scopes: null,
              features: null
            })
          : Effect.fail(error)
      })
    )

/**
 * Refusals as responses: the one envelope (ERR-01), the codes of each status, and its headers.
 *
 * Promise: a code is listed only under the status that the catalogue gives it.
 */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import type { Schema } from "./Schema.ts"
import { arrayOf, exactly } from "./Schema.ts"

const problem: Schema = exactly({
  field: { type: "string", minLength: 1, description: "dotted and indexed, such as lines[0].quantity" },
  code: {
    type: "string",
    enum: [
      "required",
      "invalid_type",
      "invalid_enum",
      "invalid_precision",
      "too_long",
      "too_short",
      "unknown_parameter"
    ]
  },
  message: { type: "string", minLength: 1 }
})

/** The inner object of the envelope. */
const errorOf = (codes: ReadonlyArray<string>, more: Readonly<Record<string, Schema>> = {}): Schema =>
  exactly(
    {
      code: { type: "string", enum: codes, description: "stable; branch on it" },
      message: { type: "string", minLength: 1, description: "for people; may be reworded" },
      field: { type: "string", minLength: 1, description: "what is at fault; absent when nothing single is" },
      legacy_code: { type: "integer", description: "the code of version 1, where there is one" },
      errors: { $ref: "#/components/schemas/Problems" },
      ...more
    },
    ["code", "message", ...Object.keys(more)]
  )

export const problems: Schema = arrayOf(problem, { minItems: 1, description: "every problem, with invalid_request" })

/** The one envelope of every failure; with stale_record it contains the current record (B-03). */
const envelope = (codes: ReadonlyArray<string>, current: Schema | null): Schema => {
  const plain = (named: ReadonlyArray<string>) => exactly({ error: errorOf(named) })
  if (current === null) return plain(codes)
  return {
    oneOf: [
      plain(codes.filter((code) => code !== staleRecord)),
      exactly({ error: errorOf([staleRecord], { current }) })
    ]
  }
}

const staleRecord = "stale_record"

const codesOf = ({ errorCodes }: Catalogue, status: number): ReadonlyArray<string> =>
  errorCodes.filter((one) => one.status === status).map(({ code }) => code)

/** The error of one record of a batch. */
export const batchError = (catalogue: Catalogue): Schema =>
  errorOf([400, 403, 409, 422, 500].flatMap((status) => codesOf(catalogue, status)))

const header = (name: string) => ({ $ref: `#/components/headers/${name}` })

/** The headers of every answer (B-11). */
export const sharedHeaders = {
  "Svc-Request-Id": header("RequestId"),
  "X-Request-Id": header("RequestId")
} as const

const headersOf = (status: number): Schema => ({
  ...sharedHeaders,
  ...(status === 401 ? { "WWW-Authenticate": header("Challenge") } : {}),
  ...(status === 403 ? { "WWW-Authenticate": header("ScopeChallenge") } : {}),
  ...(status === 405 ? { Allow: header("Allow") } : {}),
  ...(status === 409 || status === 429
    ? { "Retry-After": header(status === 429 ? "RetryAfter" : "RetryAfterSometimes") }
    : {}),
  ...(status === 409 ? { ETag: header("PresentETag") } : {}),
  ...(status === 400 || status === 404 || status === 409 || status === 422
    ? { "Idempotent-Replayed": header("IdempotentReplayed") }
    : {})
})

/** One refusal. `codes` are those codes of the status that this operation can answer. */
export const failure = (
  catalogue: Catalogue,
  status: number,
  codes: ReadonlyArray<string>,
  current: Schema | null = null
): Schema => {
  const conditions = catalogue.errorCodes.filter((one) => one.status === status && codes.includes(one.code))
  return {
    description: conditions.map(({ code, condition }) => `${code}: ${condition}`).join(". "),
    headers: headersOf(status),
    content: { "application/json": { schema: envelope(codes, current) } },
    "x-fact": ["ERR-01", "ERR-02", "ERR-03", "ERR-04", "ERR-05", "ERR-06"]
  }
}

/** The codes of a status, without those named. */
export const codesBut = (
  catalogue: Catalogue,
  status: number,
  without: ReadonlyArray<string> = []
): ReadonlyArray<string> => codesOf(catalogue, status).filter((code) => !without.includes(code))

/** Components that failures refer to. */
export const headers: Readonly<Record<string, Schema>> = {
  RequestId: { required: true, schema: { type: "string", minLength: 1 }, description: "names the request in traces" },
  ETag: { required: true, schema: { type: "string", pattern: '^"[^"]+"$' }, description: "send it as If-Match (B-01)" },
  PresentETag: { schema: { type: "string", pattern: '^"[^"]+"$' }, description: "of the record as it stands" },
  RetryAfter: {
    required: true,
    schema: { type: "integer", minimum: 1 },
    description: "seconds to wait before the next request"
  },
  RetryAfterSometimes: { schema: { type: "integer", minimum: 1 }, description: "with request_in_progress" },
  Challenge: {
    required: true,
    schema: { type: "string", const: 'Bearer realm="api", error="invalid_token"' },
    description: "what is wrong with the token"
  },
  ScopeChallenge: {
    schema: { type: "string", pattern: '^Bearer realm="api", error="insufficient_scope", scope="[a-z]+:[a-z]+"$' },
    description: "with insufficient_scope: the scope that is needed"
  },
  Allow: { required: true, schema: { type: "string" }, description: "the methods of the path" },
  IdempotentReplayed: {
    schema: { type: "string", const: "true" },
    description: "the answer was given before to the same Idempotency-Key"
  }
}

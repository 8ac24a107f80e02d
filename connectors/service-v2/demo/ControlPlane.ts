/** Calls to the control plane of a reference server. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { type Reference, ReferenceFailed } from "../../../src/connector/Demo.ts"

/** The text of the answer. */
export const call = (reference: Pick<Reference, "controlUrl">, method: string, path: string, body?: string) =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(`${reference.controlUrl}${path}`, {
        method,
        ...(body === undefined ? {} : { body, headers: { "content-type": "application/json" } })
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${response.status} ${text}`)
      return text
    },
    catch: (cause) =>
      new ReferenceFailed({ message: `the reference server's control plane: ${method} ${path}: ${String(cause)}` })
  })

export const decoded = <A>(what: string, schema: Schema.Codec<A, string>, text: string) =>
  Schema.decodeEffect(schema)(text).pipe(
    Effect.mapError((issue) => new ReferenceFailed({ message: `the answer to ${what}: ${issue.message}` }))
  )

/** Every record of a resource as the server holds it, a JSON text each, in the order of ids. */
export const state = (reference: Reference, companyId: bigint, resource: string) =>
  Effect.map(call(reference, "GET", `/state?company=${companyId}&resource=${resource}`), (text) =>
    text.split("\n").filter((line) => line !== "")
  )

const Token = Schema.fromJsonString(Schema.Struct({ token: Schema.String }))

/** Issues a token of a user, with every scope. */
export const issueToken = (reference: Reference, companyId: bigint, user: string) =>
  call(reference, "POST", "/tokens", JSON.stringify({ company: Number(companyId), scopes: ["*"], user })).pipe(
    Effect.flatMap((text) => decoded("POST /tokens", Token, text)),
    Effect.map(({ token }) => Redacted.make(token, { label: `token of company ${companyId}` }))
  )

/** The checks of TLS certificates, in files or of another server. */
import { X509Certificate, createPrivateKey } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as ReadFile from "../../files/ReadFile.ts"
import * as Output from "../Output.ts"
import { about, type About, type Finding } from "./Finding.ts"
import type { Certificate } from "./Web.ts"

const dayMs = 24 * 60 * 60 * 1000
/** A certificate that expires sooner is a warning. */
const certificateDaysMin = 21

/** How long a certificate is valid. */
export const validity = ({ ok, warning, failed }: About, { validTo, issuer }: Certificate): Effect.Effect<Finding> =>
  Effect.map(Clock.currentTimeMillis, (nowMs) => {
    const days = Math.floor((validTo - nowMs) / dayMs)
    const until = new Date(validTo).toISOString().slice(0, 10)
    const remedy = "renew it, and find out why no renewal ran"
    if (days < 0) return failed("configuration", `the certificate expired on ${until}`, remedy)
    const by = issuer === "" ? "" : `, by ${issuer}`
    const text = `the certificate is valid for ${Output.plural(days, "more day")} (${until}${by})`
    return days < certificateDaysMin ? warning(text, remedy) : ok(text)
  })

/** The certificate and the key of a listener, in files. */
export const files = Effect.fnUntraced(function* (
  check: string,
  tls: { readonly certificate: string; readonly key: string } | null
) {
  if (tls === null) return []
  const fail = (message: string, remedy: string) => [about(check).failed("configuration", message, remedy)]
  const read = yield* Effect.result(
    Effect.try({
      try: () => {
        const certificate = new X509Certificate(ReadFile.bytes(tls.certificate))
        return { certificate, hasKey: certificate.checkPrivateKey(createPrivateKey(ReadFile.bytes(tls.key))) }
      },
      catch: (error) => (error instanceof Error ? error.message : String(error))
    })
  )
  if (read._tag === "Failure") {
    return fail(`certificate or key cannot be read (${read.failure})`, "name files in PEM form that this user may read")
  }
  const { certificate, hasKey } = read.success
  if (!hasKey) return fail(`${tls.key} is not the key of ${tls.certificate}`, "name the two files of one certificate")
  return [yield* validity(about(check, tls.certificate), { validTo: Date.parse(certificate.validTo), issuer: "" })]
})

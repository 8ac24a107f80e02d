/** The checks of TLS certificates, in files or of another server. */
import { X509Certificate, createPrivateKey } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Output from "../Output.ts"
import { about, type Finding } from "./Finding.ts"

const dayMs = 24 * 60 * 60 * 1000
/** A certificate that expires sooner is a warning. */
const certificateDaysMin = 21

/** How long a certificate is valid. */
export const validity = (
  check: string,
  subject: string | null,
  validTo: number,
  nowMs: number,
  by: string
): Finding => {
  const { ok, warning, failed } = about(check, subject)
  const days = Math.floor((validTo - nowMs) / dayMs)
  const until = new Date(validTo).toISOString().slice(0, 10)
  const remedy = "renew it, and find out why no renewal ran"
  if (days < 0) return failed("configuration", `the certificate expired on ${until}`, remedy)
  const text = `the certificate is valid for ${Output.count(days)} more ${days === 1 ? "day" : "days"} (${until}${by === "" ? "" : `, by ${by}`})`
  return days < certificateDaysMin ? warning(text, remedy) : ok(text)
}

/** The certificate and the key of a listener, in files. */
export const files = Effect.fnUntraced(function* (
  check: string,
  tls: { readonly certificate: string; readonly key: string } | null
) {
  if (tls === null) return []
  const { failed } = about(check)
  const fail = (message: string, remedy: string) => [failed("configuration", message, remedy)]
  const nowMs = yield* Clock.currentTimeMillis
  return yield* Effect.try({
    try: () => {
      const certificate = new X509Certificate(readFileSync(tls.certificate))
      if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(tls.key)))) {
        return fail(`${tls.key} is not the key of ${tls.certificate}`, "name the two files of one certificate")
      }
      return [validity(check, tls.certificate, Date.parse(certificate.validTo), nowMs, "")]
    },
    catch: (error) => (error instanceof Error ? error.message : String(error))
  }).pipe(
    Effect.catch((message) =>
      Effect.succeed(
        fail(`certificate or key cannot be read (${message})`, "name files in PEM form that this user may read")
      )
    )
  )
})

/** The checks of addresses: the answer of the service, certificates and clocks. */
import { X509Certificate, createPrivateKey } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { Network } from "../../configuration/Network.ts"
import * as ReadFile from "../../files/ReadFile.ts"
import * as Output from "../Output.ts"
import { about, type About, type Checked, type Finding, type Findings, within } from "./Finding.ts"
import * as Web from "./Web.ts"

const dayMs = 24 * 60 * 60 * 1000
/** A certificate that expires sooner is a warning. */
const certificateDaysMin = 21

/** How long a certificate is valid. */
export const validity = (
  { ok, warning, failed }: About,
  { validTo, issuer }: Web.Certificate
): Effect.Effect<Finding> =>
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
export const certificateFiles = Effect.fnUntraced(function* (
  its: About,
  tls: { readonly certificate: string; readonly key: string } | null
) {
  if (tls === null) return []
  const fail = (message: string, remedy: string) => [its.failed("configuration", message, remedy)]
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
  const found = yield* validity(its, { validTo: Date.parse(certificate.validTo), issuer: "" })
  return [{ ...found, subject: tls.certificate }]
})

export interface CheckedAddress extends Checked<Web.Reachable> {
  readonly url: string
}

/** The difference of another clock to this machine's; positive when the other is ahead. */
export interface ClockOffset {
  readonly aheadMs: number
  readonly uncertainMs: number
}

/** A smaller difference has no effect. */
const clockOffMsMin = 5_000

const answer = (
  { ok, warning, failed }: About,
  url: string,
  allowHttp: boolean,
  { status, location, tookMs }: Web.Reachable
): Finding => {
  const isHttp = new URL(url).protocol === "http:"
  if (status >= 300 && status < 400) {
    return failed(
      "configuration",
      `it redirects to ${Output.shown(location ?? "nowhere")}; redirects are not followed, since they leak the token`,
      "configure the new address, if it is right"
    )
  }
  if (status >= 500) return warning(`it answers ${status}`, "report that to the operator of the service")
  return isHttp && allowHttp
    ? warning(`it answers (${tookMs} ms), over plain http`, "the network can read the token: use https")
    : ok(`it answers (${tookMs} ms)${isHttp ? ", plain http on this machine" : ""}`)
}

const checkAddress = Effect.fnUntraced(function* (
  its: About,
  url: string,
  allowHttp: boolean,
  network: Network
): Effect.fn.Return<Checked<Web.Reachable>> {
  const result = yield* Effect.result(Web.reach(url, network))
  if (result._tag === "Failure") {
    const { detail, remedy } = result.failure
    return { value: null, findings: [its.failed("unreachable", detail, remedy)] }
  }
  const reached = result.success
  const findings = [answer(its, url, allowHttp, reached)]
  if (reached.certificate !== null) findings.push(yield* validity(about("certificate", url), reached.certificate))
  return { value: reached, findings }
})

/** Checks each address of the companies once. */
export const checkAddresses = ({ companies, networkOf }: Configuration) => {
  const addresses = new Map(companies.map(({ installation, url }) => [url.replace(/\/+$/, ""), installation]))
  return Effect.forEach(
    [...addresses].filter(([url]) => URL.canParse(url)),
    ([url, installation]) => {
      const its = about("address", url)
      return Effect.map(
        within(its, checkAddress(its, url, installation.allowHttp, networkOf(installation))),
        (checked): CheckedAddress => ({
          url,
          ...checked
        })
      )
    },
    { concurrency: "unbounded" }
  )
}

const seconds = (milliseconds: number): string => Output.elapsed(Math.abs(milliseconds))

/** A delivery whose time is too old, or in the future, is refused. */
const clockFinding = (
  { webhooks }: Configuration,
  owner: "service" | "warehouse",
  subject: string | null,
  { aheadMs, uncertainMs }: ClockOffset
): Finding => {
  const { ok, warning, failed } = about("clock", subject)
  const name = `the ${owner}'s clock`
  const offMs = Math.max(0, Math.abs(aheadMs) - uncertainMs)
  if (offMs < clockOffMsMin)
    return ok(
      `${name} agrees with this machine's to within ${Math.ceil(Math.max(1_000, offMs + uncertainMs) / 1000)} s`
    )
  const difference = `${name} is ${seconds(aheadMs)} ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`
  const remedy = "synchronise both clocks over the network (NTP); timedatectl status shows whether this machine's is"
  const limitMs = Duration.toMillis(aheadMs > 0 ? webhooks.aheadMax : webhooks.tolerance)
  return owner === "service" && offMs > limitMs && webhooks.publicUrl !== null
    ? failed("configuration", `${difference}: webhook deliveries are refused beyond ${seconds(limitMs)}`, remedy)
    : warning(difference, remedy)
}

export const checkClocks = (
  settings: Configuration,
  addresses: ReadonlyArray<CheckedAddress>,
  warehouse: ClockOffset | null
): Findings => [
  ...addresses.flatMap(({ url, value }) => {
    if (value === null) return []
    const { aheadMs, uncertainMs } = value
    return [
      aheadMs === null
        ? about("clock", url).skipped("the service does not send its time")
        : clockFinding(settings, "service", url, { aheadMs, uncertainMs })
    ]
  }),
  ...(warehouse === null ? [] : [clockFinding(settings, "warehouse", null, warehouse)])
]

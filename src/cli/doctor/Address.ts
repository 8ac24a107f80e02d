/** The checks of the service's address: its answer, its certificate and its clock. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Configuration } from "../../configuration/Configuration.ts"
import * as Output from "../Output.ts"
import { validity } from "./Certificate.ts"
import { about, type Finding, type Findings, within } from "./Finding.ts"
import * as Web from "./Web.ts"

export interface CheckedAddress {
  readonly url: string
  readonly findings: Findings
  /** Null when it was not reached. */
  readonly reached: Web.Reachable | null
}

/** The difference of another clock to this machine's; positive when the other is ahead. */
export interface ClockOffset {
  readonly aheadMs: number
  readonly uncertainMs: number
}

/** A smaller difference has no effect. */
const clockOffMsMin = 5_000

const answer = (url: string, allowHttp: boolean, { status, location, tookMs }: Web.Reachable): Finding => {
  const { ok, warning, failed } = about("address", url)
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

const checkAddress = Effect.fnUntraced(function* (url: string, allowHttp: boolean): Effect.fn.Return<CheckedAddress> {
  const result = yield* Effect.result(Web.reach(url))
  if (result._tag === "Failure") {
    const { detail, remedy } = result.failure
    return { url, reached: null, findings: [about("address", url).failed("unreachable", detail, remedy)] }
  }
  const reached = result.success
  const { certificate } = reached
  const nowMs = yield* Clock.currentTimeMillis
  const findings = [
    answer(url, allowHttp, reached),
    ...(certificate === null ? [] : [validity("certificate", url, certificate.validTo, nowMs, certificate.issuer)])
  ]
  return { url, reached, findings }
})

/** Checks each address of the companies once. */
export const checkAddresses = ({ companies, allowHttp }: Configuration) => {
  const urls = [...new Set(companies.map(({ url }) => url.replace(/\/+$/, "")))].filter((url) => URL.canParse(url))
  return Effect.forEach(
    urls,
    (url) =>
      within(about("address", url), checkAddress(url, allowHttp), (finding): CheckedAddress => ({
        url,
        findings: [finding],
        reached: null
      })),
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
  ...addresses.flatMap(({ url, reached }) => {
    if (reached === null) return []
    const { aheadMs, uncertainMs } = reached
    return [
      aheadMs === null
        ? about("clock", url).skipped("the service does not send its time")
        : clockFinding(settings, "service", url, { aheadMs, uncertainMs })
    ]
  }),
  ...(warehouse === null ? [] : [clockFinding(settings, "warehouse", null, warehouse)])
]

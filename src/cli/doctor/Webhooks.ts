/** The checks of webhooks, their subscriptions, and `serve`. */
import * as Effect from "effect/Effect"
import type { CompanyConfiguration } from "../../configuration/Companies.ts"
import type { Configuration } from "../../configuration/Configuration.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import type { ConnectorShape } from "../../connector/Connector.ts"
import type { Subscription } from "../../connector/Subscriptions.ts"
import * as Query from "../../postgres/Query.ts"
import * as Statement from "../../postgres/Statement.ts"
import { hookUrl } from "../../serve/Serve.ts"
import { receiversStatement } from "../../status/Webhooks.ts"
import { isSameAddress } from "../../subscriptions/DesiredState.ts"
import { decrypt } from "../../subscriptions/SecretCipher.ts"
import * as SecretRows from "../../subscriptions/SecretRows.ts"
import * as SubscriptionStore from "../../subscriptions/SubscriptionStore.ts"
import { failureKindOf } from "../Exit.ts"
import * as Output from "../Output.ts"
import { eventsOf } from "../ServedCompanies.ts"
import { Source } from "../Source.ts"
import { about, type About, type Check, type Finding, type Findings, fromTables, type Tables } from "./Finding.ts"
import { leftovers } from "./Leftovers.ts"
import { certificateFiles, validity } from "./Network.ts"
import * as Web from "./Web.ts"

/** A company with its connection. */
export interface CompanyInput {
  readonly company: CompanyConfiguration
  readonly settings: Configuration
  readonly catalogue: Catalogue
  readonly connector: ConnectorShape
}

/** Whether a delivery to the public address reaches `serve`. */
const publicAddress = Effect.fnUntraced(function* (
  _: About,
  { companies, webhooks: { publicUrl }, proxies }: Configuration
): Effect.fn.Return<Findings> {
  const [company] = companies
  if (publicUrl === null || company === undefined) return []
  const its = about("webhook address", publicUrl)
  const { ok, warning, failed } = its
  const url = `${publicUrl}/hooks/${encodeURIComponent(company.name)}`
  const reached = yield* Effect.result(Web.reach(url, { proxies, secureContext: null }))
  if (reached._tag === "Failure") {
    const { reason, detail, remedy } = reached.failure
    return [
      reason === "certificate" || reason === "name"
        ? failed("unreachable", detail, remedy)
        : // A router may refuse its own network at the public address.
          warning(`${detail}; it may still work from outside`, remedy)
    ]
  }
  const { status, certificate } = reached.success
  const certified = certificate === null ? [] : [yield* validity(its, certificate)]
  // `serve` accepts only POST.
  if (status === 405) return [ok("tributary serve answers there"), ...certified]
  return [
    warning(
      status >= 500
        ? `a proxy answers ${status} there: it does not reach tributary serve`
        : `the answer there is ${status}, which is not that of tributary serve`,
      "start tributary serve, and let the proxy forward /hooks/ to it with unchanged bodies"
    ),
    ...certified
  ]
})

const subscriptionFinding = (
  { ok, warning, skipped }: About,
  name: string,
  address: string,
  wanted: ReadonlyArray<string>,
  subscribed: Subscription,
  lastTest: SubscriptionStore.LastTest
): Finding => {
  const { id, events, failCount, disabledAt, lastDeliveryAt } = subscribed
  const remedy = `tributary webhooks ensure --company ${name}`
  const state = SubscriptionStore.stateOf(subscribed)
  if (state !== "active") {
    return warning(
      `${id} to ${address} is ${state}${disabledAt === null ? "" : ` since ${disabledAt}`}: no events are delivered meanwhile`,
      remedy
    )
  }
  const lacks = wanted.filter((event) => !events.includes(event))
  if (lacks.length > 0) return warning(`${id} does not deliver ${lacks.join(", ")}`, remedy)
  if (failCount !== null && failCount > 0) {
    return warning(
      `${id}: the last ${failCount} ${failCount === 1 ? "delivery" : "deliveries"} failed`,
      `tributary webhooks deliveries --company ${name} shows the answers`
    )
  }
  const delivered = Output.plural(events.length, "kind of event", "kinds of events")
  const delivery = SubscriptionStore.deliveryStateOf({ ...lastTest, state, failCount, lastDeliveryAt })
  if (delivery === "test_failed") {
    return warning(
      `${id}: the last test failed at ${lastTest.testedAt}: ${Output.shown(lastTest.testError ?? "")}; nothing was delivered since`,
      `check that tributary serve runs and that the address leads to it, then tributary webhooks test ${id} --company ${name}`
    )
  }
  return delivery === "unproven"
    ? skipped(
        `${id} is active for ${delivered}; nothing was delivered yet, so nothing proves that deliveries arrive: tributary webhooks test --company ${name}`
      )
    : ok(
        lastDeliveryAt === null
          ? `${id} is active for ${delivered}; the last test succeeded at ${lastTest.testedAt}`
          : `${id} delivers ${delivered}, the last at ${lastDeliveryAt}`
      )
}

export const unknownEventsStatement = Statement.make({
  name: "look for unknown events of subscriptions",
  params: ["text"],
  columns: { event: "text" },
  text: `select distinct unnest(unknown_events) as event from tributary.subscriptions
          where company = $1 and state <> 'deleted'`
})

/** The configured events that the source knows: no subscription delivers the others. */
const deliverableEvents = Effect.fnUntraced(function* (company: CompanyConfiguration, settings: Configuration) {
  const events = eventsOf(company, settings, yield* (yield* Source).deliveries)
  const unknown = yield* fromTables(Statement.run(unknownEventsStatement, [company.name]), [])
  return events.filter((event) => !unknown.some((one) => one.event === event))
})

/** The company's subscription at the source. */
export const subscription = Effect.fnUntraced(function* (
  its: About,
  { company, connector, settings }: CompanyInput
): Effect.fn.Return<Findings, never, Tables | Source> {
  const { warning, failed, skipped } = its
  const { name } = company
  const address = hookUrl(settings.webhooks.publicUrl, name)
  if (address === null) return [skipped("webhooks.public_url is not set: events are not received")]
  const wanted = yield* deliverableEvents(company, settings)
  const source = connector.subscriptions
  if (source === undefined) return [skipped("this source has no webhooks")]
  const listed = yield* Effect.result(source.list)
  if (listed._tag === "Failure") {
    return [failed(failureKindOf(listed.failure), listed.failure.message, listed.failure.remedy)]
  }
  const matching = listed.success.filter(({ url, cancelled }) => isSameAddress(url, address) && !cancelled)
  const [one] = matching
  if (one === undefined) {
    return [warning(`there is none for ${address}`, `tributary webhooks ensure --company ${name}`)]
  }
  if (matching.length > 1) {
    return [
      warning(
        `${matching.length} subscriptions deliver to ${address}: ${matching.map(({ id }) => id).join(", ")}`,
        `cancel all but one: tributary webhooks delete <number> --company ${name}`
      )
    ]
  }
  const rows = yield* fromTables(SubscriptionStore.read(name, wanted), [])
  const lastTest = rows.find(({ id }) => id === one.id) ?? SubscriptionStore.neverTested
  return [subscriptionFinding(its, name, address, wanted, one, lastTest)]
})

/** Whether the company's token decrypts the stored signing secrets. */
export const secrets = Effect.fnUntraced(function* ({ ok, warning, failed }: About, { company }: CompanyInput) {
  const rows = yield* Query.run(SecretRows.inUse(company.name).select("sealed"))
  const unreadable = rows.filter(({ sealed }) => decrypt(company.name, company.token, sealed) === null)
  const remedy = `tributary webhooks ensure --company ${company.name}`
  if (unreadable.length > 0) {
    return [
      failed(
        "configuration",
        `${unreadable.length} of ${rows.length} cannot be decrypted with this token: deliveries are refused`,
        `${remedy} creates another; or configure the token that encrypted them`
      )
    ]
  }
  const configured = company.webhookSecrets.length
  if (rows.length + configured === 0) return [warning("there is none: every delivery is refused", remedy)]
  return [
    ok(
      [
        ...(rows.length === 0 ? [] : [`${rows.length} can be decrypted`]),
        ...(configured === 0 ? [] : [`${configured} are configured`])
      ].join(", ")
    )
  ]
})

export const openGapsStatement = Statement.make({
  name: "look for open delivery gaps",
  params: ["text"],
  columns: { resource: "text", reason: "text?", agoms: "float8" },
  text: `select resource, (array_agg(last_error) filter (where last_error is not null))[1] as reason,
                (extract(epoch from tributary.now() - min(detected_at)) * 1000)::float8 as agoms
           from tributary.delivery_gaps where company = $1 and closed_at is null
          group by resource order by min(detected_at), resource`
})

/** Open delivery gaps; no finding without one. */
export const gaps = Effect.fnUntraced(function* ({ warning }: About, company: string) {
  const rows = yield* Statement.run(openGapsStatement, [company])
  const [first] = rows
  if (first === undefined) return []
  return [
    warning(
      `events of ${Output.plural(rows.length, "resource")} may have been missed, of ${first.resource} for ${Output.elapsed(first.agoms)}` +
        (first.reason === null ? "" : `: ${first.reason}`),
      "tributary serve reads them again; tributary status shows why each is open"
    )
  ]
})

/** Companies that a finding names; further ones are only counted. */
const namesMax = 20

const tasksNamed = 5

export const troubledStatement = Statement.make({
  name: "look for paused and failing tasks",
  params: ["text[]", "bool"],
  columns: {
    ...Statement.columns("text", "company", "resource"),
    failures: "int4",
    ...Statement.columns("text?", "error", "remedy"),
    /** All such tasks; those with the most failures are read. */
    total: "int4"
  },
  text: `select company, resource, failures, error, remedy, (count(*) over ())::int as total
           from tributary.tasks
          where company in (select unnest($1::text[])) and case when $2::bool then paused_at is not null else failures > 0 end
          order by failures desc, company, resource, kind limit ${tasksNamed + 1}`
})

/** Which `serve` processes are alive, and which of their tasks are paused or failing. */
const serve = Effect.fnUntraced(function* ({ ok, warning }: About, settings: Configuration) {
  const companies = settings.companies.map(({ name }) => name)
  const rows = yield* Statement.run(receiversStatement, [companies])
  const seen = new Map(rows.map((row) => [row.company, row]))
  const alive = companies.filter((name) => (seen.get(name)?.receivers ?? 0) > 0)
  const silent = companies.filter((name) => !alive.includes(name))
  const lastMs = silent.flatMap((name) => seen.get(name)?.receiverSeenMs ?? [])
  const schedule = about("schedule")
  const findings = [
    silent.length === 0
      ? ok(`runs for ${Output.firstOf(alive, namesMax)}`)
      : warning(
          `no tributary serve runs for ${Output.firstOf(silent, namesMax)}` +
            (lastMs.length === 0
              ? ""
              : ` (the last was seen ${Output.elapsed(lastMs.reduce((least, ms) => Math.min(least, ms)))} ago)`),
          "tributary serve; or run tributary sync by cron or systemd"
        )
  ]
  const paused = yield* Statement.run(troubledStatement, [companies, true])
  const total = paused[0]?.total ?? 0
  if (total > 0) {
    const named = paused.slice(0, tasksNamed).map(({ company, resource }) => `${company} ${resource}`)
    const further = total - named.length
    findings.push(
      schedule.warning(
        `${Output.plural(total, "task is", "tasks are")} paused: ${named.join(", ")}${further > 0 ? ` and ${Output.count(further)} more` : ""}`,
        "resume them on the dashboard of tributary serve"
      )
    )
  }
  const [first] = yield* Statement.run(troubledStatement, [companies, false])
  if (first !== undefined) {
    findings.push(
      schedule.warning(
        `${Output.plural(first.total, "task")} failed, ${first.company} ${first.resource} ${first.failures} times in a row: ${first.error ?? "the reason is unknown"}`,
        first.remedy ?? "tributary status shows why"
      )
    )
  }
  return findings
})

/** The address of the dashboard. */
const page = ({ ok, skipped }: About, { dashboard }: Configuration): Finding => {
  if (dashboard === null) return skipped("dashboard.listen is off")
  const { host, port, tls, password, publicUrl } = dashboard
  const at = publicUrl ?? `${tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`
  return ok(`${at}, ${password === null ? "without a password, for this machine only" : "with a password"}`)
}

/** The listeners of `serve`, its processes, and the work that it left. */
export const serveChecks: ReadonlyArray<Check<Configuration>> = [
  { name: "webhook address", run: publicAddress },
  { name: "webhook certificate", run: (its, { webhooks }) => certificateFiles(its, webhooks.tls) },
  { name: "page", run: (its, settings) => Effect.succeed([page(its, settings)]) },
  { name: "page certificate", run: (its, { dashboard }) => certificateFiles(its, dashboard?.tls ?? null) },
  { name: "serve", tables: "omitted", run: serve },
  { name: "runs", tables: "omitted", run: () => leftovers }
]

/**
 * All the checks, side by side.
 *
 * Promise: nothing is changed: no migration runs, no warehouse is made, nothing is written to the source (a test delivery
 * only if asked for). Requests take permits of the shared budget like any others. Each check is bounded in time, and one
 * that breaks hides no other; what cannot be checked says why.
 */
import { existsSync, readFileSync } from "node:fs"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { isSqlError } from "effect/sql/SqlError"
import { Priority } from "../../budget/Budget.ts"
import { layerPostgres } from "../../budget/Budgets.ts"
import type { Catalogue } from "../../catalogue/Catalogue.ts"
import * as Configuration from "../../configuration/Configuration.ts"
import { damageRemedy, DatabaseError } from "../../postgres/DatabaseError.ts"
import { hookUrl } from "../../serve/Serve.ts"
import { catalogueOf } from "../Effective.ts"
import * as Output from "../Output.ts"
import { eventsOf } from "../ServeLayers.ts"
import { Source } from "../Source.ts"
import * as Companies from "./Companies.ts"
import { about, type About, bounded, checkMaxMs, type Finding, within } from "./Finding.ts"
import * as Machine from "./Machine.ts"
import * as Webhooks from "./Webhooks.ts"
import * as Warehouse from "./Warehouse.ts"
import * as Web from "./Web.ts"

export interface DoctorOptions {
  /** Null is the usual place. */
  readonly config: string | null
  /** All of them when there are none. */
  readonly companies: ReadonlyArray<string>
  readonly sendTest: boolean
}

const configDefault = "config/tributary.yaml"
/** A question is not worth a long wait. */
const patience = { attemptsMax: 2, requestTimeoutMs: 4_000, retryAfterMaxMs: 2_000 } as const
/** An embedded server may have to recover first. */
const openMaxMs = 30_000
/** The window in which a delivery may be older than it says, or seem to come from the future. */
const clockNearMs = 5_000

type Findings = ReadonlyArray<Finding>

const breaksAs =
  ({ failed }: About) =>
  <E extends { readonly message: string }, R>(
    check: Effect.Effect<Findings, E, R>
  ): Effect.Effect<Findings, never, R> =>
    check.pipe(
      Effect.catch((error) => {
        const known = isSqlError(error) ? DatabaseError.from("ask")(error) : null
        const damaged = known === null ? null : damageRemedy(known)
        const remedy = damaged ?? "see what the server's own log says, then run this again"
        return Effect.succeed([
          failed(damaged === null ? "unreachable" : "configuration", (known ?? error).message, remedy)
        ])
      })
    )

// ------------------------------------------------------------------------------------------------------- configuration

/** The resources that a file speaks of beside those of its companies. */
const Mentioned = Schema.Struct({
  freshness: Schema.optionalKey(
    Schema.Struct({ resources: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)) })
  ),
  schedule: Schema.optionalKey(
    Schema.Struct({ resources: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)) })
  )
})

const mentioned = Effect.fnUntraced(function* (file: string) {
  const { parse } = yield* Effect.promise(() => import("yaml"))
  const read = Schema.decodeUnknownOption(Mentioned)(existsSync(file) ? (parse(readFileSync(file, "utf8")) ?? {}) : {})
  if (read._tag === "None") return []
  const { freshness, schedule } = read.value
  return [
    ...Object.keys(freshness?.resources ?? {}).map((path) => ["freshness.resources", path] as const),
    ...Object.keys(schedule?.resources ?? {}).map((path) => ["schedule.resources", path] as const)
  ]
})

interface Configured {
  readonly findings: Findings
  readonly settings: Configuration.Configuration | null
  readonly catalogue: Catalogue | null
}

const configured = Effect.fnUntraced(function* (options: DoctorOptions): Effect.fn.Return<Configured, never, Source> {
  const { ok, warning, failed } = about("configuration")
  const file = options.config ?? configDefault
  const loaded = yield* Effect.result(Configuration.load({ config: options.config ?? undefined }, process.env))
  const wrong = (problems: ReadonlyArray<string>): Configured => ({
    findings: problems.map((problem) =>
      failed("configuration", problem, "correct it; npx tributary init writes a new configuration")
    ),
    settings: null,
    catalogue: null
  })
  if (loaded._tag === "Failure") return wrong(loaded.failure.problems)
  const settings = loaded.success
  const effective = yield* Effect.result(catalogueOf(settings))
  if (effective._tag === "Failure") return wrong(effective.failure.problems)
  const catalogue = effective.success
  if (settings.companies.length === 0) {
    return {
      settings,
      catalogue,
      findings: [
        failed(
          "configuration",
          existsSync(file) ? `${file} names no company` : "no source is configured",
          "npx tributary init asks for one and writes the configuration; npx tributary demo works without one"
        )
      ]
    }
  }
  const names = settings.companies.map(({ name }) => name)
  const findings: Array<Finding> = []
  for (const { name, resources } of settings.companies) {
    const unknown = (resources ?? []).filter((path) => !catalogue.resources.has(path))
    if (unknown.length > 0) {
      findings.push(
        failed(
          "configuration",
          `company ${name} names resources that there are not: ${unknown.join(", ")}`,
          "correct them under companies; what the catalogue does not know is named under resources first"
        )
      )
    }
  }
  for (const [place, path] of yield* mentioned(file)) {
    if (!catalogue.resources.has(path)) {
      findings.push(warning(`${place} names ${path}, which there is not: it has no effect`, "correct or remove it"))
    }
  }
  const where = existsSync(file) ? file : "the environment"
  return {
    settings,
    catalogue,
    findings:
      findings.length > 0
        ? findings
        : [ok(`${where}: ${names.length === 1 ? "company" : "companies"} ${names.join(", ")}`)]
  }
})

// ------------------------------------------------------------------------------------------------------------- address

interface Addressed {
  readonly findings: Findings
  readonly reached: Web.Reachable | null
}

const address = Effect.fnUntraced(function* (url: string, allowHttp: boolean): Effect.fn.Return<Addressed> {
  const { ok, warning, failed } = about("address", url)
  const asked = yield* Effect.result(Web.reach(url))
  if (asked._tag === "Failure") {
    const { detail, remedy } = asked.failure
    return { reached: null, findings: [failed("unreachable", detail, remedy)] }
  }
  const reached = asked.success
  const { status, location, certificate, tookMs } = reached
  const nowMs = yield* Clock.currentTimeMillis
  const isHttp = new URL(url).protocol === "http:"
  const findings = [
    status >= 300 && status < 400
      ? failed(
          "configuration",
          `it redirects to ${Output.shown(location ?? "nowhere")}, which is not followed: the token would go along`,
          "configure the new address, if it is right"
        )
      : status >= 500
        ? warning(`it answers ${status}`, "report that to whoever runs the service")
        : isHttp && allowHttp
          ? warning(`it answers (${tookMs} ms), over plain http`, "anybody on the way can read the token: use https")
          : ok(`it answers (${tookMs} ms)${isHttp ? ", plain http on this machine" : ""}`),
    ...(certificate === null
      ? []
      : [Webhooks.validity("certificate", url, certificate.validTo, nowMs, certificate.issuer)])
  ]
  return { reached, findings }
})

// --------------------------------------------------------------------------------------------------------------- clock

const seconds = (milliseconds: number): string => Output.elapsed(Math.abs(milliseconds))

/** A delivery is refused that seems too old, or to come from the future. */
const clockFinding = (
  { webhooks }: Configuration.Configuration,
  whose: string,
  subject: string | null,
  { aheadMs, uncertainMs }: { readonly aheadMs: number; readonly uncertainMs: number },
  isSource: boolean
): Finding => {
  const { ok, warning, failed } = about("clock", subject)
  const off = Math.max(0, Math.abs(aheadMs) - uncertainMs)
  if (off < clockNearMs)
    return ok(`${whose} agrees with this machine's to within ${Math.ceil(Math.max(1_000, off + uncertainMs) / 1000)} s`)
  const told = `${whose} is ${seconds(aheadMs)} ${aheadMs > 0 ? "ahead of" : "behind"} this machine's`
  const remedy =
    "have the machines take their time from the network (NTP); timedatectl status says whether this one does"
  const limitMs = aheadMs > 0 ? webhooks.aheadMs : webhooks.toleranceMs
  return isSource && off > limitMs && webhooks.publicUrl !== null
    ? failed("configuration", `${told}: webhook deliveries are refused beyond ${seconds(limitMs)}`, remedy)
    : warning(told, remedy)
}

// ----------------------------------------------------------------------------------------------------------------- all

/** What of the checks is about one company. */
const company = Effect.fnUntraced(function* (
  one: Configuration.CompanyConfiguration,
  settings: Configuration.Configuration,
  catalogue: Catalogue,
  warehouse: { readonly isCurrent: boolean; readonly opened: Warehouse.OpenedWarehouse },
  sendTest: boolean
): Effect.fn.Return<Companies.IdentifiedCompany, never, Source | Scope.Scope> {
  const source = yield* Source
  const reader = yield* source.deliveries
  const { name } = one
  const { context } = warehouse.opened
  const of = (check: string) => about(check, name)
  const cannotAsk = context === null ? warehouse.opened.reason : "the warehouse's tables are not up to date"
  const asking = warehouse.isCurrent ? context : null
  /** With the warehouse's tables, or the reason why not. */
  const inWarehouse = <E extends { readonly message: string }, R>(
    check: string,
    effect: Effect.Effect<Findings, E, R>
  ) =>
    asking === null
      ? Effect.succeed<Findings>([of(check).skipped(cannotAsk)])
      : bounded(of(check), breaksAs(of(check))(effect)).pipe(Effect.provideContext(asking))

  const connected = yield* Effect.result(source.connect(one, { ...settings, ...patience }))
  if (connected._tag === "Failure") {
    const findings = connected.failure.problems.map((problem) =>
      of("token").failed("configuration", problem, "correct it in the configuration")
    )
    return { findings, identity: null }
  }
  const connector = connected.success
  const { findings: tokens, identity: known } = yield* within(
    of("token"),
    Companies.token(one, connector),
    (finding): Companies.IdentifiedCompany => ({ findings: [finding], identity: null })
  )
  const noAnswer = "the token was not accepted, or the service not reached"
  const readable = known === null ? null : Companies.scopes(one, catalogue, known)
  const { publicUrl } = settings.webhooks
  const target = hookUrl(publicUrl, name)
  const refused =
    asking === null
      ? []
      : yield* Webhooks.refused(name).pipe(
          Effect.timeout(checkMaxMs),
          Effect.orElseSucceed((): ReadonlyArray<string> => []),
          Effect.provideContext(asking)
        )
  const wanted = eventsOf(one, settings, reader).filter((event) => !refused.includes(event))
  const rest = yield* Effect.all(
    [
      Effect.succeed<Findings>(readable === null ? [of("scopes").skipped(noAnswer)] : readable.findings),
      bounded(
        of("budget"),
        breaksAs(of("budget"))(
          asking === null
            ? Companies.budget(one, settings)
            : Companies.budget(one, settings).pipe(Effect.provideContext(asking))
        )
      ),
      readable === null || known === null
        ? Effect.succeed<Findings>([of("freshness").skipped(noAnswer)])
        : inWarehouse("freshness", Companies.freshness(one, settings, known.companyId, readable.paths)),
      known === null || asking === null
        ? Effect.succeed<Findings>([])
        : inWarehouse("fields", Companies.fields(one, known.companyId)),
      target === null
        ? Effect.succeed<Findings>([
            of("subscription").skipped("webhooks.public_url is not set: events are not received")
          ])
        : known === null
          ? Effect.succeed<Findings>([of("subscription").skipped(noAnswer)])
          : bounded(
              of("subscription"),
              Webhooks.subscription(one, connector, target, wanted, sendTest),
              sendTest ? 3 * checkMaxMs : checkMaxMs
            ),
      target === null ? Effect.succeed<Findings>([]) : inWarehouse("signing secrets", Webhooks.secrets(one)),
      target === null || asking === null ? Effect.succeed<Findings>([]) : inWarehouse("gaps", Webhooks.gaps(name))
    ],
    { concurrency: "unbounded" }
  )
  return { findings: [...tokens, ...rest.flat()], identity: known }
})

/** Every finding, in the order in which one would look. */
export const examine = Effect.fn("Doctor.examine")(function* (options: DoctorOptions) {
  const { settings: whole, catalogue, findings: configuration } = yield* configured(options)
  const machine = yield* Effect.all(
    [
      bounded(about("node"), Machine.node),
      bounded(about("time zones"), Machine.timeZones),
      bounded(about(".env"), Machine.environmentFile)
    ],
    { concurrency: "unbounded" }
  )
  const first: Findings = [...machine.flat(), ...configuration]
  if (whole === null || catalogue === null) {
    return [...first, about("everything else").skipped("the configuration must be right first")]
  }
  const companies = yield* Configuration.chooseCompanies(whole, options.companies)
  const settings = { ...whole, companies }
  const names = companies.map(({ name }) => name)

  return yield* Effect.gen(function* () {
    const disk = bounded(about("disk"), Machine.disk(settings))
    const urls = [...new Set(companies.map(({ url }) => url.replace(/\/+$/, "")))].filter((url) => URL.canParse(url))
    const addresses = Effect.forEach(
      urls,
      (url) =>
        within(about("address", url), address(url, settings.allowHttp), (finding): Addressed => ({
          findings: [finding],
          reached: null
        })).pipe(Effect.map((found) => ({ url, ...found }))),
      { concurrency: "unbounded" }
    )
    const warehouse = Effect.gen(function* () {
      const database = about("database")
      const opened = yield* within(
        database,
        Warehouse.open(settings),
        (finding): Warehouse.OpenedWarehouse => ({
          findings: [finding],
          context: null,
          reason: "the database does not answer"
        }),
        settings.databaseUrl === null ? openMaxMs : checkMaxMs
      )
      const { context } = opened
      if (context === null) return { opened, findings: opened.findings, isCurrent: false, clock: null }
      const [fitness, migrations, clock] = yield* Effect.all(
        [
          bounded(database, breaksAs(database)(Warehouse.fitness(settings))),
          within(about("migrations"), Warehouse.migrations, (finding): Warehouse.MigrationState => ({
            findings: [finding],
            isCurrent: false
          })),
          Warehouse.clock.pipe(
            Effect.timeout(checkMaxMs),
            Effect.orElseSucceed(() => null)
          )
        ],
        { concurrency: "unbounded" }
      ).pipe(Effect.provideContext(context))
      const findings = [...opened.findings, ...fitness, ...migrations.findings]
      return { opened, findings, isCurrent: migrations.isCurrent, clock }
    })

    const [disks, reached, found] = yield* Effect.all([disk, addresses, warehouse], { concurrency: "unbounded" })
    const { opened, isCurrent } = found
    const shared =
      isCurrent && opened.context !== null
        ? yield* Layer.build(layerPostgres.pipe(Layer.provide(Layer.succeedContext(opened.context))))
        : Context.empty()
    const asked = yield* Effect.forEach(
      companies,
      (one) => company(one, settings, catalogue, { isCurrent, opened }, options.sendTest),
      { concurrency: "unbounded" }
    ).pipe(
      Effect.provideContext(shared),
      // Somebody waits for it, while a backfill may be using all that the budget has.
      Effect.provideService(Priority, { class: "urgent", dueAt: 0 })
    )
    const identities = new Map(
      companies.flatMap(({ name }, index) => {
        const identity = asked[index]?.identity ?? null
        return identity === null ? [] : [[name, identity] as const]
      })
    )

    const { publicUrl, tls } = settings.webhooks
    const [hooks, hookFiles, pageFiles, serving, left] = yield* Effect.all(
      [
        publicUrl === null || names[0] === undefined
          ? Effect.succeed<Findings>([])
          : bounded(about("webhook address", publicUrl), Webhooks.publicAddress(publicUrl, names[0])),
        bounded(about("webhook certificate"), Webhooks.files("webhook certificate", tls)),
        bounded(about("page certificate"), Webhooks.files("page certificate", settings.dashboard?.tls ?? null)),
        opened.context === null || !isCurrent
          ? Effect.succeed<Findings>([])
          : bounded(about("serve"), breaksAs(about("serve"))(Webhooks.serve(names))).pipe(
              Effect.provideContext(opened.context)
            ),
        opened.context === null || !isCurrent
          ? Effect.succeed<Findings>([])
          : bounded(about("runs"), breaksAs(about("runs"))(Warehouse.leftovers)).pipe(
              Effect.provideContext(opened.context)
            )
      ],
      { concurrency: "unbounded" }
    )
    const clocks: Findings = [
      ...reached.flatMap(({ url, reached: one }) =>
        one === null
          ? []
          : one.aheadMs === null
            ? [about("clock", url).skipped("the service does not tell its time")]
            : [
                clockFinding(
                  settings,
                  "the service's clock",
                  url,
                  { aheadMs: one.aheadMs, uncertainMs: one.uncertainMs },
                  true
                )
              ]
      ),
      ...(found.clock === null ? [] : [clockFinding(settings, "the warehouse's clock", null, found.clock, false)])
    ]
    return [
      ...first,
      ...disks,
      ...found.findings,
      ...reached.flatMap(({ findings }) => findings),
      ...clocks,
      ...asked.flatMap(({ findings }) => findings),
      ...Companies.twins(identities),
      ...hooks,
      ...hookFiles,
      Webhooks.page(settings),
      ...pageFiles,
      ...serving,
      ...left
    ] satisfies Findings
  }).pipe(Effect.scoped)
})

/**
 * The drift radar: compares a live installation with the documentation, by reading only.
 *
 * Promise: it sends GET requests alone, within the bounds of `Session.ts`. Every fact of `checks.ts` is reported as equal,
 * as different, or as not compared with the reason. Where the comparison ends early, the report has what was found.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { Budget } from "../../../src/budget/Budget.ts"
import type { Catalogue } from "../../../src/catalogue/Catalogue.ts"
import type { RadarBounds, RadarReport, RadarResult, RadarSetting } from "../../../src/connector/Radar.ts"
import type { SourceError } from "../../../src/connector/SourceError.ts"
import * as BaseAddress from "../client/BaseAddress.ts"
import * as Access from "./Access.ts"
import * as Answers from "./Answers.ts"
import * as Changes from "./Changes.ts"
import { checks } from "./checks.ts"
import { type Context, Findings } from "./Findings.ts"
import * as Lists from "./Lists.ts"
import type { Probe } from "./Probe.ts"
import { print } from "./Recording.ts"
import * as Records from "./Records.ts"
import * as Session from "./Session.ts"
import * as Sizes from "./Sizes.ts"

export interface RadarOptions extends RadarBounds {
  readonly baseUrl: string
  readonly token: Redacted.Redacted
  readonly catalogue: Catalogue
  readonly allowHttp: boolean
  readonly requestTimeout: Duration.Duration
  readonly retryAfterMax: Duration.Duration
}

const step =
  (compare: (context: Context) => void): Probe =>
  (context) =>
    Effect.sync(() => compare(context))

/** In the order in which they need each other; what matters most comes first, since requests are bounded. */
const probes: ReadonlyArray<Probe> = [
  Access.identify,
  Sizes.probeSizes,
  Access.sampleAll,
  // Where the first candidates could not be read, a sample shows it.
  Sizes.probeSizes,
  step(Access.compareValues),
  step(Lists.compareOrder),
  Lists.probePages,
  Sizes.probeLongPages,
  Lists.probeCancel,
  Changes.probeOthers,
  Records.probeOperations,
  Changes.probeChanges,
  Records.probeRecords,
  Answers.probeRefusals,
  Records.probeCustomFields,
  Records.probeFilters
]

/** Settings that differ from their defaults, each once. */
const settingsOf = (differences: RadarReport["differences"]): ReadonlyArray<RadarSetting> => [
  ...new Map(
    differences.flatMap(({ setting }) =>
      setting === null || setting.path.includes("[]") ? [] : [[setting.path, setting] as const]
    )
  ).values()
]

const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const reportOf = (
  { findings, learned, session }: Context,
  sent: { readonly requests: number; readonly rateLimited: number },
  ended: SourceError | null
): RadarReport => {
  const place = new Map(checks.map(({ id }, at) => [id, at]))
  const differences = findings
    .reported()
    .toSorted((a, b) => place.get(a.check)! - place.get(b.check)! || inOrder(a.subject, b.subject))
  const empty = [...learned.samples.values()].filter(({ list }) => list.texts.length === 0)
  return {
    address: `${session.base.origin}${session.base.path}`,
    companyId: learned.companyId,
    ...sent,
    checks,
    differences,
    coverage: findings.coverage(),
    access: {
      read: learned.samples.size,
      empty: empty.map(({ resource }) => resource.path),
      refused: [...learned.refused].map(([reason, resources]) => ({ reason, resources }))
    },
    settings: settingsOf(differences),
    patch: findings
      .patch()
      .toSorted(
        (a, b) =>
          inOrder(a.resource, b.resource) || inOrder(a.field ?? "", b.field ?? "") || inOrder(a.change, b.change)
      ),
    ended
  }
}

/** Compares one installation. Fails when it cannot begin. */
export const run = Effect.fn("radar.run")(function* (
  options: RadarOptions
): Effect.fn.Return<RadarResult, BaseAddress.ClientConfigError, HttpClient.HttpClient | Budget> {
  const base = BaseAddress.parse(options.baseUrl, options.allowHttp)
  if (base instanceof BaseAddress.ClientConfigError) return yield* base
  const session = Session.make(yield* HttpClient.HttpClient, yield* Budget, { ...options, base })
  const context: Context = {
    session,
    catalogue: options.catalogue,
    findings: new Findings(),
    learned: {
      companyId: null,
      scopes: null,
      features: null,
      isSized: false,
      limit: "applied",
      limitMax: null,
      style: null,
      samples: new Map(),
      refused: new Map()
    }
  }
  const result = yield* Effect.result(Effect.forEach(probes, (probe) => probe(context), { discard: true }))
  const sent = yield* session.sent
  Answers.compareAnswers(context, sent.requests)
  if (context.learned.style === null) context.findings.unchecked("list.paging", "no list has a second page")
  const report = reportOf(context, sent, Result.isFailure(result) ? result.failure : null)
  const now = new Date(yield* Clock.currentTimeMillis).toISOString()
  return { report, recording: print(context, report, now) }
})

/**
 * The command `close`: the month-end close of a company as a signed file with its pages, and its comparison with the
 * records of now.
 */
import { dirname, join } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { Priority } from "../budget/Budget.ts"
import type { PositionLost } from "../changes/ChangeFeed.ts"
import * as Chain from "../close/Chain.ts"
import * as Close from "../close/Close.ts"
import { CloseFailed } from "../close/CloseFailed.ts"
import * as Compare from "../close/Compare.ts"
import * as Document from "../close/Document.ts"
import * as Files from "../close/Files.ts"
import * as Pdf from "../close/Pdf.ts"
import * as Period from "../close/Period.ts"
import * as Signature from "../close/Signature.ts"
import * as Configuration from "../configuration/Configuration.ts"
import { settingsFileDefault } from "../configuration/Inputs.ts"
import * as AtomicFile from "../files/AtomicFile.ts"
import * as ReadFile from "../files/ReadFile.ts"
import type { SyncCompany } from "../sync/Sync.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import * as Text from "./CloseText.ts"
import {
  commandFailed,
  company,
  config,
  json,
  onWarehouse,
  switchFlag,
  textFlag,
  url,
  withExamples
} from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { codeOfFailures, CommandFailed, endWith, type ExitCode, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as Invariants from "./Invariants.ts"
import { refuseDamaged } from "./schema/SchemaChanges.ts"
import * as Models from "./Models.ts"
import { onTargets } from "./Targets.ts"
import * as Verify from "./verify.ts"
import { Version } from "./Version.ts"

const keyFile = "close-key.pem"
const folderDefault = "closes"
const seedMax = 2_000_000_000
/** A person waits for a close: its first requests need no even pace. The syncs, which have a target, go first. */
const priority: Priority = { class: "live", dueAt: Number.POSITIVE_INFINITY }

const codeOfKind: Readonly<Record<CloseFailed["kind"], ExitCode>> = {
  usage: exitCode.usage,
  configuration: exitCode.configuration,
  invalid: exitCode.incomplete
}

const asCommandFailed = (error: CloseFailed | PositionLost): CommandFailed =>
  new CommandFailed({
    code: error._tag === "CloseFailed" ? codeOfKind[error.kind] : exitCode.configuration,
    message: error.message
  })

const attempt = <A>(what: string, run: () => A): Effect.Effect<A, CommandFailed> =>
  Effect.mapError(Effect.try({ try: run, catch: CloseFailed.from(what) }), asCommandFailed)

const flags = {
  month: Argument.String("month").pipe(Argument.withDescription("The month, such as 2026-10"), Argument.optional),
  company,
  compare: switchFlag("compare", "List every record that changed the closed period since, with versions and origin"),
  verify: textFlag("verify", "FILE", "Check the signature of a close, and those it replaces; needs no warehouse"),
  key: textFlag("key", "FILE", "With --verify: the key that has to have signed (default: that of this installation)"),
  draft: switchFlag("draft", "Write a draft, also before the period's end; it closes nothing"),
  again: switchFlag("again", "Close a closed period again: a new revision beside the file"),
  sample: Flag.Int("sample").pipe(
    Flag.withDescription("Compare this many records of each resource with the source, instead of all"),
    Flag.withMetavar("N"),
    Flag.optional
  ),
  timeZone: textFlag("time-zone", "ZONE", "Where the month begins and ends (default: schedule.time_zone)"),
  to: Flag.String("to").pipe(
    Flag.withDescription(`The folder of the files (default: ${folderDefault})`),
    Flag.withMetavar("DIR"),
    Flag.withDefault(folderDefault)
  ),
  url,
  config,
  json
}

type Flags = Command.Command.Config.Infer<typeof flags>

const keyPathOf = ({ config }: Pick<Flags, "config">): string =>
  join(dirname(Option.getOrElse(config, () => settingsFileDefault)), keyFile)

const periodOf = ({ month, timeZone }: Flags, settings: Configuration.Configuration) => {
  const zone = Option.getOrElse(timeZone, () => settings.timeZone)
  const text = Option.getOrElse(month, () => "")
  const period = Period.parse(text, zone)
  if (period !== null) return Effect.succeed(period)
  return Effect.fail(
    usageError(
      Period.parse("2026-01", zone) === null
        ? `--time-zone ${zone}: expected a name such as Europe/Berlin`
        : `the period is "${text}": expected a month, such as 2026-10`
    )
  )
}

/**
 * Reads a close. Fails where it is not what was signed; a key that is known has to have signed it, and a required one has
 * to exist.
 */
const readClose = Effect.fnUntraced(function* (path: string, keyPath: string, isKeyRequired = false) {
  const parsed = yield* attempt(path, () => Document.parse(path, Files.readText(path)))
  const expected = yield* attempt(keyPath, () =>
    isKeyRequired || ReadFile.exists(keyPath) ? Signature.publicKeyOf(keyPath) : null
  )
  const validity = Signature.check(parsed, expected)
  if (validity === "invalid" || validity === "other key") {
    return yield* new CommandFailed({
      code: exitCode.incomplete,
      message:
        validity === "invalid"
          ? `${path} is not what was signed: it was changed, or its signature was`
          : `${path} was signed by another key (SHA-256 ${parsed.signature.fingerprint}) than ${keyPath}`
    })
  }
  const content = yield* attempt(path, parsed.content)
  return { content, validity, signature: parsed.signature }
})

/** Where the close of a company goes. */
interface Target {
  readonly path: string
  readonly revision: number
  readonly replaces: string | null
}

/** Writes the pages of a close again that ended between its two files. */
const restorePages = Effect.fnUntraced(function* (path: string, keyPath: string) {
  if (yield* attempt(path, () => ReadFile.exists(Files.pdfPath(path)))) return
  const { content, signature } = yield* readClose(path, keyPath)
  const pdf = yield* Effect.promise(() => Pdf.render({ ...content, signature }))
  yield* attempt(path, () => AtomicFile.replace(Files.pdfPath(path), pdf))
})

/** Makes the folder. Fails where the period is closed already, unless a new revision is requested. */
export const targetOf = Effect.fnUntraced(function* (
  flags: Pick<Flags, "to" | "draft" | "again" | "config">,
  { month }: Pick<Period.Period, "month">,
  name: string
): Effect.fn.Return<Target, CommandFailed> {
  const { to: folder, draft, again } = flags
  yield* attempt(folder, () => Files.makeFolder(folder))
  if (draft) return { path: Files.draftPath(folder, month, name), revision: 1, replaces: null }
  const latest = yield* attempt(folder, () => Files.latestRevision(folder, month, name))
  const before = Files.closePath(folder, month, name, latest)
  if (latest > 0 && !again) {
    yield* restorePages(before, keyPathOf(flags))
    return yield* usageError(
      `${month} of company ${name} is closed already: ${before}; for what changed since: tributary close --compare ${month}; ` +
        `to close it again, beside that file: --again`
    )
  }
  return {
    path: Files.closePath(folder, month, name, latest + 1),
    revision: latest + 1,
    replaces: latest === 0 ? null : yield* attempt(before, () => Files.sha256Of(before))
  }
})

const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

/** Compares the company with the source. A resource that could not be compared ends the close, unless it is a draft. */
const verify = Effect.fnUntraced(function* (
  settings: Configuration.Configuration,
  target: SyncCompany,
  sample: number | null,
  draft: boolean
) {
  const beganAt = (yield* now).toISOString()
  const seed = yield* Random.nextIntBetween(1, seedMax)
  const report = yield* Verify.run(settings, { sample, seed, repair: false, priority }, [target])
  const [{ companyId, failure, resources } = { companyId: null, failure: null, resources: [] }] = report.companies
  const failures = [
    ...(failure === null ? [] : [failure]),
    ...(draft ? [] : resources.flatMap((one) => (one.status === "failed" && one.failure !== null ? [one.failure] : [])))
  ]
  const code = codeOfFailures(failures)
  if (code !== null || companyId === null) {
    const [first] = failures
    return yield* new CommandFailed({
      code: code ?? exitCode.fault,
      message: `company ${target.name} could not be compared with the source, so that it was not closed: ${first?.message ?? ""}\n  what to do: ${first?.remedy ?? ""}`
    })
  }
  const verification: Document.Content["verification"] = {
    beganAt,
    endedAt: (yield* now).toISOString(),
    sample: report.sample,
    resources: resources.map((one) => ({
      resource: one.resource,
      status: one.status,
      source: one.source,
      warehouse: one.warehouse,
      missing: one.missing,
      surplus: one.surplus,
      different: one.different,
      notYetSynced: one.notYetSynced,
      unreadable: one.unreadable,
      reason: one.failure?.message ?? (one.status === "skipped" ? one.remarks.join("; ") : null)
    }))
  }
  return { companyId, verification }
})

const closeCompany = Effect.fnUntraced(function* (
  flags: Flags,
  settings: Configuration.Configuration,
  period: Period.Period,
  target: SyncCompany,
  { path, revision, replaces }: Target
) {
  const say = (text: string) => (flags.json ? Effect.void : Output.note(`  company ${target.name}: ${text}`))
  yield* refuseDamaged(settings, target.resources)
  const key = yield* attempt("the signing key", () => Signature.loadKey(keyPathOf(flags)))
  yield* say(`comparing ${Output.plural(target.resources.length, "resource")} with the source`)
  const { companyId, verification } = yield* verify(settings, target, Option.getOrNull(flags.sample), flags.draft)
  yield* say("computing counts, sums and digests")
  const catalogue = yield* WarehouseCatalogue.load(yield* catalogueOf(settings))
  const content = yield* Close.run({
    version: yield* Version,
    company: { name: target.name, id: companyId },
    period,
    datasets: settings.datasets,
    resources: target.resources.map((given) => catalogue.resources.get(given.path) ?? given),
    catalogue: catalogue.resources,
    models: (yield* Models.of(settings)).models,
    invariants: yield* Invariants.ofCompany(settings, target.name, catalogue.resources.keys(), say),
    verification,
    draft: flags.draft,
    revision,
    replaces
  })
  const document = Signature.sign(content, key)
  const pdf = yield* Effect.promise(() => Pdf.render(document))
  yield* attempt(path, () => Files.writeClose(path, Document.print(document), pdf, flags.draft))
  return { document, path, newKey: key.isNew ? keyPathOf(flags) : null }
})

const close = Effect.fnUntraced(function* (
  flags: Flags,
  settings: Configuration.Configuration,
  targets: ReadonlyArray<SyncCompany>
) {
  const period = yield* periodOf(flags, settings)
  if (!flags.draft && (yield* now) < period.endsAt) {
    return yield* usageError(
      `${period.month} ends at ${period.endsAt.toISOString()}; close it after that, or look at a draft: --draft`
    )
  }
  // A company that cannot be closed keeps no other from it.
  return yield* Effect.forEach(targets, (target) =>
    Effect.flatMap(targetOf(flags, period, target.name), (place) =>
      closeCompany(flags, settings, period, target, place)
    ).pipe(
      Effect.catch((failure) => {
        const error = commandFailed(failure)
        return Effect.as(Output.note(`tributary: company ${target.name}: ${error.message}`, "Error"), {
          company: target.name,
          error
        })
      })
    )
  )
})

const compareCompany = Effect.fnUntraced(function* (flags: Flags, settings: Configuration.Configuration, name: string) {
  const { month } = yield* periodOf(flags, settings)
  const latest = yield* attempt(flags.to, () => Files.latestRevision(flags.to, month, name))
  if (latest === 0) {
    return yield* usageError(
      `${month} of company ${name} is not closed in ${flags.to}: tributary close ${month} --company ${name}`
    )
  }
  const path = Files.closePath(flags.to, month, name, latest)
  const { content } = yield* readClose(path, keyPathOf(flags), true)
  const { company, period, revision, draft } = content
  if (company.name !== name || period.month !== month || revision !== latest || draft) {
    return yield* new CommandFailed({
      code: exitCode.incomplete,
      message:
        `${path} is not the close ${latest} of ${month} of company ${name}: it is ${draft ? "a draft" : `the close ${revision}`} ` +
        `of ${period.month} of company ${company.name}. Put the file that was written there back`
    })
  }
  const catalogue = yield* WarehouseCatalogue.load(yield* catalogueOf(settings))
  yield* refuseDamaged(settings, [...catalogue.resources.values()])
  return yield* Compare.run({ close: content, datasets: settings.datasets, catalogue: catalogue.resources }).pipe(
    Effect.catchTags({
      CloseFailed: (error) => Effect.fail(asCommandFailed(error)),
      PositionLost: (error) => Effect.fail(asCommandFailed(error))
    })
  )
})

const compare = Effect.fnUntraced(function* (flags: Flags) {
  const companies = yield* onWarehouse(flags, (settings) =>
    Effect.flatMap(Configuration.chooseCompanies(settings, flags.company), (chosen) =>
      Effect.forEach(chosen, ({ name }) => compareCompany(flags, settings, name))
    )
  )
  const code = companies.every(({ equal }) => equal) ? exitCode.ok : exitCode.incomplete
  yield* Output.printResult(flags.json, { companies, code }, (result) => result.companies.flatMap(Text.comparisonLines))
  yield* endWith(code)
})

const verifyFile = Effect.fnUntraced(function* (flags: Flags, path: string) {
  const keyPath = Option.getOrElse(flags.key, () => keyPathOf(flags))
  const { content, validity, signature } = yield* readClose(path, keyPath, Option.isSome(flags.key))
  const replaced = yield* attempt(path, () => Chain.check(path, content))
  const { company, period, state, draft, closedAt, position } = content
  // A changed file can be signed again by any key: only a known key proves the signer.
  const isProven = validity === "valid" && replaced.every((one) => one.state !== "changed")
  const report = {
    file: path,
    isValid: true,
    isKeyKnown: validity === "valid",
    fingerprint: signature.fingerprint,
    company,
    month: period.month,
    state,
    draft,
    closedAt,
    position,
    replaced
  }
  yield* Output.printResult(flags.json, report, (shown) => Text.validityLines(shown, keyPath))
  yield* endWith(isProven ? exitCode.ok : exitCode.incomplete)
})

export const command = Command.make(
  "close",
  flags,
  Effect.fn(function* (flags) {
    if (Option.isSome(flags.verify)) return yield* verifyFile(flags, flags.verify.value)
    if (flags.compare) return yield* compare(flags)
    const results = yield* onTargets(flags, { companies: flags.company, isReading: true }, (settings, targets) =>
      close(flags, settings, targets)
    )
    const closed = results.flatMap((one) => ("document" in one ? one : []))
    const failed = results.flatMap((one) => ("error" in one ? one : []))
    const isClean = closed.every(({ document }) => document.state === "clean")
    const code = failed[0]?.error.code ?? (isClean ? exitCode.ok : exitCode.incomplete)
    yield* Output.printResult(
      flags.json,
      {
        closes: closed.map(({ document, path }) => Text.summaryOf(document, path)),
        failures: failed.map(({ company, error }) => ({ company, message: error.message })),
        code
      },
      () => closed.flatMap(({ document, path, newKey }) => Text.closeLines(document, path, newKey))
    )
    yield* endWith(code)
  })
).pipe(
  withExamples({
    "tributary close 2026-10": "Verify against the source, and write the signed close of October and its PDF",
    "tributary close 2026-10 --company north --draft": "A draft for one company",
    "tributary close --compare 2026-10": "Every record that changed October after its close",
    "tributary close --verify closes/2026-10-north.json": "Check that a close is what was signed"
  })
)

/** Closes and comparisons as lines for people. */
import type { Replaced } from "../close/Chain.ts"
import type { ChangedRecord, Comparison, PeriodFigures } from "../close/Compare.ts"
import type { Content, Document } from "../close/Document.ts"
import { pdfPath } from "../close/Files.ts"
import { amount } from "../close/Pdf.ts"
import * as Output from "./Output.ts"

/** Changed records that are printed for people. */
const recordsShownMax = 200
const fieldsShownMax = 8
const valueShownMax = 60
const fingerprintShown = 16

/** A close for machines. */
export const summaryOf = (
  { company, period, state, draft, revision, position, findings, signature }: Document,
  path: string
) => ({
  company,
  month: period.month,
  state,
  draft,
  revision,
  position,
  findings,
  fingerprint: signature.fingerprint,
  file: path,
  pdf: pdfPath(path)
})

export const closeLines = (document: Document, path: string, newKey: string | null): ReadonlyArray<string> => {
  const { company, period, state, draft, position, findings, verification, invariants, resources, models } = document
  const equal = verification.resources.filter(({ status }) => status === "equal")
  const records = equal.reduce((sum, { source }) => sum + source, 0)
  const inPeriod = resources.reduce((sum, one) => sum + (one.period?.count ?? 0), 0)
  const violations = invariants.reduce((sum, one) => sum + one.violations, 0)
  return [
    `company ${company.name} (${company.id}): ${draft ? "draft of " : ""}${period.month} ${state === "clean" ? "is clean" : "has differences"}, as of position ${position}`,
    ...findings.map((finding) => `  ${finding}`),
    `  ${Output.plural(records, "record")} of ${Output.plural(equal.length, "resource")} ${verification.sample === null ? "equal" : "equal in a sample"} to the source, ` +
      `${Output.plural(inPeriod, "record")} in the period`,
    `  ${Output.plural(invariants.length, "invariant")}, ${Output.plural(violations, "violation")}; ${Output.plural(models.length, "model")} on ${period.lastDay}`,
    `  ${path} and ${pdfPath(path)}, signed by the key ${document.signature.fingerprint.slice(0, fingerprintShown)}`,
    ...(state === "clean" || draft
      ? []
      : [`  resolve this, and close it again: tributary close ${period.month} --company ${company.name} --again`]),
    ...(newKey === null ? [] : [`  ${newKey} is the new signing key: keep it secret, and keep a copy`])
  ]
}

const shown = (value: string | null): string =>
  value === null ? "(none)" : value.length <= valueShownMax ? value : `${value.slice(0, valueShownMax)}…`

const recordLines = (one: ChangedRecord): ReadonlyArray<string> => {
  const versions =
    one.fromVersion === one.toVersion ? `version ${one.toVersion}` : `version ${one.fromVersion} → ${one.toVersion}`
  // The values of a whole record are in --json.
  const changes = one.kind === "inserted" || one.kind === "deleted" ? [] : one.changes
  const width = Math.max(0, ...changes.slice(0, fieldsShownMax).map(({ field }) => field.length))
  return [
    `  ${one.resource} ${one.id}: ${one.kind}, ${versions}`,
    ...one.versions.map(
      ({ version, op, origin, source, runId, observedAt }) =>
        `    version ${version}: ${op} by ${origin}${runId === null ? "" : `, run ${runId}`}, ${observedAt}${source === null ? "" : `, ${source}`}`
    ),
    ...(one.versions.length === 0 ? ["    by the record that has its date"] : []),
    ...changes
      .slice(0, fieldsShownMax)
      .map(({ field, from, to }) => `      ${field.padEnd(width)}  ${shown(from)} → ${shown(to)}`),
    ...(changes.length > fieldsShownMax ? [`      and ${changes.length - fieldsShownMax} more fields`] : [])
  ]
}

const figuresText = (closed: PeriodFigures, now: PeriodFigures): string =>
  Output.list([
    closed.count === now.count ? "" : `${Output.count(closed.count)} → ${Output.plural(now.count, "record")}`,
    ...Object.entries(now.sums).flatMap(([field, value]) => {
      const before = closed.sums[field] ?? "0"
      return amount(before) === amount(value) ? [] : [`${field} ${amount(before)} → ${amount(value)}`]
    })
  ])

export const comparisonLines = (one: Comparison): ReadonlyArray<string> => {
  const head = `company ${one.company}: ${one.month} was closed at ${one.closedAt} (position ${one.closePosition}${one.revision === 1 ? "" : `, revision ${one.revision}`})`
  if (one.equal) return [`${head}; no record changed it since`]
  const total = one.resources.reduce((sum, { changed }) => sum + changed, 0)
  return [
    `${head}; ${Output.plural(total, "record")} changed it since`,
    ...one.resources.map(({ resource, changed, figures, problem }) => {
      const numbers = figures === null ? "" : figuresText(figures.close, figures.now)
      return `  ${resource}: ${Output.count(changed)} changed${numbers === "" ? "" : `; ${numbers}`}${problem === null ? "" : ` (${problem})`}`
    }),
    "",
    ...one.records.slice(0, recordsShownMax).flatMap(recordLines),
    ...(one.records.length > recordsShownMax
      ? [`  and ${Output.count(one.records.length - recordsShownMax)} more; --json lists them`]
      : []),
    "  more about a record: tributary explain RESOURCE ID"
  ]
}

const replacedTexts: Readonly<Record<Replaced["state"], (file: string) => string>> = {
  intact: (file) => `it replaces ${file}, which is unchanged`,
  changed: (file) => `it replaces ${file}, which is not the file of that time: put that one back`,
  missing: (file) => `it replaces ${file}, which is not there, so that it is not checked`
}

export const validityLines = (
  report: Pick<Content, "company" | "state" | "draft" | "closedAt" | "position"> & {
    readonly file: string
    readonly month: string
    readonly fingerprint: string
    readonly isKeyKnown: boolean
    readonly replaced: ReadonlyArray<Replaced>
  },
  keyPath: string
): ReadonlyArray<string> => [
  `${report.file} is what was signed: ${report.draft ? "the draft of " : ""}${report.month} of company ${report.company.name} (${report.company.id}), ` +
    `${report.state === "clean" ? "clean" : "with differences"}, closed at ${report.closedAt} at position ${report.position}`,
  report.isKeyKnown
    ? `  signed by the key of ${keyPath} (SHA-256 ${report.fingerprint})`
    : `  signed by a key that is not known here (SHA-256 ${report.fingerprint}), so that its signer is not proven; name the file of the key that you expect: --key FILE`,
  ...report.replaced.map(({ file, state }) => `  ${replacedTexts[state](file)}`)
]

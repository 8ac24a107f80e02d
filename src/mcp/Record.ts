/** The tool `explain_record`: every version of a record, with the run and the request or event that it came from. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import { explain, findHistory, listHistories } from "../verify/Explain.ts"
import type { Explanation, RunSummary, Version } from "../verify/Explanation.ts"
import { answer, cut, Id, idOf, toolFailure, ToolFailure } from "./Answer.ts"
import { Capabilities, readAnswer } from "./Capabilities.ts"
import { companyOf } from "./Names.ts"

const versionsMax = 50
const quarantineMax = 20
const valueCharactersMax = 2_000
const recordCharactersMax = 20_000
/** The characters of all entries of an answer, as JSON. */
const charactersMax = 1_000_000
/** Fields of one version, and values to be read again. */
const fieldsMax = 1_000

const nullableText = Schema.NullOr(Schema.String)

const Run = Schema.Struct({
  id: Id,
  kind: Schema.String,
  lane: Schema.String,
  status: Schema.String,
  began_at: nullableText
})

const Explained = Schema.Struct({
  company_id: Id,
  state: Schema.Literals(["exists", "deleted", "unknown"]),
  versions: Schema.Array(
    Schema.Struct({
      version: Id,
      op: Schema.String,
      valid_from: nullableText,
      valid_to: nullableText,
      origin: Schema.String.annotate({ description: "scan, webhook or push" }),
      source: nullableText.annotate({ description: "The request or event that brought the version" }),
      run: Schema.NullOr(Run),
      changes: Schema.Array(Schema.Struct({ field: Schema.String, from: nullableText, to: nullableText }))
    })
  ),
  record: nullableText.annotate({ description: "The last version as JSON text, with every digit" }),
  quarantine: Schema.Array(
    Schema.Struct({
      field: nullableText,
      reason: Schema.String,
      bytes: Schema.String,
      source: Schema.String,
      last_seen_at: nullableText,
      resolved_at: nullableText
    })
  ),
  to_be_read_again: Schema.Array(
    Schema.Struct({ field: Schema.String, value: Schema.String, requested_at: nullableText })
  ),
  last_full_scan: Schema.NullOr(Schema.Struct({ run: Run, confirmed_this_version: Schema.Boolean })),
  cursors: Schema.Array(Schema.Struct({ lane: Schema.String, cursor: nullableText, updated_at: nullableText }))
})

export const explainRecord = Tool.make("explain_record", {
  description:
    "Explains why a record has its values: every version with its changes, the run and the request or webhook event that " +
    "brought it, and its quarantine. Answers one entry for each company that has the record. " +
    `Values and reasons are cut at ${valueCharactersMax} characters, a record at ${recordCharactersMax}, an answer at ${charactersMax}.`,
  parameters: Schema.Struct({
    resource: Schema.String.check(Schema.isMaxLength(200)).annotate({
      description: "The resource, by the name of its table"
    }),
    id: Schema.Union([Schema.Int, Schema.String.check(Schema.isMaxLength(20))]).annotate({
      description: "The number of the record"
    }),
    company: Schema.optionalKey(
      Schema.String.check(Schema.isMaxLength(200)).annotate({ description: "Only this company, by name or number" })
    )
  }),
  success: answer(Schema.Struct({ resource: Schema.String, id: Schema.String, explanations: Schema.Array(Explained) })),
  failure: ToolFailure
})

/** The first entries whose text fits into an answer; always one. */
export const fitting = (entries: ReadonlyArray<typeof Explained.Type>) => {
  let characters = 0
  return entries.filter((entry, at) => (characters += JSON.stringify(entry).length) <= charactersMax || at === 0)
}

const runOf = ({ id, kind, lane, status, beganAt }: RunSummary) => ({
  id: idOf(id),
  kind,
  lane,
  status,
  began_at: beganAt
})

const cutOrNull = (value: string | null) => (value === null ? null : cut(value, valueCharactersMax))

const versionOf = (version: Version) => ({
  version: idOf(version.version),
  op: version.op,
  valid_from: version.validFrom,
  valid_to: version.validTo,
  origin: version.origin,
  source: version.source,
  run: version.run === null ? null : runOf(version.run),
  changes: version.changes
    .slice(0, fieldsMax)
    .map(({ field, from, to }) => ({ field, from: cutOrNull(from), to: cutOrNull(to) }))
})

/** An explanation of bounded size. */
export const explainedOf = (one: Explanation): typeof Explained.Type => ({
  company_id: idOf(one.companyId),
  state: one.state,
  versions: one.versions.slice(-versionsMax).map(versionOf),
  record: one.versions.length === 0 ? null : cut(one.versions.at(-1)!.record, recordCharactersMax),
  quarantine: one.quarantine.slice(-quarantineMax).map((entry) => ({
    field: entry.field,
    reason: cut(entry.reason, valueCharactersMax),
    bytes: cut(entry.bytes, valueCharactersMax),
    source: entry.source,
    last_seen_at: entry.lastSeenAt,
    resolved_at: entry.resolvedAt
  })),
  to_be_read_again: one.rereads.slice(0, fieldsMax).map(({ field, value, askedAt }) => ({
    field,
    value: cut(value, valueCharactersMax),
    requested_at: askedAt
  })),
  last_full_scan:
    one.fullScan === null ? null : { run: runOf(one.fullScan), confirmed_this_version: one.fullScan.confirmed },
  cursors: one.checkpoints.map(({ lane, cursor, updatedAt }) => ({ lane, cursor, updated_at: updatedAt }))
})

export const handle = (given: { readonly resource: string; readonly id: number | string; readonly company?: string }) =>
  Effect.gen(function* () {
    const { datasets } = yield* Capabilities
    const id = String(given.id)
    return yield* readAnswer(
      Effect.gen(function* () {
        const history = yield* findHistory(datasets, given.resource)
        if (history === null) {
          const names = yield* listHistories(datasets)
          return yield* Effect.fail(
            toolFailure(
              "unknown_resource",
              `The warehouse has no history of ${given.resource}.`,
              names.length === 0
                ? "Nothing has been synced yet: the operator runs tributary sync."
                : `Name one of: ${names.join(", ")}.`
            )
          )
        }
        const company = given.company === undefined ? null : (yield* companyOf(given.company)).companyId
        const explanations = yield* explain(datasets, history, id, company)
        if (explanations.length === 0) {
          return yield* Effect.fail(
            toolFailure(
              "unknown_record",
              `The warehouse has no version of ${history.path} ${id}.`,
              "Look for the record with query; the argument id is its number."
            )
          )
        }
        const isCut = explanations.some(({ versions }) => versions.length > versionsMax)
        const shown = fitting(explanations.map(explainedOf))
        return {
          data: { resource: history.path, id, explanations: shown },
          scope: { resources: [history.path] },
          remarks: [
            ...(isCut ? [`Only the last ${versionsMax} versions are shown.`] : []),
            ...(shown.length < explanations.length
              ? [`${shown.length} of ${explanations.length} companies are shown; give company.`]
              : [])
          ]
        }
      })
    )
  })

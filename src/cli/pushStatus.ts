/**
 * `tributary push status`, `retry`, `export-rejected` and `release`: the state of pushes, and a person's actions on them.
 *
 * Promise: a file that exists is never overwritten. A rejected row is sent again only on request.
 */
import { open, rm } from "node:fs/promises"
import { extname } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { csvRow } from "../export/Csv.ts"
import type { FieldRoles } from "../catalogue/SourceTraits.ts"
import { type Configuration, namesOf } from "../configuration/Configuration.ts"
import * as Mode from "../files/Mode.ts"
import type { Counts, Operation, RejectedRow, Rows } from "../outbox/Push.ts"
import * as PushPause from "../outbox/PushPause.ts"
import { retryRejected } from "../outbox/RetryRejected.ts"
import * as ExportRejected from "../outbox/ExportRejected.ts"
import * as Outbox from "../status/Outbox.ts"
import { config, json, onWarehouse, switchFlag, warehouseCommand, withExamples } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import { openCount } from "./PushProgress.ts"
import * as PushText from "./PushText.ts"
import * as PushRun from "./PushRun.ts"
import { Source } from "./Source.ts"
import { resourceOf } from "./Targets.ts"

export const status = warehouseCommand({
  name: "status",
  description: "Show the pushes: done, waiting and rejected records, with the reasons",
  examples: {
    "tributary push status": "The newest pushes, the outbox, and requests under way",
    "tributary push status 3 --json": "One push, for a machine"
  },
  flags: {
    push: Argument.String("push").pipe(
      Argument.withDescription("The push's number (default: the newest ones, and the outbox)"),
      Argument.optional
    )
  },
  run: (settings, { push }) =>
    Effect.gen(function* () {
      const number = yield* numberOf(push)
      if (number !== null) yield* PushRun.pushOf(number)
      return { status: yield* Outbox.read(number), companies: namesOf(settings) }
    }),
  json: ({ status }) => status,
  lines: ({ status, companies }) => PushText.statusLines(status, companies)
})

export const release = warehouseCommand({
  name: "release",
  description: "Continue pushes that were paused because the database was restored or the source was replaced",
  examples: { "tributary push release": "After you compared the waiting records with the source" },
  flags: {},
  run: () =>
    Effect.gen(function* () {
      const reason = yield* PushPause.read
      if (reason !== null) yield* PushPause.release
      return { released: reason !== null, reason }
    }),
  lines: ({ reason }) => [
    reason === null ? "Pushes were not paused" : `Pushes continue; they were paused because ${reason}`
  ]
})

/** The number of a push; null when none is given. */
const numberOf = Effect.fnUntraced(function* (given: Option.Option<string>) {
  if (Option.isNone(given)) return null
  if (/^\d{1,18}$/.test(given.value)) return BigInt(given.value)
  return yield* usageError(`"${given.value}" is not the number of a push; see them with tributary push status`)
})

/** A push by its number, or the rows of a resource that belong to none. */
const target = Argument.String("push").pipe(
  Argument.withDescription("A push's number, or a resource for the rows of tributary.outbox that belong to no push"),
  Argument.optional
)

/** Rows of one push, or of one resource without a push. */
interface Target {
  readonly rows: Rows
  readonly company: string
  readonly resource: string
  readonly known: number
}

/** The rows that the argument names. */
const namedTarget = Effect.fnUntraced(function* (
  settings: Configuration,
  given: string,
  company: Option.Option<string>
) {
  if (/^\d{1,18}$/.test(given)) {
    const push = yield* PushRun.pushOf(BigInt(given))
    return { ...push, rows: { push: push.push } } satisfies Target
  }
  const resource = (yield* resourceOf(settings, given)).path
  const name = yield* PushRun.companyNameOf(settings, company)
  return { rows: { company: name, resource }, company: name, resource, known: 0 } satisfies Target
})

/** The named rows, or all pushes and resources with such counts. Those that are not configured are only noted. */
const targetsOf = Effect.fnUntraced(function* (
  settings: Configuration,
  flags: { readonly push: Option.Option<string>; readonly company: Option.Option<string> },
  isMeant: (counts: Counts) => boolean
) {
  if (Option.isSome(flags.push)) return [yield* namedTarget(settings, flags.push.value, flags.company)]
  const { pushes, outbox } = yield* Outbox.read(null)
  const { resources } = yield* catalogueOf(settings)
  const isConfigured = ({ company, resource }: Target) =>
    resources.has(resource) && settings.companies.some(({ name, paused }) => name === company && paused === null)
  const targets = [
    ...pushes.map((push) => ({ ...push, rows: { push: push.push } })),
    ...outbox.map((one) => ({ ...one, rows: { company: one.company, resource: one.resource }, known: 0 }))
  ].filter(({ counts }) => isMeant(counts))
  for (const one of targets.filter((one) => !isConfigured(one)))
    yield* Output.note(
      `tributary: skipped ${one.resource} of ${one.company}, which the configuration does not have, or which is paused`
    )
  return targets.filter(isConfigured)
})

const ambiguous = (targets: ReadonlyArray<Target>) =>
  usageError(
    `name the push or resource of the rejected records: ${targets.map(({ rows }) => PushText.argument(rows)).join(", ")}`
  )

export const retry = Command.make(
  "retry",
  {
    push: target,
    rejected: switchFlag("rejected", "Send its rejected records again, after the cause was fixed at the source"),
    company: PushRun.companyFlag,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const results = yield* onWarehouse(
      flags,
      Effect.fnUntraced(function* (settings) {
        const retryRows = Effect.fnUntraced(function* ({ known, rows, ...of }: Target) {
          const company = yield* PushRun.companyOf(settings, of.company)
          const resource = yield* resourceOf(settings, of.resource)
          const identity = yield* PushRun.identityOf(company)
          if (flags.rejected) {
            yield* Effect.catchTag(retryRejected(rows), "PushSuperseded", ({ by, message }) =>
              Effect.fail(usageError(`${message}: tributary push retry ${by}`))
            )
          }
          const named = { company, identity, resource, rows, known, knownOpen: PushRun.noDuplicates }
          return yield* PushRun.runPush({ settings, ...named, json: flags.json })
        }, Effect.scoped)
        const targets = yield* targetsOf(settings, flags, (counts) =>
          flags.rejected ? counts.rejected > 0 : openCount(counts) > 0
        )
        if (flags.rejected && targets.length > 1) return yield* ambiguous(targets)
        return yield* Effect.forEach(targets, retryRows)
      })
    )
    if (results.length === 0 && !flags.json) yield* Output.print("Nothing waits to be pushed.")
    yield* PushRun.printReport(results, flags.json, (pushes) => ({ pushes }))
  })
).pipe(
  Command.withDescription("Continue an unfinished push, or push the waiting rows of the outbox"),
  withExamples({
    "tributary push retry": "All waiting records",
    "tributary push retry 3 --rejected": "The rejected records of push 3 once more"
  })
)

// ------------------------------------------------------------------------------------------------- rejected records

const operationFlag = (operation: Operation | undefined): string =>
  operation === undefined || operation === "create" ? "" : ` --${operation}`

const rowsPerRead = 1000

/** Reads every rejected row, in the order of the numbers. */
const forEachRejected = Effect.fnUntraced(function* <E, R>(
  rows: Rows,
  body: (rejected: ReadonlyArray<RejectedRow>) => Effect.Effect<unknown, E, R>
) {
  for (let after = 0n; ;) {
    const rejected = yield* Outbox.rejectedRows(rows, after, rowsPerRead)
    if (rejected.length > 0) yield* body(rejected)
    const last = rejected.at(-1)
    if (last === undefined || rejected.length < rowsPerRead) return
    after = last.id
  }
})

const fileFailed = (file: string) => (cause: unknown) =>
  usageError(
    cause instanceof Error && "code" in cause && cause.code === "EEXIST"
      ? `${file} exists already; name another file`
      : `${file} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`
  )

/** The columns of a CSV file of these rows; fails when a cell cannot hold one of their values. */
const csvColumns = Effect.fnUntraced(function* (rows: Rows, roles: FieldRoles) {
  const names = new Set<string>()
  const lost = new Set<string>()
  yield* forEachRejected(rows, (rejected) =>
    Effect.sync(() => {
      for (const members of rejected.map((row) => ExportRejected.membersOf(row, roles))) {
        for (const name of members.keys()) names.add(name)
        for (const name of ExportRejected.lostInCsv(members)) lost.add(name)
      }
    })
  )
  if (lost.size === 0) return ExportRejected.columnsOf(names)
  return yield* usageError(`a CSV cell cannot hold the empty value of ${[...lost].join(", ")}; write an .ndjson file`)
})

/** Writes rejected rows to a new file; a file that cannot be completed is removed. */
const writeRejected = Effect.fnUntraced(function* (rows: Rows, file: string, isCsv: boolean) {
  const { roles } = (yield* Source).catalogue.traits
  const columns = isCsv ? yield* csvColumns(rows, roles) : []
  const operations = new Set<Operation>()
  let records = 0
  const attempt = <A>(act: () => Promise<A>) => Effect.tryPromise({ try: act, catch: fileFailed(file) })
  yield* Effect.acquireUseRelease(
    attempt(() => open(file, "wx", Mode.dataFile)),
    (handle) =>
      Effect.gen(function* () {
        if (isCsv) yield* attempt(() => handle.appendFile(`${csvRow(columns)}\n`))
        yield* forEachRejected(rows, (rejected) => {
          records += rejected.length
          for (const { operation } of rejected) operations.add(operation)
          const lines = rejected.map((row) =>
            isCsv
              ? ExportRejected.toCsv(ExportRejected.membersOf(row, roles), columns)
              : ExportRejected.toNdJson(row, roles)
          )
          return attempt(() => handle.appendFile(`${lines.join("\n")}\n`))
        })
      }),
    (handle, exit) =>
      Effect.promise(() => handle.close()).pipe(
        Effect.andThen(exit._tag === "Success" ? Effect.void : Effect.ignore(attempt(() => rm(file))))
      )
  )
  return { records, operations: [...operations] }
})

export const exportRejected = warehouseCommand({
  name: "export-rejected",
  description: "Write rejected records to a file, each with the reason, to be corrected and pushed again",
  examples: {
    "tributary push export-rejected 3 --to rejected.ndjson": "Those of push 3, as lines of JSON",
    "tributary push export-rejected 3 --to rejected.csv": "For a spreadsheet"
  },
  flags: {
    push: target,
    to: Flag.String("to").pipe(
      Flag.withDescription("The file to write, .ndjson or .csv; it must not exist yet"),
      Flag.withMetavar("FILE")
    ),
    company: PushRun.companyFlag
  },
  run: (settings, flags) =>
    Effect.gen(function* () {
      const kind = extname(flags.to).toLowerCase()
      if (kind !== ".ndjson" && kind !== ".jsonl" && kind !== ".csv") {
        return yield* usageError(`--to: expected a name that ends in .ndjson or .csv, not "${flags.to}"`)
      }
      const targets = yield* targetsOf(settings, flags, ({ rejected }) => rejected > 0)
      const [only, another] = targets
      if (only === undefined) return yield* usageError("no record was rejected")
      if (another !== undefined) return yield* ambiguous(targets)
      const written = yield* writeRejected(only.rows, flags.to, kind === ".csv")
      return { file: flags.to, resource: only.resource, ...written }
    }),
  lines: ({ file, operations, records, resource }) => [
    `${Output.plural(records, "rejected record is", "rejected records are")} in ${file}`,
    operations.length > 1
      ? `  they are to be ${operations.map((operation) => PushText.participles[operation]).join(" or ")}: a push of a file does only one of these`
      : `  what to do: correct them there, then: tributary push ${resource} --from ${file}${operationFlag(operations[0])}`
  ]
})

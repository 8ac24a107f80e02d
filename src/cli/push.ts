/**
 * `tributary push`: writes the records of a file or a query to the source.
 *
 * Promise: nothing is sent or stored before every record of the input is valid. The same command continues a push that
 * was stopped at any moment. Exit code 0 means that every record is at the source with the values that were given.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Csv from "../outbox/input/Csv.ts"
import { type Input, openInput } from "../outbox/input/Input.ts"
import type { InputError, InputRecord } from "../outbox/input/InputRecord.ts"
import * as QueryInput from "../outbox/input/QueryInput.ts"
import { dryRun, type DryRunOptions, type DryRunReport } from "../outbox/DryRun.ts"
import { enqueue } from "../outbox/Enqueue.ts"
import type { Operation, Problem } from "../outbox/Push.ts"
import { EnqueueRejected, type InputOptions } from "../outbox/ValidateInput.ts"
import { config, configuration, json, switchFlag, textFlag, withExamples } from "./Command.ts"
import { CommandFailed, endWith, exitCode, usageError } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as PushRehearsal from "./PushRehearsal.ts"
import * as PushRun from "./PushRun.ts"
import * as PushText from "./PushText.ts"
import { exportRejected, release, retry, status } from "./pushStatus.ts"
import { refuseExcluded, resourceOf } from "./Targets.ts"
import * as Warehouse from "./Warehouse.ts"

/** Reads an input and reports its problems; a rejected input ends the command. */
const readInput = <A, R>(
  body: (
    onProblem: (problem: Problem) => Effect.Effect<void>
  ) => Effect.Effect<A, EnqueueRejected | InputError | DatabaseError | CommandFailed, R>,
  json: boolean
): Effect.Effect<A, DatabaseError | CommandFailed, R> => {
  const problems: Array<Problem> = []
  let last = ""
  const onProblem = (problem: Problem) =>
    Effect.suspend(() => {
      last = problem.message
      if (!json) return Output.note(PushText.problemLine(problem))
      problems.push(problem)
      return Effect.void
    })
  const reject = Effect.fnUntraced(function* (message: string) {
    if (json) yield* Output.print(Output.toJson({ problems }))
    return yield* new CommandFailed({ code: exitCode.configuration, message })
  })
  return body(onProblem).pipe(
    Effect.catchTags({
      // The only problem of an unsupported operation is the message itself.
      EnqueueRejected: ({ message }) => reject(message === last ? "" : message),
      InputError: ({ message, remedy }) => reject(`${message}; ${remedy}`)
    })
  )
}

/** The input that `--from`, `--format` and `--delimiter` name. */
const inputOf = (
  text: string,
  format: Option.Option<"ndjson" | "csv" | "tsv" | "sql">,
  delimiter: Option.Option<keyof typeof Csv.delimiters>
) => {
  const named = Option.getOrNull(format)
  if (named === "sql") {
    return Effect.succeed<Input>({ _tag: "Query", source: text.trim(), records: QueryInput.read(text) })
  }
  return openInput(text, {
    format: named === "tsv" ? "csv" : named,
    delimiter: Option.match(delimiter, {
      onNone: () => (named === "tsv" ? "\t" : null),
      onSome: (name) => Csv.delimiters[name]
    }),
    stdin: () => process.stdin
  })
}

type Target = Pick<InputOptions<never, never>, "company" | "resource" | "operation" | "externalidFrom">

const printDryRun = Effect.fnUntraced(function* (report: DryRunReport, target: Target, json: boolean) {
  const { company, operation } = target
  const resource = target.resource.path
  const { given, bytes, calls, first } = report
  yield* Output.printResult(json, { dryRun: true, company, resource, operation, given, bytes, calls, first }, () =>
    PushText.dryRunLines(report, `${PushText.participles[operation]} in ${resource} of ${company}`)
  )
})

/** Reads and checks all records, and stores nothing. */
const validate = <R>(
  { push: { batchRecordsMax, useBatch } }: Configuration,
  target: Target,
  records: Stream.Stream<InputRecord, InputError | DatabaseError, R>,
  json: boolean,
  onValid: DryRunOptions<never, never, CommandFailed>["onValid"] = () => Effect.void
) =>
  readInput(
    (onProblem) =>
      dryRun({ ...target, batchRecordsMax, useBatch, records, onProblem, onValid }).pipe(
        Effect.filterOrFail(
          ({ problems }) => problems === 0,
          ({ problems }) => {
            return new EnqueueRejected({ problems, message: `${Output.plural(problems, "problem")} in the input` })
          }
        )
      ),
    json
  )

export const command = Command.make(
  "push",
  {
    resource: Argument.String("resource").pipe(Argument.withDescription("The resource to write to")),
    from: Flag.String("from").pipe(
      Flag.withDescription("A file (.ndjson, .csv, .tsv), - for the standard input, or a query of the warehouse"),
      Flag.withMetavar("FILE|-|SELECT")
    ),
    format: Flag.Literals("format", ["ndjson", "csv", "tsv", "sql"]).pipe(
      Flag.withDescription("The format of the records (default: by the name of the file; ndjson for -)"),
      Flag.optional
    ),
    delimiter: Flag.Literals("delimiter", Struct.keys(Csv.delimiters)).pipe(
      Flag.withDescription("What separates the cells of a CSV file (default: comma, or that of a first line sep=;)"),
      Flag.optional
    ),
    update: switchFlag("update", "Change existing records, named by id or externalid, instead of creating records"),
    cancel: switchFlag("cancel", "Cancel records, named by id or externalid"),
    externalidFrom: textFlag(
      "externalid-from",
      "COLUMN",
      "The column whose value becomes the externalid (default: externalid)"
    ),
    company: PushRun.companyFlag,
    dryRun: switchFlag("dry-run", "Read and check everything, show the requests, and send and store nothing"),
    rehearse: switchFlag(
      "rehearse",
      "Push to a sandbox first: a reference server with the records of the warehouse. Nothing is sent unless it accepts every record; with --dry-run nothing is sent at all"
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    if (flags.update && flags.cancel) return yield* usageError("give --update or --cancel, not both")
    const operation: Operation = flags.update ? "update" : flags.cancel ? "cancel" : "create"
    const file = yield* configuration(flags.config)
    const resource = yield* resourceOf(file, flags.resource)
    const { settings, name } = yield* PushRun.targetOf(file, flags.company, !flags.dryRun)
    yield* refuseExcluded(settings, name, resource.path)
    const input = yield* readInput(() => inputOf(flags.from, flags.format, flags.delimiter), flags.json)
    const target = { company: name, resource, operation, externalidFrom: Option.getOrNull(flags.externalidFrom) }

    if (flags.rehearse && !flags.dryRun && flags.from === "-")
      return yield* usageError("--rehearse reads the input twice: give a file, or add --dry-run")
    const rehearsal = flags.rehearse
      ? yield* PushRehearsal.rehearse(settings, target, flags.json, (onValid) =>
          validate(settings, target, input.records, flags.json, onValid)
        ).pipe((effect) => Warehouse.provide(effect, settings))
      : null
    if (rehearsal !== null && (flags.dryRun || !PushRehearsal.isAccepted(rehearsal))) {
      if (flags.json) yield* Output.print(Output.toJson({ rehearsal }))
      return yield* endWith(PushRehearsal.isAccepted(rehearsal) ? exitCode.ok : exitCode.incomplete)
    }
    if (flags.dryRun) {
      const report = yield* input._tag === "File"
        ? validate(settings, target, input.records, flags.json)
        : Warehouse.provide(validate(settings, target, input.records, flags.json), settings)
      return yield* printDryRun(report, target, flags.json)
    }

    const records: Stream.Stream<InputRecord, InputError | DatabaseError, Database> = input.records
    const pushed = Effect.gen(function* () {
      const company = yield* PushRun.companyOf(settings, name)
      const identity = yield* PushRun.identityOf(company)
      const failure = PushRun.missingScope(resource, operation, identity)
      if (failure !== null) return yield* PushRun.failWith(failure)
      const enqueued = yield* readInput(
        (onProblem) => enqueue({ ...target, source: input.source, records, onProblem }),
        flags.json
      ).pipe(Effect.onInterrupt(() => Output.note("tributary: stopped; nothing was stored or sent")))
      const { given, known, knownOpen = PushRun.noDuplicates, pushId, resumed } = enqueued
      if (!flags.json) yield* Output.note(PushText.enqueuedLine(enqueued, `${resource.path} of ${name}`))
      const rows = { push: pushId }
      const context = { settings, company, identity, resource, rows, known, knownOpen, json: flags.json }
      return {
        result: yield* PushRun.runPush(context),
        input: { operation, given, known, resumed, ...(rehearsal === null ? {} : { rehearsal }) }
      }
    })
    const { result, input: counts } = yield* Warehouse.provide(Effect.scoped(pushed), settings)
    return yield* PushRun.printReport([result], flags.json, ([report]) => ({ ...report, ...counts }))
  })
).pipe(
  Command.withSubcommands([status, retry, exportRejected, release]),
  withExamples({
    "tributary push RESOURCE --from records.csv --dry-run": "The requests that would be sent, and every mistake",
    "tributary push RESOURCE --from records.csv --rehearse --dry-run":
      "The records that the source would reject, and why",
    "tributary push RESOURCE --from records.csv": "Create them; the same command again continues",
    "tributary push RESOURCE --from changes.ndjson --update": "Change fields of records",
    'tributary push RESOURCE --from "select ..." --json': "Rows of the warehouse"
  })
)

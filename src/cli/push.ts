/**
 * `tributary push`: records of a file or a query are written to the source; and what became of them.
 *
 * Promise: nothing is sent or stored before everything that was given is found to fit. A push that is stopped at any
 * moment goes on where it stopped when the same command is run again, and exit code 0 means that every record is at the
 * source with the values that were given.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { Resource } from "../catalogue/Resource.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Database } from "../postgres/Database.ts"
import type { DatabaseError } from "../postgres/DatabaseError.ts"
import * as From from "../outbox/input/Input.ts"
import type { InputRecord, InputError } from "../outbox/input/InputRecord.ts"
import { dryRun, type DryRunReport } from "../outbox/DryRun.ts"
import * as Enqueue from "../outbox/Enqueue.ts"
import type { Operation, Problem } from "../outbox/Push.ts"
import * as QueryInput from "../outbox/input/QueryInput.ts"
import { config, configuration, json, reported } from "./Command.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import * as PushAfter from "./pushStatus.ts"
import * as PushText from "./PushText.ts"
import * as PushRun from "./PushRun.ts"
import * as Warehouse from "./Warehouse.ts"

const flagOf = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** Nothing was stored; every problem was told. */
const unfit = Effect.fnUntraced(function* (problems: ReadonlyArray<Problem>, message: string, json: boolean) {
  if (json) yield* Output.print(Output.toJson({ problems }))
  return yield* new CommandFailed({ code: exitCode.configuration, message })
})

/** Reads what was given; what is wrong with it is told, and ends the command. */
const intake = <A, R>(
  body: (
    onProblem: (problem: Problem) => Effect.Effect<void>
  ) => Effect.Effect<A, Enqueue.EnqueueRejected | InputError | DatabaseError, R>,
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
  return body(onProblem).pipe(
    Effect.catchTags({
      // What cannot be pushed at all is told once.
      EnqueueRejected: ({ message }) => unfit(problems, message === last ? "" : message, json),
      InputError: ({ message, remedy }) => unfit(problems, `${message}; ${remedy}`, json)
    })
  )
}

/** Records with their name; a query needs the warehouse. */
const fromOf = (text: string, format: Option.Option<"ndjson" | "csv" | "tsv" | "sql">) => {
  const wanted = Option.getOrNull(format)
  if (wanted === "sql") {
    return Effect.succeed<From.Input>({ _tag: "Query", source: text.trim(), records: QueryInput.read(text) })
  }
  return From.openInput(text, {
    format: wanted === "tsv" ? "csv" : wanted,
    delimiter: wanted === "tsv" ? "\t" : null,
    stdin: () => process.stdin
  })
}

interface Wish {
  readonly company: string
  readonly resource: Resource
  readonly operation: Operation
  readonly externalidFrom: string | null
}

/** What would be sent. */
const look = <R>(
  wish: Wish,
  { push: { batchRecordsMax, useBatch } }: Configuration,
  records: Stream.Stream<InputRecord, InputError | DatabaseError, R>,
  json: boolean
) =>
  intake(
    (onProblem) =>
      dryRun({ ...wish, batchRecordsMax, useBatch, records, onProblem }).pipe(
        Effect.filterOrFail(
          ({ problems }) => problems === 0,
          ({ problems }) =>
            new Enqueue.EnqueueRejected({
              problems,
              message: `there ${problems === 1 ? "is a problem" : `are ${Output.count(problems)} problems`} in what was given`
            })
        )
      ),
    json
  )

const tellLooked = Effect.fnUntraced(function* (looked: DryRunReport, wish: Wish, json: boolean) {
  const { company, resource, operation } = wish
  if (json) {
    const { given, bytes, calls, first } = looked
    const told = { dryRun: true, company, resource: resource.path, operation, given, bytes, calls, first }
    return yield* Output.print(Output.toJson(told))
  }
  const lines = PushText.dryRunLines(looked, `${PushText.done[operation]} in ${resource.path} of ${company}`)
  for (const line of lines) yield* Output.print(line)
})

export const command = Command.make(
  "push",
  {
    resource: Argument.String("resource").pipe(Argument.withDescription("The resource that is written to")),
    from: Flag.String("from").pipe(
      Flag.withDescription("A file (.ndjson, .csv, .tsv), - for the standard input, or a query of the warehouse"),
      Flag.withMetavar("FILE|-|SELECT")
    ),
    format: Flag.Literals("format", ["ndjson", "csv", "tsv", "sql"]).pipe(
      Flag.withDescription("How the records are written (default: by the name of the file; ndjson for -)"),
      Flag.optional
    ),
    update: flagOf("update", "Change records that are there, named by id or externalid, instead of creating them"),
    cancel: flagOf("cancel", "Cancel records, named by id or externalid"),
    externalidFrom: Flag.String("externalid-from").pipe(
      Flag.withDescription("The column whose value becomes the externalid (default: externalid)"),
      Flag.withMetavar("COLUMN"),
      Flag.optional
    ),
    company: PushRun.companyFlag,
    dryRun: flagOf("dry-run", "Read and check everything, say what would be sent, and send and store nothing"),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const worked = yield* reported(
      Effect.gen(function* () {
        if (flags.update && flags.cancel) return yield* PushRun.usage("give --update or --cancel, not both")
        const operation: Operation = flags.update ? "update" : flags.cancel ? "cancel" : "create"
        const settings = yield* configuration(flags.config)
        const resource = yield* PushRun.resourceOf(settings, flags.resource)
        // A mistake in the configuration or in what is given is told before anything is started.
        const name = (yield* Effect.scoped(PushRun.companyOf(settings, Option.getOrNull(flags.company)))).name
        const from = yield* intake(() => fromOf(flags.from, flags.format), flags.json)
        const options = { company: name, resource, operation, externalidFrom: Option.getOrNull(flags.externalidFrom) }

        if (flags.dryRun) {
          const looked = yield* from._tag === "File"
            ? look(options, settings, from.records, flags.json)
            : Warehouse.provide(look(options, settings, from.records, flags.json), settings)
          return yield* tellLooked(looked, options, flags.json)
        }

        const records: Stream.Stream<InputRecord, InputError | DatabaseError, Database> = from.records
        return yield* Warehouse.provide(
          Effect.gen(function* () {
            const company = yield* PushRun.companyOf(settings, name)
            const identity = yield* PushRun.identityOf(company)
            const lack = PushRun.lacking(resource, operation, identity)
            if (lack !== null) return yield* PushRun.stopped(lack)
            const taken = yield* intake(
              (onProblem) => Enqueue.enqueue({ ...options, source: from.source, records, onProblem }),
              flags.json
            ).pipe(Effect.onInterrupt(() => Output.note("tributary: stopped; nothing was stored or sent")))
            if (!flags.json) yield* Output.note(PushText.enqueuedLine(taken, `${resource.path} of ${name}`))
            const ended = yield* PushRun.runPush({
              settings,
              company,
              identity,
              resource,
              rows: { push: taken.pushId },
              named: { push: taken.pushId },
              known: taken.known,
              knownOpen: taken.knownOpen ?? PushRun.noneKnown,
              json: flags.json
            })
            return { ended, taken: { operation, given: taken.given, known: taken.known, resumed: taken.resumed } }
          }).pipe(Effect.scoped),
          settings
        )
      })
    )
    if (worked === undefined) return
    yield* PushRun.printReport([worked.ended], flags.json, ([told]) => ({ ...told, ...worked.taken }))
  })
).pipe(
  Command.withSubcommands([PushAfter.status, PushAfter.retry, PushAfter.exportRefused, PushAfter.release]),
  Command.withDescription("Write records to the source: each at most once, whatever is interrupted or repeated"),
  Command.withExamples([
    {
      command: "tributary push RESOURCE --from records.csv --dry-run",
      description: "What would be sent, and every mistake"
    },
    { command: "tributary push RESOURCE --from records.csv", description: "Create them; run again, it goes on" },
    { command: "tributary push RESOURCE --from changes.ndjson --update", description: "Change fields of records" },
    { command: 'tributary push RESOURCE --from "select ..." --json', description: "Rows of the warehouse" }
  ])
)

/**
 * `tributary push status`, `retry` and `export-refused`: what became of pushes, and what a person does about it.
 *
 * Promise: a file that is there already is never written over; what was refused is sent again only when it is asked for.
 */
import { Source } from "./Source.ts"
import { open, rm } from "node:fs/promises"
import { extname } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Counts, Operation, RejectedRow, Rows } from "../outbox/Push.ts"
import * as PushPause from "../outbox/PushPause.ts"
import * as RetryRejected from "../outbox/RetryRejected.ts"
import * as ExportRejected from "../outbox/ExportRejected.ts"
import * as Outbox from "../status/Outbox.ts"
import { config, configuration, json, reported } from "./Command.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import * as Output from "./Output.ts"
import * as PushText from "./PushText.ts"
import * as PushRun from "./PushRun.ts"
import * as Warehouse from "./Warehouse.ts"

export const status = Command.make(
  "status",
  {
    push: Argument.String("push").pipe(
      Argument.withDescription("The push's number (default: the newest ones, and the outbox)"),
      Argument.optional
    ),
    config,
    json
  },
  Effect.fn(function* (flags) {
    const { status, companies } = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        const push = yield* numberOf(flags.push)
        return yield* Warehouse.provide(
          Effect.gen(function* () {
            if (push !== null) yield* PushRun.pushOf(push)
            return { status: yield* Outbox.read(push), companies: settings.companies.map(({ name }) => name) }
          }),
          settings
        )
      })
    )
    if (flags.json) return yield* Output.print(Output.toJson(status))
    for (const line of PushText.statusLines(status, companies)) yield* Output.print(line)
  })
).pipe(
  Command.withDescription("Show what was pushed, what waits, what was refused and why"),
  Command.withExamples([
    { command: "tributary push status", description: "The newest pushes, the outbox, and requests under way" },
    { command: "tributary push status 3 --json", description: "One push, for a machine" }
  ])
)

export const release = Command.make(
  "release",
  { config, json },
  Effect.fn(function* (flags) {
    const held = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        return yield* Warehouse.provide(
          Effect.tap(PushPause.read, (reason) => (reason === null ? Effect.void : PushPause.release)),
          settings
        )
      })
    )
    if (flags.json) return yield* Output.print(Output.toJson({ released: held !== null, held }))
    yield* Output.print(held === null ? "No push was held" : `Pushes go on; they were held because ${held}`)
  })
).pipe(
  Command.withDescription("Let pushes go on that are held since the database was restored or the source was replaced"),
  Command.withExamples([
    { command: "tributary push release", description: "After you have compared what waits with the source" }
  ])
)

/** The number of a push, where one is given. */
const numberOf = Effect.fnUntraced(function* (given: Option.Option<string>) {
  if (Option.isNone(given)) return null
  if (/^\d{1,18}$/.test(given.value)) return BigInt(given.value)
  return yield* PushRun.usage(
    `a push has a number, and "${given.value}" is none; see them with npx tributary push status`
  )
})

/** A push by its number, or the rows of a resource that belong to none. */
const target = Argument.String("push").pipe(
  Argument.withDescription("A push's number, or a resource for the rows of tributary.outbox that belong to no push")
)

/** Rows that are meant, and to whom they go. */
interface Target {
  readonly rows: Rows
  readonly company: string
  readonly resource: string
  readonly known: number
}

const rowsOf = Effect.fnUntraced(function* (settings: Configuration, given: string, company: Option.Option<string>) {
  if (/^\d{1,18}$/.test(given)) {
    const push = yield* PushRun.pushOf(BigInt(given))
    return { ...push, rows: { push: push.push } } satisfies Target
  }
  const resource = yield* PushRun.resourceOf(settings, given)
  const named = Option.getOrNull(company)
  const { name } = yield* Effect.scoped(PushRun.companyOf(settings, named))
  return {
    rows: { company: name, resource: resource.path },
    company: name,
    resource: resource.path,
    known: 0
  } satisfies Target
})

const namedOf = ({ rows, company, resource }: Target): PushText.Named =>
  "push" in rows ? { push: rows.push } : { company, resource }

/**
 * Everything of which something waits, or was refused: pushes, and rows of no push. What the configuration does not name
 * can only be told of.
 */
const all = Effect.fnUntraced(function* (settings: Configuration, wanted: (counts: Counts) => boolean) {
  const { pushes, outbox } = yield* Outbox.read(null)
  const standing = [
    ...pushes.map((one) => ({ ...one, rows: { push: one.push } })),
    ...outbox.map((one) => ({ ...one, known: 0, rows: { company: one.company, resource: one.resource } }))
  ].filter(({ counts }) => wanted(counts))
  const { resources } = yield* catalogueOf(settings)
  const targets: Array<Target> = []
  for (const { rows, company, resource, known } of standing) {
    if (resources.has(resource) && settings.companies.some(({ name }) => name === company)) {
      targets.push({ rows, company, resource, known })
    } else yield* Output.note(`tributary: passed over ${resource} of ${company}: the configuration has no such thing`)
  }
  return targets
})

export const retry = Command.make(
  "retry",
  {
    push: target.pipe(Argument.optional),
    refused: Flag.Boolean("refused").pipe(
      Flag.withDescription("Send its refused records again: what they were refused for was mended at the source"),
      Flag.withDefault(false)
    ),
    company: PushRun.companyFlag,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const worked = yield* reported(
      Effect.gen(function* () {
        const settings = yield* configuration(flags.config)
        return yield* Warehouse.provide(
          Effect.gen(function* () {
            const targets = Option.isSome(flags.push)
              ? [yield* rowsOf(settings, flags.push.value, flags.company)]
              : yield* all(
                  settings,
                  ({ waiting, sending, refused }) => (flags.refused ? refused : waiting + sending) > 0
                )
            if (flags.refused && targets.length > 1) {
              const choices = targets.map((one) => PushText.argument(namedOf(one)))
              return yield* PushRun.usage(`say whose refused records are meant: ${choices.join(", ")}`)
            }
            return yield* Effect.forEach(targets, (one) =>
              Effect.gen(function* () {
                const company = yield* PushRun.companyOf(settings, one.company)
                const resource = yield* PushRun.resourceOf(settings, one.resource)
                const identity = yield* PushRun.identityOf(company)
                if (flags.refused) yield* putBack(one.rows)
                const { known } = one
                const named = namedOf(one)
                const options = { settings, company, resource, identity, known, named, rows: one.rows }
                return yield* PushRun.runPush({ ...options, knownOpen: PushRun.noneKnown, json: flags.json })
              }).pipe(Effect.scoped)
            )
          }),
          settings
        )
      })
    )
    if (worked.length === 0 && !flags.json) yield* Output.print("Nothing waits to be pushed.")
    yield* PushRun.printReport(worked, flags.json, (pushes) => ({ pushes }))
  })
).pipe(
  Command.withDescription("Go on with what waits: an unfinished push, or rows of the outbox"),
  Command.withExamples([
    { command: "tributary push retry", description: "Everything that waits" },
    { command: "tributary push retry 3 --refused", description: "The refused records of push 3 once more" }
  ])
)

const putBack = (rows: Rows) =>
  RetryRejected.retryRejected(rows).pipe(
    Effect.catchTag("PushSuperseded", (error) =>
      Effect.fail(PushRun.usage(`${error.message}: npx tributary push retry ${error.by}`))
    )
  )

// ------------------------------------------------------------------------------------------------- refused records

const operationFlag = (operation: Operation | undefined): string =>
  operation === undefined || operation === "create" ? "" : ` --${operation}`

/** Rows read together. */
const rowsPerRead = 1000

/** Every refused row, in the order of the numbers, some at a time. */
const eachRefused = <E, R>(rows: Rows, body: (refusals: ReadonlyArray<RejectedRow>) => Effect.Effect<unknown, E, R>) =>
  Effect.gen(function* () {
    for (let after = 0n; ;) {
      const refusals = yield* Outbox.rejectedRows(rows, after, rowsPerRead)
      if (refusals.length > 0) yield* body(refusals)
      const last = refusals.at(-1)
      if (last === undefined || refusals.length < rowsPerRead) return
      after = last.id
    }
  })

const fileFailed = (file: string) => (cause: unknown) =>
  PushRun.usage(
    cause instanceof Error && "code" in cause && cause.code === "EEXIST"
      ? `${file} is there already; name another file`
      : `${file} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`
  )

/** Writes them to a file that is not there yet; a file that could not be finished is removed. */
const writeRefused = Effect.fnUntraced(function* (rows: Rows, file: string, csv: boolean) {
  const { roles } = (yield* Source).catalogue.traits
  const names = new Set<string>()
  const lost = new Set<string>()
  if (csv) {
    yield* eachRefused(rows, (refusals) =>
      Effect.sync(() => {
        for (const members of refusals.map((one) => ExportRejected.membersOf(one, roles))) {
          for (const name of members.keys()) names.add(name)
          for (const name of ExportRejected.lostInCsv(members)) lost.add(name)
        }
      })
    )
    if (lost.size > 0) {
      return yield* PushRun.usage(
        `a cell cannot say what ${[...lost].join(", ")} held, which is nothing; write an .ndjson file`
      )
    }
  }
  const columns = ExportRejected.columnsOf(names)
  const operations = new Set<Operation>()
  let records = 0
  const attempt = <A>(act: () => Promise<A>) => Effect.tryPromise({ try: act, catch: fileFailed(file) })
  yield* Effect.acquireUseRelease(
    attempt(() => open(file, "wx")),
    (handle) =>
      Effect.gen(function* () {
        if (csv) yield* attempt(() => handle.appendFile(`${ExportRejected.csvHeader(columns)}\n`))
        yield* eachRefused(rows, (refusals) => {
          records += refusals.length
          for (const { operation } of refusals) operations.add(operation)
          const lines = refusals.map((one) =>
            csv
              ? ExportRejected.toCsv(ExportRejected.membersOf(one, roles), columns)
              : ExportRejected.toNdJson(one, roles)
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

export const exportRefused = Command.make(
  "export-refused",
  {
    push: target.pipe(Argument.optional),
    to: Flag.String("to").pipe(
      Flag.withDescription("The file to write, .ndjson or .csv; it must not be there yet"),
      Flag.withMetavar("FILE")
    ),
    company: PushRun.companyFlag,
    config,
    json
  },
  Effect.fn(function* (flags) {
    const written = yield* reported(
      Effect.gen(function* () {
        const kind = extname(flags.to).toLowerCase()
        if (kind !== ".ndjson" && kind !== ".jsonl" && kind !== ".csv") {
          return yield* PushRun.usage(`--to: expected a name that ends in .ndjson or .csv, not "${flags.to}"`)
        }
        const settings = yield* configuration(flags.config)
        return yield* Warehouse.provide(
          Effect.gen(function* () {
            const targets = Option.isSome(flags.push)
              ? [yield* rowsOf(settings, flags.push.value, flags.company)]
              : yield* all(settings, ({ refused }) => refused > 0)
            const [one, ...others] = targets
            if (one === undefined) return yield* PushRun.usage("no record was refused")
            if (others.length > 0) {
              const choices = targets.map((each) => PushText.argument(namedOf(each)))
              return yield* PushRun.usage(`say whose refused records are meant: ${choices.join(", ")}`)
            }
            return { resource: one.resource, ...(yield* writeRefused(one.rows, flags.to, kind === ".csv")) }
          }),
          settings
        )
      })
    )
    if (flags.json) return yield* Output.print(Output.toJson({ file: flags.to, ...written }))
    const { records, resource, operations } = written
    yield* Output.print(
      `${Output.count(records)} refused ${records === 1 ? "record is" : "records are"} in ${flags.to}`
    )
    yield* Output.print(
      operations.length > 1
        ? `  they are to be ${operations.map((operation) => PushText.done[operation]).join(" or ")}: a file is pushed with one of these`
        : `  what to do: correct them there, then: npx tributary push ${resource} --from ${flags.to}${operationFlag(operations[0])}`
    )
  })
).pipe(
  Command.withDescription("Write refused records to a file, each with the reason, to be corrected and pushed again"),
  Command.withExamples([
    {
      command: "tributary push export-refused 3 --to refused.ndjson",
      description: "Those of push 3, as lines of JSON"
    },
    { command: "tributary push export-refused 3 --to refused.csv", description: "For a spreadsheet" }
  ])
)

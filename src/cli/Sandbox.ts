/**
 * A sandbox: a reference server on this machine that has the records of companies of the warehouse.
 *
 * Promise: all records of the sandbox are of one moment. The real source gets no request.
 */
import * as Effect from "effect/Effect"
import { makeOwn } from "../budget/Budget.ts"
import { Budgets } from "../budget/Budgets.ts"
import * as Snapshot from "../close/Snapshot.ts"
import { resourcesStatement } from "../companies/Move.ts"
import type { Configuration } from "../configuration/Configuration.ts"
import type { Reference, ReferenceOptions } from "../connector/Demo.ts"
import * as Statement from "../postgres/Statement.ts"
import { companyIds } from "../tasks/TaskQueue.ts"
import type { AsOf } from "../warehouse/ReaderQuery.ts"
import * as SourceRecords from "../warehouse/SourceRecords.ts"
import { tableOf } from "../warehouse/Table.ts"
import * as WarehouseCatalogue from "../warehouse/WarehouseCatalogue.ts"
import { catalogueOf } from "./EffectiveCatalogue.ts"
import { CommandFailed, exitCode } from "./Exit.ts"
import * as Output from "./Output.ts"
import { companyOf, Source } from "./Source.ts"

/** A company in a sandbox. */
export interface SandboxCompany {
  readonly name: string
  readonly companyId: bigint
  readonly records: number
  /** Resources of which the warehouse has the company's records. */
  readonly resources: ReadonlyArray<string>
}

export interface Sandbox {
  readonly reference: Reference
  readonly companies: ReadonlyArray<SandboxCompany>
}

interface SandboxOptions {
  /** All companies of the warehouse where none is named. */
  readonly companies: ReadonlyArray<string>
  /** Default: now. */
  readonly at?: AsOf
  readonly server?: Partial<ReferenceOptions>
}

const chosenCompanies = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const stored = yield* companyIds
  const unknown = names.filter((name) => !stored.has(name))
  if (unknown.length > 0 || stored.size === 0) {
    return yield* new CommandFailed({
      code: exitCode.configuration,
      message:
        stored.size === 0
          ? "the warehouse has no company yet; run tributary sync first"
          : `the warehouse has no company ${unknown.join(", ")}; it has ${[...stored.keys()].sort().join(", ")}`
    })
  }
  return [...stored]
    .filter(([name]) => names.length === 0 || names.includes(name))
    .sort(([one], [other]) => one.localeCompare(other))
})

/** Resources that a company was read of, each with its table. */
const readResources = Effect.fnUntraced(function* (
  client: Parameters<typeof Snapshot.relationsOf>[0],
  settings: Configuration
) {
  const catalogue = yield* catalogueOf(settings)
  const resources = yield* WarehouseCatalogue.resources(catalogue, [...catalogue.resources.values()])
  const tables = resources.map((resource) => tableOf(resource, settings.datasets))
  const existing = yield* Snapshot.relationsOf(client, [settings.datasets.current])
  return tables.filter(({ name }) => existing.has(`${settings.datasets.current}.${name}`))
})

/** Starts the server and puts the records into it. It ends with the scope. */
export const start = Effect.fnUntraced(function* (settings: Configuration, { companies, at, server }: SandboxOptions) {
  const source = yield* Source
  const sandbox = yield* source.sandbox
  const chosen = yield* chosenCompanies(companies)
  const reference = yield* source.reference({
    port: 0,
    controlPort: 0,
    rows: undefined,
    seed: undefined,
    ...server,
    data: "empty"
  })
  const loaded = yield* Effect.gen(function* () {
    const client = yield* SourceRecords.open(at)
    const tables = yield* readResources(client, settings)
    return yield* Effect.forEach(chosen, ([name, companyId]) =>
      Effect.gen(function* () {
        // Resources that were never read of this company are unknown, not empty.
        const read = new Set((yield* Statement.run(resourcesStatement, [companyId])).map(({ resource }) => resource))
        let records = 0
        const resources: Array<string> = []
        for (const table of tables) {
          const { path } = table.resource
          const count = yield* sandbox.replace(
            reference,
            companyId,
            path,
            SourceRecords.read(client, table, companyId, at)
          )
          if (count === null) continue
          records += count
          if (read.has(path)) resources.push(path)
        }
        return { name, companyId, records, resources } satisfies SandboxCompany
      })
    )
  }).pipe(Effect.scoped)
  return { reference, companies: loaded } satisfies Sandbox
})

/** A connector to the sandbox, with a budget of its own. */
export const connect = Effect.fnUntraced(function* (
  settings: Configuration,
  { reference }: Pick<Sandbox, "reference">,
  { name, companyId }: Pick<SandboxCompany, "name" | "companyId">
) {
  const source = yield* Source
  const token = yield* Effect.flatMap(source.sandbox, ({ issueToken }) => issueToken(reference, companyId))
  const installation = { ...settings.installation, requestsPerMinute: null, pageSize: null }
  const company = companyOf({ name, installation, url: reference.baseUrl, token, companyId })
  return yield* source
    .connect(company, settings)
    .pipe(Effect.provideService(Budgets, { of: ({ pauseWaitMax }) => makeOwn(null, { pauseWaitMax }) }))
})

/** `3,289 records of company north`. */
export const describe = ({ name, records }: SandboxCompany): string =>
  `${Output.plural(records, "record")} of company ${name}`

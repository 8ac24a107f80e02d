/** The live processes of `tributary serve`, and the companies that each owns. */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Statement from "../postgres/Statement.ts"
import { bucketOf } from "../processes/Ownership.ts"

export const processesStatement = Statement.make({
  name: "read the live processes",
  columns: {
    processId: "text",
    ...Statement.columns("text?", "host"),
    pid: "int4?",
    startedAt: "timestamptz",
    heartbeatAt: "timestamptz",
    /** Milliseconds since its start, and since its heartbeat. */
    ...Statement.columns("float8", "ageMs", "silentMs")
  },
  text: `select process_id as "processId", host, pid, started_at as "startedAt", heartbeat_at as "heartbeatAt",
                (extract(epoch from now.at - started_at) * 1000)::float8 as "ageMs",
                (extract(epoch from now.at - heartbeat_at) * 1000)::float8 as "silentMs"
           from tributary.processes_alive, (select tributary.now() as at) now order by started_at, process_id`
})

export const ownersStatement = Statement.make({
  name: "read the owners of buckets",
  columns: { bucket: "int4", processId: "text", since: "timestamptz" },
  text: `select bucket, process_id as "processId", since from tributary.bucket_owners`
})

export interface OwnedCompany {
  readonly company: string
  readonly since: Date
}

export type Process = Statement.RowOf<typeof processesStatement> & {
  readonly companies: ReadonlyArray<OwnedCompany>
}

export interface ProcessesStatus {
  /** The longest running one first. */
  readonly processes: ReadonlyArray<Process>
  /** Companies that no live process owns. */
  readonly withoutOwner: ReadonlyArray<string>
}

/** Who owns these companies. */
export const read = (companies: ReadonlyArray<string>): Sql.Query<ProcessesStatus> =>
  Effect.gen(function* () {
    const alive = yield* Statement.run(processesStatement)
    const owners = new Map((yield* Statement.run(ownersStatement)).map((row) => [row.bucket, row]))
    const owned = companies.map((company) => ({ company, owner: owners.get(bucketOf(company)) }))
    return {
      processes: alive.map((process) => ({
        ...process,
        companies: owned.flatMap(({ company, owner }) =>
          owner?.processId === process.processId ? [{ company, since: owner.since }] : []
        )
      })),
      withoutOwner: owned.flatMap(({ company, owner }) =>
        alive.some(({ processId }) => processId === owner?.processId) ? [] : [company]
      )
    }
  })

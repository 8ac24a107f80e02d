/**
 * The processes of `tributary serve`: the live ones with the companies that each owns, and those of the last days with
 * their states.
 */
import * as Effect from "effect/Effect"
import type * as Sql from "../postgres/Sql.ts"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import { bucketOf } from "../processes/Ownership.ts"
import { ofLastHours } from "./Activity.ts"
import type { Lane } from "./Runs.ts"

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

const readOwners = Query.run(
  control.selectFrom("tributary.bucket_owners").select(["bucket", "process_id as processId", "since"])
)

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
    const owners = new Map((yield* readOwners).map((row) => [row.bucket, row]))
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

/** Processes that are listed, of those that lived within {@link listedDays}. */
export const listedMax = 30
export const listedDays = 7
/** Processes with the newest heartbeats, among which the listed ones are found. */
const newestMax = 300
/** The bucket whose owner does the work that one process does for all. */
const singletonBucket = 0

export const listStatement = Statement.make({
  name: "list the processes of the last days",
  params: ["text?"],
  columns: {
    processId: "text",
    /** A lost process sends no heartbeat although it did not stop in order. */
    state: Statement.as<"running" | "lost" | "stopped">("text"),
    host: "text?",
    pid: "int4?",
    startedAt: "timestamptz",
    heartbeatAt: "timestamptz",
    stoppedAt: "timestamptz?",
    /** The companies whose deliveries it receives. */
    receives: "int4",
    /** Of 256. */
    buckets: "int4",
    /** Whether it does the work that one process does for all. */
    isSingleton: "bool",
    /** The change endpoints to which it sends. */
    endpoints: "text[]"
  },
  text: `select p.process_id as "processId", case when a.process_id is not null then 'running' when p.stopped_at is null then 'lost'
                else 'stopped' end as state, p.host, p.pid, p.started_at as "startedAt", p.heartbeat_at as "heartbeatAt",
                p.stopped_at as "stoppedAt", cardinality(p.companies) as receives, coalesce(o.buckets, 0)::int as buckets,
                coalesce(o.is_singleton, false) as "isSingleton",
                array(select e.name from tributary.change_endpoints e
                       where e.process_id = p.process_id and e.leased_until > now.at order by 1) as endpoints
           from (select * from tributary.processes where process_id = $1
                 union all
                 (select * from tributary.processes
                   where $1::text is null and heartbeat_at > (select tributary.now() - interval '${listedDays} days')
                   order by heartbeat_at desc limit ${newestMax})) p
           cross join (select tributary.now() as at) now
           left join tributary.processes_alive a on a.process_id = p.process_id
           left join (select process_id, count(*) as buckets, bool_or(bucket = ${singletonBucket}) as is_singleton
                        from tributary.bucket_owners group by 1) o on o.process_id = p.process_id and a.process_id is not null
          order by a.process_id is null, greatest(p.stopped_at, p.heartbeat_at) desc, p.process_id limit ${listedMax}`
})
export type ListedProcess = Statement.RowOf<typeof listStatement>

/** The live processes first, then those that were alive last. */
export const list = Statement.run(listStatement, [null])

/** One process, also after it ended; null when it is not known. */
export const one = (processId: string): Sql.Query<ListedProcess | null> =>
  Effect.map(Statement.run(listStatement, [processId]), ([row]) => row ?? null)

/** Runs in progress that are read. */
export const runningMax = 200

export const runningStatement = Statement.make({
  name: "read the runs in progress",
  columns: {
    id: "int8",
    companyId: "int8",
    company: "text?",
    resource: "text",
    lane: Statement.as<Lane>("text"),
    startedAt: "timestamptz",
    ...Statement.columns("float8", "pages", "records")
  },
  text: `select r.id, r.company_id as "companyId", c.company, r.resource, r.lane, r.started_at as "startedAt", r.pages::float8 as pages,
                r.records::float8 as records
           from (select * from tributary.runs where status = 'running' order by id desc limit ${runningMax}) r
           left join tributary.companies c on c.company_id = r.company_id
          order by r.id desc`
})
export type RunningRun = Statement.RowOf<typeof runningStatement>

/** The newest runs in progress, at most {@link runningMax}. */
export const running = Statement.run(runningStatement)

export const startsStatement = Statement.make({
  name: "read the starts of processes by hour",
  params: ["timestamptz"],
  columns: { hoursAgo: "int4", starts: "float8" },
  text: `select (extract(epoch from date_trunc('hour', $1::timestamptz, 'UTC') - at) / 3600)::int as "hoursAgo",
                sum(process_starts)::float8 as starts
           from tributary.activity
          where resolution = 'hour' and company is null and process_starts > 0
            and ${ofLastHours(24, "$1::timestamptz")}
          group by 1 order by 1`
})

/** Starts in each of the last 24 hours of the clock, the current one included; hours without any are absent. */
export const starts = (now: Date) => Statement.run(startsStatement, [now])

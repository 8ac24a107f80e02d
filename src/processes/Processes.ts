/** The processes of `tributary serve`, and when each last proved that it can store deliveries: `tributary.processes`. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Statement from "../postgres/Statement.ts"

/** A new name of a process, which no other process has. */
export const makeId: Effect.Effect<string> = Effect.gen(function* () {
  const parts = [yield* Random.nextInt, yield* Random.nextInt]
  return parts.map((part) => Math.abs(part).toString(36)).join("-")
})

export const heartbeatStatement = Statement.make({
  name: "store the heartbeat of a process",
  params: ["text", "jsonb", "text?", "int4?", "int8?"],
  text: `insert into tributary.processes as p (process_id, companies, host, pid, company_revision)
     select $1, array(select jsonb_array_elements_text($2::jsonb)), $3::text, $4::int, $5::bigint
     on conflict (process_id) do update
        set companies = excluded.companies, host = excluded.host, pid = excluded.pid,
            company_revision = excluded.company_revision, heartbeat_at = excluded.heartbeat_at, stopped_at = null,
            started_at = case when p.stopped_at is null then p.started_at else excluded.started_at end`
})

/** Where a process runs, and which revision of the companies it has applied. */
export interface ProcessDetails {
  readonly host: string
  readonly pid: number
  readonly companyRevision: bigint
}

/** The process has just proved that it can store deliveries for these companies. It repeats this every 20 s or so. */
export const heartbeat = (processId: string, companies: ReadonlyArray<string>, details?: ProcessDetails) =>
  Statement.run(heartbeatStatement, [
    processId,
    JSON.stringify(companies),
    details?.host ?? null,
    details?.pid ?? null,
    details?.companyRevision ?? null
  ])

export const deregisterStatement = Statement.make({
  name: "deregister a process",
  params: ["text"],
  text: `with released as (delete from tributary.bucket_owners where process_id = $1)
         update tributary.processes set stopped_at = tributary.now() where process_id = $1`
})

/** The process stops on purpose. */
export const deregister = (processId: string) => Statement.run(deregisterStatement, [processId])

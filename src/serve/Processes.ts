/** The processes of `tributary serve`, and when each last proved that it can store deliveries: `tributary.processes`. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

const execute = (text: string, values: ReadonlyArray<unknown>): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.asVoid(sql.unsafe(text, values)))

/** The process has just proved that it can store deliveries for these companies. It repeats this every 20 s or so. */
export const heartbeat = (processId: string, companies: ReadonlyArray<string>) =>
  execute(
    `insert into tributary.processes as p (process_id, companies)
     select $1, array(select jsonb_array_elements_text($2::jsonb))
     on conflict (process_id) do update
        set companies = excluded.companies, heartbeat_at = excluded.heartbeat_at, stopped_at = null,
            started_at = case when p.stopped_at is null then p.started_at else excluded.started_at end`,
    [processId, JSON.stringify(companies)]
  )

/** The process stops on purpose. */
export const deregister = (processId: string) =>
  execute("update tributary.processes set stopped_at = tributary.now() where process_id = $1", [processId])

/** The processes of `tributary serve`, and when each last proved that it can store deliveries: `tributary.receivers`. */
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

const execute = (text: string, values: ReadonlyArray<unknown>): Effect.Effect<void, SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.asVoid(sql.unsafe(text, values)))

/** The process has just proved that it can store deliveries for these companies. It repeats this every 20 s or so. */
export const heartbeat = (processId: string, companies: ReadonlyArray<string>) =>
  execute(
    `insert into tributary.receivers as r (instance, companies)
     select $1, array(select jsonb_array_elements_text($2::jsonb))
     on conflict (instance) do update
        set companies = excluded.companies, alive_at = excluded.alive_at, ended_at = null,
            began_at = case when r.ended_at is null then r.began_at else excluded.began_at end`,
    [processId, JSON.stringify(companies)]
  )

/** The process stops on purpose. */
export const deregister = (processId: string) =>
  execute("update tributary.receivers set ended_at = tributary.now() where instance = $1", [processId])

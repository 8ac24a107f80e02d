/** Metrics of alerts: the conditions that have started, and the messages that are not sent. */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import * as Statement from "../postgres/Statement.ts"
import { control } from "../postgres/Tables.ts"
import * as Metrics from "./Metrics.ts"

const countConditions = Query.first(
  control
    .selectFrom("tributary.alert_conditions")
    .select((of) => of.fn.countAll<bigint>().as("conditions"))
    .where("started_at", "is not", null)
)

export const messagesStatement = Statement.make({
  name: "count the messages of alerts that are not sent",
  params: ["text[]"],
  columns: { route: "text", state: "text", messages: "float8" },
  text: `select r.route, s.state,
         case s.state
           when 'waiting' then (select count(*) from tributary.alert_messages m
                                 where m.route = r.route and m.state in ('pending', 'sending'))
           else (select count(*) from tributary.alert_messages m
                  where m.route = r.route and m.state = s.state and m.resolved_at > (select tributary.now() - interval '1 day'))
         end::float8 as messages
    from unnest($1::text[]) as r(route) cross join unnest(array['waiting', 'failed', 'uncertain']) as s(state)
   order by r.route, s.state`
})

/** The metrics of alerts on these routes. */
export const make = (routes: ReadonlyArray<string>) =>
  Metrics.cached(
    Effect.gen(function* () {
      const row = yield* countConditions
      const messages = yield* Statement.run(messagesStatement, [routes])
      return [
        Metrics.gauge("tributary_alert_conditions", "Conditions of alerts that have started and not ended.", [
          { value: Number(row!.conditions) }
        ]),
        Metrics.gauge(
          "tributary_alert_messages",
          "Messages of alerts by route: waiting to be sent, or given up within a day (failed, uncertain).",
          messages.map(({ route, state, messages: value }) => ({ labels: { route, state }, value }))
        )
      ]
    })
  )

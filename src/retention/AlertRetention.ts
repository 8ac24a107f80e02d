/** Retention of alert messages and silences. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Statement from "../postgres/Statement.ts"
import { batches, batchRows, cutoff, deletesOld } from "./Batches.ts"

/** With the dead letters. A message shows that its condition was announced, so that it stays until the condition has ended. */
export const removeMessagesStatement = Statement.make({
  ...deletesOld,
  name: "delete old messages of alerts",
  text: `delete from tributary.alert_messages where id = any(array(
    select m.id from tributary.alert_messages m where m.at < $1::timestamptz
       and not exists (select from tributary.alert_conditions c where c.id = m.condition)
     order by m.at limit ${batchRows} for update skip locked)) returning id`
})

export const removeSilencesStatement = Statement.make({
  ...deletesOld,
  name: "delete old silences",
  text: "delete from tributary.alert_silences where until < $1::timestamptz returning id"
})

/** Deletes messages of ended conditions and ended silences that are older than `retention`. Returns the number of messages. */
export const remove = Effect.fnUntraced(function* (retention: Duration.Duration) {
  const before = yield* cutoff(retention)
  yield* Statement.run(removeSilencesStatement, [before])
  return yield* batches(Statement.run(removeMessagesStatement, [before]))
})

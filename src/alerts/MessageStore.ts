/**
 * The messages of alerts: the feed of the alert routes, which an evaluation writes.
 *
 * Promise: messages that were once sent together stay together, so that each attempt has the same idempotency key.
 */
import * as Effect from "effect/Effect"
import * as Query from "../postgres/Query.ts"
import { control } from "../postgres/Tables.ts"
import type { Kind } from "../status/ProblemKinds.ts"

/** The kind, for the types: a person can ask for a test of a route. */
interface Kinds {
  readonly kind: Kind | "test"
}

/** Messages, and the rows of those that their route has not accepted. */
const messages = control
  .selectFrom("tributary.alert_messages as m")
  .leftJoin("tributary.change_retries as r", "r.alert_message", "m.id")
  .select([
    "m.id",
    "m.event",
    "m.kind",
    "m.company",
    "m.subject",
    "m.severity",
    "m.since",
    "m.at",
    "m.what",
    "m.remedy"
  ])
  .$narrowType<Kinds>()

/** The newest messages of all routes. */
export const readHistory = (messagesMax: number) =>
  Query.run(
    messages
      .leftJoin("tributary.change_endpoints as e", "e.name", "m.endpoint")
      .select(["m.route", "m.due_at as dueAt", "r.attempts", "r.error"])
      .select((of) =>
        of
          .case()
          .when("r.state", "is not", null)
          .then(of.ref("r.state").$notNull())
          .when("m.id", "<=", of.ref("e.last_position"))
          .then("sent" as const)
          .else("waiting" as const)
          .end()
          .as("state")
      )
      .orderBy("m.id", "desc")
      .limit(messagesMax)
  )
export type HistoryMessage = Effect.Success<ReturnType<typeof readHistory>>[number]

/** Messages of a route that are read at a time. */
export const openMax = 1_000

/** The messages of a route after the position, and those that wait or have an unknown outcome. They stay until the commit. */
export const lockOpen = (endpoint: string, position: bigint) =>
  Query.run(
    messages
      .select(["m.id as position", "m.condition as recordId", "m.batch", "r.state"])
      .select((of) => [
        of.cast<bigint>(of.val("0"), "bigint").as("companyId"),
        of.cast<string>(of.val("alerts"), "text").as("resource"),
        of.fn.coalesce("r.attempts", of.lit(0)).as("attempts"),
        Query.epochMs(of.ref("r.failed_at")).as("failedMs"),
        Query.epochMs(of.fn.coalesce("r.next_attempt_at", "m.due_at")).as("nextAttemptMs")
      ])
      .where("m.endpoint", "=", endpoint)
      .where((is) => is.or([is("m.id", ">", position), is("r.state", "in", ["waiting", "sending"])]))
      .orderBy("m.id")
      .limit(openMax)
      .forUpdate("m")
  )
export type OpenMessage = Effect.Success<ReturnType<typeof lockOpen>>[number]
export type AlertMessage = Pick<
  OpenMessage,
  "id" | "event" | "kind" | "company" | "subject" | "severity" | "since" | "at" | "what" | "remedy"
>

/** Binds messages together that are sent for the first time. */
export const bind = (next: ReadonlyArray<OpenMessage>) =>
  next[0] === undefined || next[0].batch !== null
    ? Effect.void
    : Query.run(
        control
          .updateTable("tributary.alert_messages")
          .set({ batch: next[0].id })
          .where("id", "=", Query.anyOf(next.map(({ id }) => id)))
      )

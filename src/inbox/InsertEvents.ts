/** The statement that inserts events into the inbox. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Client } from "../postgres/driver/Connection.ts"
import * as BinaryArray from "../postgres/driver/BinaryArray.ts"
import { DatabaseError } from "../postgres/DatabaseError.ts"
import * as Statement from "../postgres/Statement.ts"

/** An event of a genuine delivery. */
export interface NewEvent {
  /** The company's name in the configuration. */
  readonly company: string
  readonly eventId: string
  readonly eventType: string
  readonly resource: string | null
  readonly recordId: string | null
  readonly stamp: string | null
  /** RFC 3339 in UTC. */
  readonly occurredAt: string | null
  /** The time in the signature of the attempt, in seconds since 1970. */
  readonly sentAt: number
  /** The bytes of the body, as received. */
  readonly body: Uint8Array
}

export const keyOf = ({ company, eventId }: InsertedRow): string => `${company}\n${eventId}`

/**
 * A commit that is answered is on disk: no session of this program has `synchronous_commit` off (`SessionSettings.ts`). Under
 * another revision of the privacy rules than the process knows, no body is stored: the event says which record to read.
 */
export const insertStatement = Statement.named({
  name: "store events",
  params: {
    ...Statement.columns("text[]", "companies", "eventIds", "eventTypes", "resources", "recordIds", "stamps"),
    ...Statement.columns("text[]", "occurredAt", "sentAt"),
    bodies: "bytea[]",
    rules: "int8?"
  },
  columns: { company: "text", eventId: "text" },
  text: (at) => `with rules as materialized (select tributary.rules_revision() as revision)
         insert into tributary.inbox
           (company, event_id, event_type, resource, record_id, record_modified_at, occurred_at, sent_at, body)
         select company, event_id, event_type, resource, record_id, stamp, occurred_at::timestamptz,
                to_timestamp(sent_at::float8), case when rules.revision = ${at.rules} then body else '{}' end
           from rules, unnest(${at.companies}::text[], ${at.eventIds}::text[], ${at.eventTypes}::text[],
                  ${at.resources}::text[], ${at.recordIds}::text[], ${at.stamps}::text[], ${at.occurredAt}::text[],
                  ${at.sentAt}::text[], ${at.bodies}::bytea[])
             as given (company, event_id, event_type, resource, record_id, stamp, occurred_at, sent_at, body)
         on conflict (company, event_id) do nothing
         returning company, event_id as "eventId"`
})

/** The key of an event that was inserted. */
export type InsertedRow = Statement.RowOf<typeof insertStatement>

/** Inserts events, and returns those that are new. `rules` is the revision of the privacy rules that the bodies follow. */
export const insertEvents = (
  client: Client,
  events: ReadonlyArray<NewEvent>,
  rules: bigint | null
): Effect.Effect<ReadonlyArray<InsertedRow>, DatabaseError> =>
  Effect.tryPromise({
    try: async () => {
      const texts = (of: (event: NewEvent) => string | null) => BinaryArray.texts(events, of)
      const values = insertStatement.values({
        companies: texts((event) => event.company),
        eventIds: texts((event) => event.eventId),
        eventTypes: texts((event) => event.eventType),
        resources: texts((event) => event.resource),
        recordIds: texts((event) => event.recordId),
        stamps: texts((event) => event.stamp),
        occurredAt: texts((event) => event.occurredAt),
        sentAt: texts((event) => String(event.sentAt)),
        bodies: BinaryArray.bytes(events, (event) => event.body),
        rules
      })
      const { rows } = await client.query<InsertedRow>({ name: "inbox", text: insertStatement.text }, [...values])
      return rows
    },
    catch: DatabaseError.from(insertStatement.name)
  })

/** Whether the values of an event cause the error: the statement may succeed without them. */
export const isAboutValues = ({ code }: DatabaseError): boolean =>
  code !== undefined && /^(?:22|23|54)[0-9A-Z]{3}$/.test(code)

const timedOutCode = "ETIMEDOUT"

export const timedOut = (after: Duration.Duration) =>
  new DatabaseError({
    operation: insertStatement.name,
    code: timedOutCode,
    message: `the warehouse did not answer within ${Duration.toSeconds(after)} s`,
    isRetryable: false
  })

export const isTimeout = ({ code }: DatabaseError): boolean => code === timedOutCode

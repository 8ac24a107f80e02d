/** Schemas of the webhook endpoints (WEBHOOK-01..WEBHOOK-19, LOG-01..LOG-07, H-11, H-14). */
import type { Catalogue } from "../../../../src/catalogue/Catalogue.ts"
import { eventNames } from "../../catalogue/events.ts"
import { limits } from "../../catalogue/limits.ts"
import type { Schema } from "./Schema.ts"
import { arrayOf, exactly, nullable } from "./Schema.ts"
import { recordId, shownInstant } from "./values.ts"

const url: Schema = { type: "string", minLength: 1, maxLength: limits.webhookUrlLengthMax }
const description: Schema = { type: ["string", "null"], maxLength: limits.webhookDescriptionLengthMax }
const count: Schema = { type: "integer", minimum: 0 }

const shownProperties = (events: Schema): Readonly<Record<string, Schema>> => ({
  id: { ...recordId, readOnly: true },
  url,
  events: arrayOf(events, { minItems: 1 }),
  description,
  paused: { type: "boolean", description: "events that fire meanwhile are dropped" },
  failcount: { ...count, readOnly: true, description: "failed attempts in a row" },
  lastdeliverydate: { ...nullable(shownInstant), readOnly: true },
  disableddate: { ...nullable(shownInstant), readOnly: true, description: "set when delivery was given up" },
  cancel: { type: "boolean" }
})

const ignored: Schema = { description: "read-only: a value sent for it is accepted and ignored" }

const sent = (events: Schema): Readonly<Record<string, Schema>> => ({
  id: ignored,
  failcount: ignored,
  lastdeliverydate: ignored,
  disableddate: ignored,
  cancel: ignored,
  url: { ...url, pattern: "^[\\s]*[Hh][Tt][Tt][Pp][Ss]:", description: "must be https" },
  events: arrayOf(events, { minItems: 1, description: "by name; * is refused" }),
  description,
  paused: { type: "boolean" },
  enabled: { type: "boolean", description: "true revives a disabled subscription; never shown" }
})

export const subscriptionSchemas = (catalogue: Catalogue): Readonly<Record<string, Schema>> => {
  const events: Schema = { type: "string", enum: eventNames(catalogue) }
  const shown = shownProperties(events)
  const writable = ["url", "events", "description", "paused", "enabled", "secret"]
  return {
    webhooks: { ...exactly(shown), "x-basis": "documented" },
    webhooks_created: {
      ...exactly({
        ...shown,
        secret: {
          type: "string",
          minLength: 1,
          description: "deliveries are signed with it; shown here and never again"
        },
        secret_note: { type: "string" }
      }),
      "x-basis": "documented"
    },
    webhooks_create: { ...exactly(sent(events), ["url", "events"]), "x-basis": "documented" },
    webhooks_update: {
      ...exactly(
        {
          ...sent(events),
          secret: { type: "string", minLength: 16, maxLength: 255, description: "rotates the secret" }
        },
        []
      ),
      anyOf: writable.map((name) => ({ required: [name] })),
      "x-basis": "documented"
    },
    webhooks_test: {
      ...exactly({
        eventid: { type: "string", minLength: 1 },
        responsecode: { type: ["integer", "null"], minimum: 100, maximum: 999 },
        responsebody: { type: "string" },
        durationms: count,
        delivered: { type: "boolean" }
      }),
      "x-basis": "inferred"
    },
    webhooks_delivery: {
      ...exactly({
        eventid: { type: "string", minLength: 1 },
        eventtype: events,
        attempts: { type: "integer", minimum: 1 },
        delivered: { type: "boolean" },
        abandoned: { type: "boolean" },
        responsecode: { type: ["integer", "null"], minimum: 100, maximum: 999 },
        responsebody: { type: "string" },
        durationms: count,
        entrydate: shownInstant
      }),
      "x-basis": "documented"
    }
  }
}

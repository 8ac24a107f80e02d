/** Control calls for records: direct writes, removal, the current state and the history. */
import * as Schema from "effect/Schema"
import { anyObject, company, ControlError, field, instant, optional, resource, whole } from "../Input.ts"
import { putRecords, tableOf } from "../records.ts"
import { jsonAnswer, jsonOf, linesOf, route, streamAnswer, textAnswer } from "../Route.ts"
import { readHistory, readState } from "../truth.ts"

const record = anyObject.annotate({ description: "the record as a list shows it" })
const unknownResource = "There is no such resource."

/** The first salesman of `demo`. */
const dana = {
  id: 1,
  name: "Dana Whitfield",
  salesman: true,
  servicerep: false,
  commissionrate: "2.500",
  email1: "dana@example.com",
  phone1: "555-0110",
  cancel: false,
  externalid: null,
  lastchangedate: "2025-10-17T08:59:00.000000Z"
}

const put = route({
  method: "POST",
  path: "/records",
  summary: "Writes versions of records directly to the store.",
  description:
    "No rule applies and no event fires. Values are stored verbatim, also unknown fields and number tokens. Fields that are left out keep their values in an existing record.",
  input: Schema.Struct({
    company,
    resource,
    records: field(
      Schema.Array(anyObject),
      "an array of objects",
      "records with their `id`, or without it for the next one"
    ),
    at: optional(instant, "RFC 3339 in UTC", "lastchangedate, and entrydate of new records; default: the server's time")
  }),
  exact: ["records"],
  output: jsonOf(Schema.Struct({ records: Schema.Array(record).annotate({ description: "the records as stored" }) })),
  example: {
    input: {
      company: 1,
      resource: "salesmen",
      records: [{ id: 9001, name: "Ann" }],
      at: "2026-01-31T23:59:59Z"
    },
    output: {
      records: [
        {
          id: 9001,
          name: "Ann",
          salesman: null,
          servicerep: null,
          commissionrate: null,
          email1: null,
          phone1: null,
          cancel: false,
          externalid: null,
          lastchangedate: "2026-01-31T23:59:59.000000Z"
        }
      ]
    }
  },
  errors: [unknownResource, "The id of a record is not a whole number from 1 to 9000000000000000."],
  answer: ({ world, input }) => textAnswer(putRecords(world, input))
})

const remove = route({
  method: "POST",
  path: "/remove",
  summary: "Removes a record without trace.",
  description: "Only the history shows it. No event fires.",
  input: Schema.Struct({
    company,
    resource,
    id: field(whole(1), "a whole number from 1", "the id of the record")
  }),
  output: jsonOf(Schema.Struct({ removed: Schema.Literal(true) })),
  example: { input: { company: 1, resource: "salesmen", id: 9001 }, output: { removed: true } },
  errors: [unknownResource, "The company has no such record."],
  answer: ({ world, input: { company, resource, id } }) => {
    const table = tableOf(world, company, resource)
    if (table.get(id) === undefined) throw new ControlError(`id: company ${company} has no ${resource} ${id}`)
    world.store.transact(() => world.store.remove(table, id))
    return jsonAnswer({ removed: true })
  }
})

const companyParameter = Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1))
const companyNumber = "a whole number from 1"

const history = route({
  method: "GET",
  path: "/history",
  summary: "Lists every committed version, in the order of the commits.",
  description: "One JSON object a line. A removal is `delete` with the last version.",
  parameters: Schema.Struct({
    company: optional(companyParameter, companyNumber, "the company; default: all. Shared records belong to each"),
    resource: optional(Schema.String, "the path of a resource", "the path of a resource; default: all")
  }),
  output: linesOf(
    Schema.Struct({
      seq: Schema.Int.annotate({ description: "increases with each commit" }),
      op: Schema.Literals(["insert", "update", "delete"]),
      company: Schema.Int,
      resource: Schema.String,
      id: Schema.Int,
      version: Schema.Int,
      at: Schema.String.annotate({ description: "the time of the commit", format: "date-time" }),
      record
    })
  ),
  example: {
    parameters: { company: 1, resource: "salesmen" },
    output: {
      seq: 76,
      op: "insert",
      company: 1,
      resource: "salesmen",
      id: 1,
      version: 1,
      at: "2025-10-17T08:59:00.000000Z",
      record: dana
    }
  },
  errors: [unknownResource],
  answer: ({ world, parameters }) => streamAnswer(readHistory(world, parameters))
})

const state = route({
  method: "GET",
  path: "/state",
  summary: "Lists the current records of a resource, cancelled ones included.",
  description: "One record a line, by id, exactly as a list shows it.",
  parameters: Schema.Struct({
    company: field(companyParameter, companyNumber, "the company"),
    resource,
    include: optional(Schema.Literal("custom_fields"), "custom_fields", "adds `custom_fields`, as in a list")
  }),
  output: linesOf(record),
  example: { parameters: { company: 1, resource: "salesmen" }, output: dana },
  errors: [unknownResource],
  answer: ({ world, parameters }) => streamAnswer(readState(world, parameters))
})

export const recordRoutes = [put, remove, history, state]

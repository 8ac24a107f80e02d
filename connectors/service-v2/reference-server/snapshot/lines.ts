/**
 * The lines of a snapshot file: one JSON object a line, in the order of {@link kinds}.
 *
 * Promise: the same state gives the same bytes, and a file that was read gives its own bytes again. A time is RFC 3339 in
 * UTC; it is a number of microseconds since 1970 only where the text would not be exact. The first line names the format
 * and its version, the last one counts the lines, so that a file that was cut is refused.
 */
import * as Schema from "effect/Schema"
import { faultKinds } from "../http/faults.ts"
import { anyObject, field, instant, whole } from "../control/Input.ts"
import { limitFields, switches } from "../control/settingForms.ts"
import { printInstant, readInstant } from "../time.ts"

export const format = "tributary-reference-server"
export const formatVersion = 1

export const printTime = (micros: number): string | number => {
  const text = printInstant(micros)
  return readInstant(text) === micros ? text : micros
}

export const readTime = (time: string | number): number => (typeof time === "number" ? time : readInstant(time)!)

export const readTimeOrNull = (time: string | number | null): number | null => (time === null ? null : readTime(time))

/** A whole number that may be too large to be exact: a time after the year 2255. */
const large = Schema.Finite.check(Schema.makeFilter((given: number) => Number.isInteger(given)))

const time = Schema.Union([instant, large])
const timeText = "RFC 3339 in UTC, or whole microseconds since 1970"
const at = (description: string) => field(time, timeText, description)
const atOrNull = (description: string) => field(Schema.NullOr(time), `${timeText}, or null`, description)
const text = (description: string) => field(Schema.String, "a string", description)
const textOrNull = (description: string) => field(Schema.NullOr(Schema.String), "a string or null", description)
const flag = (description: string) => field(Schema.Boolean, "true or false", description)
const number = (minimum: number, description: string) =>
  field(whole(minimum), `a whole number from ${minimum}`, description)
const texts = (description: string) => field(Schema.Array(Schema.String), "an array of strings", description)
const headers = field(Schema.Record(Schema.String, Schema.String), "an object of strings", "headers by name")

/** A base64 text that decodes to the same text again. */
const base64 = (description: string) =>
  field(
    Schema.String.check(
      Schema.makeFilter((given: string) => Buffer.from(given, "base64").toString("base64") === given)
    ),
    "base64",
    description
  )

const isPattern = (source: string) => {
  try {
    return new RegExp(source).source === source
  } catch {
    return false
  }
}

const pairs = field(
  Schema.optionalKey(Schema.Array(Schema.Tuple([Schema.String, Schema.Unknown]))),
  "an array of pairs",
  "names and JSON values, in their order"
)

export const forms = {
  clock: Schema.Struct({
    kind: Schema.Literal("clock"),
    stopped: atOrNull("where the clock is stopped; null while it runs"),
    offset: field(large, "a whole number", "microseconds ahead of the machine's clock while it runs")
  }),
  server: Schema.Struct({
    kind: Schema.Literal("server"),
    random: number(0, "the seed of the rest of the random numbers"),
    faultRandom: number(0, "the seed of the rest of the random numbers of faults"),
    requests: number(0, "answered requests"),
    seq: number(0, "the last position in the order of commits"),
    stamp: at("the last stamp of a commit"),
    cycle: at("when the next delivery cycle is due"),
    fired: number(0, "events that have fired"),
    attempts: number(0, "the number of the last delivery attempt"),
    outageUntil: atOrNull("receivers cannot be reached before; null means that they can")
  }),
  dialect: Schema.Struct({ kind: Schema.Literal("dialect"), ...switches }),
  limits: Schema.Struct({ kind: Schema.Literal("limits"), ...limitFields }),
  company: Schema.Struct({
    kind: Schema.Literal("company"),
    company: number(1, "the number of the company"),
    unlicensed: texts("modules that are not licensed"),
    recordLimits: field(
      Schema.Record(Schema.String, whole(0)),
      "an object of resources and numbers",
      "allowed records"
    ),
    closedThrough: textOrNull("the last closed day; null means none")
  }),
  next: Schema.Struct({
    kind: Schema.Literal("next"),
    resource: text("the path of a resource"),
    id: number(1, "the id of its next record")
  }),
  sequence: Schema.Struct({
    kind: Schema.Literal("sequence"),
    name: text("the name of a sequence of numbers"),
    last: number(1, "its last number")
  }),
  trust: Schema.Struct({ kind: Schema.Literal("trust"), pem: text("a certificate that deliveries trust, as PEM") }),
  token: Schema.Struct({
    kind: Schema.Literal("token"),
    id: number(1, "its number"),
    sha256: base64("the SHA-256 of the token's text"),
    company: number(1, "its company"),
    usercompany: number(1, "the company in which its user is a supervisor"),
    userid: number(1, "its user"),
    login: text("the login of its user"),
    scopes: texts("its scopes"),
    supervisor: flag("whether its user is a supervisor"),
    active: flag("whether its user is active"),
    expires: atOrNull("when it expires; null means never"),
    revoked: flag("whether it is revoked"),
    lastused: atOrNull("when it was last used"),
    lastaddress: textOrNull("the address that last used it")
  }),
  rate: Schema.Struct({
    kind: Schema.Literal("rate"),
    key: text("the counter of the request limit"),
    times: field(Schema.Array(time), `an array: ${timeText}`, "the times of the counted requests")
  }),
  fault: Schema.Struct({
    kind: Schema.Literal("fault"),
    fault: field(Schema.Literals(faultKinds), `one of ${faultKinds.join(", ")}`, "the kind of the fault"),
    method: textOrNull("only this method"),
    path: field(
      Schema.NullOr(Schema.String.check(Schema.makeFilter(isPattern))),
      "a regular expression or null",
      "only paths that it matches"
    ),
    after: number(0, "matching requests that it skips"),
    times: field(Schema.NullOr(whole(0)), "a whole number from 0, or null", "maximum number of uses"),
    rate: field(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })), "from 0 to 1", "its probability"),
    status: field(Schema.NullOr(Schema.Int), "a whole number or null", "the status of the answer"),
    code: textOrNull("the error code of the answer"),
    headers: field(
      Schema.NullOr(Schema.Record(Schema.String, Schema.String)),
      "an object of strings or null",
      "headers"
    ),
    body: textOrNull("the body of the answer"),
    ms: number(0, "milliseconds"),
    bytes: field(Schema.NullOr(whole(0)), "a whole number from 0, or null", "bytes"),
    seen: number(0, "matching requests so far"),
    fired: number(0, "uses so far")
  }),
  subscription: Schema.Struct({
    kind: Schema.Literal("subscription"),
    id: number(1, "its id"),
    token: number(1, "the number of the token that made it"),
    url: text("the address of the receiver"),
    events: texts("the types of its events"),
    description: textOrNull("its description"),
    paused: flag("whether it is paused"),
    failcount: number(0, "failed attempts in a row"),
    lastDelivery: atOrNull("the last acknowledged delivery"),
    disabled: atOrNull("when it was disabled; null while it is enabled"),
    cancelled: flag("whether it is cancelled"),
    secret: text("the secret that signs its deliveries"),
    previousSecret: textOrNull("the secret before the last rotation"),
    previousUntil: atOrNull("until when the previous secret signs too")
  }),
  event: Schema.Struct({
    kind: Schema.Literal("event"),
    subscription: number(1, "the id of its subscription"),
    id: text("its id"),
    type: text("its type"),
    scope: textOrNull("the scope that the token needs"),
    attempts: number(0, "attempts so far"),
    state: field(
      Schema.Literals(["waiting", "delivered", "abandoned", "dropped"]),
      "waiting, delivered, abandoned or dropped",
      "the waiting ones are the queue, in this order"
    ),
    settled: atOrNull("when it left the queue"),
    body: text("the body that is sent")
  }),
  attempt: Schema.Struct({
    kind: Schema.Literal("attempt"),
    seq: number(1, "its number"),
    subscription: number(1, "the id of the subscription"),
    event: text("the id of the event"),
    attempt: number(1, "which attempt of the event"),
    at: at("when it began"),
    url: text("the address of the receiver"),
    headers,
    delivered: flag("whether it was acknowledged"),
    abandoned: flag("whether it was the last one"),
    status: field(Schema.NullOr(Schema.Int), "a whole number or null", "the status of the receiver's answer"),
    body: base64("the beginning of the receiver's answer"),
    durationms: number(0, "its duration"),
    failure: textOrNull("why no answer arrived"),
    logs: field(
      Schema.Literals(["both", "server", "subscription"]),
      "both, server or subscription",
      "the logs that show it: the control plane's, the subscription's"
    )
  }),
  answer: Schema.Struct({
    kind: Schema.Literal("answer"),
    key: text("the number of the token and its Idempotency-Key"),
    fingerprint: text("the hash of the request"),
    at: at("when it was stored"),
    status: number(100, "its status"),
    headers,
    body: text("its body")
  }),
  change: Schema.Struct({
    kind: Schema.Literal("change"),
    seq: number(1, "its position in the order of commits"),
    op: field(Schema.Literals(["insert", "update", "delete"]), "insert, update or delete", "the kind of change"),
    company: number(0, "the company; 0 for records that all companies share"),
    resource: text("the path of the resource"),
    id: number(1, "the id of the record"),
    at: at("when it was committed"),
    values: Schema.optionalKey(field(anyObject, "an object", "the fields after the change; absent for delete")),
    extra: pairs,
    custom: pairs
  }),
  end: Schema.Struct({ kind: Schema.Literal("end"), lines: number(0, "the number of lines between header and end") })
}

export type Kind = keyof typeof forms

/** All kinds, in the order in which their lines stand. */
export const kinds = Object.keys(forms) as ReadonlyArray<Kind>

/** Kinds that stand exactly once. */
export const singleKinds: ReadonlySet<Kind> = new Set<Kind>(["clock", "server", "dialect", "limits", "end"])

/** Control calls for what was sent: requests to the API, webhook deliveries. */
import * as Schema from "effect/Schema"
import { printDeliveries, replay, runCycle, trust } from "../../events/control.ts"
import { printEntry } from "../../grounds/Grounds.ts"
import { json } from "../../http/Message.ts"
import { ControlError, field } from "../Input.ts"
import { jsonAnswer, jsonOf, later, route, streamAnswer, textAnswer } from "../Route.ts"

const Attempt = Schema.Struct({
  delivery: Schema.Int.annotate({ description: "the number of the attempt on this server" }),
  webhookid: Schema.Int,
  eventid: Schema.String,
  eventtype: Schema.String,
  attempt: Schema.Int.annotate({ description: "from 1" }),
  at: Schema.String.annotate({ format: "date-time" }),
  url: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String).annotate({ description: "as sent" }),
  body: Schema.String.annotate({ description: "the bytes as sent, in base64" }),
  delivered: Schema.Boolean,
  abandoned: Schema.Boolean.annotate({ description: "whether this was the event's last attempt" }),
  responsecode: Schema.NullOr(Schema.Int),
  responsebody: Schema.String.annotate({ description: "the first 500 bytes" }),
  durationms: Schema.Finite,
  failure: Schema.NullOr(Schema.String).annotate({ description: "why no answer arrived" })
}).annotate({ description: "an attempt as it was sent" })

const attempt: typeof Attempt.Type = {
  delivery: 1,
  webhookid: 1,
  eventid: "evt_000000000001",
  eventtype: "orders.created",
  attempt: 1,
  at: "2026-03-16T09:05:00.000000Z",
  url: "https://receiver.example/hooks/1",
  headers: { "Svc-Event-Type": "orders.created", "Svc-Delivery-Attempt": "1" },
  body: "eyJpZCI6ImV2dF8wMDAwMDAwMDAwMDEifQ==",
  delivered: true,
  abandoned: false,
  responsecode: 204,
  responsebody: "",
  durationms: 12,
  failure: null
}

const cycle = route({
  method: "POST",
  path: "/cycle",
  summary: "Runs one delivery cycle now and answers its attempts.",
  output: jsonOf(Schema.Struct({ attempts: Schema.Array(Attempt) })),
  example: { output: { attempts: [attempt] } },
  answer: ({ world }) => later(runCycle(world).then((body) => textAnswer(body)))
})

const deliveries = route({
  method: "GET",
  path: "/deliveries",
  summary: "Lists every webhook attempt since the start, oldest first.",
  description: "The newest 100,000 are kept.",
  output: jsonOf(Schema.Struct({ deliveries: Schema.Array(Attempt) })),
  example: { output: { deliveries: [attempt] } },
  answer: ({ world }) => streamAnswer(printDeliveries(world), json)
})

const replayDelivery = route({
  method: "POST",
  path: "/deliveries/{delivery}/replay",
  summary: "Sends the event of a delivery once more, to the present address of its subscription.",
  description: "The same bytes and event id, the next attempt number, a new signature. It does not change failcount.",
  parameters: Schema.Struct({
    delivery: field(
      Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(1)),
      "a whole number from 1",
      "the number of a delivery"
    )
  }),
  output: jsonOf(Attempt),
  example: { parameters: { delivery: 1 }, output: { ...attempt, delivery: 2, attempt: 2 } },
  errors: ["the delivery does not exist", "the event still waits for a cycle", "the subscription is cancelled"],
  answer: ({ world, parameters }) => {
    const sent = replay(world, parameters.delivery)
    if (typeof sent === "string") throw new ControlError(sent)
    return later(sent.then((body) => textAnswer(body)))
  }
})

const certificate = `-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUcCme8NrdE9CdyO051SFLK9kNlSAwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKRXhhbXBsZSBDQTAgFw0yNjExMjcyMDM1MDdaGA8yMTI2MTEw
MzIwMzUwN1owFTETMBEGA1UEAwwKRXhhbXBsZSBDQTBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABBKtwj7o4AA+FRCZ6piyJhHRf39HOyTMpG5BznlVubhATXdaTBR/
oLjrcWJJORFqUOP8PY6wuCPmn/rxKYo/7nSjUzBRMB0GA1UdDgQWBBRwImaUeJIE
ChFCcORqIjM12+gEojAfBgNVHSMEGDAWgBRwImaUeJIEChFCcORqIjM12+gEojAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCqlDwI5qPLMgMsmCtd
Nb1IKHapHNyoyFlB5iRa14Od8AIgWyrzhxNksWX4XeHivPNadQQGMSwWmQlJQly3
1m0qa/s=
-----END CERTIFICATE-----
`

const trustCertificates = route({
  method: "POST",
  path: "/trust",
  summary: "Trusts a certificate authority for deliveries, besides the usual ones.",
  input: Schema.Struct({
    caPem: field(Schema.String, "a certificate in PEM, -----BEGIN CERTIFICATE-----", "one or more certificates in PEM")
  }),
  output: jsonOf(
    Schema.Struct({ trusted: Schema.Int.annotate({ description: "the number of trusted certificates" }) })
  ),
  example: { input: { caPem: certificate }, output: { trusted: 1 } },
  errors: ["A certificate cannot be read."],
  answer: ({ world, input }) => {
    const trusted = trust(world, input.caPem)
    if (typeof trusted === "string") throw new ControlError(trusted)
    return jsonAnswer({ trusted })
  }
})

const Refused = Schema.Struct({
  code: Schema.String,
  field: Schema.NullOr(Schema.String),
  rule: Schema.String,
  facts: Schema.Array(Schema.String).annotate({ description: "the facts of the documents behind the rule" }),
  decisions: Schema.Array(Schema.String).annotate({ description: "our decisions where the documents leave it open" })
})

const requests = route({
  method: "GET",
  path: "/requests",
  summary: "Shows the journal of requests to the API, oldest first.",
  description: "It contains no token. The newest 100,000 requests are kept.",
  output: jsonOf(
    Schema.Struct({
      requests: Schema.Array(
        Schema.Struct({
          time: Schema.String.annotate({ format: "date-time" }),
          method: Schema.String,
          path: Schema.String.annotate({ description: "below the base address, with the query" }),
          status: Schema.NullOr(Schema.Int).annotate({ description: "null when no answer was sent" }),
          tokenid: Schema.NullOr(Schema.Int),
          requestid: Schema.String,
          fault: Schema.NullOr(Schema.String).annotate({ description: "the kind of fault that hit the request" }),
          refusal: Schema.NullOr(Refused).annotate({ description: "why the request was refused" }),
          items: Schema.Array(Schema.Struct({ index: Schema.Int, ...Refused.fields })).annotate({
            description: "the refused items of a batch, the first 20"
          })
        })
      )
    })
  ),
  example: {
    output: {
      requests: [
        {
          time: "2026-03-16T09:00:00.000000Z",
          method: "GET",
          path: "/orders?limit=10",
          status: 200,
          tokenid: 1,
          requestid: "req_000000000001",
          fault: null,
          refusal: null,
          items: []
        }
      ]
    }
  },
  answer: ({ world }) => jsonAnswer({ requests: world.journal.all().map(printEntry) })
})

export const trafficRoutes = [cycle, deliveries, replayDelivery, trustCertificates, requests]

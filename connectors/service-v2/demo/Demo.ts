/**
 * The demo of this API: the companies, the changes at the source, and the queries over the result.
 *
 * Promise: changes go through the API, like those of a user. Only tokens and the state to compare with come from the
 * reference server's control plane, which a real installation does not have.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type Demo, ReferenceFailed } from "../../../src/connector/Demo.ts"
import type { ConnectorShape, SourceRecord } from "../../../src/connector/Connector.ts"
import type { Resource } from "../../../src/catalogue/Resource.ts"
import { serviceV2 } from "../catalogue/index.ts"
import * as ControlPlane from "./ControlPlane.ts"

const companyIds = [1n, 2n]

const Attempts = Schema.fromJsonString(
  Schema.Struct({
    attempts: Schema.Array(
      Schema.Struct({
        eventid: Schema.String,
        eventtype: Schema.String,
        responsecode: Schema.NullOr(Schema.Int)
      })
    )
  })
)

const resourceOf = (path: string): Resource => {
  const found = serviceV2.resources.get(path)
  if (found === undefined) throw new Error(`the catalogue has no ${path}`)
  return found
}

const valueOf = (resource: Resource, record: SourceRecord, field: string): string | null =>
  record.columns[resource.fields.findIndex((one) => one.name === field)] ?? null

/** The first record of the first page that matches. */
const find = Effect.fnUntraced(function* (
  connector: ConnectorShape,
  path: string,
  fits: (value: (field: string) => string | null) => boolean
) {
  const resource = resourceOf(path)
  const { records } = yield* connector.page({ resource, since: null, token: null })
  const found = records.find((record) => fits((field) => valueOf(resource, record, field)))
  if (found === undefined) return yield* new ReferenceFailed({ message: `the demo data has no ${path} that matches` })
  return { id: found.id, value: (field: string) => valueOf(resource, found, field) ?? "" }
})

const change = Effect.fn("Demo.change")(function* (connector: ConnectorShape) {
  const now = yield* Clock.currentTimeMillis
  const write = (operation: "create" | "update", path: string, id: string | null, body: object, key: string) =>
    connector.write({
      resource: resourceOf(path),
      operation,
      id,
      body: JSON.stringify(body),
      idempotencyKey: `demo-${now}-${key}`,
      ifMatch: null
    })

  const invoice = yield* find(
    connector,
    "invoices",
    (value) =>
      value("voucherid") !== null &&
      value("cancel") !== "true" &&
      value("invoicetotal") !== null &&
      Number(value("invoicetotal")) - Number(value("invoicepaid") ?? "0") >= 25
  )
  yield* write(
    "create",
    "payments",
    null,
    { invoiceid: Number(invoice.id), amount: "25.00", method: 2, reference: "CHECK-2041", externalid: `demo-${now}` },
    "payment"
  )

  const salesman = yield* find(connector, "salesmen", (value) => value("cancel") !== "true")
  yield* write("update", "salesmen", salesman.id, { phone1: "+1 555 0142" }, "salesman")

  const terms = yield* write(
    "create",
    "invoiceterms",
    null,
    { verbal: `2/10 net 45 (${now % 100_000})`, netduedays: 45, discountdays: 10, discountpercent: "2.000", ar: true },
    "terms"
  )
  const { id } = JSON.parse(terms.body) as { readonly id: number }
  return [
    `a check over 25.00 is applied to invoice ${invoice.value("invoicenumber")}`,
    `salesperson ${salesman.value("name")} has a new phone number`,
    `payment terms ${id} are new`
  ]
})

const fire = Effect.fn("Demo.fire")(function* (connector: ConnectorShape) {
  const now = yield* Clock.currentTimeMillis
  const resource = resourceOf("orders")
  const order = yield* find(
    connector,
    "orders",
    (value) => value("status") === "quote" && value("customer") !== null && value("cancel") !== "true"
  )
  yield* connector.write({
    resource,
    operation: "update",
    id: order.id,
    body: JSON.stringify({ status: "open" }),
    idempotencyKey: `demo-${now}-quote`,
    ifMatch: null
  })
  return {
    description: `customer ${order.value("customer")} accepts quote ${order.id}`,
    resource: resource.path,
    id: order.id,
    field: "status"
  }
})

export const demo: Demo = {
  companies: (reference) =>
    Effect.forEach(companyIds, (companyId) =>
      Effect.map(ControlPlane.issueToken(reference, companyId, "demo"), (token) => ({
        name: `company-${companyId}`,
        companyId,
        token
      }))
    ),
  change,
  trust: Effect.fnUntraced(function* (reference, certificate) {
    yield* ControlPlane.call(reference, "POST", "/trust", JSON.stringify({ caPem: certificate }))
    yield* ControlPlane.call(reference, "PUT", "/limits", JSON.stringify({ allowPrivateReceivers: true }))
  }),
  fire,
  deliver: Effect.fnUntraced(function* (reference) {
    const { attempts } = yield* ControlPlane.decoded(
      "POST /cycle",
      Attempts,
      yield* ControlPlane.call(reference, "POST", "/cycle")
    )
    return attempts.map(({ eventid, eventtype, responsecode }) => ({
      eventId: eventid,
      eventType: eventtype,
      status: responsecode
    }))
  }),
  state: ControlPlane.state,
  queries: [
    {
      title: "Who owes us most? Open balance of posted invoices by customer",
      sql: `select customer, count(*) as invoices, sum(invoicetotal - coalesce(invoicepaid, 0)) as open
  from erp.invoices
 where _company_id = 1 and voucherid is not null and not coalesce(cancel, false) and _deleted_at is null
   and invoicetotal > coalesce(invoicepaid, 0)
 group by customer order by open desc limit 5`
    },
    {
      title: "What changed since the first sync, field by field history included",
      sql: `select 'invoice ' || (record ->> 'invoicenumber') as what, _version as version, _op as op,
       record ->> 'invoicepaid' as paid, to_char(_valid_from at time zone 'UTC', 'HH24:MI:SS') as since
  from erp_history.invoices h
 where _company_id = 1 and exists (select 1 from erp_history.invoices l where l._company_id = 1 and l.id = h.id and l._version > 1)
 order by h.id, _version limit 6`
    }
  ]
}

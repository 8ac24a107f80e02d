/**
 * The application of changed privacy rules to the records in quarantine, the pushed records and the deliveries of a resource.
 *
 * Promise: records that become equal stay as one open record; the others are resolved.
 */
import * as Effect from "effect/Effect"
import type { Protection } from "../catalogue/Protection.ts"
import { protectDelivery, protectPushed, protectRejected } from "../connector/ProtectedConnector.ts"
import * as Statement from "../postgres/Statement.ts"

export const quarantineStatement = Statement.make({
  name: "read the quarantine of a resource",
  params: ["text", "int8"],
  columns: { id: "int8", field: "text?", reason: "text", bytes: "text" },
  text: `select id, field, reason, bytes from tributary.quarantine where resource = $1 and id > $2 order by id limit 1000`
})

export const resolveCopiesStatement = Statement.make({
  name: "resolve records in quarantine that become equal",
  params: ["text", "int8[]", "text[]"],
  text: `with kept as (
           select k.id, k.bytes, q.company_id, coalesce(q.record_id, '') as record_id, row_number() over (
                    partition by q.company_id, coalesce(q.record_id, ''), k.bytes order by k.id) > 1 as is_copy
             from unnest($2::int8[], $3::text[]) as k (id, bytes) join tributary.quarantine q using (id) where q.resolved_at is null)
         update tributary.quarantine q set resolved_at = tributary.now() from kept k
          where q.id = k.id and (k.is_copy or exists (
            select from tributary.quarantine o where o.resource = $1 and o.company_id = k.company_id
               and coalesce(o.record_id, '') = k.record_id and md5(o.bytes) = md5(k.bytes) and o.resolved_at is null and o.id <> all($2)))`
})

export const rewriteQuarantineStatement = Statement.make({
  name: "rewrite the quarantine of a resource",
  params: ["int8[]", "text[]", "text[]"],
  text: `update tributary.quarantine q set reason = k.reason, bytes = k.bytes
           from unnest($1::int8[], $2::text[], $3::text[]) as k (id, reason, bytes) where q.id = k.id`
})

export const deliveriesStatement = Statement.make({
  name: "read the deliveries about a resource",
  params: ["text", "int8"],
  columns: { id: "int8", body: "bytea" },
  text: "select id, body from tributary.inbox where resource = $1 and id > $2 order by id limit 1000"
})

export const rewriteDeliveriesStatement = Statement.make({
  name: "rewrite the deliveries about a resource",
  params: ["int8[]", "text[]"],
  text: `update tributary.inbox i set body = convert_to(k.body, 'UTF8')
           from unnest($1::int8[], $2::text[]) as k (id, body) where i.id = k.id`
})

export const pushedStatement = Statement.make({
  name: "read the pushed records of a resource",
  params: ["text", "int8"],
  columns: {
    id: "int8",
    record: "text",
    expected: "text",
    differences: Statement.as<ReadonlyArray<{ readonly field: string }>>("json")
  },
  text: `select id, record::text as record, coalesce(expected_values::text, 'null') as expected,
                coalesce(differences, '[]') as differences from tributary.outbox
          where resource = $1 and id > $2 and state <> 'in_flight' order by id limit 1000 for update`
})

export const rewritePushedStatement = Statement.make({
  name: "rewrite the pushed records of a resource",
  params: ["int8[]", "text[]", "text[]", "text[]"],
  text: `update tributary.outbox o set record = k.record::json, expected_values = nullif(k.expected, 'null')::json,
                differences = nullif(k.differences, '[]')::json, problems = null,
                reason = case when o.reason is not null then 'its text was left out when the privacy rules changed' end,
                validated = o.validated and o.state <> 'pending'
           from unnest($1::int8[], $2::text[], $3::text[], $4::text[]) as k (id, record, expected, differences) where o.id = k.id`
})

export const validateAgainStatement = Statement.make({
  name: "validate the records again that are being sent",
  params: ["text"],
  text: `with requests as (
           update tributary.push_requests set reason = 'its text was left out when the privacy rules changed'
            where resource = $1 and reason is not null)
         update tributary.outbox set validated = false where resource = $1 and state = 'in_flight'`
})

/** Whether a field of a write, or the field that it sets, has a rule. */
const isWithheld = ({ ruleOf, sent }: Protection, name: string): boolean =>
  [
    name,
    ...[...(sent.create ?? []), ...(sent.update ?? [])].flatMap((one) => (one.name === name ? (one.sets ?? []) : []))
  ].some((one) => ruleOf(one) !== undefined)

/** Rewrites what is stored of the records of a resource beside its tables. */
export const rewriteRecords = Effect.fnUntraced(function* (path: string, protection: Protection) {
  for (let after = 0n; ;) {
    const rows = yield* Statement.run(quarantineStatement, [path, after])
    if (rows.length === 0) break
    const kept = rows.map((row) => protectRejected(protection, row))
    const ids = kept.map(({ id }) => id)
    const bytes = kept.map((one) => one.bytes)
    yield* Statement.run(resolveCopiesStatement, [path, ids, bytes])
    yield* Statement.run(rewriteQuarantineStatement, [ids, kept.map(({ reason }) => reason), bytes])
    after = rows.at(-1)!.id
  }
  // A pending record with such a field keeps its name, so that its push is refused. One that is being sent keeps its values
  // until its outcome is known: its request may be sent again, byte for byte.
  yield* Statement.run(validateAgainStatement, [path])
  for (let after = 0n; ;) {
    const rows = yield* Statement.run(pushedStatement, [path, after])
    if (rows.length === 0) break
    yield* Statement.run(rewritePushedStatement, [
      rows.map(({ id }) => id),
      rows.map(({ record }) => protectPushed(protection, record)),
      rows.map(({ expected }) => (expected === "null" ? expected : protectPushed(protection, expected))),
      rows.map(({ differences }) => JSON.stringify(differences.filter(({ field }) => !isWithheld(protection, field))))
    ])
    after = rows.at(-1)!.id
  }
  for (let after = 0n; ;) {
    const rows = yield* Statement.run(deliveriesStatement, [path, after])
    if (rows.length === 0) break
    yield* Statement.run(rewriteDeliveriesStatement, [
      rows.map(({ id }) => id),
      rows.map(({ body }) => protectDelivery(protection, Buffer.from(body).toString("utf8")))
    ])
    after = rows.at(-1)!.id
  }
})

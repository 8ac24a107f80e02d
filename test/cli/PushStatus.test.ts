/** The pushes in `push status`, `status` and `/metrics`, and the file of `push export-refused`. */
import { traits } from "../../connectors/service-v2/catalogue/traits.ts"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { statusLines } from "../../src/cli/PushText.ts"
import { outboxLines } from "../../src/cli/status/Format.ts"
import * as OutboxMetrics from "../../src/status/OutboxMetrics.ts"
import * as RetryRejected from "../../src/outbox/RetryRejected.ts"
import * as ExportRejected from "../../src/outbox/ExportRejected.ts"
import * as Outbox from "../../src/status/Outbox.ts"
import { layerWarehouse as warehouse, stopClock } from "../support/postgres.ts"

describe("push status", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("of a warehouse", (it) => {
    it.effect("lists pushes, the outbox and open push requests, with the command for each", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* stopClock
        assert.deepStrictEqual(statusLines(yield* Outbox.read(null), ["main"]), [
          "Nothing has been pushed yet. See: tributary push --help"
        ])
        assert.deepStrictEqual(yield* Outbox.open, [])

        yield* sql`insert into tributary.pushes (company, resource, operation, source, content_hash, record_count, duplicates, created_at, finished_at)
          values ('main', 'x', 'create', 'x.csv', 'a', 7, 1, tributary.now() - interval '3 min', null),
                 ('main', 'x', 'update', ${"evil\u001b[2J"}, 'b', 1, 0, tributary.now() - interval '2 h', tributary.now())`
        yield* sql`insert into tributary.push_requests (company, resource, operation, idempotency_key, body, record_count, created_at, failed_attempts, reason)
          values ('main', 'x', 'batch', 'k1', '[]', 2, tributary.now() - interval '40 s', 2, 'the service answered 500')`
        yield* sql`insert into tributary.outbox
          (company, resource, operation, push_id, line, state, outcome, code, field, reason, problems, differences, resolved_at, record)
          values
          ('main', 'x', 'create', 1, 1, 'done', 'created', null, null, null, null, null, tributary.now(), '{"externalid":"e1"}'),
          ('main', 'x', 'create', 1, 2, 'done', 'adopted', null, null, null, null,
             '[{"field":"amount","given":"5.00","current":"6.00"}]', tributary.now() - interval '1 h', '{"externalid":"e2"}'),
          ('main', 'x', 'create', 1, 3, 'rejected', null, 'unknown_value', 'invoice', 'there is no such invoice', null, null,
             tributary.now(), '{"externalid":"e3","amount":"1.50"}'),
          ('main', 'x', 'create', 1, 4, 'rejected', null, 'unknown_value', null, 'no', null, null,
             tributary.now(), '{"externalid":"e4","amount":"0.10","lines":[{"a":1.50}],"note":"a \\"b\\", c"}'),
          ('main', 'x', 'create', 1, 5, 'in_flight', null, null, null, null, null, null, null, '{"externalid":"e5"}'),
          ('main', 'x', 'update', 2, 1, 'done', 'unchanged', null, null, null, null, null, tributary.now(), '{}'),
          ('main', 'y', 'create', null, null, 'rejected', null, 'invalid', null, 'it does not fit',
             '[{"field":"amount","message":"is required"},{"field":"b","message":"is unknown"}]', null, tributary.now(),
             '{"externalid":"e3"}'),
          ('main', 'z', 'create', null, null, 'pending', null, null, null, null, null, null, null, '{}'),
          ('south', 'y', 'create', null, null, 'pending', null, null, null, null, null, null, null, '{"externalid":"e3"}')`

        const status = yield* Outbox.read(null)
        assert.deepStrictEqual(statusLines(status, ["main"]), [
          "Pushes",
          "  push 2: update x of main from evil\\x1b[2J, begun 2 h ago, finished",
          "    1 record: 1 unchanged",
          "  push 1: create x of main from x.csv, begun 3 min ago, unfinished",
          "    7 records: 1 being sent, the oldest for 0 s, 1 created, 1 adopted, 2 refused, " +
            "1 with other values at the source, 1 pushed before, 1 given again in a later push",
          "    refused: 2 unknown_value",
          "    what to do: tributary push retry 1 continues it",
          "    what to do: tributary push export-refused 1 --to refused.ndjson",
          "                correct the records in that file and push it; or, if the cause is fixed at the source:",
          "                tributary push retry 1 --refused",
          "Rows of tributary.outbox that belong to no push",
          "  y of main: 1 refused",
          "    refused: 1 invalid",
          "    what to do: tributary push export-refused y --company main --to refused.ndjson",
          "                correct the records in that file and push it; or, if the cause is fixed at the source:",
          "                tributary push retry y --company main --refused",
          "  z of main: 1 waits, the oldest for 0 s",
          "    what to do: nothing while tributary serve runs; without it: tributary push retry z --company main",
          "  y of south: 1 waits, the oldest for 0 s",
          "    no company of that name is configured, so no process sends them; there is main",
          "Requests whose outcome is not known yet",
          "  batch of 2 records, x of main: open for 40 s, failed 2 times: the service answered 500"
        ])
        const alone = yield* Outbox.read(2n)
        assert.deepStrictEqual(
          [alone.pushes.map(({ push }) => push), alone.outbox.length, alone.calls.length],
          [[2n], 0, 1]
        )

        assert.deepStrictEqual(outboxLines(yield* Outbox.open), [
          "  outbox of main: 2 waiting (the oldest came 0 s ago), 3 refused; see them with tributary push status",
          "  outbox of south: 1 waiting (the oldest came 0 s ago), 0 refused; see them with tributary push status"
        ])

        const figures = yield* yield* OutboxMetrics.make(() => ["main", "unknown"])
        const lines = figures.flatMap(({ name, samples }) =>
          samples.flatMap(({ labels, value }) =>
            value === 0 || name.endsWith("seconds") ? [] : [`${name} ${Object.values(labels ?? {}).join(" ")} ${value}`]
          )
        )
        assert.deepStrictEqual(lines, [
          "tributary_outbox_waiting main 2",
          "tributary_outbox_refused main 3",
          "tributary_push_calls_open main 1",
          "tributary_push_calls_failing main 1",
          "tributary_push_records_last_minute main created 1",
          "tributary_push_records_last_minute main unchanged 1",
          "tributary_push_records_last_minute main refused 3"
        ])

        const [first, second] = yield* Outbox.rejectedRows({ push: 1n }, 0n, 10)
        assert.strictEqual(
          ExportRejected.toNdJson(first!, traits.roles),
          '{"_code":"unknown_value","_field":"invoice","_line":3,"_message":"there is no such invoice","amount":"1.50","externalid":"e3"}'
        )
        const members = ExportRejected.membersOf(second!, traits.roles)
        const columns = ExportRejected.columnsOf(
          new Set([...ExportRejected.membersOf(first!, traits.roles).keys(), ...members.keys()])
        )
        assert.strictEqual(
          ExportRejected.csvHeader(columns),
          "_line,_code,_field,_message,externalid,amount,lines,note"
        )
        assert.strictEqual(
          ExportRejected.toCsv(members, columns),
          '4,unknown_value,,no,e4,0.10,"[{""a"":1.50}]","a ""b"", c"'
        )
        const [inserted] = yield* Outbox.rejectedRows({ company: "main", resource: "y" }, 0n, 10)
        assert.include(
          ExportRejected.toNdJson(inserted!, traits.roles),
          '"_message":"it does not fit; amount: is required; b: is unknown"'
        )
        assert.deepStrictEqual(yield* Outbox.rejectedRows({ push: 1n }, second!.id, 10), [])
        const ids = [first!.id, second!.id]
        yield* sql`update tributary.outbox set push_id = null, resolved_at = tributary.now() where id = ${ids[0]}`
        yield* sql`update tributary.outbox set push_id = null, resolved_at = tributary.now() - interval '1 s' where id = ${ids[1]}`
        const last = yield* Outbox.latestRejectedRows("main", "x", 1)
        assert.deepStrictEqual(
          last.map(({ id }) => id),
          [first!.id]
        )
        yield* sql`update tributary.outbox set push_id = 1 where id in ${sql.in(ids)}`

        assert.strictEqual(yield* RetryRejected.retryRejected({ push: 1n }), 2)
        const [put] = yield* Outbox.pushes([1n])
        assert.deepStrictEqual([put!.counts.waiting, put!.counts.refused, put!.refusedBy], [2, 0, []])
        assert.strictEqual(yield* RetryRejected.retryRejected({ company: "main", resource: "y" }), 1)
        assert.strictEqual(yield* RetryRejected.retryRejected({ push: 1n }), 0)
      })
    )

    it.effect("reopens a finished push when its refused rows are retried, unless a newer push supersedes it", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [{ id } = { id: 0n }] = yield* sql<{ id: bigint }>`
          insert into tributary.pushes (company, resource, operation, source, content_hash, record_count, finished_at)
          values ('main', 'z', 'create', 'z.csv', 'z', 1, tributary.now()) returning id`
        const refuse = sql`insert into tributary.outbox (company, resource, push_id, state, code, externalid)
          values ('main', 'z', ${id}, 'rejected', 'no', 'z1')
          on conflict (company, resource, externalid) where operation = 'create' and externalid is not null
          do update set state = 'rejected'`
        yield* refuse
        assert.strictEqual(yield* RetryRejected.retryRejected({ push: id }), 1)
        const [opened] = yield* Outbox.pushes([id])
        assert.deepStrictEqual([opened!.state, opened!.counts.waiting], ["unfinished", 1])

        yield* refuse
        yield* sql`update tributary.pushes set finished_at = tributary.now() where id = ${id}`
        yield* sql`insert into tributary.pushes (company, resource, operation, source, content_hash, record_count)
          values ('main', 'z', 'create', 'z.csv', 'z', 1)`
        const refused = yield* Effect.flip(RetryRejected.retryRejected({ push: id }))
        assert.deepInclude(refused, { _tag: "PushSuperseded", push: id, by: id + 1n })
        const [kept] = yield* Outbox.pushes([id])
        assert.deepStrictEqual([kept!.state, kept!.counts.refused], ["finished", 1])
      })
    )
  })
})

/** `tributary status` and `push status`: the schedule, webhooks, many companies and pushes, also in `/metrics` and as files. */
import { saveCompany } from "../support/companies.ts"
import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { traits } from "../../connectors/service-v2/catalogue/traits.ts"
import { statusLines } from "../../src/cli/PushText.ts"
import { about } from "../../src/cli/doctor/Finding.ts"
import { gaps } from "../../src/cli/doctor/Webhooks.ts"
import { fleetLines, readFleet } from "../../src/cli/status/Fleet.ts"
import { outboxLines, scheduleLines, webhookLines } from "../../src/cli/status/Format.ts"
import { readResources } from "../../src/cli/status/Resources.ts"
import { csvRow } from "../../src/export/Csv.ts"
import * as ExportRejected from "../../src/outbox/ExportRejected.ts"
import * as RetryRejected from "../../src/outbox/RetryRejected.ts"
import * as Statement from "../../src/postgres/Statement.ts"
import * as Processes from "../../src/processes/Processes.ts"
import * as DeliveryGaps from "../../src/reconcile/DeliveryGaps.ts"
import * as Reenable from "../../src/reconcile/Reenable.ts"
import * as Outbox from "../../src/status/Outbox.ts"
import * as OutboxMetrics from "../../src/status/OutboxMetrics.ts"
import * as Schedule from "../../src/status/Schedule.ts"
import * as Webhooks from "../../src/status/Webhooks.ts"
import * as CountCompanies from "../../src/tasks/CountCompanies.ts"
import { datasetsDefault } from "../../src/warehouse/Table.ts"
import { companyName, fillFleet } from "../support/fleet.ts"
import { layerWarehouse as warehouse, stopClock } from "../support/postgres.ts"
import { suite, testWith } from "../support/suite.ts"
import { cellsOf, valuesOf } from "../support/rows.ts"

const names = Array.from({ length: 120 }, (_, index) => companyName(index + 1))
const fleet = Layer.effectDiscard(Effect.andThen(stopClock, fillFleet(names.length, 6))).pipe(
  Layer.provideMerge(warehouse)
)

describe("tributary status", () => {
  suite("of the schedule", warehouse, (test) => {
    test("prints nothing before the first serve, then the state of each company's tasks", function* () {
      const sql = yield* SqlClient.SqlClient
      const nothing = yield* Schedule.read
      assert.deepStrictEqual(nothing, { processes: 0, tasks: [] })
      assert.deepStrictEqual(scheduleLines(nothing), [])

      yield* sql`
          insert into tributary.tasks
            (company, resource, kind, schedule, next_run_at, paused_at, requested_at, status, failures, error, remedy)
          select 'main', resource, kind, schedule, tributary.now() + next::interval,
                 case when paused then tributary.now() end, case when asked then tributary.now() end, status, failures, error, remedy
            from (values
              ('a', 'sync', 'every 10 min', '1 s', false, false, 'done', 0, null, null),
              ('b', 'sync', 'every 10 min', '150 s', false, false, 'done', 0, null, null),
              ('c', 'sync', 'every 10 min', '-1 h', true, false, 'done', 0, null, null),
              ('d', 'sync', 'every 10 min', '630 s', false, false, 'failed', 3, 'it broke', 'repair it'),
              ('e', 'sync', 'every 10 min', '630 s', false, false, 'failed', 1, 'it broke', 'repair it'),
              ('f', 'sync', null, null, false, true, 'skipped', 0, 'the token lacks a scope', 'give it'),
              ('g', 'backfill', null, null, false, false, null, 0, null, null)
            ) as v(resource, kind, schedule, next, paused, asked, status, failures, error, remedy)`
      yield* saveCompany("main", 1n)
      yield* sql`
          insert into tributary.runs (company_id, resource, kind, lane, fence, started_at) values
            (1, 'a', 'full', 'live', 1, tributary.now()), (1, 'g', 'full', 'backfill', 1, tributary.now())`
      yield* sql`
          insert into tributary.processes (process_id, companies, heartbeat_at, stopped_at) values
            ('one', ${["main"]}, tributary.now(), null),
            ('silent', ${["main"]}, tributary.now() - interval '2 min', null),
            ('ended', ${["main"]}, tributary.now(), tributary.now())`
      const status = yield* Schedule.read
      assert.deepStrictEqual(scheduleLines(status), [
        "  processes of serve: 1 alive",
        "  schedule of main: 5 resources, next b in 2 min",
        "    running: a, backfill of g",
        "    requested: f",
        "    paused: c",
        "    skipped, since the token may not read them: f"
      ])
      yield* sql`insert into tributary.tasks (company, resource, kind, paused_at)
          select 'many', 'r' || n, 'sync', tributary.now() from generate_series(1, 9) n`
      assert.include(scheduleLines(yield* Schedule.read), "    paused: r1, r2, r3, r4, r5, r6, r7, r8 and 1 more")
      yield* sql`update tributary.processes set stopped_at = tributary.now()`
      assert.include(scheduleLines(yield* Schedule.read)[0]!, "none alive")
    })
  })

  suite("of webhooks", warehouse, (test) => {
    test("prints nothing without subscriptions, else the state of subscriptions, inbox and receivers", function* () {
      const sql = yield* SqlClient.SqlClient
      yield* stopClock
      assert.deepStrictEqual(yield* Webhooks.read, [])
      assert.deepStrictEqual(webhookLines([]), [])

      yield* sql`insert into tributary.subscriptions
          (company, subscription_id, url, events, state, failure_count, last_delivery_at, disabled_at, checked_at, log_read_at)
          values
          ('main', '1', 'https://a.example/hooks/main', '{x.created}', 'active', 2, '2026-03-01T10:00:00.123Z', null,
             tributary.now() - interval '2 min', tributary.now() - interval '2 min'),
          ('main', '2', 'https://b.example/hooks/main', '{x.created}', 'disabled', 24, null, '2026-03-01T09:00:00Z',
             tributary.now() - interval '2 min', tributary.now() - interval '3 days'),
          ('main', '3', 'https://c.example/hooks/main', '{x.created}', 'paused', 0, null, null, tributary.now(), null),
          ('main', '4', 'https://d.example/hooks/main', '{x.created}', 'deleted', 0, null, null,
             tributary.now() - interval '2 days', null)`
      yield* sql`update tributary.subscriptions set paused = subscription_id in ('2', '3')`
      yield* sql`update tributary.subscriptions set last_error = 'its log cannot be read', remedy = 'ask who runs it'
          where subscription_id = '1'`
      yield* sql`insert into tributary.inbox
          (company, event_id, event_type, resource, sent_at, received_at, body, state, resolved_at, last_error)
          select 'main', 'e' || n, 'x.created', 'x', tributary.now(), tributary.now() - make_interval(mins => n), '', state,
                 tributary.now() - settled::interval, reason
            from (values (1, 'pending', null, null), (7, 'pending', null, null), (3, 'done', '1 hour', null),
                         (4, 'done', '30 hours', null), (5, 'skipped', '1 hour', null),
                         (6, 'dead_letter', '2 days', 'the source says no'), (8, 'dead_letter', '1 hour', 'the source says no'),
                         (9, 'dead_letter', '1 hour', 'another reason')) as v(n, state, settled, reason)`
      const gap = { subscriptionId: "2", beganAt: null, events: [], detail: "subscription 2 is disabled" }
      yield* DeliveryGaps.open("main", [
        { ...gap, resource: "x", cause: "subscription_inactive", lasts: true },
        {
          ...gap,
          resource: "y",
          cause: "event_lost",
          lasts: false,
          beganAt: "2026-03-01T08:00:00Z",
          detail: "1 event"
        },
        { ...gap, resource: "z", cause: "event_lost", lasts: false }
      ])
      yield* Statement.run(Reenable.recordFailure, ["main", "2", "a test delivery was answered 502"])
      yield* DeliveryGaps.recordReadFailure("main", "y", "the service failed")
      yield* sql`update tributary.delivery_gaps set closed_at = tributary.now() - interval '3 hours', closed_by = 'run 7'
          where resource = 'z'`

      const [none] = yield* Webhooks.read
      assert.deepStrictEqual([none!.company, none!.receivers, none!.receiverSeenMs], ["main", 0, null])
      const lines = webhookLines([none!]).map((line) => line.replace(/it ended \S+/, "it ended T"))
      assert.deepStrictEqual(lines, [
        "  webhooks of main:",
        "    subscription 1: active, 2 failed in a row, last delivery 2026-03-01T10:00:00Z, checked 2 min ago",
        "      https://a.example/hooks/main",
        "      the last check failed: its log cannot be read",
        "      what to do: ask who runs it",
        "    subscription 2: disabled since 2026-03-01T09:00:00Z, paused as well, 24 failed in a row, nothing delivered yet, " +
          "checked 2 min ago, its log was read 3 d ago",
        "      https://b.example/hooks/main",
        "      what to do: tributary webhooks resume 2",
        "    subscription 3: paused, nothing delivered yet, checked 0 s ago, its log was never read",
        "      https://c.example/hooks/main",
        "      what to do: tributary webhooks resume 3",
        "    receivers: none alive (none ever ran); start one with: tributary serve",
        "    inbox: 2 waiting (the oldest came 7 min ago), 1 done and 1 ignored in 24 h, 3 dead",
        "    gap: x (subscription inactive) since an unknown time: subscription 2 is disabled; it is open: " +
          "a test delivery was answered 502",
        "    gap: y (event lost) since 2026-03-01T08:00:00Z: 1 event; it ended T and will be read again: the service failed",
        "    closed: z (event lost) 3 h ago by run 7"
      ])

      const [finding] = yield* gaps(about("gaps", "main"), "main")
      assert.match(
        finding!.message,
        /^events of 2 resources may have been missed, of x for \d+ m?s: a test delivery was/
      )
      assert.deepStrictEqual(yield* gaps(about("gaps", "other"), "other"), [])

      yield* sql`update tributary.subscriptions set state = 'deleted'`
      assert.deepStrictEqual(cellsOf((yield* Webhooks.read)[0]!.subscriptions, "id", "state"), [["3", "deleted"]])

      yield* Processes.heartbeat("one", ["main"])
      yield* Processes.heartbeat("two", ["main", "other"])
      assert.deepStrictEqual(cellsOf(yield* Webhooks.read, "company", "receivers"), [
        ["main", 2],
        ["other", 1]
      ])
      yield* Processes.deregister("two")
      yield* sql`update tributary.processes set heartbeat_at = tributary.now() - interval '5 min' where process_id = 'one'`
      const [dead] = yield* Webhooks.read
      assert.include(
        webhookLines([dead!]).join("\n"),
        "receivers: none alive (the last one 0 s ago); start one with: tributary serve"
      )
    })
  })

  suite("of many companies", fleet, (test) => {
    const members = names.map((name, index) => ({ name, installation: index < 60 ? "one" : "two" }))
    test("prints totals and the 20 worst companies, or those in a state", function* () {
      assert.include(fleetLines(yield* readFleet(names, members, null))[0]!, "120 companies: 120 not counted yet")
      yield* CountCompanies.countDue()
      const report = yield* readFleet(names, members, null)
      const text = fleetLines(report).join("\n")
      assert.include(text, "  120 companies: 1 failing, 1 late, 4 attention, 1 paused, 113 fresh\n")
      assert.include(text, "  720 resources: 1 failing, 1 late, 1 paused, 717 fresh\n")
      assert.include(
        text,
        "1 record in quarantine, 1 dead letter, 1 open gap, 3 rejected records, 1 subscription not active"
      )
      assert.match(text, /c00100 +failing +1 +0 +5\/6 +0 s ago +r03: the service failed \(500\)\n +c00050 +late/)
      assert.strictEqual(text.match(/^ {2}c\d{5} /gm)?.length, 20)
      assert.include(text, "20 of 120 companies, the worst first")
      assert.lengthOf(report.worst, 100, "the documented limit of --json")
      assert.include(text, "  installation two: 60 companies: 1 failing, 1 attention, 58 fresh\n")
      assert.include(text, "  installation one: 60 companies: 1 late, 3 attention, 1 paused, 55 fresh\n")

      const late = fleetLines(yield* readFleet(names, members, "late")).join("\n")
      assert.deepStrictEqual(late.match(/^ {2}c\d{5}/gm), ["  c00050"])
      assert.include(late, "1 of 1 company late")
    })

    test("reads the details of the named companies only", function* () {
      const resources = yield* readResources(datasetsDefault, [2n, 75n])
      assert.deepStrictEqual(
        cellsOf(resources, "companyId", "resource", "quarantined"),
        [2n, 75n].flatMap((company) =>
          [1, 2, 3, 4, 5, 6].map((r) => [company, `r0${r}`, company === 75n && r === 6 ? 1 : 0])
        )
      )
      const excluded = [
        { pattern: "r0[1]", place: "" },
        { pattern: "*2", place: "" }
      ]
      const marked = yield* readResources(datasetsDefault, [2n, 75n], [{ name: "c00002", excluded }])
      assert.deepStrictEqual(
        marked.flatMap(({ companyId, excludedBy, resource }) => (excludedBy === null ? [] : [[companyId, resource]])),
        [[2n, "r02"]]
      )
      const { tasks } = yield* Schedule.readOf(["c00002"])
      assert.deepStrictEqual([...new Set(tasks.map(({ company }) => company))], ["c00002"])
      assert.deepStrictEqual(
        (yield* Webhooks.readOf(["c00001", "c00002"])).map(({ company, inbox, gaps }) => [
          company,
          inbox.dead,
          gaps.length
        ]),
        [
          ["c00001", 0, 1],
          ["c00002", 1, 0]
        ]
      )
      assert.deepStrictEqual(cellsOf(yield* Outbox.openOf(["c00004"]), "company", "rejected"), [["c00004", 3]])
    })
  })
})

describe("push status", () => {
  const test = testWith(warehouse)

  test("lists pushes, the outbox and open push requests, with the command for each", function* () {
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
      "  push 1: create x of main from x.csv, begun 3 min ago, unfinished with rejections",
      "    7 records: 1 being sent, the oldest for 0 s, 1 created, 1 adopted, 2 rejected, " +
        "1 with other values at the source, 1 pushed before, 1 given again in a later push",
      "    rejected: 2 unknown_value",
      "    what to do: tributary push retry 1 continues it",
      "    what to do: tributary push export-rejected 1 --to rejected.ndjson",
      "                correct the records in that file and push it; or, if the cause is fixed at the source:",
      "                tributary push retry 1 --rejected",
      "Rows of tributary.outbox that belong to no push",
      "  y of main: 1 rejected",
      "    rejected: 1 invalid",
      "    what to do: tributary push export-rejected y --company main --to rejected.ndjson",
      "                correct the records in that file and push it; or, if the cause is fixed at the source:",
      "                tributary push retry y --company main --rejected",
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
      "  outbox of main: 2 waiting (the oldest came 0 s ago), 3 rejected; see them with tributary push status",
      "  outbox of south: 1 waiting (the oldest came 0 s ago), 0 rejected; see them with tributary push status"
    ])

    const figures = yield* yield* OutboxMetrics.make(() => ["main", "unknown"])
    const lines = figures.flatMap(({ name, samples }) =>
      samples.flatMap(({ labels, value }) =>
        value === 0 || name.endsWith("seconds") ? [] : [`${name} ${Object.values(labels ?? {}).join(" ")} ${value}`]
      )
    )
    assert.deepStrictEqual(lines, [
      "tributary_outbox_waiting main 2",
      "tributary_outbox_rejected main 3",
      "tributary_push_calls_open main 1",
      "tributary_push_calls_failing main 1",
      "tributary_push_records_last_minute main created 1",
      "tributary_push_records_last_minute main unchanged 1",
      "tributary_push_records_last_minute main rejected 3"
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
    assert.strictEqual(csvRow(columns), "_line,_code,_field,_message,externalid,amount,lines,note")
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
    assert.deepStrictEqual(valuesOf(yield* Outbox.latestRejectedRows("main", "x", 1), "id"), [first!.id])
    yield* sql`update tributary.outbox set push_id = 1 where id in ${sql.in(ids)}`

    assert.strictEqual(yield* RetryRejected.retryRejected({ push: 1n }), 2)
    const [put] = yield* Outbox.pushes([1n])
    assert.deepStrictEqual([put!.counts.waiting, put!.counts.rejected, put!.rejectedBy], [2, 0, []])
    assert.strictEqual(yield* RetryRejected.retryRejected({ company: "main", resource: "y" }), 1)
    assert.strictEqual(yield* RetryRejected.retryRejected({ push: 1n }), 0)
  })

  test("reopens a finished push when its rejected rows are retried, unless a newer push supersedes it", function* () {
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
    assert.deepStrictEqual([kept!.state, kept!.counts.rejected], ["finished with rejections", 1])
  })
})

/** The webhooks in `tributary status`. */
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { about } from "../../src/cli/doctor/Finding.ts"
import { gaps } from "../../src/cli/doctor/Webhooks.ts"
import { webhookLines } from "../../src/cli/status/Format.ts"
import * as DeliveryGaps from "../../src/reconcile/DeliveryGaps.ts"
import * as Statement from "../../src/postgres/Statement.ts"
import * as Reenable from "../../src/reconcile/Reenable.ts"
import * as Processes from "../../src/processes/Processes.ts"
import * as Webhooks from "../../src/status/Webhooks.ts"
import { layerWarehouse as warehouse, stopClock } from "../support/postgres.ts"

describe("tributary status", () => {
  layer(warehouse, { excludeTestServices: true, timeout: "60 seconds" })("of webhooks", (it) => {
    it.effect("prints nothing without subscriptions, else the state of subscriptions, inbox and receivers", () =>
      Effect.gen(function* () {
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
          { ...gap, resource: "x", cause: "disabled", lasts: true },
          {
            ...gap,
            resource: "y",
            cause: "acknowledged_not_stored",
            lasts: false,
            beganAt: "2026-03-01T08:00:00Z",
            detail: "1 event"
          },
          { ...gap, resource: "z", cause: "acknowledged_not_stored", lasts: false }
        ])
        yield* Statement.run(Reenable.recordFailure, ["main", "2", "a test delivery was answered 502"])
        yield* DeliveryGaps.recordRepairFailure("main", "y", "the service failed")
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
            "checked 2 min ago, its log was read 3 days ago",
          "      https://b.example/hooks/main",
          "      what to do: tributary webhooks resume 2",
          "    subscription 3: paused, nothing delivered yet, checked 0 s ago, its log was never read",
          "      https://c.example/hooks/main",
          "      what to do: tributary webhooks resume 3",
          "    receivers: none alive (none ever ran); start one with: tributary serve",
          "    inbox: 2 waiting (the oldest came 7 min ago), 1 done and 1 ignored in 24 h, 3 dead",
          "      dead: another reason",
          "      dead: the source says no",
          "      what to do: tributary webhooks replay --dead",
          "    gap: x (disabled) since an unknown time: subscription 2 is disabled; it is open: " +
            "a test delivery was answered 502",
          "    gap: y (acknowledged not stored) since 2026-03-01T08:00:00Z: 1 event; it ended T and will be read again: the service failed",
          "    closed: z (acknowledged not stored) 3 h ago by run 7"
        ])

        const [finding] = yield* gaps(about("gaps", "main"), "main")
        assert.match(
          finding!.message,
          /^events of 2 resources may have been missed, of x for \d+ m?s: a test delivery was/
        )
        assert.deepStrictEqual(yield* gaps(about("gaps", "other"), "other"), [])

        yield* sql`update tributary.subscriptions set state = 'deleted'`
        const [gone] = yield* Webhooks.read
        assert.deepStrictEqual(
          gone!.subscriptions.map(({ id, state }) => [id, state]),
          [["3", "deleted"]]
        )

        yield* Processes.heartbeat("one", ["main"])
        yield* Processes.heartbeat("two", ["main", "other"])
        assert.deepStrictEqual(
          (yield* Webhooks.read).map(({ company, receivers }) => [company, receivers]),
          [
            ["main", 2],
            ["other", 1]
          ]
        )
        yield* Processes.deregister("two")
        yield* sql`update tributary.processes set heartbeat_at = tributary.now() - interval '5 min' where process_id = 'one'`
        const [dead] = yield* Webhooks.read
        assert.include(
          webhookLines([dead!]).join("\n"),
          "receivers: none alive (the last one 0 s ago); start one with: tributary serve"
        )
      })
    )
  })
})

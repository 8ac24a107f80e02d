/** Bugs of webhooks: accepting, processing events, reconciling. */
import { noneLater, type Plan, undisturbed } from "../Plan.ts"
import type { Mutant } from "./Mutant.ts"

const signature = "connectors/service-v2/client/Signature.ts"
const receiver = "src/ingest/Ingest.ts"
const inbox = "src/inbox/InboxWriter.ts"
const insert = "src/inbox/InsertEvents.ts"
const retention = "src/retention/InboxRetention.ts"
const secrets = "src/subscriptions/SecretRows.ts"
const fetcher = "src/inbox/RecordFetcher.ts"
const resolver = "src/inbox/ResolveFetches.ts"
const rows = "src/inbox/CompareWithRow.ts"
const breaker = "src/inbox/CircuitBreaker.ts"
const gaps = "src/reconcile/DeliveryGaps.ts"
const reconcile = "src/reconcile/Reconcile.ts"
const logCheck = "src/reconcile/LogCheck.ts"
const eventChecks = "src/reconcile/EventChecks.ts"
const checkMemory = "src/reconcile/CheckMemory.ts"
const reenable = "src/reconcile/Reenable.ts"
const seen = "src/subscriptions/SubscriptionStore.ts"
const changeSubscription = "src/subscriptions/ChangeSubscription.ts"
const rotate = "src/subscriptions/Rotate.ts"
const due = "src/inbox/DueEvents.ts"
const subscriptions = "connectors/service-v2/client/Subscriptions.ts"

/** A small world with many deliveries. */
const few = { companies: 1, resources: ["jobs"], overlap: 300_000_000, requestsPerMinute: 600 } as const
const alone = { ...few, hooks: "only" } as const
/** The gaps of the beginning are read again after the overlap, which would repair anything lost until then. */
const soon = { ...alone, overlap: 2_000_000 } as const
/** Deliveries without faults. */
const quiet: Plan["webhooks"] = {
  cycleEvery: 3_000_000,
  failureThreshold: 24,
  checkEvery: 12_000_000,
  keep: 30 * 86_400_000_000,
  ...undisturbed
}

export const webhook: ReadonlyArray<Mutant> = [
  {
    name: "ended-session-has-stored",
    origin: "an error without meaning handled as success",
    story: "the server ended the session after its work",
    file: inbox,
    find: "if (!isAboutValues(error)) return Effect.fail(error)",
    replace:
      'if (error.code === "57P01" || error.code === "08006")\n          return Effect.sync(() => {\n            for (const one of batch) resolve(state, one, "stored")\n          })\n        if (!isAboutValues(error)) return Effect.fail(error)',
    options: { on: ["D5"], overrides: { ...few, hooks: "only", later: { ...noneLater, endRate: 0.05 } } }
  },
  {
    name: "ack-before-insert",
    origin: "ack before insert",
    story: "the sender does not like to wait",
    changes: [
      {
        file: receiver,
        find: "(outcome) => done(answerStored(state, company, outcome))",
        replace: "(outcome) => void answerStored(state, company, outcome)"
      },
      { file: receiver, find: "  inbox.put(\n", replace: "  done(answers.stored)\n  inbox.put(\n" }
    ],
    options: { overrides: alone }
  },
  {
    name: "unavailable-is-accepted",
    origin: "ack without insert",
    story: "the sender disables a receiver that answers 503 too often",
    file: receiver,
    find: "  return answers.unavailable\n",
    replace: "  return answers.stored\n",
    options: { on: ["R4", "D1", "D4"], overrides: alone }
  },
  {
    name: "duplicates-refused",
    origin: "dedupe",
    story: "the unique index keeps doubles out",
    file: insert,
    find: "\n         on conflict (company, event_id) do nothing",
    replace: "",
    options: { on: ["W2"], overrides: alone }
  },
  {
    name: "dedupe-by-body",
    origin: "dedupe by body hash",
    story: "the same bytes are the same event",
    file: insert,
    find: "BinaryArray.texts(events, (event) => event.eventId)",
    replace: "BinaryArray.texts(events, (event) => String(event.body.length) + event.eventType)",
    options: { overrides: alone }
  },
  {
    name: "one-sided-window",
    origin: "one-sided window",
    story: "a delivery from the future cannot be old",
    file: signature,
    find: " && -ageSeconds <= Duration.toSeconds(settings.aheadMax)",
    replace: "",
    options: { on: ["W8"], overrides: alone }
  },
  {
    name: "no-window",
    origin: "replays accepted",
    story: "a good signature is a good signature",
    file: signature,
    find: "ageSeconds <= Duration.toSeconds(settings.tolerance) && ",
    replace: "",
    options: { on: ["W7"], overrides: alone }
  },
  {
    name: "first-v1-only",
    origin: "first-v1-only",
    story: "the first signature is the newest",
    file: signature,
    find: "for (const signature of signatures) {",
    replace: "for (const signature of signatures.slice(0, 1)) {",
    options: { on: ["W6"], overrides: alone }
  },
  {
    name: "no-secret-no-check",
    origin: "forged accepted",
    story: "without a configured secret, no check is wanted",
    file: receiver,
    find: "const [signature, ...others] = arrival.signatures\n",
    replace:
      "const [signature, ...others] = arrival.signatures\n" +
      '  if (options.keyring.of(arrival.company).length === 0) return { _tag: "Genuine", sentAt: Math.floor(receivedAt / 1000) }\n',
    options: { on: ["W8"], overrides: alone }
  },
  {
    name: "rotation-forgets-at-once",
    origin: "rotation",
    story: "the new secret is the secret now",
    changes: [
      { file: secrets, find: "Math.ceil(Duration.toHours(overlap)) + 1", replace: "0 * Duration.toHours(overlap)" }
    ],
    options: { on: ["W6"], only: ["W6"], overrides: { ...alone, writes: 60 } }
  },
  {
    name: "settled-before-landed",
    origin: "settle before landing",
    story: "a record that has been read is as good as landed",
    file: fetcher,
    find: "  const landed = yield* session.land({\n",
    replace: "  yield* InboxStore.resolve(resolutions)\n  const landed = yield* session.land({\n",
    options: { overrides: alone }
  },
  {
    name: "same-stamp-is-newer",
    origin: "event body trusted",
    story: "the event has its own time, and the row is of that time",
    file: rows,
    find: "coalesce(${stamp} >= e.stamp + e.unit * interval '1 second', false) as newer",
    replace: "coalesce(${stamp} >= e.stamp, false) as newer",
    options: { on: ["Pd", "S5"], only: ["Pd", "S5"], overrides: { ...few, hooks: "beside", writes: 60 } }
  },
  {
    name: "not-there-is-gone",
    origin: "404 is a tombstone at once",
    story: "the source knows what it has",
    changes: [
      { file: resolver, find: "if (ageMs >= visibleAfterMs || isOld) {", replace: "if (ageMs >= 0 || isOld) {" }
    ],
    options: { on: ["W5"], off: ["W1"], overrides: alone }
  },
  {
    name: "poison-blocks",
    origin: "poison",
    story: "order matters, so nothing overtakes a record that fails",
    file: resolver,
    find: 'if (scope === "record") return events.map((event) => retryOrDeadLetter(event, reason))',
    replace: 'if (scope === "record") throw new Error(reason)',
    options: { on: ["R7"], overrides: alone }
  },
  {
    name: "poison-for-ever",
    origin: "poison",
    story: "it will succeed eventually",
    changes: [
      {
        file: resolver,
        find: "event.attempts + 1 >= attemptsMax",
        replace: "event.attempts + 1 >= Number.MAX_SAFE_INTEGER"
      },
      {
        file: resolver,
        find: "pauseMs: attemptPausesMs[event.attempts]! }",
        replace: "pauseMs: attemptPausesMs[Math.min(event.attempts, 3)]! }"
      }
    ],
    options: { on: ["R7"], overrides: alone }
  },
  {
    name: "outage-counts-as-attempt",
    origin: "dead in an outage",
    story: "a few quick attempts show what cannot be read",
    changes: [
      {
        file: resolver,
        find: "[10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000]",
        replace: "[500, 500, 500, 500, 500]"
      },
      {
        file: breaker,
        find: 'if (failure.stops === "company") return yield* unavailable(failure)',
        replace: 'if (failure.stops === "company") return "record"'
      }
    ],
    options: { on: ["S3"], overrides: { ...alone, network: [["S3 unauthorized", 0.6]] } }
  },
  {
    name: "gap-closed-by-an-older-scan",
    origin: "gap healing",
    story: "a complete scan has seen everything",
    changes: [
      { file: gaps, find: ' and started_at >= ${visibleAt("$3")}\n', replace: " and $3::float8 is not null\n" }
    ],
    options: { on: ["W1"], overrides: alone }
  },
  {
    name: "abandoned-not-compared",
    origin: "gap healing",
    story: "events that were given up are the sender's business",
    file: logCheck,
    find: "if (resource === null || isStored(eventId) || !isSynced(resource)) continue",
    replace: "if (resource === null || isStored(eventId) || !isSynced(resource) || !delivered) continue",
    // Without an overlap, the read for another gap does not repair it.
    options: { on: ["W9"], only: ["W9"], overrides: { ...alone, overlap: 0, writes: 45 } }
  },
  {
    name: "delivered-not-compared",
    origin: "gap healing",
    story: "an acknowledged delivery has arrived",
    file: logCheck,
    find: "if (resource === null || isStored(eventId) || !isSynced(resource)) continue",
    replace: "if (resource === null || isStored(eventId) || !isSynced(resource) || delivered) continue",
    options: { on: ["W1", "W3"], only: ["W1", "W3"], overrides: { ...alone, overlap: 0 } }
  },
  {
    name: "disabled-for-ever",
    origin: "disabled subscription never enabled again",
    story: "a person has disabled it, for a reason",
    file: reconcile,
    find: 'snapshot.ours.filter(({ state }) => state === "disabled")) {',
    replace: 'snapshot.ours.filter(({ state }) => state === "deleted")) {',
    options: { on: ["W12"], overrides: alone }
  },
  {
    name: "revived-without-proof",
    origin: "enabled again without proof",
    story: "trying costs nothing",
    file: reenable,
    find: "  if (events.length === 0) {\n",
    replace: "  if (since === null) {\n",
    options: { on: ["W1", "W12"], only: ["W1", "W12"], overrides: { ...alone, writes: 60 } }
  },
  {
    name: "purge-takes-what-waits",
    origin: "retention",
    story: "old events are of no use",
    file: retention,
    find: "${which} and resolved_at < ",
    replace: "coalesce(resolved_at, received_at) < ",
    options: { on: ["R8", "W5"], overrides: alone }
  },
  {
    name: "ensure-leaves-pause",
    origin: "pause",
    story: "a person paused it, for a reason",
    file: changeSubscription,
    find: "...(one.paused ? { paused: false } : {}),",
    replace: "",
    options: { on: ["W12"], overrides: alone }
  },
  {
    name: "list-is-all",
    origin: "empty list believed",
    story: "a subscription that the list does not show does not exist",
    file: seen,
    find: "return [...shown, ...",
    replace: "return shown ?? [...shown, ...",
    options: { on: ["S4e"], only: ["S4e"], overrides: { ...alone, resources: ["areas"], records: 70 } }
  },
  {
    name: "silence-is-no-gap",
    origin: "gap healing",
    story: "the log reports everything",
    file: logCheck,
    find: "if (cursor.ageMs > Duration.toMillis(company.unobservedMax)) {",
    replace: "if (cursor.ageMs > 6_000 * 86_400_000) {",
    // An abandoned delivery is visible, and causes a full read of its resource. So almost everything is acknowledged by
    // an intermediary.
    options: {
      on: ["R8", "W3"],
      only: ["R8", "W3"],
      overrides: {
        ...soon,
        resources: ["jobs", "worktypes", "taxgroups", "customers"],
        writes: 80,
        cycleEvery: 4_000_000,
        webhooks: { ...quiet, proxyRate: 0.9, asleep: 15 * 86_400_000_000 }
      }
    }
  },
  {
    name: "enabled-is-well",
    origin: "gap healing",
    story: "the subscription is active, so nothing can be missing",
    file: logCheck,
    find: 'disabling !== null && row.state !== "disabled"',
    replace: "false",
    options: { on: ["W12"], only: ["W12"], overrides: { ...soon, resources: ["jobs", "worktypes"], writes: 60 } }
  },
  {
    name: "unknown-event-is-covered",
    origin: "resolved without a read",
    story: "an event without an id requests nothing in particular",
    file: due,
    find: "return row.isCovered\n",
    replace: "return row !== undefined\n",
    options: { on: ["W11"], only: ["W11"], overrides: alone }
  },
  {
    name: "older-version-is-read",
    origin: "stale read",
    story: "a record that was read after the event arrived is newer than it",
    file: resolver,
    find: "!isBefore(recordStamp, stamp)",
    replace: "true",
    options: { on: ["W5"], only: ["W5"], overrides: { ...alone, writes: 60, rewriteShare: 0.6 } }
  },
  {
    name: "told-before-stored",
    origin: "rotation",
    story: "a secret that the source does not accept is stored in vain",
    file: rotate,
    find: "  const secret = requested ?? (yield* secrets.draw)\n",
    replace:
      "  const secret = requested ?? (yield* secrets.draw)\n    yield* source.update(subscriptionId, { secret })\n",
    options: { on: ["W6"], only: ["W6"], overrides: { ...alone, writes: 60, delayMax: 3_000_000 } }
  },
  {
    name: "ends-what-goes-on",
    origin: "ledger of runs",
    story: "runs that are left running can be called abandoned",
    file: "src/land/RunRow.ts",
    find: "where r.status = 'running' and not ${LaneLock.isHeldSql(\"r\")}",
    replace: "where r.status = 'running'",
    options: { off: ["C3", "D8"], overrides: alone }
  },
  {
    name: "proven-at-the-check",
    origin: "freshness claimed too early",
    story: "the check has just seen that everything is delivered",
    file: eventChecks,
    find: "const delayMs = Duration.toMillis(subscriptions.deliveryDelayMax)",
    replace: "const delayMs = 0 * Duration.toMillis(subscriptions.deliveryDelayMax)",
    options: { on: ["W13"], only: ["W13"], overrides: { ...soon, writes: 60 } }
  },
  {
    name: "delays-are-over",
    origin: "freshness claimed too early",
    story: "the last delivery succeeded, so nothing waits",
    file: eventChecks,
    find: "and s.state = 'active' and s.delayed_at >= $2::timestamptz - delay)",
    replace: "and s.state = 'paused' and s.delayed_at >= $2::timestamptz - delay)",
    // The interval is so long that an event that waits for an attempt is older than the usual delay.
    options: {
      on: ["W13", "W1"],
      only: ["W13", "W1"],
      overrides: {
        ...soon,
        writes: 60,
        safety: 300_000_000,
        webhooks: { ...quiet, cycleEvery: 30_000_000, dropRate: 0.4 }
      }
    }
  },
  {
    name: "quiet-log-is-known",
    origin: "freshness claimed too early",
    story: "an active subscription without failures has lost nothing",
    file: checkMemory,
    find: " && log.reads >= readsMin && log.shown === shownBy(row)",
    replace: "",
    options: { on: ["W13", "W3"], only: ["W13", "W3"], overrides: { ...soon, writes: 60 } }
  },
  {
    name: "error-taken-for-done",
    origin: "error in 200",
    story: "an answer of 200 means done, whatever the body says",
    changes: [
      {
        file: subscriptions,
        find: 'return isObject(parsed.value) && isObject(member(parsed.value, "error"))',
        replace: "return parsed.value === null"
      },
      // Either of the two checks is enough.
      {
        file: subscriptions,
        find: "return isSecret && answer.bytes.length > 0 ? after : null",
        replace: "return null"
      }
    ],
    options: {
      only: ["S4", "W6", "R1"],
      on: ["S4", "W6", "R1"],
      overrides: { ...alone, network: [["S4 error envelope", 0.2]], webhooks: { ...quiet, asleep: 30 * 3_600_000_000 } }
    }
  }
]

/** Bugs of webhooks: accepting, processing events, reconciling. */
import { type Plan, undisturbed } from "../Plan.ts"
import { just, type Mutants, rates } from "./Mutant.ts"

const signature = "connectors/service-v2/client/Signature.ts"
const receiver = "src/ingest/Ingest.ts"
const inbox = "src/inbox/InboxWriter.ts"
const insert = "src/inbox/InsertEvents.ts"
const retention = "src/retention/InboxRetention.ts"
const secrets = "src/subscriptions/SecretRows.ts"
const fetcher = "src/inbox/RecordFetcher.ts"
const resolver = "src/inbox/ResolveFetches.ts"
const rows = "src/inbox/CompareWithRow.ts"
const breaker = "src/sync/CircuitBreaker.ts"
const gaps = "src/reconcile/DeliveryGaps.ts"
const reconcile = "src/reconcile/Reconcile.ts"
const deliveryLog = "src/reconcile/DeliveryLog.ts"
const eventChecks = "src/reconcile/EventChecks.ts"
const reenable = "src/reconcile/Reenable.ts"
const seen = "src/subscriptions/SubscriptionStore.ts"
const desiredState = "src/subscriptions/DesiredState.ts"
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

export const webhook: Mutants = {
  "ended-session-has-stored": {
    why: ["an error without meaning handled as success", "the server ended the session after its work"],
    file: inbox,
    find: "if (!isAboutValues(error)) return Effect.fail(error)",
    replace:
      'if (error.code === "57P01" || error.code === "08006")\n          return Effect.sync(() => {\n            for (const one of batch) resolve(state, one, "stored")\n          })\n        if (!isAboutValues(error)) return Effect.fail(error)',
    options: { on: ["D5"], overrides: { ...few, hooks: "only", later: rates({ endRate: 0.05 }) } }
  },
  "ack-before-insert": {
    why: ["ack before insert", "the sender does not like to wait"],
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
  "unavailable-is-accepted": {
    why: ["ack without insert", "the sender disables a receiver that answers 503 too often"],
    file: receiver,
    find: "  return answers.unavailable\n",
    replace: "  return answers.stored\n",
    options: { on: ["R4", "D1", "D4"], overrides: alone }
  },
  "duplicates-refused": {
    why: ["dedupe", "the unique index keeps doubles out"],
    file: insert,
    find: "\n         on conflict (company, event_id) do nothing",
    replace: "",
    options: { on: ["W2"], overrides: alone }
  },
  "dedupe-by-body": {
    why: ["dedupe by body hash", "the same bytes are the same event"],
    file: insert,
    find: "texts((event) => event.eventId)",
    replace: "texts((event) => String(event.body.length) + event.eventType)",
    options: { overrides: alone }
  },
  "one-sided-window": {
    why: ["one-sided window", "a delivery from the future cannot be old"],
    file: signature,
    find: " && -ageSeconds <= Duration.toSeconds(settings.aheadMax)",
    replace: "",
    options: { on: ["W8"], overrides: alone }
  },
  "no-window": {
    why: ["replays accepted", "a good signature is a good signature"],
    file: signature,
    find: "ageSeconds <= Duration.toSeconds(settings.tolerance) && ",
    replace: "",
    options: { on: ["W7"], overrides: alone }
  },
  "first-v1-only": {
    why: ["first-v1-only", "the first signature is the newest"],
    file: signature,
    find: "for (const signature of signatures) {",
    replace: "for (const signature of signatures.slice(0, 1)) {",
    options: { on: ["W6"], overrides: alone }
  },
  "no-secret-no-check": {
    why: ["forged accepted", "without a configured secret, no check is wanted"],
    file: receiver,
    find: "const [signature, ...others] = arrival.signatures\n",
    replace:
      "const [signature, ...others] = arrival.signatures\n" +
      '  if (options.keyring.of(arrival.company).length === 0) return { _tag: "Genuine", sentAt: Math.floor(receivedAt / 1000) }\n',
    options: { on: ["W8"], overrides: alone }
  },
  "rotation-forgets-at-once": {
    why: ["rotation", "the new secret is the secret now"],
    changes: [
      { file: secrets, find: "Math.ceil(Duration.toHours(overlap)) + 1", replace: "0 * Duration.toHours(overlap)" }
    ],
    options: just(["W6"], { ...alone, writes: 60 })
  },
  "settled-before-landed": {
    why: ["settle before landing", "a record that has been read is as good as landed"],
    file: fetcher,
    find: "  const landed = yield* session.land({\n",
    replace: "  yield* InboxStore.resolve(resolutions)\n  const landed = yield* session.land({\n",
    options: { overrides: alone }
  },
  "same-stamp-is-newer": {
    why: ["event body trusted", "the event has its own time, and the row is of that time"],
    file: rows,
    find: "coalesce(${stamp} >= e.stamp + e.unit * interval '1 second', false) as newer",
    replace: "coalesce(${stamp} >= e.stamp, false) as newer",
    options: just(["Pd", "S5"], { ...few, hooks: "beside", writes: 60 })
  },
  "not-there-is-gone": {
    why: ["404 is a tombstone at once", "the source knows what it has"],
    changes: [
      { file: resolver, find: "if (ageMs >= visibleAfterMs || isOld) {", replace: "if (ageMs >= 0 || isOld) {" }
    ],
    options: { on: ["W5"], off: ["W1"], overrides: alone }
  },
  "poison-blocks": {
    why: ["poison", "order matters, so nothing overtakes a record that fails"],
    file: resolver,
    find: 'if (scope === "record") return events.map((event) => retryOrDeadLetter(event, reason))',
    replace: 'if (scope === "record") throw new Error(reason)',
    options: { on: ["R7"], overrides: alone }
  },
  "poison-for-ever": {
    why: ["poison", "it will succeed eventually"],
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
  "outage-counts-as-attempt": {
    why: ["dead in an outage", "a few quick attempts show what cannot be read"],
    changes: [
      {
        file: resolver,
        find: "[10_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 60 * 60_000]",
        replace: "[500, 500, 500, 500, 500]"
      },
      {
        file: breaker,
        find: 'if (failure.stops === "company") return unavailable()',
        replace: 'if (failure.stops === "company") return Effect.succeed("record")'
      }
    ],
    options: { on: ["S3"], overrides: { ...alone, network: [["S3 unauthorized", 0.6]] } }
  },
  "gap-closed-by-an-older-scan": {
    why: ["gap healing", "a complete scan has seen everything"],
    changes: [
      { file: gaps, find: ' and started_at >= ${visibleAt("$3")}\n', replace: " and $3::float8 is not null\n" }
    ],
    options: { on: ["W1"], overrides: alone }
  },
  "abandoned-not-compared": {
    why: ["gap healing", "events that were given up are the sender's business"],
    file: deliveryLog,
    find: "return (delivered || abandoned) && resource",
    replace: "return delivered && resource",
    // Without an overlap, the read for another gap does not repair it.
    options: just(["W9"], { ...alone, overlap: 0, writes: 45 })
  },
  "delivered-not-compared": {
    why: ["gap healing", "an acknowledged delivery has arrived"],
    file: deliveryLog,
    find: "return (delivered || abandoned) && resource",
    replace: "return abandoned && !delivered && resource",
    options: just(["W1", "W3"], { ...alone, overlap: 0 })
  },
  "disabled-for-ever": {
    why: ["disabled subscription never enabled again", "a person has disabled it, for a reason"],
    file: reconcile,
    find: "if (change?.enabled !== true || ",
    replace: "if (change !== undefined || ",
    options: { on: ["W12"], overrides: alone }
  },
  "revived-without-proof": {
    why: ["enabled again without proof", "trying costs nothing"],
    file: reenable,
    find: "  if (!isStored) {\n",
    replace: "  if (since === null) {\n",
    options: just(["W1", "W12"], { ...alone, writes: 60 })
  },
  "purge-takes-what-waits": {
    why: ["retention", "old events are of no use"],
    file: retention,
    find: "${which} and resolved_at < ",
    replace: "coalesce(resolved_at, received_at) < ",
    options: { on: ["R8", "W5"], overrides: alone }
  },
  "ensure-leaves-pause": {
    why: ["pause", "a person paused it, for a reason"],
    file: desiredState,
    find: "...(one.paused ? { paused: false } : {}),",
    replace: "",
    options: { on: ["W12"], overrides: alone }
  },
  "list-is-all": {
    why: ["empty list believed", "a subscription that the list does not show does not exist"],
    file: seen,
    find: "return [...shown, ...",
    replace: "return shown ?? [...shown, ...",
    options: just(["S4e"], { ...alone, resources: ["areas"], records: 70 })
  },
  "silence-is-no-gap": {
    why: ["gap healing", "the log reports everything"],
    file: deliveryLog,
    find: "  if (isUnobserved(company, row)) {\n",
    replace: "  if (logAgeMs > 6_000 * 86_400_000) {\n",
    // An abandoned delivery is visible, and causes a full read of its resource. So almost everything is acknowledged by
    // an intermediary.
    options: just(["R8", "W3"], {
      ...soon,
      resources: ["jobs", "worktypes", "taxgroups", "customers"],
      writes: 80,
      cycleEvery: 4_000_000,
      webhooks: { ...quiet, proxyRate: 0.9, asleep: 15 * 86_400_000_000 }
    })
  },
  "enabled-is-well": {
    why: ["gap healing", "the subscription is active, so nothing can be missing"],
    file: deliveryLog,
    find: 'disabling !== null && row.state === "active"',
    replace: "false",
    options: just(["W12"], { ...soon, resources: ["jobs", "worktypes"], writes: 60 })
  },
  "unknown-event-is-covered": {
    why: ["resolved without a read", "an event without an id requests nothing in particular"],
    file: due,
    find: "return row.isCovered\n",
    replace: "return row !== undefined\n",
    options: just(["W11"], alone)
  },
  "older-version-is-read": {
    why: ["stale read", "a record that was read after the event arrived is newer than it"],
    file: resolver,
    find: "!isBefore(recordStamp, stamp)",
    replace: "true",
    options: just(["W5"], { ...alone, writes: 60, rewriteShare: 0.6 })
  },
  "told-before-stored": {
    why: ["rotation", "a secret that the source does not accept is stored in vain"],
    file: rotate,
    find: "  const secret = requested ?? (yield* secrets.draw)\n",
    replace:
      "  const secret = requested ?? (yield* secrets.draw)\n    yield* subscriptions.source.update(subscriptionId, { secret })\n",
    options: just(["W6"], { ...alone, writes: 60, delayMax: 3_000_000 })
  },
  "ends-what-goes-on": {
    why: ["ledger of runs", "runs that are left running can be called abandoned"],
    file: "src/land/RunRow.ts",
    find: "where r.status = 'running' and not ${LaneLock.isHeldSql(\"r\")}",
    replace: "where r.status = 'running'",
    options: { off: ["C3", "D8"], overrides: alone }
  },
  "proven-at-the-check": {
    why: ["freshness claimed too early", "the check has just seen that everything is delivered"],
    file: eventChecks,
    find: "const delayMs = Duration.toMillis(company.source.deliveryDelayMax)",
    replace: "const delayMs = 0 * Duration.toMillis(company.source.deliveryDelayMax)",
    options: just(["W13"], { ...soon, writes: 60 })
  },
  "delays-are-over": {
    why: ["freshness claimed too early", "the last delivery succeeded, so nothing waits"],
    file: eventChecks,
    find: "and s.state = 'active' and s.delayed_at >= $2::timestamptz - delay)",
    replace: "and s.state = 'paused' and s.delayed_at >= $2::timestamptz - delay)",
    // The interval is so long that an event that waits for an attempt is older than the usual delay.
    options: just(["W13", "W1"], {
      ...soon,
      writes: 60,
      safety: 300_000_000,
      webhooks: { ...quiet, cycleEvery: 30_000_000, dropRate: 0.4 }
    })
  },
  "quiet-log-is-known": {
    why: ["freshness claimed too early", "an active subscription without failures has lost nothing"],
    file: eventChecks,
    find: " && log.reads >= readsMin && log.shown === shownBy(row)",
    replace: "",
    options: just(["W13", "W3"], { ...soon, writes: 60 })
  },
  "error-taken-for-done": {
    why: ["error in 200", "an answer of 200 means done, whatever the body says"],
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
    options: just(["S4", "W6", "R1"], {
      ...alone,
      network: [["S4 error envelope", 0.2]],
      webhooks: { ...quiet, asleep: 30 * 3_600_000_000 }
    })
  }
}

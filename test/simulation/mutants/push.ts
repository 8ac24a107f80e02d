/** Bugs of pushing: keys, outcomes, lookups, merging, resolving. */
import type { FaultClass, Plan, Pushes } from "../Plan.ts"
import type { Change, Mutants } from "./Mutant.ts"

const requests = "src/outbox/RequestStore.ts"
const assumed = "src/outbox/AssumedNew.ts"
const changes = "src/outbox/PushChanges.ts"
const creates = "src/outbox/ResolveCreate.ts"
const keys = "src/outbox/KeyValidity.ts"
const dedupe = "src/outbox/Deduplicate.ts"
const outbox = "src/outbox/OutboxStore.ts"
const resolutions = "src/outbox/RowResolution.ts"
const sending = "src/outbox/Send.ts"
const pages = "connectors/service-v2/client/Pages.ts"
const answer = "connectors/service-v2/client/Answer.ts"
const lock = "src/land/ResourceLock.ts"

const pushOptions = (on: ReadonlyArray<FaultClass>, off: ReadonlyArray<FaultClass> = [], pushes: Pushes = "only") => {
  const overrides: Partial<Plan> = { pushes }
  return { on, off, overrides }
}

/** Any process with an answer resolves. */
export const pushWithoutFence: ReadonlyArray<Change> = [
  {
    file: lock,
    find: "yield* checkFence(locked?.fence === fence ? 1 : 0)",
    replace: 'if (lane !== "push") yield* checkFence(locked?.fence === fence ? 1 : 0)'
  },
  {
    file: resolutions,
    find:
      "where o.id = v.id and o.request_id is not distinct from v.request_id\n" +
      "     and ${stateIs(\"case when v.request_id is null then 'pending' else 'in_flight' end\")}\n" +
      "     and (v.text is null or v.text = o.record::text)",
    replace: "where o.id = v.id"
  }
]

export const push: Mutants = {
  "push-new-key-on-retry": {
    why: ["a new key for each attempt", "a key is for one request, and this is another one"],
    file: sending,
    find: "idempotencyKey: request.key,",
    replace: "idempotencyKey: request.failedAttempts === 0 ? request.key : `${request.key}-${request.failedAttempts}`,",
    options: pushOptions(["U23"], ["C3"])
  },
  "push-key-not-stored": {
    why: ["the key is created when it is sent", "the request is stored; its key is a detail of the transport"],
    file: requests,
    find: "      id,\n      keyScope,\n      createdAt,",
    replace: "      id,\n      key: `${request.key}-${rows.length}`,\n      keyScope,\n      createdAt,",
    options: pushOptions([])
  },
  "push-key-never-old": {
    why: ["a key is sent again after the source removed it", "a key is a key"],
    file: keys,
    find: "- createdAt < Duration.toMillis(session.settings.keyAgeMax)",
    replace: "- createdAt < Duration.toMillis(session.settings.keyAgeMax) * 1000",
    options: pushOptions(["U15", "U2", "U1"])
  },
  "push-age-by-own-clock": {
    why: ["the age of a key by the clock of the process", "now is now"],
    file: keys,
    find: "warehouseNow(session) - createdAt <",
    replace: "session.clock.currentTimeMillisUnsafe() - createdAt <",
    options: pushOptions(["U15", "U2", "U1", "K1"])
  },
  "push-zombie-sends": {
    why: ["a process that slept sends its old request", "the fence guards the ledger"],
    changes: [
      {
        file: keys,
        find: "return isFenceFresh() && isKeyValid(session, request)",
        replace: "return isKeyValid(session, request)"
      },
      {
        file: keys,
        find: "for (let checks = 0; checks < fenceChecksMax && !isFenceFresh(); checks += 1) {",
        replace: "for (let checks = 0; checks < 0 && !isFenceFresh(); checks += 1) {"
      }
    ],
    options: { ...pushOptions(["C3", "U1", "U7"]), overrides: { pushes: "only", pauseRate: 0.02 } }
  },
  "push-slept-over-fence": {
    why: ["an answer about the fence that is outdated when it is read", "the fence was ours, the transaction says so"],
    changes: [
      {
        file: keys,
        find: "return isFenceFresh() && isKeyValid(session, request)",
        replace: "return isKeyValid(session, request)"
      },
      {
        file: keys,
        find: "checks < fenceChecksMax && !isFenceFresh()",
        replace: "checks < 1 && !isFenceFresh()"
      }
    ],
    options: { ...pushOptions(["C3", "U1", "U7"]), overrides: { pushes: "only", pauseRate: 0.1 } }
  },
  "push-given-up-unseen": {
    why: ["a new key after 500 without a lookup", "500 means that the write did not complete, it says so"],
    file: creates,
    find: "(row) => lookUp(session, row, { wasSent: true, absent: retryAbsent(row, rejection, isFault && isAlone) }, listed),",
    replace:
      "(row) => Effect.succeed<ResolvedRow>({ row, resolution: retryAbsent(row, rejection, isFault && isAlone) }),",
    options: pushOptions(["U8"])
  },
  "push-item-again-unseen": {
    why: ["a failed item is sent again without a lookup", "the item says that it failed"],
    file: creates,
    find: "if (item.isRetryable) return lookUp(session, row, { wasSent: true, absent: retryAbsent(row, item, true) }, listed)",
    replace: "if (item.isRetryable) return Effect.succeed({ row, resolution: retryAbsent(row, item, true) })",
    options: pushOptions(["U14"])
  },
  "push-by-position": {
    why: ["results by their position", "they come in the order in which they were sent"],
    file: creates,
    find: "items.get(row.requestIndex)",
    replace: "answer.items[row.requestIndex]",
    options: pushOptions(["U10"])
  },
  "push-missing-is-written": {
    why: ["an item that the answer does not name was written", "207 is a success, and errors are named"],
    file: creates,
    find: '    case "WriteSucceeded": {\n      const { id, record',
    replace:
      '    case undefined:\n      return Effect.succeed({ row, resolution: done("created", null) })\n' +
      '    case "WriteSucceeded": {\n      const { id, record',
    options: pushOptions(["U10"])
  },
  "push-no-halving": {
    why: ["a rejected batch rejects all its records", "the source has rejected them"],
    file: creates,
    find: "if (rows.length <= 1) {",
    replace: "if (rows.length >= 1) {",
    options: pushOptions(["U13", "U20"])
  },
  "push-no-fence": {
    why: ["any process with an answer resolves", "there is a lock"],
    changes: pushWithoutFence,
    options: pushOptions(["U22", "D8", "C3"])
  },
  "push-adopted-unseen": {
    why: ["an adopted record is not compared", "the same key is the same record"],
    file: dedupe,
    find: 'only.record === null ? [] : differences(resource, "create", row.text, only.record)',
    replace: 'only.record !== null ? [] : differences(resource, "create", row.text, only.record)',
    options: pushOptions(["U17"])
  },
  "push-first-is-adopted": {
    why: ["the first of several records is adopted", "an externalid is unique, surely"],
    file: dedupe,
    find: "if (another !== undefined || id === null) {",
    replace: "if (id === null) {",
    options: pushOptions(["U17"], ["U12"])
  },
  "push-cancelled-adopted": {
    why: ["a cancelled record is adopted", "it is there"],
    file: dedupe,
    find: "if (!wasSent && isCancelled(",
    replace: "if (wasSent && isCancelled(",
    options: pushOptions(["U17"])
  },
  "push-not-looked-up": {
    why: ["created without a look whether it is there", "we create it, so it cannot be there"],
    file: dedupe,
    find: "return Effect.result(lookUp(session, row, { wasSent: false, absent }, listed))",
    replace: "return Effect.result(Effect.succeed<ResolvedRow>({ row, resolution: absent }))",
    options: pushOptions(["U17"])
  },
  "push-cancelled-unseen": {
    why: ["a lookup by externalid that shows no cancelled records", "a cancelled record is gone"],
    file: pages,
    find: 'else if (isCancellable(resource)) parameters.push(["cancel", "any"])',
    replace: 'else if (isCancellable(resource) && where === null) parameters.push(["cancel", "any"])',
    options: pushOptions(["U17"])
  },
  "push-looked-up-long-ago": {
    why: ["after one lookup, no second one", "it was not there"],
    file: assumed,
    find: "const absentFor = \"interval '10 minutes'\"",
    replace: "const absentFor = \"interval '10 days'\"",
    options: pushOptions(["U15", "U17", "D2"])
  },
  "push-stale-merged-blindly": {
    why: ["after stale_record the same update is sent with the new version", "the last one wins"],
    file: changes,
    find: "const conflict = different.find(",
    replace: "const conflict = row.conflictRetries > 0 ? undefined : different.find(",
    options: pushOptions(["U16", "U19"])
  },
  "push-no-if-match": {
    why: ["an update does not name the version it means", "it was read a moment ago"],
    file: changes,
    find: "ifMatch: version,",
    replace: "ifMatch: null,",
    options: pushOptions(["U19"])
  },
  "push-body-rebuilt": {
    why: ["the body is built anew on resume", "it is the same JSON"],
    file: requests,
    find: "{ ...row, rows }",
    replace: "{ ...row, body: row.body === null ? null : JSON.stringify(JSON.parse(row.body), null, 1), rows }",
    options: pushOptions(["C1"])
  },
  "push-any-order": {
    why: ["rows of one record in any order", "the outbox is a queue, the database keeps it"],
    file: outbox,
    find: "e.id < o.id and ${same}`",
    replace: "e.id < o.id and e.id < 0 and ${same}`",
    options: pushOptions(["U19", "U2"])
  },
  "push-replay-is-news": {
    why: ["a replayed answer is landed as the newest", "it has just come in"],
    file: creates,
    find: "      observedAt: request.createdAt\n",
    replace: "      observedAt: request.createdAt + 3_600_000\n",
    options: pushOptions(["U16", "U2", "C1"], [], "beside")
  },
  "push-not-landed": {
    why: ["an answered record is not landed", "the next sync brings it"],
    changes: [
      { file: creates, find: "echo: echoOf(request, answer),", replace: "echo: echoOf(request, answer).slice(1)," }
    ],
    options: pushOptions([])
  },
  "push-in-progress-is-no": {
    why: ["409 in progress handled as a rejection", "409 is a conflict, and a conflict is for a person"],
    file: answer,
    find: 'case "request_in_progress":',
    replace: 'case "request_in_progress ":',
    options: pushOptions(["U3", "U22", "C1"])
  }
}

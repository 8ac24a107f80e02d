/** Bugs of code that rests on ownership: it would be correct if a company always had exactly one owner. */
import type { FaultClass, Plan } from "../Plan.ts"
import { fenceUnchecked } from "./land.ts"
import { just, type Mutants } from "./Mutant.ts"
import { pushWithoutFence } from "./push.ts"

const lock = "src/land/ResourceLock.ts"
const fetcher = "src/inbox/RecordFetcher.ts"
const slice = "src/inbox/ProcessEvents.ts"
const sending = "src/outbox/Send.ts"

/** Ownership that errs, and no other fault but these. */
const erring = (overrides: Partial<Plan>, more: ReadonlyArray<FaultClass> = []) => just(["O1", ...more], overrides)

const byEvents: Partial<Plan> = {
  hooks: "only",
  companies: 1,
  resources: ["jobs"],
  overlap: 2_000_000,
  requestsPerMinute: 600
}

export const owner: Mutants = {
  "owner-takes-events": {
    why: [
      "an event is resolved when its owner begins",
      "the owner has taken the event, and no other process will process it"
    ],
    changes: [
      {
        file: slice,
        find: "  const outcome = yield* fetchRecords(",
        replace:
          '  yield* resolve(worker, first.flatMap(({ events }) => events.map(({ id }) => ({ id, state: "done" as const, reason: "taken" }))))\n  const outcome = yield* fetchRecords('
      },
      { file: slice, find: "  pause,\n", replace: "  pause,\n  resolve,\n" }
    ],
    options: erring(byEvents)
  },
  "owner-resolves-first": {
    why: ["an event is resolved before its record is landed", "nothing comes between two statements of the owner"],
    file: fetcher,
    find: "  const landed = yield* session.land({\n",
    replace: "  yield* InboxStore.resolve(resolutions)\n  const landed = yield* session.land({\n",
    options: erring(byEvents)
  },
  "owner-needs-no-fence": {
    why: ["no lock and no fence", "the engine gives a company one owner"],
    changes: [
      { file: lock, find: "      (isLocked) => isLocked,\n", replace: "      () => true,\n" },
      ...fenceUnchecked
    ],
    options: erring({ ...byEvents, hooks: "beside" }, ["C4", "N5"])
  },
  "owner-sends-its-own-key": {
    why: ["a new key for each owner", "a request of the former owner is not in flight any more"],
    file: sending,
    find: "idempotencyKey: request.key,",
    replace: "idempotencyKey: `${request.key}-${session.writeSession.runId}`,",
    options: erring({ pushes: "only" }, ["U21", "U3"])
  },
  "owner-pushes-without-fence": {
    why: ["any process with an answer resolves", "the owner is the only process that pushes"],
    changes: [
      { file: lock, find: "      (isLocked) => isLocked,\n", replace: "      () => true,\n" },
      ...pushWithoutFence
    ],
    options: erring({ pushes: "only" }, ["U21", "U3"])
  }
}

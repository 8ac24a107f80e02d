/**
 * The processing of due events and refetch requests, by the worker of a process of serve.
 *
 * Promise: of the resources with due work, those begin that were served longest ago; a company has a bounded number of
 * them, and so has the process. Where others wait for a place, work on events ends soon.
 */
import * as Effect from "effect/Effect"
import * as CompanyLog from "../log/CompanyLog.ts"
import * as InboxStore from "../inbox/InboxStore.ts"
import * as InboxWorker from "../inbox/InboxWorker.ts"
import * as ProcessInbox from "../inbox/ProcessInbox.ts"
import { begin, type CompanyState, monotonicMs, taskKey, type WorkerState } from "./WorkerState.ts"

/** What is known about the events of a company is forgotten when it had no work for this time. */
const idleMs = 10 * 60_000

interface CompanyWork extends ProcessInbox.Work {
  readonly name: string
  readonly inbox: InboxWorker.InboxWorker
}

/** The state of the company's events. */
const inboxOf = (worker: WorkerState, state: CompanyState) =>
  Effect.gen(function* () {
    const { breaker, company, inbox } = state
    const identity = breaker.identity()
    if (identity === null) return null
    if (inbox !== null) {
      inbox.identity = identity
      return inbox
    }
    const { name } = company
    const isCrowded = () => worker.crowded === "all" || worker.crowded.has(name)
    const { reader } = worker.options
    const made = yield* InboxWorker.make({ company, reader, breaker, identity, isCrowded })
    state.inbox = made
    return made
  })

/** Does the work. A failure of the warehouse is logged once, until the same work succeeds. */
const runLogged = ({ inbox, ...work }: CompanyWork) => {
  const what = `${work.kind === "events" ? "events of" : "reading"} ${work.path}`
  const subject = `company ${work.name}: ${what}`
  return ProcessInbox.runWork(inbox, work).pipe(
    Effect.tap(() => Effect.sync(() => inbox.failing.delete(what))),
    Effect.catch((error) => {
      if (inbox.failing.has(what)) return Effect.void
      inbox.failing.add(what)
      return Effect.logWarning(`${subject}: waiting for the warehouse: ${error.message}`)
    }),
    Effect.catchDefect((defect) => Effect.logError(`${subject}: this is a fault of the program`, defect)),
    CompanyLog.about(work.name)
  )
}

type Place = Pick<CompanyWork, "name" | "kind">

/**
 * The first of this work for which there are places beside those that are taken, and the companies with due events that
 * have to wait; `all`: the process has no place for events left. A process has `placesMax` places for each kind of work.
 */
export const admit = <A extends Place>(work: ReadonlyArray<A>, taken: ReadonlyArray<Place>, placesMax: number) => {
  const counts = new Map<string, number>()
  const countOf = (key: string) => counts.get(key) ?? 0
  const keyOf = ({ kind, name }: Place) => JSON.stringify([kind, name])
  const take = (place: Place) => {
    for (const key of [place.kind, keyOf(place)]) counts.set(key, countOf(key) + 1)
  }
  taken.forEach(take)
  const admitted = work.filter((one) => {
    const isFree = countOf(one.kind) < placesMax && countOf(keyOf(one)) < ProcessInbox.concurrency[one.kind]
    if (isFree) take(one)
    return isFree
  })
  const isAdmitted = new Set(admitted)
  const waiting = work.filter((one) => one.kind === "events" && !isAdmitted.has(one))
  const crowded = new Set(waiting.map(({ name }) => name))
  return { admitted, crowded: crowded.size > 0 && countOf("events") >= placesMax ? ("all" as const) : crowded }
}

/** Begins due work of the companies that the source has identified. Returns the others with due work. */
export const beginDue = Effect.fnUntraced(function* (worker: WorkerState) {
  const due = Map.groupBy(yield* InboxStore.dueWork, ({ company }) => company)
  const work: Array<CompanyWork> = []
  const unidentified: Array<string> = []
  for (const [name, rows] of due) {
    const state = worker.companies.get(name)
    if (state === undefined) continue
    const inbox = yield* inboxOf(worker, state)
    if (inbox === null) {
      unidentified.push(name)
      continue
    }
    state.inboxUsedAtMs = monotonicMs(worker)
    const isRunning = (kind: InboxWorker.WorkKind, resource: string) =>
      worker.groups.events.running.has(taskKey({ company: name, resource, kind }))
    const found = yield* ProcessInbox.workOf(inbox, rows, isRunning)
    work.push(...found.map((one) => ({ ...one, name, inbox })))
  }
  const taken = [...worker.groups.events.running.values()].map(({ company: name, kind }): Place => ({
    name,
    kind: kind === "events" ? kind : "read"
  }))
  const servedAt = ({ inbox, kind, path }: CompanyWork) => InboxWorker.stateOf(inbox, path).servedAt[kind]
  const inOrder = work.toSorted((one, other) => servedAt(one) - servedAt(other))
  const { admitted, crowded } = admit(inOrder, taken, worker.runsMax)
  worker.crowded = crowded
  for (const one of admitted) {
    yield* begin(worker, "events", { company: one.name, resource: one.path, kind: one.kind }, runLogged(one))
  }
  return unidentified
})

/** Forgets what is known about the events of companies without work. */
export const forgetIdle = (worker: WorkerState): void => {
  const usedSince = monotonicMs(worker) - idleMs
  for (const state of worker.companies.values()) if (state.inboxUsedAtMs < usedSince) state.inbox = null
}

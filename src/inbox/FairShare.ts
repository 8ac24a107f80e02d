/**
 * Fair scheduling among the resources of a company.
 *
 * Promise: at most {@link concurrency} resources are worked on at a time, by kind of task. Where more resources have due
 * events, those that have had {@link sliceMs} yield. The resource that was served longest ago is next. So no resource
 * waits for longer than one short slice of each other resource.
 */

/** `events` processes the events of a resource. `scan` reads all of it, or the children of changed parents. */
export type TaskKind = "events" | "scan"

export interface Task {
  readonly path: string
  readonly kind: TaskKind
}

/** Resources worked on at the same time. */
export const concurrency: Readonly<Record<TaskKind, number>> = { events: 4, scan: 3 }
/** A slice may end after this where other resources wait. */
export const sliceMs = 500

export interface FairShare {
  readonly isBusy: (kind: TaskKind, path: string) => boolean
  /** The tasks that can start. Their resources are busy from now on. */
  readonly admit: <A extends Task>(tasks: ReadonlyArray<A>) => ReadonlyArray<A>
  readonly begin: (task: Task) => void
  readonly end: (task: Task) => void
  /** Whether the resource yields to another one. Its slice began at `startedAt`. */
  readonly shouldYield: (path: string, startedAt: number) => boolean
}

/** `now` is a monotonic clock in milliseconds. */
export const make = (now: () => number): FairShare => {
  const busy: Readonly<Record<TaskKind, Set<string>>> = { events: new Set(), scan: new Set() }
  /** When the last slice of a resource ended. */
  const servedAt: Readonly<Record<TaskKind, Map<string, number>>> = { events: new Map(), scan: new Map() }
  /** Resources with due events that could not start, as of the last {@link FairShare.admit}. */
  let waiting = 0
  /** Resources that yield to them. */
  const yielding = new Set<string>()
  const servedOf = ({ path, kind }: Task) => servedAt[kind].get(path) ?? -1

  return {
    isBusy: (kind, path) => busy[kind].has(path),
    admit: (tasks) => {
      waiting = 0
      return tasks
        .toSorted((one, other) => servedOf(one) - servedOf(other))
        .filter(({ path, kind }) => {
          if (busy[kind].size < concurrency[kind]) return busy[kind].add(path)
          if (kind === "events") waiting += 1
          return false
        })
    },
    begin: ({ kind, path }) => {
      busy[kind].add(path)
    },
    end: ({ kind, path }) => {
      busy[kind].delete(path)
      servedAt[kind].set(path, now())
      if (kind === "events" && yielding.delete(path)) waiting = Math.max(0, waiting - 1)
    },
    shouldYield: (path, startedAt) => {
      if (yielding.has(path)) return true
      if (waiting <= yielding.size || now() - startedAt < sliceMs) return false
      yielding.add(path)
      return true
    }
  }
}

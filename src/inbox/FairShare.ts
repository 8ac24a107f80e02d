/**
 * Whose turn it is, among the resources of a company.
 *
 * Promise: so many are worked on at a time as there is room for, by kind of work. Where more of them wait with events,
 * as many as needed of those that have had {@link sliceMs} are asked to make room, and who was served longest ago is
 * next: nobody waits for longer than the others take for a short turn each.
 */

/** Acting on the events of a resource, or reading it beside that: all of it, or the children of parents that changed. */
export type Kind = "events" | "scan"

export interface Task {
  readonly path: string
  readonly kind: Kind
}

/** Resources worked on at the same time. */
export const concurrency: Readonly<Record<Kind, number>> = { events: 4, scan: 3 }
/** A turn that others wait for may end after this. */
export const sliceMs = 500

export interface FairShare {
  readonly isBusy: (kind: Kind, path: string) => boolean
  /** Those of the tasks that have room, from now on busy; the others wait for it. */
  readonly admit: <A extends Task>(tasks: ReadonlyArray<A>) => ReadonlyArray<A>
  readonly begin: (task: Task) => void
  readonly end: (task: Task) => void
  /** Whether the resource, whose events have been worked on since then, is to make room for another. */
  readonly isWanted: (path: string, since: number) => boolean
}

/** `now` in milliseconds since whenever, by a clock that never goes back. */
export const make = (now: () => number): FairShare => {
  const busy: Readonly<Record<Kind, Set<string>>> = { events: new Set(), scan: new Set() }
  /** When the last turn of a resource ended. */
  const servedAt: Readonly<Record<Kind, Map<string, number>>> = { events: new Map(), scan: new Map() }
  /** How many wait for room, as last seen. */
  let waiting = 0
  /** Those that make room for them. */
  const leaving = new Set<string>()
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
      if (kind === "events" && leaving.delete(path)) waiting = Math.max(0, waiting - 1)
    },
    isWanted: (path, since) => {
      if (leaving.has(path)) return true
      if (waiting <= leaving.size || now() - since < sliceMs) return false
      leaving.add(path)
      return true
    }
  }
}

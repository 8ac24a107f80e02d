/**
 * What to ask the source for.
 *
 * Promise: a scan reads from its first page to its last, one page after the other; a page token that repeats stops it.
 * What a completed scan may store as cursor comes from its first page, and is the earliest of those that its pages
 * carried, so that nothing that changed while the pages were read can be missed by the next one.
 */
import * as Effect from "effect/Effect"
import type { ConnectorShape, Page } from "../connector/Connector.ts"
import { PagingBroken, SourceError } from "../connector/SourceError.ts"
import type { Resource } from "../catalogue/Resource.ts"
import type { Checkpoint, OpenScan } from "../land/Checkpoint.ts"

/** One page, the scan as it stands after it, and whether it was the last. */
export interface ScannedPage {
  readonly page: Page
  readonly scan: OpenScan
  readonly complete: boolean
}

export interface ScanWish {
  /** Read every record even where a cursor would do. */
  readonly full: boolean
}

/** Which scan a run makes: the one in progress, an incremental one where there is a cursor, or a full one. */
export interface ScanPlan {
  readonly kind: OpenScan["kind"]
  readonly since: string | null
  /** Null begins at the first page. */
  readonly resume: OpenScan | null
}

/** Chooses the scan. A scan in progress goes on, unless a full one is wished and it is none. */
export const plan = (resource: Resource, checkpoint: Checkpoint, wish: ScanWish): ScanPlan => {
  const { scan, cursor } = checkpoint
  const incremental = resource.modifiedSince && cursor !== null && !wish.full
  if (scan !== null && (scan.kind === "full" || incremental)) {
    return { kind: scan.kind, since: scan.since, resume: scan }
  }
  return { kind: incremental ? "incremental" : "full", since: incremental ? cursor : null, resume: null }
}

/** A cursor that reads as an instant, in a form whose order is the order in time; undefined when it is none. */
const instant = (cursor: string): string | undefined => {
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?Z$/.exec(cursor)
  return match === null ? undefined : `${match[1]}.${(match[2] ?? "").padEnd(12, "0")}`
}

/** The earlier of two cursors; the first one when they cannot be compared. */
export const earlier = (first: string | null, second: string | null): string | null => {
  if (first === null || second === null) return first
  const [a, b] = [instant(first), instant(second)]
  return a === undefined || b === undefined || a <= b ? first : second
}

/**
 * Reads a scan to its end, handing every page over in order. Waits when `offer` waits, so that pages do not pile up.
 */
export const scan = Effect.fnUntraced(function* <E, R>(
  connector: ConnectorShape,
  resource: Resource,
  from: ScanPlan,
  offer: (page: ScannedPage) => Effect.Effect<unknown, E, R>
): Effect.fn.Return<void, SourceError | E, R> {
  const tokens = new Set<string>()
  let state = from.resume
  for (;;) {
    const token = state?.token ?? null
    const page = yield* connector.page({ resource, since: from.since, token })
    if (page.next !== null) {
      if (page.next === token || tokens.has(page.next)) {
        return yield* new SourceError({
          reason: new PagingBroken({ detail: `page ${(state?.pages ?? 0) + 1} leads back to a page already read` }),
          request: { method: "GET", path: `/${resource.path}`, requestId: null }
        })
      }
      tokens.add(page.next)
    }
    state = {
      kind: from.kind,
      since: from.since,
      token: page.next,
      pages: (state?.pages ?? 0) + 1,
      syncedThrough: state === null ? page.syncedThrough : earlier(state.syncedThrough, page.syncedThrough),
      beganAt: state?.beganAt ?? page.beganAt
    }
    const complete = page.next === null
    yield* offer({ page, scan: state, complete })
    if (complete) return
  }
})

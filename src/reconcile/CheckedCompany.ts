/** A company during a check: which events it wants, and what they are about. */
import type * as Duration from "effect/Duration"

export interface CheckedCompany {
  readonly name: string
  /** The address for its deliveries; null accepts any address that ends in `/hooks/` and its name. */
  readonly url: string | null
  /** Every wanted event. */
  readonly events: ReadonlyArray<string>
  /** The synced resource of each wanted event. An event of an unsynced resource cannot leave a gap. */
  readonly wanted: ReadonlyMap<string, string>
  /** The resources with events of removals that no cursor shows. */
  readonly removing: ReadonlySet<string>
  /** Wanted events that the source does not deliver, by the scope that the token lacks. */
  readonly unreadable: ReadonlyMap<string, string>
  readonly isSynced: (resource: string) => boolean
  readonly overlapMs: number
  readonly unobservedMax: Duration.Duration
}

/** The resources of those events that are wanted and delivered. */
export const deliveredResources = (
  { wanted, unreadable }: CheckedCompany,
  events: ReadonlyArray<string>
): ReadonlySet<string> => new Set(events.flatMap((event) => (unreadable.has(event) ? [] : (wanted.get(event) ?? []))))

/** The wanted events of a company, by the synced resources that they are about. */

/** By event its resource. Events have names like `<resource>.<verb>`. Events of unsynced resources cannot leave a gap. */
export const wantedOf = (
  events: ReadonlyArray<string>,
  isSynced: (resource: string) => boolean
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const resource = event.slice(0, Math.max(0, event.lastIndexOf(".")))
      return isSynced(resource) ? [[event, resource] as const] : []
    })
  )

/** The resources of those events that are wanted. */
export const resourcesOf = (events: ReadonlyArray<string>, wanted: ReadonlyMap<string, string>): ReadonlySet<string> =>
  new Set(events.flatMap((event) => wanted.get(event) ?? []))

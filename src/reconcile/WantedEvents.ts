/** The wanted events of a company, by the synced resources that they are about. */

/** The resource of each wanted event. Events of unsynced resources cannot leave a gap. */
export const wantedOf = (
  events: ReadonlyArray<string>,
  resourceOf: (event: string) => string | null,
  isSynced: (resource: string) => boolean
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const resource = resourceOf(event) ?? ""
      return isSynced(resource) ? [[event, resource] as const] : []
    })
  )

/** The resources of those events that are wanted. */
export const resourcesOf = (events: ReadonlyArray<string>, wanted: ReadonlyMap<string, string>): ReadonlySet<string> =>
  new Set(events.flatMap((event) => wanted.get(event) ?? []))

/** Events that a token may not read: the source does not deliver them (EVT-02, H-03). */
import type { Catalogue } from "../catalogue/Catalogue.ts"

/** Undeliverable events with the missing scope; empty where the source does not report scopes. */
export const undeliverableEvents = (
  { resources }: Catalogue,
  scopes: ReadonlyArray<string> | null,
  events: ReadonlyArray<string>
): ReadonlyMap<string, string> =>
  new Map(
    events.flatMap((event) => {
      const area = resources.get(event.slice(0, Math.max(0, event.lastIndexOf("."))))?.area
      if (scopes === null || area === undefined || area === "" || scopes.includes("*")) return []
      const isReadable = scopes.includes(`${area}:read`) || scopes.includes(`${area}:*`)
      return isReadable ? [] : [[event, `${area}:read`] as const]
    })
  )
